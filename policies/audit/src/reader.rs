//! Reading the log: list, open, export. Reading is itself audited, by whoever calls this.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags, named_params};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sightline_model::QuestionId;
use sightline_model::audit::{Begin, Call, Complete};

use crate::chain::Hash;
use crate::error::AuditError;
use crate::file::{self, schema};
use crate::liveness::Liveness;
use crate::log::PROCESS;
use crate::record::Kind;
use crate::text;

/// What the outcome of a question without a complete record is called.
pub(crate) const OPEN: &str = "open";
/// What it is called when its process is gone.
pub(crate) const ABANDONED: &str = "abandoned";

/// Which questions to list. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Asked by the principal with exactly this id.
    pub principal: Option<String>,
    /// Asked by a principal of this tenant; an admin belongs to none in particular.
    pub tenant: Option<String>,
    /// Ended so; `open` for those that have not ended, `abandoned` for those whose process is gone.
    pub outcome: Option<String>,
    /// Asked at this time or later, to the millisecond.
    pub since: Option<Timestamp>,
    /// Asked before this time, to the millisecond.
    pub until: Option<Timestamp>,
    /// The question holds this text; ASCII letters match in either case.
    pub text: Option<String>,
    /// Begun before this record: the next page.
    pub before: Option<u64>,
    /// The most questions to return; 100 when not set, at most 1,000.
    pub limit: Option<u32>,
}

/// A page of questions, the newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The questions.
    pub questions: Vec<QuestionLine>,
    /// What to set `before` to for the next page; none on the last.
    pub next_before: Option<u64>,
}

/// One question in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionLine {
    /// Its begin record.
    pub begin: Sealed<Begin>,
    /// How many calls it made.
    pub calls: u64,
    /// Its complete record, if it has ended.
    pub complete: Option<Complete>,
    /// It has not ended and never will: the process that answered it is gone.
    pub abandoned: bool,
}

impl QuestionLine {
    /// How it ended, or `open`, or `abandoned`.
    pub fn outcome(&self) -> &str {
        outcome(self.complete.as_ref(), self.abandoned)
    }
}

pub(crate) fn outcome(complete: Option<&Complete>, abandoned: bool) -> &str {
    match complete {
        Some(complete) => &complete.outcome,
        None if abandoned => ABANDONED,
        None => OPEN,
    }
}

/// Everything that is recorded of one question.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionFile {
    /// Its begin record.
    pub begin: Sealed<Begin>,
    /// Its calls, in the order they were recorded.
    pub calls: Vec<Sealed<Call>>,
    /// Its complete record, if it has ended.
    pub complete: Option<Sealed<Complete>>,
    /// It has not ended and never will: the process that answered it is gone.
    pub abandoned: bool,
}

impl QuestionFile {
    /// How it ended, or `open`, or `abandoned`.
    pub fn outcome(&self) -> &str {
        outcome(self.complete.as_ref().map(|complete| &complete.record), self.abandoned)
    }
}

/// A record with its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed<T> {
    /// Its number, from 1.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// The record.
    pub record: T,
    /// Whether its text was erased on request: then the question reads `(erased)`, and a call has neither arguments
    /// nor parameters.
    pub erased: bool,
}

/// The log, open for reading.
#[derive(Debug)]
pub struct AuditReader {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    liveness: Option<Liveness>,
}

/// A stored record before it is taken apart.
pub(crate) struct Stored {
    pub(crate) seq: u64,
    hash: [u8; 32],
    body: String,
    /// What can be erased of it.
    text: Option<String>,
}

