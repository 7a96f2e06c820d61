//! Searching the log as a reviewer does: questions and events in one list, the newest first, page by page.

pub(crate) mod sql;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use sightline_model::audit::{Begin, Call, Complete, Event, EventKind};
use sightline_model::{QuestionId, Role, TenantScope};

use crate::chain::Hash;
use crate::error::AuditError;
use crate::reader::{AuditReader, Sealed, Stored};
use crate::record::Kind;
use crate::text::ERASED;

/// Entries on a page unless told otherwise, and at most.
const A_PAGE: u32 = 100;
const MAX_A_PAGE: u32 = 1_000;

/// What kinds of entries are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Questions and events; not the heartbeats, of which there is one a minute.
    #[default]
    Everything,
    /// Questions and typed calls.
    Questions,
    /// Events, heartbeats too.
    Events,
    /// Events of this kind.
    Event(EventKind),
}

/// Which entries to list. Everything that is set must hold; what only questions have leaves events out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Which kinds.
    pub wanted: Wanted,
    /// Asked or done by the principal with exactly this id.
    pub who: Option<String>,
    /// Asked by a principal of this tenant; an admin belongs to none in particular.
    pub tenant: Option<String>,
    /// A question that called this tool.
    pub tool: Option<String>,
    /// A question that read this table.
    pub table: Option<String>,
    /// A question of which a call was allowed (true) or denied (false), or an event that was not, or was, denied.
    pub allowed: Option<bool>,
    /// Ended so: an answer's outcome, `error`, `cancelled`, `open`, `abandoned`; of an event `done`, `denied`, `failed`.
    pub outcome: Option<String>,
    /// At this time or later, to the millisecond.
    pub from: Option<Timestamp>,
    /// Before this time, to the millisecond.
    pub to: Option<Timestamp>,
    /// The question holds this text; ASCII letters match in either case.
    pub text: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<Cursor>,
    /// The most entries to return; 100 when not set, at most 1,000.
    pub limit: Option<u32>,
    /// The oldest first, as an export has it.
    pub oldest_first: bool,
}

/// Where a page ended. Records are only ever added behind it, so the next page is the same whatever is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(u64);

impl Cursor {
    /// As text to be sent back; what it says is nobody's business.
    pub fn text(self) -> String {
        hex::encode(format!("seq/{}", self.0))
    }

    /// The cursor of that text; none when it is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let text = String::from_utf8(hex::decode(text).ok()?).ok()?;
        text.strip_prefix("seq/")?.parse().ok().map(Self)
    }
}

/// A page of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page begins; none on the last.
    pub next: Option<Cursor>,
}

/// A question with how it ended, or an event: one line of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The number of its record: of a question, of its begin record.
    pub seq: u64,
    /// The hash of that record.
    #[serde(serialize_with = "as_text")]
    pub hash: Hash,
    /// When it began.
    pub at: Timestamp,
    /// `question`, or the kind of event.
    pub kind: String,
    /// The question's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_id: Option<QuestionId>,
    /// Who.
    pub who: Option<String>,
    /// In which role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Of which tenants; none for who belongs to none in particular.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// Through which entrance.
    pub entrance: String,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Whether its text was erased on request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    /// How it ended.
    pub outcome: String,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the question did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Further facts.
    pub detail: BTreeMap<String, String>,
}

/// What a question did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// How many calls it made.
    pub calls: u64,
    /// How many of them were denied.
    pub denied: u64,
    /// The tools it called.
    pub tools: BTreeSet<String>,
    /// The tables it read.
    pub tables: BTreeSet<String>,
    /// Queries run.
    pub queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Model tokens.
    pub llm_tokens: u64,
    /// Wall time, milliseconds.
    pub wall_ms: f64,
}

fn as_text<S: serde::Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash)
}

/// A record of the list before it is taken apart.
struct Listed {
    stored: Stored,
    kind: String,
}

impl Listed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { stored: Stored::read(row)?, kind: row.get(4)? })
    }
}

