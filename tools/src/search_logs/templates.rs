//! Message templates of the lines in a window, and which are new or gone against a baseline window.
//!
//! Both windows are asked for their distinct texts with count, first and last time, so that the counts are of all lines, however
//! many are listed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_analysis::TemplateMiner;
use sightline_diagnosis::decode_line;
use sightline_model::{Dim, Evidence, EvidenceRow, FactPath, Quantity, Relation, TimeRange, is_invisible};
use sightline_query::{Query, Shape};

use crate::reading::{Content, Table, evidence};
use crate::sentence::{Sentence, WHOLE, at, fact, row_value};
use crate::tool::{Fetched, ToolContext, ToolError};

/// So many templates are listed; the total says how many there are.
const MAX_TEMPLATES: usize = 100;
/// So many new and so many vanished ones are named in sentences.
const MAX_NAMED: usize = 5;
/// The longest example and template, characters: what tells a message stands at its beginning.
const MAX_TEXT: usize = 400;

/// The row that says how many templates are new against the baseline.
const NEW: &str = "new templates";
/// The row, the last one, that says how many of the baseline are gone.
const GONE: &str = "vanished templates";

/// The queries for the texts of the windows.
pub(super) fn queries(listing: &Query, baseline: Option<TimeRange>, context: &ToolContext<'_>) -> Vec<Query> {
    let texts = |range: TimeRange| Query {
        range,
        shape: Shape::Distinct { of: vec![Dim::Body], limit: context.max_rows },
        ..listing.clone()
    };
    std::iter::once(texts(listing.range)).chain(baseline.map(texts)).collect()
}

/// The texts of a window among what was fetched.
fn texts_of(fetched: &[Fetched], range: TimeRange) -> Option<&Fetched> {
    fetched.iter().find(|f| {
        let query = f.query.query();
        query.range == range && matches!(&query.shape, Shape::Distinct { of, .. } if of.as_slice() == [Dim::Body])
    })
}

/// One template with what there is of it in each window.
#[derive(Clone, Debug, Default)]
struct Message {
    template: String,
    window: Seen,
    baseline: Seen,
}

/// What there is of a template in a window.
#[derive(Clone, Debug, Default)]
struct Seen {
    count: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    example: String,
}

/// What was found.
pub(super) struct Templates {
    /// The templates of the window, then those of the baseline, row by row the same.
    pub(super) evidence: Vec<Evidence>,
    /// What is said of them.
    pub(super) sentences: Vec<Sentence>,
    /// What a reader should know.
    pub(super) health: Vec<String>,
}

/// Reads the texts of both windows. None where they were not asked for.
///
/// # Errors
/// When a result is malformed.
pub(super) fn read(
    tool: &'static str,
    fetched: &[Fetched],
    range: TimeRange,
    baseline: Option<TimeRange>,
    next: usize,
) -> Result<Option<Templates>, ToolError> {
    let Some(window) = texts_of(fetched, range) else { return Ok(None) };
    let before = baseline.and_then(|range| texts_of(fetched, range));
    let mut miner = TemplateMiner::default();
    let mut seen: BTreeMap<usize, (Seen, Seen)> = BTreeMap::new();
    for (texts, is_baseline) in std::iter::once((window, false)).chain(before.map(|texts| (texts, true))) {
        for text in read_texts(texts)? {
            let place = miner.add(&group(&text.example), &text.example);
            let (now, then) = seen.entry(place).or_default();
            add(if is_baseline { then } else { now }, text);
        }
    }
    let cut = window.result.truncated || before.is_some_and(|texts| texts.result.truncated);
    let mut messages: Vec<Message> = seen
        .into_iter()
        .map(|(place, (window, baseline))| Message {
            template: miner.template(place).unwrap_or_default().chars().take(MAX_TEXT).collect(),
            window,
            baseline,
        })
        .collect();
    let compares = before.is_some();
    let standing = |m: &Message| match (compares, m.window.count, m.baseline.count) {
        (true, _, 0) => 0,
        (true, 0, _) => 1,
        _ => 2,
    };
    messages.sort_by(|a, b| {
        let counts = |m: &Message| (m.window.count, m.baseline.count);
        standing(a).cmp(&standing(b)).then(counts(b).cmp(&counts(a))).then(a.template.cmp(&b.template))
    });
    let mut pieces = vec![piece(tool, window, next, &messages, |m| &m.window)];
    pieces.extend(before.map(|texts| piece(tool, texts, next + 1, &messages, |m| &m.baseline)));
    for piece in &mut pieces {
        piece.truncated = cut || messages.len() > MAX_TEMPLATES;
    }
    let mut health = Vec::new();
    if cut && compares {
        health.push(
            "there are more different log lines than can be read at once, so which messages are new or gone cannot be told; \
             narrow it with `filters` or a shorter window"
                .to_owned(),
        );
    }
    let compares = compares && !cut;
    if compares {
        let count = |test: &dyn Fn(&Message) -> bool| messages.iter().filter(|m| test(m)).count();
        let new = count(&|m| m.baseline.count == 0);
        let gone = count(&|m| m.window.count == 0);
        if let Some(piece) = pieces.first_mut() {
            piece.rows.extend([summary(NEW, new), summary(GONE, gone)]);
        }
    }
    let sentences = told(&pieces, &messages, compares);
    Ok(Some(Templates { evidence: pieces, sentences, health }))
}

/// What is known to be different is kept apart: the code of an Xid would be masked as a number.
fn group(text: &str) -> String {
    decode_line(text).map(|line| line.id).unwrap_or_default()
}