impl AuditReader {
    /// Opens the log at this path, which must exist.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let failed = |error: rusqlite::Error| AuditError::sqlite(path, &error);
        if !path.exists() {
            let what = "there is no such file, so nothing was recorded yet".to_owned();
            return Err(AuditError::Open { path: path.display().to_string(), what });
        }
        let connection = connect(path).map_err(failed)?;
        schema::check_format(&connection, path)?;
        schema::make_up_missing_tables(&connection).map_err(failed)?;
        Ok(Self { connection, path: path.to_owned(), liveness: None })
    }

    /// Tells questions that were abandoned from those that still run.
    #[must_use]
    pub fn with_liveness(self, liveness: Liveness) -> Self {
        Self { liveness: Some(liveness), ..self }
    }

    /// The questions that this filter lets through.
    pub fn list(&self, filter: &Filter) -> Result<Page, AuditError> {
        let Filter { principal, tenant, outcome, since, until, text, before, limit } = filter;
        let limit = limit.unwrap_or(100).clamp(1, 1_000);
        // Whether an open question was abandoned is not in the file: both are taken out of it and told apart here.
        let unended = outcome.as_deref().filter(|outcome| [OPEN, ABANDONED].contains(outcome));
        let outcome = if unended.is_some() { Some(OPEN) } else { outcome.as_deref() };
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT b.seq, b.hash, b.body, p.text,
                   (SELECT count(*) FROM record c WHERE c.question_id = b.question_id AND +c.kind = 'call'),
                   (SELECT c.body FROM record c WHERE c.question_id = b.question_id AND +c.kind = 'complete'
                     ORDER BY c.seq LIMIT 1) AS ended
                 FROM record b LEFT JOIN private p ON p.seq = b.seq
                 WHERE b.kind = 'begin'
                   AND (:before IS NULL OR b.seq < :before)
                   AND (:principal IS NULL OR b.body ->> '$.principal.id' = :principal)
                   AND (:tenant IS NULL OR EXISTS
                     (SELECT 1 FROM json_each(b.body, '$.principal.tenants.only') t WHERE t.value = :tenant))
                   AND (:since IS NULL OR unixepoch(b.body ->> '$.at', 'subsec') >= unixepoch(:since, 'subsec'))
                   AND (:until IS NULL OR unixepoch(b.body ->> '$.at', 'subsec') < unixepoch(:until, 'subsec'))
                   AND (:text IS NULL OR instr(lower(coalesce(
                     b.body ->> '$.question', CASE WHEN json_valid(p.text) THEN p.text ->> '$.question' END, '')),
                     lower(:text)) > 0)
                   AND (:outcome IS NULL OR coalesce(ended ->> '$.outcome', 'open') = :outcome)
                 ORDER BY b.seq DESC",
            )
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map(
                named_params! {
                    ":before": before, ":principal": principal, ":tenant": tenant, ":outcome": outcome,
                    ":since": since.map(|at| at.to_string()), ":until": until.map(|at| at.to_string()),
                    ":text": text,
                },
                |row| Ok((Stored::read(row)?, row.get::<_, u64>(4)?)),
            )
            .map_err(|error| self.failed(&error))?;
        let mut questions = Vec::new();
        for row in rows {
            let (stored, calls) = row.map_err(|error| self.failed(&error))?;
            let begin: Sealed<Begin> = stored.sealed()?;
            let complete = self.complete_of(&begin.record.question_id)?;
            let abandoned = complete.is_none() && self.is_abandoned(&begin);
            let question = QuestionLine { begin, calls, complete, abandoned };
            if unended.is_some_and(|unended| unended != question.outcome()) {
                continue;
            }
            questions.push(question);
            if questions.len() > limit as usize {
                break;
            }
        }
        let more = questions.len() > limit as usize;
        questions.truncate(limit as usize);
        let next_before = questions.last().filter(|_| more).map(|question| question.begin.seq);
        Ok(Page { questions, next_before })
    }

    /// Everything that is recorded of one question; none when it was never asked.
    pub fn question(&self, id: &QuestionId) -> Result<Option<QuestionFile>, AuditError> {
        let Some(begin) = self.records(id, Kind::Begin)?.into_iter().next() else { return Ok(None) };
        let calls = self.records(id, Kind::Call)?.into_iter().map(Stored::sealed).collect::<Result<_, _>>()?;
        let complete = self.records(id, Kind::Complete)?.into_iter().next().map(Stored::sealed).transpose()?;
        let begin = begin.sealed()?;
        let abandoned = complete.is_none() && self.is_abandoned(&begin);
        Ok(Some(QuestionFile { begin, calls, complete, abandoned }))
    }

    /// Whether an open question's process is gone. Without anybody to ask, nothing is said to be abandoned.
    pub(crate) fn is_abandoned(&self, begin: &Sealed<Begin>) -> bool {
        self.liveness.as_ref().is_some_and(|liveness| {
            let process = begin.record.detail.get(PROCESS);
            liveness.is_gone(process.map(String::as_str), begin.record.at)
        })
    }

    /// Writes the whole log as JSON lines: its id, every record with its hashes, the signed head. What it says can
    /// be checked without this program. Returns how many records were written.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, AuditError> {
        // One transaction, so that the head fits the records although others write.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        let log_id = file::log_id(&transaction).map_err(|error| self.failed(&error))?;
        write_line(out, &json!({ "log": { "format": schema::FORMAT, "id": hex::encode(log_id) } }))?;
        let mut statement = transaction
            .prepare(
                "SELECT r.seq, r.hash, r.body, p.text, r.prev, p.salt
                 FROM record r LEFT JOIN private p ON p.seq = r.seq ORDER BY r.seq",
            )
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map([], |row| {
                Ok((Stored::read(row)?, row.get::<_, [u8; 32]>(4)?, row.get::<_, Option<[u8; 32]>>(5)?))
            })
            .map_err(|error| self.failed(&error))?;
        let mut written: u64 = 0;
        for row in rows {
            let (Stored { seq, hash, body, text }, prev, salt) = row.map_err(|error| self.failed(&error))?;
            let record: Value = parse(seq, &body)?;
            let mut line =
                json!({ "seq": seq, "prev": hex::encode(prev), "hash": hex::encode(hash), "record": record });
            if let (Value::Object(line), Some(text), Some(salt)) = (&mut line, text, salt) {
                line.insert("text".to_owned(), parse(seq, &text)?);
                line.insert("salt".to_owned(), Value::String(hex::encode(salt)));
            }
            write_line(out, &line)?;
            written = written.saturating_add(1);
        }
        let file::SignedHead { head, key_id, signature } =
            file::stored_head(&transaction).map_err(|error| self.failed(&error))?;
        write_line(
            out,
            &json!({ "head": {
                "seq": head.seq, "hash": head.hash.to_string(), "previous": head.previous,
                "key_id": key_id, "signature": hex::encode(signature),
            } }),
        )?;
        Ok(written)
    }

    /// How a question ended, with what can be erased of it.
    pub(crate) fn complete_of(&self, id: &QuestionId) -> Result<Option<Complete>, AuditError> {
        let complete = self.records(id, Kind::Complete)?.into_iter().next().map(Stored::sealed).transpose()?;
        Ok(complete.map(|complete| complete.record))
    }

    pub(crate) fn records(&self, id: &QuestionId, kind: Kind) -> Result<Vec<Stored>, AuditError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT r.seq, r.hash, r.body, p.text FROM record r LEFT JOIN private p ON p.seq = r.seq
                 WHERE r.question_id = ?1 AND +r.kind = ?2 ORDER BY r.seq",
            )
            .map_err(|error| self.failed(&error))?;
        let rows =
            statement.query_map([id.as_str(), kind.as_str()], Stored::read).map_err(|error| self.failed(&error))?;
        rows.collect::<Result<Vec<_>, _>>().map_err(|error| self.failed(&error))
    }

    pub(crate) fn failed(&self, error: &rusqlite::Error) -> AuditError {
        AuditError::sqlite(&self.path, error)
    }
}

