//! Whether the open files are still those that their names lead to. A file that was unlinked or replaced takes
//! records that nobody will ever read, and SQLite does not notice.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The log's files as they were when they were opened.
pub(super) struct Place {
    /// The database, its write-ahead log and the index of that: SQLite keeps all three while a connection is open.
    files: Vec<(PathBuf, Identity)>,
    /// The database as this process last left it.
    stamp: Option<Stamp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// What changes when somebody writes into the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for Stamp {
    fn from(of: &Metadata) -> Self {
        Self { length: of.size(), modified: (of.mtime(), of.mtime_nsec()), changed: (of.ctime(), of.ctime_nsec()) }
    }
}

/// How the files stand to those that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing was done to them.
    Same,
    /// Somebody wrote into the database: another process that folded, or a copy that was laid over it.
    Written,
    /// A name leads to another file or to none.
    Moved,
}

impl Place {
    /// Remembers the files. The names are only looked at, never opened: closing a file again would let go of the
    /// locks that SQLite holds on it for this process.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        // SQLite puts the others beside the file itself, not beside a link to it.
        let real = fs::canonicalize(path)?;
        let beside = ["-wal", "-shm"].map(|ending| {
            let mut name = real.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        });
        let files = std::iter::once(path.to_owned())
            .chain(beside)
            .filter_map(|path| identity(&path).map(|identity| (path, identity)))
            .collect();
        Ok(Self { files, stamp: stamp(path) })
    }

    pub(super) fn look(&self) -> Found {
        if self.files.iter().any(|(path, opened)| identity(path) != Some(*opened)) {
            return Found::Moved;
        }
        if self.files.first().is_some_and(|(path, _)| stamp(path) == self.stamp) { Found::Same } else { Found::Written }
    }

    /// What was written up to here is known.
    pub(super) fn remember(&mut self) {
        self.stamp = self.files.first().and_then(|(path, _)| stamp(path));
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|of| Identity { device: of.dev(), inode: of.ino() })
}

fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|of| Stamp::from(&of))
}
