//! Is the log whole? If not: where is the first fault, and what is it?

use std::fmt;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;

use crate::copies::Copied;
use crate::error::AuditError;
use crate::file;
use crate::key::PublicKey;
use crate::reader::{self, AuditReader};

mod checkpoints;
mod copies;
mod keys;
mod notes;
mod shape;
pub(crate) mod walk;

pub use notes::HEARTBEAT_SECONDS;

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

/// What the log is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// A key that is trusted: the log's first, its last or any between.
    pub key: &'a PublicKey,
    /// The copies of its checkpoints. Without any, an end that was cut off together with its checkpoints does not show.
    pub copies: &'a [Copied],
    /// The time, to tell whether the log has fallen silent.
    pub now: Option<Timestamp>,
}

/// The verdict, and what a reviewer should know beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether the log is whole.
    pub verdict: Verdict,
    /// Remarks that make no log broken: silences, clocks that went back, what was erased or taken out.
    pub notes: Vec<Note>,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// How many checkpoints of copies were compared with it.
    pub compared: u64,
    /// Copies that could not show that the end is all there and the log not another: a whole log is not proved whole
    /// then.
    pub unproved: Vec<String>,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The record that it is about, if it is about one.
    pub seq: Option<u64>,
    /// What there is to know.
    pub what: String,
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

/// A row that is always there was taken away or changed, or the file cannot be read.
fn unless_failed(error: rusqlite::Error, what: &str) -> Stop {
    match error.sqlite_error_code() {
        Some(_) => Stop::Failed(error),
        None => broken(None, format!("{what} {}", file::gone_or_changed(&error))),
    }
}

/// What was seen up to where the check ended.
#[derive(Default)]
struct Seen {
    notes: notes::Notes,
    checkpoints: u64,
    compared: u64,
    unproved: Vec<String>,
}

impl AuditReader {
    /// Checks every record, every text, every checkpoint, the head and the file itself against this public key.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn verify(&self, key: &PublicKey) -> Result<Verdict, AuditError> {
        self.examine(&Check { key, copies: &[], now: None }).map(|report| report.verdict)
    }

    /// The same, compared with copies of the checkpoints, and with what a reviewer should know beside it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn examine(&self, check: &Check<'_>) -> Result<Report, AuditError> {
        // One transaction: the log as it was at one moment, although others write.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        let mut seen = Seen::default();
        let path = self.path.as_path();
        // The pages are checked beside the records, by a connection of their own: together they take as long as the slower.
        let (walked, pages) = std::thread::scope(|scope| {
            let pages = scope.spawn(move || check_file(path));
            let walked = check_all(&transaction, check, &mut seen);
            (walked, pages.join())
        });
        let pages = pages.unwrap_or_else(|_panicked| Err(broken(None, "the check of the database file did not end")));
        let verdict = match walked.and_then(|records| pages.map(|()| records)) {
            Ok(records) => Verdict::Whole { records },
            Err(Stop::Broken(broken)) => Verdict::Broken(broken),
            Err(Stop::Failed(error)) => match AuditError::sqlite(&self.path, &error) {
                AuditError::Changed { what, .. } => Verdict::Broken(Broken { seq: None, what }),
                AuditError::Damaged { .. } => {
                    let what = format!("the database file is damaged: {error}");
                    Verdict::Broken(Broken { seq: None, what })
                }
                other => return Err(other),
            },
        };
        let Seen { notes, checkpoints, compared, unproved } = seen;
        // Behind a break there may be records that were cut off: that they are not there is no silence.
        let now = match verdict {
            Verdict::Whole { .. } => check.now,
            Verdict::Broken(_) => None,
        };
        Ok(Report { verdict, notes: notes.end(now), checkpoints, compared, unproved })
    }
}

/// How many records there are, if all is well.
fn check_all(connection: &Connection, check: &Check<'_>, seen: &mut Seen) -> Result<u64, Stop> {
    let Some(shape::Misshapen { what, tables_stand }) = shape::check(connection)? else {
        return check_records(connection, check, seen);
    };
    // A changed index or a new trigger is a break, and the records may still say which of them it was made for.
    let found = if tables_stand { check_records(connection, check, seen).err() } else { None };
    Err(match found {
        Some(Stop::Broken(Broken { seq, what: found })) => broken(seq, format!("{found}; besides, {what}")),
        Some(Stop::Failed(_)) | None => broken(None, what),
    })
}

fn check_records(connection: &Connection, check: &Check<'_>, seen: &mut Seen) -> Result<u64, Stop> {
    let log_id = file::log_id(connection).map_err(|error| unless_failed(error, "the id of the log"))?;
    let keys = keys::Keys::load(connection, &log_id, check.key)?;
    let mut checkpoints = checkpoints::Checkpoints::load(connection, &log_id, keys)?;
    seen.checkpoints = checkpoints.count();
    let walked = walk::walk(connection, &log_id, &mut checkpoints, &mut seen.notes)?;
    checkpoints.check_head(connection, &walked.head)?;
    if let Some(seq) = walked.left_over {
        return Err(broken(seq, "there is a text for it and no such record"));
    }
    copies::compare(check, &log_id, &checkpoints, &walked.head, seen)?;
    Ok(walked.records)
}

/// Pages and indexes: a damaged index would hide records from lists although the chain is whole.
fn check_file(path: &Path) -> Result<(), Stop> {
    let connection = reader::connect(path)?;
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(broken(None, format!("the database file is damaged: {found}"))) }
}
