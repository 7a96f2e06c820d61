//! Reading the log: list, open, export. Reading is itself audited, by whoever calls this.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, named_params};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sightline_model::QuestionId;
use sightline_model::audit::{Begin, Call, Complete};

use crate::chain::Hash;
use crate::error::AuditError;
use crate::file;
use crate::record::Kind;

/// What the outcome of a question without a complete record is called.
const OPEN: &str = "open";

/// Which questions to list. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Asked by the principal with exactly this id.
    pub principal: Option<String>,
    /// Asked by a principal of this tenant; an admin belongs to none in particular.
    pub tenant: Option<String>,
    /// Ended so; `open` for those that have not ended.
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
}

impl QuestionLine {
    /// How it ended, or `open`.
    pub fn outcome(&self) -> &str {
        self.complete.as_ref().map_or(OPEN, |complete| &complete.outcome)
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
}

/// The log, open for reading.
#[derive(Debug)]
pub struct AuditReader {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
}

/// A stored record before it is taken apart.
struct Stored {
    seq: u64,
    hash: [u8; 32],
    body: String,
}

impl AuditReader {
    /// Opens the log at this path, which must exist.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let failed = |error: rusqlite::Error| AuditError::sqlite(path, &error);
        if !path.exists() {
            let what = "there is no such file, so nothing was recorded yet".to_owned();
            return Err(AuditError::Open { path: path.display().to_string(), what });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
        file::check_format(&connection, path)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// The questions that this filter lets through.
    pub fn list(&self, filter: &Filter) -> Result<Page, AuditError> {
        let Filter { principal, tenant, outcome, since, until, text, before, limit } = filter;
        let limit = limit.unwrap_or(100).clamp(1, 1_000);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT b.seq, b.hash, b.body,
                   (SELECT count(*) FROM record c WHERE c.question_id = b.question_id AND c.kind = 'call'),
                   (SELECT c.body FROM record c WHERE c.question_id = b.question_id AND c.kind = 'complete'
                     ORDER BY c.seq LIMIT 1) AS ended
                 FROM record b
                 WHERE b.kind = 'begin'
                   AND (:before IS NULL OR b.seq < :before)
                   AND (:principal IS NULL OR b.body ->> '$.principal.id' = :principal)
                   AND (:tenant IS NULL OR EXISTS
                     (SELECT 1 FROM json_each(b.body, '$.principal.tenants.only') t WHERE t.value = :tenant))
                   AND (:since IS NULL OR unixepoch(b.body ->> '$.at', 'subsec') >= unixepoch(:since, 'subsec'))
                   AND (:until IS NULL OR unixepoch(b.body ->> '$.at', 'subsec') < unixepoch(:until, 'subsec'))
                   AND (:text IS NULL OR instr(lower(b.body ->> '$.question'), lower(:text)) > 0)
                   AND (:outcome IS NULL OR coalesce(ended ->> '$.outcome', 'open') = :outcome)
                 ORDER BY b.seq DESC LIMIT :limit",
            )
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map(
                named_params! {
                    ":before": before, ":principal": principal, ":tenant": tenant, ":outcome": outcome,
                    ":since": since.map(|at| at.to_string()), ":until": until.map(|at| at.to_string()),
                    ":text": text, ":limit": u64::from(limit) + 1,
                },
                |row| Ok((Stored::read(row)?, row.get::<_, u64>(3)?, row.get::<_, Option<String>>(4)?)),
            )
            .map_err(|error| self.failed(&error))?;
        let mut questions = Vec::new();
        for row in rows {
            let (stored, calls, ended) = row.map_err(|error| self.failed(&error))?;
            let seq = stored.seq;
            let complete = ended.map(|body| parse(seq, &body)).transpose()?;
            questions.push(QuestionLine { begin: stored.sealed()?, calls, complete });
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
        Ok(Some(QuestionFile { begin: begin.sealed()?, calls, complete }))
    }

    /// Writes the whole log as JSON lines: its id, every record with its hashes, the signed head. What it says can
    /// be checked without this program. Returns how many records were written.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, AuditError> {
        // One transaction, so that the head fits the records although others write.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        let log_id = file::log_id(&transaction).map_err(|error| self.failed(&error))?;
        write_line(out, &json!({ "log": { "format": file::FORMAT, "id": hex::encode(log_id) } }))?;
        let mut statement = transaction
            .prepare("SELECT seq, hash, body, prev FROM record ORDER BY seq")
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map([], |row| Ok((Stored::read(row)?, row.get::<_, [u8; 32]>(3)?)))
            .map_err(|error| self.failed(&error))?;
        let mut written: u64 = 0;
        for row in rows {
            let (Stored { seq, hash, body }, prev) = row.map_err(|error| self.failed(&error))?;
            let record: Value = parse(seq, &body)?;
            write_line(
                out,
                &json!({ "seq": seq, "prev": hex::encode(prev), "hash": hex::encode(hash), "record": record }),
            )?;
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

    fn records(&self, id: &QuestionId, kind: Kind) -> Result<Vec<Stored>, AuditError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT seq, hash, body FROM record WHERE question_id = ?1 AND kind = ?2 ORDER BY seq")
            .map_err(|error| self.failed(&error))?;
        let rows =
            statement.query_map([id.as_str(), kind.as_str()], Stored::read).map_err(|error| self.failed(&error))?;
        rows.collect::<Result<Vec<_>, _>>().map_err(|error| self.failed(&error))
    }

    pub(crate) fn failed(&self, error: &rusqlite::Error) -> AuditError {
        AuditError::sqlite(&self.path, error)
    }
}

impl Stored {
    /// Reads the columns `seq, hash, body`.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { seq: row.get(0)?, hash: row.get(1)?, body: row.get(2)? })
    }

    fn sealed<T: DeserializeOwned>(self) -> Result<Sealed<T>, AuditError> {
        let Self { seq, hash, body } = self;
        Ok(Sealed { seq, hash: Hash::from_bytes(hash), record: parse(seq, &body)? })
    }
}

fn parse<T: DeserializeOwned>(seq: u64, body: &str) -> Result<T, AuditError> {
    serde_json::from_str(body).map_err(|error| AuditError::Unreadable { seq, what: error.to_string() })
}

fn write_line(out: &mut dyn Write, line: &Value) -> Result<(), AuditError> {
    // Canonical, so that the record in it is, byte for byte, what its hash covers.
    let unwritable = |what: String| AuditError::Export { what };
    let text = serde_json_canonicalizer::to_string(line).map_err(|error| unwritable(error.to_string()))?;
    writeln!(out, "{text}").map_err(|error| unwritable(error.to_string()))
}
