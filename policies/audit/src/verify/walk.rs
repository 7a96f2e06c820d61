//! The walk over the records, each with the text that it commits to.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Row, Rows};
use serde::Deserialize;
use sightline_model::audit::Event;

use super::checkpoints::{Checkpoints, missing};
use super::notes::Notes;
use super::{Stop, broken};
use crate::chain::{Hash, Head};
use crate::file::{erase, retain};
use crate::text::commitment;

/// Where the chain ends, and how many records there are.
pub(super) struct Walked {
    pub(super) head: Head,
    pub(super) records: u64,
    /// The first text behind the last record, which nothing commits to.
    pub(super) left_over: Option<u64>,
}

/// What verification reads in a record's text.
#[derive(Deserialize)]
pub(super) struct Fields<'a> {
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    question_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    commitment: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
}

/// What events say of the rest of the log.
#[derive(Default)]
struct Told {
    /// By question, the last event that its texts were erased.
    erased: HashMap<String, u64>,
    /// Where the log was said to begin after records were taken out.
    starts: BTreeMap<u64, String>,
    /// Texts that are not there: record and question.
    gone: Vec<(u64, String)>,
}

/// Walks the records in order and returns the head of the chain that they make.
pub(super) fn walk(
    connection: &Connection,
    log_id: &[u8; 16],
    checkpoints: &mut Checkpoints,
    notes: &mut Notes,
) -> Result<Walked, Stop> {
    let mut statement = connection.prepare("SELECT seq, body, prev, hash FROM record ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut statement = connection.prepare("SELECT seq, salt, text FROM private ORDER BY seq")?;
    let mut texts = Texts::new(statement.query([])?)?;
    let mut head = Head::empty(log_id);
    let mut start = head;
    let mut records: u64 = 0;
    let mut told = Told::default();
    while let Some(row) = rows.next()? {
        if records == 0
            && let Ok(first @ 2..) = row.get::<_, u64>(0)
            && let Some(after) = checkpoints.start_at(first)?
        {
            (head, start) = (after, after);
        }
        let (made, body) = check_row(connection, row, &head, records == 0)?;
        let seq = made.seq;
        let fields: Fields<'_> = serde_json::from_slice(body).map_err(|_error| broken(seq, "its text is no record"))?;
        if !texts.check(seq, fields.commitment.as_deref())? {
            told.gone.push((seq, fields.question_id.as_deref().unwrap_or_default().to_owned()));
        }
        if let Some(event) = fields.event.as_deref() {
            told.listen(seq, event, body, notes);
        }
        notes.pass(seq, &fields, body);
        head = checkpoints.pass(made)?;
        records = records.saturating_add(1);
    }
    told.check(&start, notes)?;
    Ok(Walked { head, records, left_over: texts.next })
}

/// One record against the one before it.
fn check_row<'a>(
    connection: &Connection,
    row: &'a Row<'_>,
    head: &Head,
    is_first: bool,
) -> Result<(Head, &'a [u8]), Stop> {
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
    match follows(seq, body, prev, hash, head.hash) {
        Ok(()) => Ok((Head { seq, hash, previous: head.previous }, body)),
        Err(Misfit::Record) => {
            let what = match moved_to(connection, head.hash, seq)? {
                Some(elsewhere) => format!("the order was changed: what was record {seq} stands at {elsewhere}"),
                None => "its text or its hash was changed".to_owned(),
            };
            Err(broken(seq, what))
        }
        // This record is as it was written, so it is the one before it that is not.
        Err(Misfit::Before) if is_first => {
            Err(broken(seq, "it does not belong to this log: the first record or the id of the log was changed"))
        }
        Err(Misfit::Before) => Err(broken(head.seq, "it was changed and hashed anew: the next record covers another")),
    }
}

/// Which of two records is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The record itself: its text and its hashes do not fit each other.
    Record,
    /// The one before it: this one covers another.
    Before,
}

