//! Answers kept for their evidence: the points behind a citation, for as many days as configured, then gone.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{Timestamp, ToSpan as _};
use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;
use sightline_model::{Answer, AnswerId, Evidence, Series};

/// The version of the file's format.
const VERSION: i32 = 1;

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
        found: i32,
    },
    /// It could not be written as JSON.
    #[error("the evidence cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What became of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Its JSON.
    Found(String),
    /// It was there, and its days are over.
    Expired,
    /// There is none of that name for this asker.
    Unknown,
}

/// Evidence with its points, as it is served.
#[derive(Serialize)]
struct WithPoints<'a> {
    #[serde(flatten)]
    evidence: &'a Evidence,
    series: &'a [Series],
}

/// The store.
pub struct Answers {
    database: Mutex<Connection>,
    keep_days: i64,
}

impl Answers {
    /// Opens the store of a data folder.
    ///
    /// # Errors
    /// When it cannot be opened or is newer.
    pub fn open(data_dir: &Path, keep_days: i64) -> Result<Self, AnswersError> {
        let path = data_dir.join("answers.db");
        // Made readable by its owner alone; SQLite's files beside it become what it is. What fails here, fails below with a better word.
        let _ = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let database = Connection::open(path)?;
        let found: i32 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if found > VERSION {
            return Err(AnswersError::Newer { found });
        }
        database.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE IF NOT EXISTS evidence (
                 id TEXT PRIMARY KEY, principal TEXT NOT NULL, kept_until INTEGER NOT NULL, json TEXT
             ) STRICT;
             CREATE INDEX IF NOT EXISTS evidence_kept_until ON evidence (kept_until);
             PRAGMA user_version = 1;",
        )?;
        Ok(Self { database: Mutex::new(database), keep_days })
    }

    /// Keeps an answer's evidence for the one who asked, and lets go of what has expired.
    ///
    /// # Errors
    /// When the database fails.
    pub fn keep(&self, answer: &Answer, principal: &str, now: Timestamp) -> Result<(), AnswersError> {
        self.keep_evidence(&answer.answer_id, &answer.evidence, principal, now)
    }

    /// Keeps the evidence of an answer or of a typed call for the one who asked, and lets go of what has expired.
    ///
    /// # Errors
    /// When the database fails.
    pub fn keep_evidence(
        &self,
        answer_id: &AnswerId,
        evidence: &[Evidence],
        principal: &str,
        now: Timestamp,
    ) -> Result<(), AnswersError> {
        let kept_until = now.checked_add((self.keep_days * 24).hours()).unwrap_or(Timestamp::MAX).as_second();
        let mut database = self.database();
        let transaction = database.transaction()?;
        // The row stays without its points, so that a late reader learns that it expired.
        transaction.execute(
            "UPDATE evidence SET json = NULL WHERE kept_until <= ?1 AND json IS NOT NULL",
            [now.as_second()],
        )?;
        for evidence in evidence {
            let json = serde_json::to_string(&WithPoints { evidence, series: &evidence.series })?;
            let id = format!("{answer_id}.{}", evidence.id);
            transaction.execute(
                "INSERT OR REPLACE INTO evidence (id, principal, kept_until, json) VALUES (?1, ?2, ?3, ?4)",
                (&id, principal, kept_until, &json),
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The evidence of that id (`<answer id>.E1`), if this asker's question fetched it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn evidence(&self, id: &str, principal: &str, now: Timestamp) -> Result<Lookup, AnswersError> {
        let found: Option<(i64, Option<String>)> = self
            .database()
            .query_row(
                "SELECT kept_until, json FROM evidence WHERE id = ?1 AND principal = ?2",
                (id, principal),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        Ok(match found {
            Some((kept_until, Some(json))) if kept_until > now.as_second() => Lookup::Found(json),
            Some(_) => Lookup::Expired,
            None => Lookup::Unknown,
        })
    }

    /// A poisoned lock only means that a handler panicked; SQLite rolled its transaction back.
    fn database(&self) -> MutexGuard<'_, Connection> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
