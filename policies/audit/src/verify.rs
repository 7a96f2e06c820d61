//! Is the log whole? If not: where is the first fault, and what is it?

use std::collections::BTreeMap;
use std::fmt;

use rusqlite::Connection;

use crate::chain::{Hash, Head};
use crate::error::AuditError;
use crate::file::{self, SignedHead};
use crate::key::PublicKey;
use crate::reader::AuditReader;

/// What verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every record is there, unchanged, in order and signed for.
    Whole {
        /// How many.
        records: u64,
    },
    /// Something is wrong.
    Broken(Broken),
}

/// The first fault of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The first bad record; none when the fault lies in no record.
    pub seq: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { records } => write!(f, "the log is whole: {records} records, signed up to the last"),
            Self::Broken(Broken { seq: Some(seq), what }) => write!(f, "the log is broken at record {seq}: {what}"),
            Self::Broken(Broken { seq: None, what }) => write!(f, "the log is broken: {what}"),
        }
    }
}

/// Why the walk over the log ended early: a fault in the log, or a failure to read it.
enum Stop {
    Broken(Broken),
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

fn broken(seq: impl Into<Option<u64>>, what: impl Into<String>) -> Stop {
    Stop::Broken(Broken { seq: seq.into(), what: what.into() })
}

impl AuditReader {
    /// Checks every record, every checkpoint, the head and the file itself against this public key.
    pub fn verify(&self, key: &PublicKey) -> Result<Verdict, AuditError> {
        // One transaction: the log as it was at one moment, although others write.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        match check(&transaction, key) {
            Ok(records) => Ok(Verdict::Whole { records }),
            Err(Stop::Broken(broken)) => Ok(Verdict::Broken(broken)),
            Err(Stop::Failed(error)) => match AuditError::sqlite(&self.path, &error) {
                AuditError::Damaged { .. } => {
                    let what = format!("the database file is damaged: {error}");
                    Ok(Verdict::Broken(Broken { seq: None, what }))
                }
                other => Err(other),
            },
        }
    }
}

fn check(connection: &Connection, key: &PublicKey) -> Result<u64, Stop> {
    check_shape(connection)?;
    let log_id = file::log_id(connection).map_err(|_error| broken(None, "the id of the log is gone or changed"))?;
    let checkpoints = checkpoints(connection)?;
    let records = check_chain(connection, key, &log_id, &checkpoints)?;
    check_head(connection, key, &log_id, &records, &checkpoints)?;
    check_file(connection)?;
    Ok(records.seq)
}

/// The tables, indexes and triggers must be those of this format: a changed one could hide records or let them change.
fn check_shape(connection: &Connection) -> Result<(), Stop> {
    let expected = Connection::open_in_memory()?;
    expected.execute_batch(file::SCHEMA)?;
    if shape(connection)? == shape(&expected)? {
        return Ok(());
    }
    Err(broken(None, "a table, index or trigger of the file was added, removed or changed"))
}

