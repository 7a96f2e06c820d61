//! The SQLite file: opening it, and the one way of writing to it.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};

use crate::chain::{Hash, Head};
use crate::checkpoint::Checkpoint;
use crate::error::AuditError;
use crate::key::{AuditKey, PublicKey};
use crate::log::KeyAgain;
use crate::tail::{Entry, Tail};

pub(crate) mod erase;
#[cfg(test)]
mod file_tests;
#[cfg(test)]
pub(crate) mod format_tests;
mod place;
#[cfg(test)]
mod place_tests;
pub(crate) mod retain;
pub(crate) mod rotate;
pub(crate) mod schema;

use place::{Found, Place};

/// 16 MiB of write-ahead log between two folds into the database: each fold costs two more syncs.
const FOLD_EVERY_PAGES: i64 = 4_000;

/// A signed head or checkpoint of format 1 as it is stored.
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
        self.key_id == key.id() && key.signed(&self.head.signed_bytes(log_id), &self.signature)
    }
}

/// What stopped a transaction: SQLite, or something of our own.
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Audit(AuditError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<AuditError> for Fault {
    fn from(error: AuditError) -> Self {
        Self::Audit(error)
    }
}

/// How the file is written.
pub(crate) struct Opening {
    pub(crate) key: AuditKey,
    pub(crate) new_log_id: [u8; 16],
    pub(crate) checkpoint_every: u64,
    pub(crate) lock_wait: Duration,
    pub(crate) key_again: Option<KeyAgain>,
}

/// The log, open for adding to it.
pub(crate) struct LogFile {
    connection: Connection,
    path: PathBuf,
    place: Place,
    log_id: [u8; 16],
    key: AuditKey,
    checkpoint_every: u64,
    /// The head as this process last left it: known good, and never to be undercut.
    last: Option<Head>,
    /// The time of that head's record.
    last_at: Option<Timestamp>,
    /// Checkpoints that were made and not yet taken away to be copied.
    made: Vec<Checkpoint>,
    key_again: Option<KeyAgain>,
}

impl LogFile {
    /// Opens the log, or makes it (mode 0600) with this id. A log of an older format grows into this one.
    pub(crate) fn open(path: &Path, opening: Opening) -> Result<Self, AuditError> {
        let Opening { key, new_log_id, checkpoint_every, lock_wait, key_again } = opening;
        make_private(path)?;
        let failed = |error: rusqlite::Error| AuditError::sqlite(path, &error);
        let mut connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(failed)?;
        connection.busy_timeout(lock_wait).map_err(failed)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        if schema::is_new(&transaction).map_err(failed)? {
            let head = Head::empty(&new_log_id);
            schema::migrate(&transaction, schema::FORMAT).map_err(failed)?;
            transaction.execute("INSERT INTO log (one, id) VALUES (1, ?1)", params![new_log_id]).map_err(failed)?;
            transaction
                .execute(
                    "INSERT INTO head (one, seq, hash, previous, key_id, signature) VALUES (1, ?1, ?2, ?3, ?4, ?5)",
                    params![
                        head.seq,
                        head.hash.as_bytes(),
                        head.previous,
                        key.public().id(),
                        key.sign(&head.signed_bytes(&new_log_id)),
                    ],
                )
                .map_err(failed)?;
        }
        if schema::check_format(&transaction, path)? < schema::FORMAT {
            schema::migrate(&transaction, schema::FORMAT).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        // WAL: readers do not block the writer. FULL: a commit returns when it is on the disk.
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        connection.pragma_update(None, "wal_autocheckpoint", FOLD_EVERY_PAGES).map_err(failed)?;
        // What is erased is written over, not only let go of.
        connection.pragma_update(None, "secure_delete", true).map_err(failed)?;

        let log_id = log_id(&connection).map_err(|error| unreadable(path, "the id of the log", &error))?;
        let signed_by = signed_head(&connection, path)?.key_id;
        if signed_by != key.public().id() {
            let given = key.public().id();
            return Err(AuditError::OtherKey { path: path.display().to_string(), signed_by, given });
        }
        // Reading the head has opened the write-ahead log too.
        let place = Place::of(path)
            .map_err(|error| AuditError::Open { path: path.display().to_string(), what: error.to_string() })?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            place,
            log_id,
            key,
            checkpoint_every: checkpoint_every.max(1),
            last: None,
            last_at: None,
            made: Vec::new(),
            key_again,
        })
    }

    /// Adds these records in one transaction and returns each one's place in the chain, durable.
    pub(crate) fn append<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> Result<Vec<Head>, AuditError> {
        self.write(|tail| entries.into_iter().map(|entry| tail.add(entry)).collect())
    }

    /// The time of the last record of this process.
    pub(crate) fn last_at(&self) -> Option<Timestamp> {
        self.last_at
    }

    /// The checkpoints that were made since the last call.
    pub(crate) fn take_checkpoints(&mut self) -> Vec<Checkpoint> {
        std::mem::take(&mut self.made)
    }

    /// One transaction: the head as it was left and nothing else is continued, `work` adds records, a segment is
    /// closed where it is due, the new head is signed.
    fn write<T>(&mut self, work: impl FnOnce(&mut Tail<'_>) -> Result<T, Fault>) -> Result<T, AuditError> {
        let path = self.path.clone();
        match self.transact(work) {
            Ok(done) => Ok(done),
            Err(Fault::Sqlite(error)) => Err(AuditError::sqlite(&path, &error)),
            Err(Fault::Audit(error)) => Err(error),
        }
    }

    fn transact<T>(&mut self, work: impl FnOnce(&mut Tail<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
        let found = self.look()?;
        let Self { connection, path, place, log_id, key, checkpoint_every, last, last_at, made, key_again } = self;
        // The write lock comes first: between reading the head and writing the next record no other process may write.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let stored = signed_head(&transaction, path)?;
        let undercut = last.is_some_and(|last| stored.head.seq < last.seq);
        let known = last.is_some_and(|last| stored.head == last);
        if stored.key_id != key.public().id()
            && let Some(new) = key_again.as_ref().and_then(|again| again(&stored.key_id))
            && rotate::leads_to(&transaction, log_id, &key.public(), &new.public())?
        {
            *key = new;
        }
        let signed_by = key.public();
        if !undercut && stored.key_id != signed_by.id() {
            let (path, given) = (path.display().to_string(), signed_by.id());
            return Err(AuditError::OtherKey { path, signed_by: stored.key_id, given }.into());
        }
        if undercut || !(known || stored.is_signed_by(log_id, &signed_by)) {
            return Err(AuditError::Tampered { path: path.display().to_string(), seq: stored.head.seq }.into());
        }
        if found == Found::Written && !is_laid_out(&transaction, log_id, &stored.head)? {
            return Err(AuditError::Tampered { path: path.display().to_string(), seq: stored.head.seq }.into());
        }
        let before = if known { *last_at } else { time_of(&transaction, stored.head.seq)? };
        let mut tail = Tail::new(&transaction, log_id, key, stored.head, before);
        let done = work(&mut tail)?;
        let checkpoint = tail.close_if_due(*checkpoint_every)?;
        let (head, at, new_key) = tail.end();
        {
            let signing = new_key.as_ref().unwrap_or(key);
            transaction
                .prepare_cached(
                    "UPDATE head SET seq = ?1, hash = ?2, previous = ?3, key_id = ?4, signature = ?5 WHERE one = 1",
                )?
                .execute(params![
                    head.seq,
                    head.hash.as_bytes(),
                    head.previous,
                    signing.public().id(),
                    signing.sign(&head.signed_bytes(log_id)),
                ])?;
        }
        transaction.commit()?;
        // A commit may fold; who writes into the file from here on is another.
        place.remember();
        *last = Some(head);
        *last_at = at;
        if let Some(new_key) = new_key {
            *key = new_key;
        }
        made.extend(checkpoint);
        Ok(done)
    }

    /// Nothing is written into files that nobody can find again.
    fn look(&self) -> Result<Found, Fault> {
        let found = self.place.look();
        match found {
            Found::Same => {}
            // What SQLite remembers of the file may be there no more.
            Found::Written => self.connection.execute_batch("PRAGMA shrink_memory")?,
            Found::Moved => return Err(AuditError::Moved { path: self.path.display().to_string() }.into()),
        }
        Ok(found)
    }

    /// Moves what was committed from the write-ahead log into the database, as far as no reader holds it back; it
    /// waits for nobody. Says whether all of it is there now: then a copy of the one file is a copy of the log.
    pub(crate) fn settle(&mut self) -> bool {
        if !self.may_settle() {
            return false;
        }
        let moved = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        match moved {
            Ok((busy, frames, settled)) => {
                self.place.remember();
                !busy && frames == settled
            }
            Err(error) => {
                tracing::warn!(%error, "the audit log's write-ahead log cannot be folded into it; it is tried again");
                false
            }
        }
    }

    /// What was laid over the database is not mixed with what belongs to it: the next record that is to be written
    /// says what is wrong.
    fn may_settle(&self) -> bool {
        match self.look() {
            Ok(Found::Same) => true,
            Ok(Found::Written) => stored_head(&self.connection).is_ok_and(|stored| {
                self.last.is_none_or(|last| stored.head.seq >= last.seq)
                    && is_laid_out(&self.connection, &self.log_id, &stored.head).unwrap_or(false)
            }),
            Ok(Found::Moved) | Err(_) => false,
        }
    }

    /// Folds the write-ahead log into the database, so that what was erased is not left in it.
    fn fold(&self) {
        let busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        if !matches!(busy, Ok(false)) {
            tracing::warn!(
                ?busy,
                "what was erased stays in the write-ahead log until those who read it now have ended"
            );
        }
    }
}

/// Whether the file holds what the head stands on: this log, and the records of its last two segments. Asked when
/// somebody else wrote into the file, which may be a copy that was laid over it.
fn is_laid_out(connection: &Connection, log_id: &[u8; 16], head: &Head) -> rusqlite::Result<bool> {
    if self::log_id(connection)? != *log_id {
        return Ok(false);
    }
    let from: u64 = connection
        .prepare_cached("SELECT coalesce((SELECT first FROM segment ORDER BY segment DESC LIMIT 1), 1)")?
        .query_row([], |row| row.get(0))?;
    let (records, last): (u64, Option<u64>) = connection
        .prepare_cached("SELECT count(*), max(seq) FROM record WHERE seq >= ?1")?
        .query_row([from], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let hash: Option<[u8; 32]> = connection
        .prepare_cached("SELECT hash FROM record WHERE seq = ?1")?
        .query_row([head.seq], |row| row.get(0))
        .optional()?;
    let is_there = head.seq == 0 || hash == Some(*head.hash.as_bytes());
    Ok(is_there && last.unwrap_or(0) == head.seq && records == head.seq.saturating_add(1).saturating_sub(from))
}

/// The time in this record's text; none for a text that is damaged or for no record.
fn time_of(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Timestamp>> {
    let at: Option<Option<String>> = connection
        .prepare_cached("SELECT CASE WHEN json_valid(body) THEN body ->> '$.at' END FROM record WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    Ok(at.flatten().and_then(|text| text.parse().ok()))
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

/// The id that the first record covers.
pub(crate) fn log_id(connection: &Connection) -> rusqlite::Result<[u8; 16]> {
    connection.query_row("SELECT id FROM log WHERE one = 1", [], |row| row.get(0))
}

/// The signed head, to write on from.
fn signed_head(connection: &Connection, path: &Path) -> Result<SignedHead, AuditError> {
    stored_head(connection).map_err(|error| unreadable(path, "the signed head", &error))
}

/// The database failed, or holds `what` no more as it was written.
fn unreadable(path: &Path, what: &str, error: &rusqlite::Error) -> AuditError {
    match AuditError::sqlite(path, error) {
        AuditError::Changed { path, what: _ } => {
            AuditError::Changed { path, what: format!("{what} {}", gone_or_changed(error)) }
        }
        other => other,
    }
}

/// What was done to a row that is always there.
pub(crate) fn gone_or_changed(error: &rusqlite::Error) -> &'static str {
    match error {
        rusqlite::Error::QueryReturnedNoRows => "was removed",
        _ => "was changed into something that this program never writes",
    }
}

/// The signed head.
pub(crate) fn stored_head(connection: &Connection) -> rusqlite::Result<SignedHead> {
    connection
        .prepare_cached("SELECT seq, hash, previous, key_id, signature FROM head WHERE one = 1")?
        .query_row([], SignedHead::read)
        .optional()?
        .ok_or(rusqlite::Error::QueryReturnedNoRows)
}
