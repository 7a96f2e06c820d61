//! The statement of a search: fixed pieces, chosen by what is set, so that each search can use the index that serves it.

use jiff::Timestamp;
use rusqlite::types::Value;
use serde::Serialize;
use sightline_model::audit::EventKind;

use super::{Search, Wanted};
use crate::error::AuditError;
use crate::reader::{ABANDONED, AuditReader, OPEN};
use crate::record::Kind;

/// The records between which everything of the wanted time lies. Clocks jump, so it is found by time and not by halving.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    first: u64,
    last: u64,
}

/// The name that a record has for one of the model's words.
pub(crate) fn name(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// The second of an instant, as the index has it: the beginning of its text, which sorts like the time itself.
fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The span of the wanted time; none when nothing lies in it.
pub(crate) fn span(reader: &AuditReader, search: &Search) -> Result<Option<Span>, AuditError> {
    let (from, to) = (search.from, search.to);
    if from.is_none() && to.is_none() {
        return Ok(Some(Span { first: 0, last: u64::from(u32::MAX) << 31 }));
    }
    let kinds: &[Kind] = match kinds(search) {
        Kinds::Questions => &[Kind::Begin],
        Kinds::Events => &[Kind::Event],
        Kinds::Both => &[Kind::Begin, Kind::Event],
    };
    let mut span: Option<Span> = None;
    for kind in kinds {
        let found: (Option<u64>, Option<u64>) = reader
            .connection
            .prepare_cached(
                "SELECT min(seq), max(seq) FROM record INDEXED BY record_by_second
                 WHERE kind = ?1 AND second >= ?2 AND second <= ?3",
            )
            .and_then(|mut statement| {
                let from = from.map_or_else(String::new, second);
                let to = to.map_or_else(|| "~".to_owned(), second);
                statement.query_row((kind.as_str(), from, to), |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .map_err(|error| reader.failed(&error))?;
        if let (Some(first), Some(last)) = found {
            span =
                Some(span.map_or(Span { first, last }, |span| Span {
                    first: span.first.min(first),
                    last: span.last.max(last),
                }));
        }
    }
    Ok(span)
}

/// What the search can find at all.
enum Kinds {
    Questions,
    Events,
    Both,
}

fn kinds(search: &Search) -> Kinds {
    let of_questions =
        search.tenant.is_some() || search.tool.is_some() || search.table.is_some() || search.text.is_some();
    match search.wanted {
        Wanted::Events | Wanted::Event(_) => Kinds::Events,
        Wanted::Questions => Kinds::Questions,
        Wanted::Everything if of_questions => Kinds::Questions,
        Wanted::Everything => Kinds::Both,
    }
}

/// The text of the search, and its parameters.
pub(crate) fn statement(search: &Search, span: Span) -> (String, Vec<(&'static str, Value)>) {
    let Search { wanted, who, tenant, tool, table, allowed, outcome, from, to, text, cursor, limit: _, oldest_first } =
        search;
    let mut conditions: Vec<&str> = Vec::new();
    let mut parameters: Vec<(&'static str, Value)> = Vec::new();
    let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let words = |text: &String| Value::Text(text.clone());
    // `+` keeps a condition from choosing the index: a principal's records are fewer than those of a kind.
    conditions.push(match (kinds(search), who) {
        (Kinds::Questions, None) => "b.kind = 'begin'",
        (Kinds::Questions, Some(_)) => "+b.kind = 'begin'",
        (Kinds::Events, None) if matches!(wanted, Wanted::Events) => "b.kind = 'event'",
        (Kinds::Events, None) => "b.kind = 'event' AND b.event = :event",
        (Kinds::Events, Some(_)) if matches!(wanted, Wanted::Events) => "+b.kind = 'event'",
        (Kinds::Events, Some(_)) => "+b.kind = 'event' AND +b.event = :event",
        (Kinds::Both, _) => "+b.kind IN ('begin', 'event') AND (+b.event IS NULL OR +b.event <> :heartbeat)",
    });
    match (wanted, kinds(search)) {
        (Wanted::Event(event), _) => parameters.push((":event", Value::Text(name(event)))),
        (_, Kinds::Both) => parameters.push((":heartbeat", Value::Text(name(&EventKind::Heartbeat)))),
        (_, Kinds::Questions | Kinds::Events) => {}
    }
    let mut set = |condition: &'static str, name: &'static str, value: Value| {
        conditions.push(condition);
        parameters.push((name, value));
    };
    set("b.seq >= :first", ":first", number(span.first));
    set("b.seq <= :last", ":last", number(span.last));
    if let Some(cursor) = cursor {
        let beyond = if *oldest_first { "b.seq > :cursor" } else { "b.seq < :cursor" };
        set(beyond, ":cursor", number(cursor.0));
    }
    if let Some(who) = who {
        set("b.who = :who", ":who", words(who));
    }
    if let Some(tenant) = tenant {
        set("EXISTS (SELECT 1 FROM json_each(b.tenants) t WHERE t.value = :tenant)", ":tenant", words(tenant));
    }
    if let Some(tool) = tool {
        let called = "EXISTS (SELECT 1 FROM record c INDEXED BY record_of_question WHERE c.question_id = b.question_id AND c.kind = 'call' AND c.tool = :tool)";
        set(called, ":tool", words(tool));
    }
    if let Some(table) = table {
        let read = "EXISTS (SELECT 1 FROM record c INDEXED BY record_of_question, json_each(c.tables) t WHERE c.question_id = b.question_id AND c.kind = 'call' AND t.value = :table)";
        set(read, ":table", words(table));
    }
    if let Some(allowed) = allowed {
        let decided = "CASE b.kind WHEN 'event' THEN (b.outcome <> 'denied') = :allowed ELSE
            EXISTS (SELECT 1 FROM record c INDEXED BY record_of_question WHERE c.question_id = b.question_id AND c.kind = 'call' AND c.allowed = :allowed) END";
        set(decided, ":allowed", Value::Integer(i64::from(*allowed)));
    }
    if let Some(outcome) = outcome {
        let is_open = [OPEN, ABANDONED].contains(&outcome.as_str());
        let ended = "CASE b.kind WHEN 'event' THEN b.outcome ELSE coalesce(
            (SELECT c.outcome FROM record c INDEXED BY record_of_question WHERE c.question_id = b.question_id AND c.kind = 'complete' LIMIT 1),
            'open') END = :outcome";
        set(ended, ":outcome", if is_open { Value::Text(OPEN.to_owned()) } else { words(outcome) });
    }
    if let Some(from) = from {
        let since = "unixepoch(b.body ->> '$.at', 'subsec') >= unixepoch(:from, 'subsec')";
        set(since, ":from", Value::Text(from.to_string()));
    }
    if let Some(to) = to {
        let until = "unixepoch(b.body ->> '$.at', 'subsec') < unixepoch(:to, 'subsec')";
        set(until, ":to", Value::Text(to.to_string()));
    }
    if let Some(text) = text {
        let holds = "instr(lower(coalesce(b.body ->> '$.question',
            CASE WHEN json_valid(p.text) THEN p.text ->> '$.question' END, '')), lower(:text)) > 0";
        set(holds, ":text", words(text));
    }
    let order = if *oldest_first { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT b.seq, b.hash, b.body, p.text, b.kind
         FROM record b LEFT JOIN private p ON p.seq = b.seq
         WHERE {} ORDER BY b.seq {order}",
        conditions.join(" AND ")
    );
    (sql, parameters)
}
