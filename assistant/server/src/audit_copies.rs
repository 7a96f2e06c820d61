//! Copies of the audit log's checkpoints: into the embedded engine, and back out of every place for verification.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sightline_audit::{AuditReader, Checkpoint, CheckpointCopy, Copied, FileCopy};
use sightline_engine::{Writer, keep_checkpoint, kept_checkpoints, make_checkpoint_table, newest_checkpoint};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::config::Config;

/// What the engine's table is called in the log.
const NAME: &str = "engine table audit_checkpoint";

/// Copies checkpoints into a table of the engine, beside the writing of the log: a slow engine holds up no record.
#[derive(Clone)]
pub struct EngineCopy {
    made: UnboundedSender<()>,
    /// Why the last try failed, until the log has been told.
    failed: Arc<Mutex<Option<String>>>,
}

impl EngineCopy {
    /// Starts copying the checkpoints of the log at this path.
    pub fn start(writer: Writer, log: PathBuf) -> Self {
        let (made, waiting) = unbounded_channel();
        let failed = Arc::new(Mutex::new(None));
        tokio::spawn(copy(writer, log, waiting, Arc::clone(&failed)));
        Self { made, failed }
    }
}

impl CheckpointCopy for EngineCopy {
    fn name(&self) -> &str {
        NAME
    }

    fn put(&mut self, _checkpoint: &Checkpoint) -> Result<(), String> {
        self.made.send(()).map_err(|_ended| "what copies to the engine has ended".to_owned())?;
        // What failed is copied with the next: the log holds it. It is only told here.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Copies what the log has and the table lacks, each time one was made.
async fn copy(writer: Writer, log: PathBuf, mut waiting: UnboundedReceiver<()>, failed: Arc<Mutex<Option<String>>>) {
    while waiting.recv().await.is_some() {
        while waiting.try_recv().is_ok() {}
        if let Err(what) = catch_up(&writer, &log).await {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        }
    }
}

async fn catch_up(writer: &Writer, log: &std::path::Path) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    if !log.exists() {
        return Ok(());
    }
    let log_id = AuditReader::open(log).and_then(|reader| reader.log_id()).map_err(|error| text(&error))?.to_string();
    make_checkpoint_table(writer).await.map_err(|error| text(&error))?;
    let newest = newest_checkpoint(writer, &log_id).await.map_err(|error| text(&error))?;
    let missing = AuditReader::open(log).and_then(|reader| reader.checkpoints(newest)).map_err(|error| text(&error))?;
    for checkpoint in missing {
        let json = serde_json::to_string(&checkpoint).map_err(|error| text(&error))?;
        keep_checkpoint(writer, &log_id, checkpoint.segment, &json).await.map_err(|error| text(&error))?;
    }
    Ok(())
}

/// What every second place holds, for verification. A place that cannot be read is named.
pub async fn copied(config: &Config, writer: Option<&Writer>) -> Vec<Result<Copied, String>> {
    let mut places = Vec::new();
    if let Some(file) = &config.checkpoint_copy {
        places.push(FileCopy::read(file).map_err(|error| error.to_string()));
    }
    if let Some(writer) = writer {
        places.push(engine_copied(writer).await.map_err(|error| format!("{NAME}: {error}")));
    }
    places
}

async fn engine_copied(writer: &Writer) -> Result<Copied, sightline_engine::WriteError> {
    make_checkpoint_table(writer).await?;
    let mut copied = Copied { name: NAME.to_owned(), ..Copied::default() };
    for line in kept_checkpoints(writer).await? {
        match serde_json::from_str(&line) {
            Ok(checkpoint) => copied.checkpoints.push(checkpoint),
            Err(_not_one) => copied.unreadable = copied.unreadable.saturating_add(1),
        }
    }
    Ok(copied)
}