/// A connection that only reads. A file on a medium that takes no write has no place for the index of its
/// write-ahead log; without such a log nothing can change it, and it is read as it stands.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let Err(error) = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, u64>(0)) else {
        return Ok(connection);
    };
    let unwritable = matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let Some(uri) = immutable(path).filter(|_| unwritable) else { return Ok(connection) };
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// The address of a file that nothing changes; none with a write-ahead log beside it, which may hold more.
fn immutable(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    let waiting = std::fs::metadata(format!("{name}-wal")).map_or(0, |wal| wal.len());
    let escaped = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    (waiting == 0).then(|| format!("file:{escaped}?immutable=1"))
}

impl Stored {
    /// Reads the columns `seq, hash, body, text`.
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { seq: row.get(0)?, hash: row.get(1)?, body: row.get(2)?, text: row.get(3)? })
    }

    pub(crate) fn sealed<T: DeserializeOwned>(self) -> Result<Sealed<T>, AuditError> {
        let Self { seq, hash, body, text } = self;
        let mut fields: Map<String, Value> = parse(seq, &body)?;
        let erased = text::join(&mut fields, text.map(|text| parse(seq, &text)).transpose()?);
        let record = serde_json::from_value(Value::Object(fields))
            .map_err(|error| AuditError::Unreadable { seq, what: error.to_string() })?;
        Ok(Sealed { seq, hash: Hash::from_bytes(hash), record, erased })
    }
}

pub(crate) fn parse<T: DeserializeOwned>(seq: u64, body: &str) -> Result<T, AuditError> {
    serde_json::from_str(body).map_err(|error| AuditError::Unreadable { seq, what: error.to_string() })
}

fn write_line(out: &mut dyn Write, line: &Value) -> Result<(), AuditError> {
    // Canonical, so that the record in it is, byte for byte, what its hash covers.
    let unwritable = |what: String| AuditError::Export { what };
    let text = serde_json_canonicalizer::to_string(line).map_err(|error| unwritable(error.to_string()))?;
    writeln!(out, "{text}").map_err(|error| unwritable(error.to_string()))
}
