//! The SQLite file: its format, and adding records to it.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};

use crate::chain::{Hash, Head};
use crate::error::AuditError;
use crate::key::{AuditKey, PublicKey};

#[cfg(test)]
mod file_tests;

/// The newest format this program reads and writes; `PRAGMA user_version` of the file.
pub(crate) const FORMAT: i64 = 1;
/// `SLAU`, so that no other program's database is taken for a log.
const APPLICATION_ID: i64 = 0x534c_4155;

/// Nothing is stored twice: what is looked up by is derived from the canonical text by the database itself, so
/// there is no column beside it that could be changed alone. A text that was damaged into no JSON drops out of the
/// lists and leaves the rest of them readable; verification names it.
pub(crate) const SCHEMA: &str = "
CREATE TABLE log (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL) STRICT;
CREATE TABLE record (
  seq INTEGER PRIMARY KEY,
  body TEXT NOT NULL,
  prev BLOB NOT NULL,
  hash BLOB NOT NULL,
  kind TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.kind' END) VIRTUAL,
  question_id TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.question_id' END) VIRTUAL
) STRICT;
CREATE INDEX record_by_kind ON record (kind);
CREATE INDEX record_by_question ON record (question_id);
CREATE TABLE head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL, hash BLOB NOT NULL, previous INTEGER NOT NULL, key_id TEXT NOT NULL, signature BLOB NOT NULL
) STRICT;
CREATE TABLE checkpoint (
  seq INTEGER PRIMARY KEY,
  hash BLOB NOT NULL, previous INTEGER NOT NULL, key_id TEXT NOT NULL, signature BLOB NOT NULL
) STRICT;
CREATE TRIGGER record_is_not_changed BEFORE UPDATE ON record BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER record_is_not_removed BEFORE DELETE ON record BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER checkpoint_is_not_changed BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER checkpoint_is_not_removed BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
";

/// 16 MiB of write-ahead log between two folds into the database: each fold costs two more syncs.
const FOLD_EVERY_PAGES: i64 = 4_000;

/// A signed head or checkpoint as it is stored.
pub(crate) struct SignedHead {
    pub(crate) head: Head,
    pub(crate) key_id: String,
    pub(crate) signature: [u8; 64],
}

impl SignedHead {
    /// Reads the columns `seq, hash, previous, key_id, signature`.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let head = Head { seq: row.get(0)?, hash: Hash::from_bytes(row.get(1)?), previous: row.get(2)? };
        Ok(Self { head, key_id: row.get(3)?, signature: row.get(4)? })
    }

    pub(crate) fn is_signed_by(&self, log_id: &[u8; 16], key: &PublicKey) -> bool {
        self.key_id == key.id() && key.signed(log_id, &self.head, &self.signature)
    }
}

/// The log, open for adding to it.
pub(crate) struct LogFile {
    connection: Connection,
    path: PathBuf,
    log_id: [u8; 16],
    key: AuditKey,
    key_id: String,
    checkpoint_every: u64,
    /// The head as this process last left it: known good, and never to be undercut.
    last: Option<Head>,
}

impl LogFile {
    /// Opens the log, or makes it (mode 0600) with this id.
    pub(crate) fn open(
        path: &Path,
        key: AuditKey,
        new_log_id: [u8; 16],
        checkpoint_every: u64,
        lock_wait: Duration,
    ) -> Result<Self, AuditError> {
        make_private(path)?;
        let failed = |error: rusqlite::Error| AuditError::sqlite(path, &error);
        let mut connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(failed)?;
        connection.busy_timeout(lock_wait).map_err(failed)?;
        let key_id = key.public().id();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        if is_new(&transaction).map_err(failed)? {
            let head = Head::empty(&new_log_id);
            transaction.execute_batch(SCHEMA).map_err(failed)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
            transaction.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
            transaction.execute("INSERT INTO log (one, id) VALUES (1, ?1)", params![new_log_id]).map_err(failed)?;
            transaction
                .execute(
                    "INSERT INTO head (one, seq, hash, previous, key_id, signature) VALUES (1, ?1, ?2, ?3, ?4, ?5)",
                    params![head.seq, head.hash.as_bytes(), head.previous, key_id, key.sign(&new_log_id, &head)],
                )
                .map_err(failed)?;
        }
        check_format(&transaction, path)?;
        transaction.commit().map_err(failed)?;
        // WAL: readers do not block the writer. FULL: a commit returns when it is on the disk.
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        connection.pragma_update(None, "wal_autocheckpoint", FOLD_EVERY_PAGES).map_err(failed)?;

        let log_id = log_id(&connection).map_err(failed)?;
        let signed_by = stored_head(&connection).map_err(failed)?.key_id;
        if signed_by != key_id {
            return Err(AuditError::OtherKey { path: path.display().to_string(), signed_by, given: key_id });
        }
        let checkpoint_every = checkpoint_every.max(1);
        Ok(Self { connection, path: path.to_owned(), log_id, key, key_id, checkpoint_every, last: None })
    }

