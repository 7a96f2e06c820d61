//! Copies of checkpoints in a second place: what was cut off or put back in the log shows against them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::checkpoint::{Checkpoint, Hex};
use crate::error::AuditError;

/// A second place that checkpoints are copied to.
pub trait CheckpointCopy: Send {
    /// What it is called in the log and to people.
    fn name(&self) -> &str;

    /// The newest segment of this log that the place holds, 0 for none: what comes after it is made up for. None for
    /// a place that sees to that itself.
    ///
    /// # Errors
    /// Why that cannot be told now, in one line; it is asked again at the next checkpoint.
    fn newest(&mut self, log_id: &Hex<16>) -> Result<Option<u64>, String>;

    /// Keeps this checkpoint, and returns when it is kept. It runs on a thread of the copy's own.
    ///
    /// # Errors
    /// Why it could not be kept, in one line; it is tried again with the next checkpoint.
    fn put(&mut self, checkpoint: &Checkpoint) -> Result<(), String>;
}

/// What a second place holds, for verification to compare the log with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// What the place is called.
    pub name: String,
    /// Its checkpoints, in any order, each once or more.
    pub checkpoints: Vec<Checkpoint>,
    /// Entries of it that are no checkpoint.
    pub unreadable: u64,
}

/// A file of one checkpoint a line, best on another disk or machine and one that can only be appended to.
#[derive(Debug)]
pub struct FileCopy {
    path: PathBuf,
    name: String,
}

impl FileCopy {
    /// Copies to this file, which is made at the first checkpoint.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), name: format!("file {}", path.display()) }
    }

    /// What this file holds. A line that was cut short, by a full disk or by somebody, is counted and passed over.
    ///
    /// # Errors
    /// When it cannot be read at all.
    pub fn read(path: &Path) -> Result<Copied, AuditError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| AuditError::Copy { path: path.display().to_string(), what: error.to_string() })?;
        let mut copied = Copied { name: path.display().to_string(), ..Copied::default() };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str(line) {
                Ok(checkpoint) => copied.checkpoints.push(checkpoint),
                Err(_not_one) => copied.unreadable = copied.unreadable.saturating_add(1),
            }
        }
        Ok(copied)
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        // Opened each time: a place that was unmounted and came back, or a file that was rotated away, is found again.
        let mut file: File = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        // One call with the whole line, begun on a line of its own: what was cut short before spoils no other.
        file.write_all(line.as_bytes())?;
        file.sync_all()
    }
}

impl CheckpointCopy for FileCopy {
    fn name(&self) -> &str {
        &self.name
    }

    fn newest(&mut self, log_id: &Hex<16>) -> Result<Option<u64>, String> {
        if !self.path.try_exists().map_err(|error| error.to_string())? {
            return Ok(Some(0));
        }
        let copied = Self::read(&self.path).map_err(|error| error.to_string())?;
        let ours = copied.checkpoints.iter().filter(|checkpoint| checkpoint.log_id == *log_id);
        Ok(Some(ours.map(|checkpoint| checkpoint.segment).max().unwrap_or(0)))
    }

    fn put(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        let line = serde_json::to_string(checkpoint).map_err(|error| error.to_string())?;
        self.append(&format!("\n{line}\n")).map_err(|error| error.to_string())
    }
}