/// Whether a record is as it was written and follows the one with the hash `before`.
pub(crate) fn follows(seq: u64, body: &[u8], prev: Hash, hash: Hash, before: Hash) -> Result<(), Misfit> {
    if prev.next(seq, body) != hash {
        Err(Misfit::Record)
    } else if prev != before {
        Err(Misfit::Before)
    } else {
        Ok(())
    }
}

/// Whether a record's text is the one that it commits to.
pub(crate) fn is_committed(committed: &str, salt: &[u8; 32], text: &[u8]) -> bool {
    commitment(salt, text).to_string() == committed
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

/// The texts in the order of their records. One scan beside that of the records: no look-up for each.
struct Texts<'a> {
    rows: Rows<'a>,
    /// The number of the text that comes next; none after the last.
    next: Option<u64>,
    salt: Option<[u8; 32]>,
    text: Vec<u8>,
}

impl<'a> Texts<'a> {
    fn new(rows: Rows<'a>) -> Result<Self, Stop> {
        let mut texts = Self { rows, next: None, salt: None, text: Vec::new() };
        texts.advance()?;
        Ok(texts)
    }

    fn advance(&mut self) -> Result<(), Stop> {
        self.next = None;
        if let Some(row) = self.rows.next()? {
            let seq: u64 = row.get(0).map_err(|_error| broken(None, "a text with a negative number was added"))?;
            self.next = Some(seq);
            self.salt = row.get(1).ok();
            self.text.clear();
            self.text.extend_from_slice(row.get_ref(2)?.as_bytes().unwrap_or_default());
        }
        Ok(())
    }

    /// Whether the text that this record commits to is there. One that is there must be the one.
    fn check(&mut self, seq: u64, committed: Option<&str>) -> Result<bool, Stop> {
        match self.next {
            Some(next) if next < seq => Err(broken(next, "a text was added to it")),
            Some(next) if next == seq => {
                let Some(committed) = committed else { return Err(broken(seq, "a text was added to it")) };
                if !self.salt.is_some_and(|salt| is_committed(committed, &salt, &self.text)) {
                    return Err(broken(seq, "its question or arguments, or their salt, were changed"));
                }
                self.advance()?;
                Ok(true)
            }
            Some(_) | None => Ok(committed.is_none()),
        }
    }
}

impl Told {
    fn listen(&mut self, seq: u64, event: &str, body: &[u8], notes: &mut Notes) {
        let detail = || serde_json::from_slice::<Event>(body).map(|event| event.detail).unwrap_or_default();
        match event {
            "text_erased" => {
                let detail = detail();
                let ids: Vec<String> =
                    detail.get(erase::QUESTIONS).and_then(|ids| serde_json::from_str(ids).ok()).unwrap_or_default();
                notes.add(seq, format!("the texts of {} questions were erased on request", ids.len()));
                self.erased.extend(ids.into_iter().map(|id| (id, seq)));
            }
            "retention" => {
                let detail = detail();
                let last = detail.get(retain::LAST).and_then(|last| last.parse().ok());
                if let (Some(last), Some(hash)) = (last, detail.get(retain::HASH)) {
                    self.starts.insert(last, hash.clone());
                }
            }
            _ => {}
        }
    }

    /// What is not there must have been taken out by the log itself.
    fn check(self, start: &Head, notes: &mut Notes) -> Result<(), Stop> {
        if start.seq > 0 {
            if self.starts.get(&start.seq) != Some(&start.hash.to_string()) {
                return Err(broken(1, missing(1, start.seq)));
            }
            notes.add(None, format!("records 1 to {} were taken out by retention", start.seq));
        }
        for (seq, question) in self.gone {
            if self.erased.get(&question).is_none_or(|erased| *erased < seq) {
                return Err(broken(seq, "its question or arguments are gone, and no event says that they were erased"));
            }
        }
        Ok(())
    }
}