impl AuditReader {
    /// The entries that this search lets through.
    ///
    /// # Errors
    /// When the log cannot be read, or was not yet brought to this program's format.
    pub fn search(&self, search: &Search) -> Result<Found, AuditError> {
        let limit = search.limit.unwrap_or(A_PAGE).clamp(1, MAX_A_PAGE) as usize;
        let Some(span) = sql::span(self, search)? else { return Ok(Found { entries: Vec::new(), next: None }) };
        let (text, parameters) = sql::statement(search, span);
        let mut statement = self.connection.prepare_cached(&text).map_err(|error| self.failed(&error))?;
        let parameters: Vec<(&str, &dyn rusqlite::ToSql)> =
            parameters.iter().map(|(name, value)| (*name, value as &dyn rusqlite::ToSql)).collect();
        let mut rows = statement.query(parameters.as_slice()).map_err(|error| self.failed(&error))?;
        let mut entries = Vec::new();
        let mut more = false;
        while let Some(row) = rows.next().map_err(|error| self.failed(&error))? {
            let listed = Listed::read(row).map_err(|error| self.failed(&error))?;
            let entry = self.entry(listed)?;
            // Whether an open question was abandoned is not in the file.
            if search.outcome.as_ref().is_some_and(|wanted| *wanted != entry.outcome) {
                continue;
            }
            if entries.len() == limit {
                more = true;
                break;
            }
            entries.push(entry);
        }
        let next = entries.last().filter(|_| more).map(|entry: &Entry| Cursor(entry.seq));
        Ok(Found { entries, next })
    }

    /// The line of one question; none when it was never asked.
    pub(crate) fn entry_of(&self, id: &QuestionId) -> Result<Option<Entry>, AuditError> {
        let listed = self
            .connection
            .prepare_cached(
                "SELECT b.seq, b.hash, b.body, p.text, b.kind
                 FROM record b LEFT JOIN private p ON p.seq = b.seq
                 WHERE b.question_id = ?1 AND +b.kind = 'begin' ORDER BY b.seq LIMIT 1",
            )
            .and_then(|mut statement| statement.query_row([id.as_str()], Listed::read).optional())
            .map_err(|error| self.failed(&error))?;
        listed.map(|listed| self.entry(listed)).transpose()
    }

    /// The event that is record `seq`, if it is one.
    pub(crate) fn event_at(&self, seq: u64) -> Result<Option<Event>, AuditError> {
        let stored = self
            .connection
            .prepare_cached(
                "SELECT r.seq, r.hash, r.body, p.text FROM record r LEFT JOIN private p ON p.seq = r.seq
                 WHERE r.seq = ?1 AND r.kind = 'event'",
            )
            .and_then(|mut statement| statement.query_row([seq], Stored::read).optional())
            .map_err(|error| self.failed(&error))?;
        stored.map(|stored| stored.sealed().map(|event| event.record)).transpose()
    }

    fn entry(&self, listed: Listed) -> Result<Entry, AuditError> {
        let Listed { stored, kind } = listed;
        if kind == Kind::Event.as_str() {
            return stored.sealed().map(of_event);
        }
        let begin: Sealed<Begin> = stored.sealed()?;
        let complete = self.complete_of(&begin.record.question_id)?;
        let mut work = Work::default();
        for call in self.records(&begin.record.question_id, Kind::Call)? {
            let call: Sealed<Call> = call.sealed()?;
            work.calls += 1;
            work.denied += u64::from(!call.record.decision.allowed);
            work.tools.insert(call.record.tool);
            work.tables.extend(call.record.tables);
        }
        if let Some(complete) = &complete {
            let Complete { queries, rows_read, bytes_read, llm_tokens, wall_ms, .. } = complete;
            work = Work {
                queries: *queries,
                rows_read: *rows_read,
                bytes_read: *bytes_read,
                llm_tokens: *llm_tokens,
                wall_ms: *wall_ms,
                ..work
            };
        }
        let abandoned = complete.is_none() && self.is_abandoned(&begin);
        let outcome = crate::reader::outcome(complete.as_ref(), abandoned).to_owned();
        let Sealed { seq, hash, record, erased } = begin;
        let Begin { question_id, at, principal, entrance, question, detail } = record;
        Ok(Entry {
            seq,
            hash,
            at,
            kind: "question".to_owned(),
            question_id: Some(question_id),
            who: Some(principal.id),
            role: Some(principal.role),
            tenants: match principal.tenants {
                TenantScope::Only(tenants) => tenants.into_iter().collect(),
                TenantScope::All => Vec::new(),
            },
            entrance,
            question: Some(if erased { ERASED.to_owned() } else { question }),
            erased,
            outcome,
            error: complete.and_then(|complete| complete.error),
            work: Some(work),
            detail,
        })
    }
}

fn of_event(event: Sealed<Event>) -> Entry {
    let Sealed { seq, hash, record, erased } = event;
    let Event { at, event, principal, entrance, outcome, detail } = record;
    Entry {
        seq,
        hash,
        at,
        kind: sql::name(&event),
        question_id: None,
        who: principal,
        role: None,
        tenants: Vec::new(),
        entrance,
        question: None,
        erased,
        outcome: sql::name(&outcome),
        error: None,
        work: None,
        detail,
    }
}
