//! Answers as they are kept for those who asked: conversations, the points behind citations, and what was thought of them.
//!
//! Everything belongs to one principal. What is somebody else's is told like what does not exist.

mod conversations;
mod evidence;
mod feedback;
mod keep;
mod migrations;
mod retention;
mod rights;

#[cfg(test)]
mod answers_tests;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{Timestamp, ToSpan as _};
use rusqlite::Connection;

pub use conversations::{AnswerEntry, ConversationFile, ConversationLine, Conversations};
pub use evidence::Lookup;
pub use feedback::{Feedback, Verdict};
pub use keep::Kept;
pub(crate) use keep::Whose;
pub use retention::Swept;
pub(crate) use rights::RIGHTS_CHANGED;

use migrations::VERSION;

/// Why answers cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// The database failed.
    #[error("the answer store cannot be used: {0}; check that the data folder is yours and the disk is not full")]
    Database(#[from] rusqlite::Error),
    /// The database is newer.
    #[error("the answer store has format {found}, newer than this version's {VERSION}; use the newer `sightline`")]
    Newer {
        /// Its format.
        found: usize,
    },
    /// It could not be written as JSON, or what was written could not be read.
    #[error("an answer in the store cannot be written or read as JSON: {0}; report the answer's id")]
    Json(#[from] serde_json::Error),
    /// A time outside the calendar stands in it.
    #[error("a time in the answer store is outside the calendar: {0}; the file `answers.db` was changed from outside")]
    Time(#[from] jiff::Error),
    /// The thread that asked it was cut off.
    #[error("a look into the answer store was cut off: {0}; try again")]
    Crashed(String),
    /// A cursor that is none of ours.
    #[error("this cursor is not one of ours; leave it out to begin with the newest")]
    Cursor,
}

/// For how many days things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepDays {
    /// The points behind citations, from the answer on.
    pub evidence: i64,
    /// A conversation with its answers, from its last answer on.
    pub conversations: i64,
}

/// The store.
pub struct Answers {
    database: Mutex<Connection>,
    keep: KeepDays,
}

impl Answers {
    /// Opens the store of a data folder, and brings an older one up to date.
    ///
    /// # Errors
    /// When it cannot be opened or is newer.
    pub fn open(data_dir: &Path, keep: KeepDays) -> Result<Self, AnswersError> {
        let path = data_dir.join("answers.db");
        // Made readable by its owner alone; SQLite's files beside it become what it is. What fails here, fails below with a better word.
        let _ = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let mut database = Connection::open(path)?;
        migrations::migrate(&mut database)?;
        // What is deleted is overwritten: a deleted question must not be found in the file.
        database.execute_batch("PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON; PRAGMA foreign_keys = ON;")?;
        Ok(Self { database: Mutex::new(database), keep })
    }

    /// Does something with the store. It waits for the disk and for other processes, so that is done on a thread of its own.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, AnswersError> + Send + 'static,
    ) -> Result<T, AnswersError> {
        let store = Arc::clone(self);
        let asking = tokio::task::spawn_blocking(move || work(&store));
        asking.await.unwrap_or_else(|error| Err(AnswersError::Crashed(error.to_string())))
    }

    /// A poisoned lock only means that a handler panicked; SQLite rolled its transaction back.
    fn database(&self) -> MutexGuard<'_, Connection> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The instant so many days later.
fn days_after(now: Timestamp, days: i64) -> Timestamp {
    now.checked_add((days * 24).hours()).unwrap_or(Timestamp::MAX)
}

/// Folds the write-ahead log into the database, so that what was deleted does not live on in it. A reader that is in the way delays
/// it until the next time.
fn fold(database: &Connection) -> Result<(), AnswersError> {
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