struct Text {
    count: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    example: String,
}

fn read_texts(fetched: &Fetched) -> Result<Vec<Text>, ToolError> {
    let table = Table::new(&fetched.result);
    let [body, count] = [table.column(Dim::Body.as_str())?, table.column("count")?];
    let [first, last] = [table.column("first_time")?, table.column("last_time")?];
    let texts = table.rows().map(|row| Text {
        count: table.count(row, count),
        first: table.time(row, first),
        last: table.time(row, last),
        example: table.text(row, body).to_owned(),
    });
    Ok(texts.filter(|text| text.count > 0).collect())
}

fn add(seen: &mut Seen, text: Text) {
    let first = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
    let last = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).max();
    seen.count = seen.count.saturating_add(text.count);
    // The example is the earliest line.
    if seen.example.is_empty() || (text.first.is_some() && text.first < seen.first) {
        seen.example = text.example.chars().filter(|c| !c.is_control() && !is_invisible(*c)).take(MAX_TEXT).collect();
    }
    seen.first = first(seen.first, text.first);
    seen.last = last(seen.last, text.last);
}

fn piece(
    tool: &'static str,
    fetched: &Fetched,
    n: usize,
    messages: &[Message],
    side: impl Fn(&Message) -> &Seen,
) -> Evidence {
    let rows = messages.iter().take(MAX_TEMPLATES).zip(1..).map(|(message, rank)| {
        let seen = side(message);
        let mut fields = BTreeMap::from([("template".to_owned(), message.template.clone())]);
        if !seen.example.is_empty() {
            fields.insert("example".to_owned(), seen.example.clone());
            fields.extend(decode_line(&seen.example).iter().flat_map(super::decoded::fields).filter(|(key, _)| {
                // The address is the example's, not the template's.
                key != "pci"
            }));
        }
        if let Some(last) = seen.last {
            fields.insert("last_seen".to_owned(), last.to_string());
        }
        // A template without a line counts zero: a count of nothing is no missing value.
        let value = Some(seen.count as f64);
        EvidenceRow { value, rank: Some(rank), time: seen.first, fields, ..EvidenceRow::default() }
    });
    let mut piece = evidence(fetched, tool, n, Content::Rows(rows.collect()));
    piece.total = messages.len() as u64;
    piece.aggregation = Some("lines by message template".to_owned());
    piece.coverage.seen = messages.iter().map(|message| side(message).count).sum();
    piece.coverage.last = messages.iter().filter_map(|message| side(message).last).max();
    piece
}

fn summary(what: &str, count: usize) -> EvidenceRow {
    EvidenceRow {
        value: Some(count as f64),
        fields: BTreeMap::from([("row".to_owned(), what.to_owned())]),
        ..EvidenceRow::default()
    }
}

fn told(pieces: &[Evidence], messages: &[Message], compares: bool) -> Vec<Sentence> {
    let Some(window) = pieces.first() else { return Vec::new() };
    let template = |row: usize| at(&window.id, FactPath::RowField { row, field: "template".to_owned() });
    let mut sentences = Vec::new();
    if !window.truncated {
        let total = Sentence::new().number(fact(&window.id, FactPath::Total), WHOLE);
        sentences.push(total.say(" different messages, numbers and names aside").cite(&window.id));
    }
    let listed = || messages.iter().take(MAX_TEMPLATES).enumerate();
    if let (true, Some(baseline), Some(last)) = (compares, pieces.get(1), window.rows.len().checked_sub(1)) {
        let counted = |sentence: Sentence, row: usize| sentence.number(row_value(&window.id, row), WHOLE);
        let sentence = counted(Sentence::new().say("messages new against the baseline: "), last - 1);
        sentences.push(counted(sentence.say("; gone since: "), last).cite(&baseline.id));
        for (row, _) in listed().filter(|(_, m)| m.baseline.count == 0).take(MAX_NAMED) {
            let mut sentence = Sentence::new()
                .say("new: ")
                .quote(template(row))
                .say(", ")
                .number(row_value(&window.id, row), WHOLE)
                .say(" lines, first at ")
                .time(at(&window.id, FactPath::RowTime { row }))
                .compare(row_value(&baseline.id, row), Relation::AtMost, Quantity::Constant(0.0));
            for key in ["xid_meaning", "sxid_meaning", "meaning"] {
                if window.rows.get(row).is_some_and(|r| r.fields.contains_key(key)) {
                    sentence =
                        sentence.say(": ").quote(at(&window.id, FactPath::RowField { row, field: key.to_owned() }));
                }
            }
            sentences.push(sentence);
        }
        for (row, _) in listed().filter(|(_, m)| m.window.count == 0).take(MAX_NAMED) {
            sentences.push(
                Sentence::new()
                    .say("gone: ")
                    .quote(at(&baseline.id, FactPath::RowField { row, field: "template".to_owned() }))
                    .say(", ")
                    .number(row_value(&baseline.id, row), WHOLE)
                    .say(" lines in the baseline")
                    .compare(row_value(&window.id, row), Relation::AtMost, Quantity::Constant(0.0)),
            );
        }
    } else if let Some((row, _)) = listed().max_by_key(|(row, m)| (m.window.count, std::cmp::Reverse(*row))) {
        let sentence = Sentence::new().say("the most frequent is ").quote(template(row)).say(", ");
        sentences.push(sentence.number(row_value(&window.id, row), WHOLE).say(" lines"));
    }
    sentences
}