    /// Adds these canonical records in one transaction and returns each one's place in the chain, durable.
    pub(crate) fn append<'a>(&mut self, bodies: impl IntoIterator<Item = &'a str>) -> Result<Vec<Head>, AuditError> {
        let Self { connection, path, log_id, key, key_id, checkpoint_every, last } = self;
        let failed = |error: rusqlite::Error| AuditError::sqlite(path, &error);
        // The write lock comes first: between reading the head and writing the next record no other process may write.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let stored = stored_head(&transaction).map_err(failed)?;
        let undercut = last.is_some_and(|last| stored.head.seq < last.seq);
        let known = last.is_some_and(|last| stored.head == last);
        if undercut || !(known || stored.is_signed_by(log_id, &key.public())) {
            return Err(AuditError::Tampered { path: path.display().to_string(), seq: stored.head.seq });
        }

        let mut head = stored.head;
        let mut places = Vec::new();
        {
            let mut insert = transaction
                .prepare_cached("INSERT INTO record (seq, body, prev, hash) VALUES (?1, ?2, ?3, ?4)")
                .map_err(failed)?;
            for body in bodies {
                let seq = head.seq.saturating_add(1);
                let hash = head.hash.next(seq, body.as_bytes());
                insert.execute(params![seq, body, head.hash.as_bytes(), hash.as_bytes()]).map_err(failed)?;
                head = Head { seq, hash, previous: head.previous };
                places.push(head);
            }
        }
        if head.seq.saturating_sub(head.previous) >= *checkpoint_every {
            head.previous = add_checkpoint(&transaction, &head, key_id, &key.sign(log_id, &head)).map_err(failed)?;
        }
        transaction
            .prepare_cached(
                "UPDATE head SET seq = ?1, hash = ?2, previous = ?3, key_id = ?4, signature = ?5 WHERE one = 1",
            )
            .and_then(|mut update| {
                let signature = key.sign(log_id, &head);
                update.execute(params![head.seq, head.hash.as_bytes(), head.previous, key_id.as_str(), signature])
            })
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        *last = Some(head);
        Ok(places)
    }
}

/// Adds a checkpoint at this head and returns its number, which the next one names as the one before it.
fn add_checkpoint(connection: &Connection, head: &Head, key_id: &str, signature: &[u8; 64]) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("INSERT INTO checkpoint (seq, hash, previous, key_id, signature) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![head.seq, head.hash.as_bytes(), head.previous, key_id, signature])?;
    Ok(head.seq)
}

/// Makes the file with mode 0600 before SQLite does with a wider one.
fn make_private(path: &Path) -> Result<(), AuditError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_file) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::AlreadyExists => Ok(()),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Err(AuditError::ReadOnly { path: path.display().to_string() })
            }
            ErrorKind::StorageFull => Err(AuditError::Full { path: path.display().to_string() }),
            _ => Err(AuditError::Open { path: path.display().to_string(), what: error.to_string() }),
        },
    }
}

fn is_new(connection: &Connection) -> rusqlite::Result<bool> {
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(objects == 0 && format == 0)
}

/// Refuses a file of a newer program, and one that is no log at all.
pub(crate) fn check_format(connection: &Connection, path: &Path) -> Result<(), AuditError> {
    let pragma = |name: &str| -> Result<i64, AuditError> {
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|error| AuditError::sqlite(path, &error))
    };
    let (application, found) = (pragma("application_id")?, pragma("user_version")?);
    if application != APPLICATION_ID || found < 1 {
        return Err(AuditError::Damaged { path: path.display().to_string() });
    }
    if found > FORMAT {
        return Err(AuditError::Newer { path: path.display().to_string(), found, known: FORMAT });
    }
    Ok(())
}

/// The id that the first record covers.
pub(crate) fn log_id(connection: &Connection) -> rusqlite::Result<[u8; 16]> {
    connection.query_row("SELECT id FROM log WHERE one = 1", [], |row| row.get(0))
}

/// The signed head.
pub(crate) fn stored_head(connection: &Connection) -> rusqlite::Result<SignedHead> {
    connection
        .prepare_cached("SELECT seq, hash, previous, key_id, signature FROM head WHERE one = 1")?
        .query_row([], SignedHead::read)
        .optional()?
        .ok_or(rusqlite::Error::QueryReturnedNoRows)
}