fn shape(connection: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn checkpoints(connection: &Connection) -> Result<BTreeMap<u64, SignedHead>, Stop> {
    let mut statement =
        connection.prepare("SELECT seq, hash, previous, key_id, signature FROM checkpoint ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut checkpoints = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let at = row.get::<_, u64>(0).ok();
        let checkpoint = SignedHead::read(row).map_err(|_error| broken(at, "its checkpoint was changed"))?;
        checkpoints.insert(checkpoint.head.seq, checkpoint);
    }
    Ok(checkpoints)
}

/// Walks the records in order and returns the head of the chain that they make.
fn check_chain(
    connection: &Connection,
    key: &PublicKey,
    log_id: &[u8; 16],
    checkpoints: &BTreeMap<u64, SignedHead>,
) -> Result<Head, Stop> {
    let mut statement = connection.prepare("SELECT seq, body, prev, hash FROM record ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut head = Head::empty(log_id);
    while let Some(row) = rows.next()? {
        let expected = head.seq.saturating_add(1);
        let Ok(seq) = row.get::<_, u64>(0) else {
            return Err(broken(expected, "a record with a negative number was added"));
        };
        if seq != expected {
            return Err(broken(expected, missing(expected, seq.saturating_sub(1))));
        }
        let body = row.get_ref(1)?.as_bytes().map_err(|_error| broken(seq, "its text was changed"))?;
        let (Ok(prev), Ok(hash)) = (row.get::<_, [u8; 32]>(2), row.get::<_, [u8; 32]>(3)) else {
            return Err(broken(seq, "its hashes were changed"));
        };
        let (prev, hash) = (Hash::from_bytes(prev), Hash::from_bytes(hash));
        if prev.next(seq, body) != hash {
            let what = match moved_to(connection, head.hash, seq)? {
                Some(elsewhere) => format!("the order was changed: what was record {seq} stands at {elsewhere}"),
                None => "its text or its hash was changed".to_owned(),
            };
            return Err(broken(seq, what));
        }
        if prev != head.hash {
            // This record is as it was written, so it is the one before it that is not.
            return Err(if head.seq == 0 {
                broken(seq, "it does not belong to this log: the first record or the id of the log was changed")
            } else {
                broken(head.seq, "it was changed and hashed anew: the next record covers another")
            });
        }
        let previous = if checkpoints.contains_key(&seq) { seq } else { head.previous };
        if let Some(checkpoint) = checkpoints.get(&seq) {
            let made = Head { seq, hash, previous: head.previous };
            check_signed("the checkpoint", checkpoint, &made, key, log_id)?;
        }
        head = Head { seq, hash, previous };
    }
    Ok(head)
}

fn missing(first: u64, last: u64) -> String {
    if first == last { format!("record {first} is missing") } else { format!("records {first} to {last} are missing") }
}

/// A head or checkpoint against the chain as it stands: `made` carries the last checkpoint before it.
fn check_signed(name: &str, signed: &SignedHead, made: &Head, key: &PublicKey, log_id: &[u8; 16]) -> Result<(), Stop> {
    // Up to the checkpoint before, the records are vouched for.
    let first = made.previous.saturating_add(1).min(made.seq);
    if signed.key_id != key.id() {
        let what = format!("{name} there is signed with key {}, not with {}", signed.key_id, key.id());
        return Err(broken(made.seq, what));
    }
    if !signed.is_signed_by(log_id, key) {
        let what = format!("{name} at record {} was changed: its signature is not that of the key", made.seq);
        return Err(broken(first, what));
    }
    if signed.head.hash != made.hash {
        let what = format!("a record from {first} to {} was changed and all after it hashed anew", made.seq);
        return Err(broken(first, what));
    }
    if signed.head.previous != made.previous {
        let (low, high) = (signed.head.previous.min(made.previous), signed.head.previous.max(made.previous));
        let what = format!("a checkpoint or the head was added, removed or replaced after record {low}");
        return Err(broken(high, what));
    }
    Ok(())
}

/// The head must be signed and name the very last record: else the end was cut off, or added to from outside.
fn check_head(
    connection: &Connection,
    key: &PublicKey,
    log_id: &[u8; 16],
    made: &Head,
    checkpoints: &BTreeMap<u64, SignedHead>,
) -> Result<(), Stop> {
    let next = made.seq.saturating_add(1);
    let signed = file::stored_head(connection).map_err(|_error| broken(None, "the head was changed or removed"))?;
    let last_signed = checkpoints.keys().last().copied().unwrap_or(0).max(signed.head.seq);
    if last_signed > made.seq {
        return Err(broken(next, format!("the end was cut off: {}", missing(next, last_signed))));
    }
    if signed.head.seq < made.seq {
        let first = signed.head.seq.saturating_add(1);
        return Err(broken(first, "the end was added from outside: nothing signs for it"));
    }
    check_signed("the head", &signed, made, key, log_id)
}

/// The record whose text was written as number `seq` after the record of this hash, if it stands elsewhere now.
fn moved_to(connection: &Connection, before: Hash, seq: u64) -> rusqlite::Result<Option<u64>> {
    let mut statement = connection.prepare("SELECT seq, body, hash FROM record WHERE seq <> ?1")?;
    let mut rows = statement.query([seq])?;
    while let Some(row) = rows.next()? {
        let (Ok(elsewhere), Ok(body), Ok(hash)) =
            (row.get::<_, u64>(0), row.get_ref(1)?.as_bytes(), row.get::<_, [u8; 32]>(2))
        else {
            continue;
        };
        if before.next(seq, body) == Hash::from_bytes(hash) {
            return Ok(Some(elsewhere));
        }
    }
    Ok(None)
}

/// Pages and indexes: a damaged index would hide records from lists although the chain is whole.
fn check_file(connection: &Connection) -> Result<(), Stop> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(broken(None, format!("the database file is damaged: {found}"))) }
}
