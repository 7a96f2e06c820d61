//! Lists: log lines, events, and what there is of a kind.

use serde_json::{Value, json};
use sightline_model::{AskedRange, Evidence, Outcome};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::resolve::Scope;
use super::super::words::{any, find, normalised};
use super::{Stage, call_once, finish, scope_filters, set, windowed, with_window};
use crate::ports::Turn;

/// How many things are listed of a kind: all that a page can hold.
const THINGS: u32 = 1000;

/// Log lines of a window.
pub(super) fn logs(stage: &Stage<'_>, scope: &Scope) -> Turn {
    windowed(stage, scope, |range, asked| {
        let mut arguments = with_window(json!({ "filters": record_filters(scope) }), range);
        narrow_logs(stage, scope.contains.as_ref(), &mut arguments);
        // `which nodes have the most Xid errors`: as many for each.
        let words = normalised(&stage.ask.text, stage.lexicon);
        if any(&words, &["per severity", "by severity", "each severity"]) {
            set(&mut arguments, "count_by", json!(["severity"]));
        } else if !stage.reading.ranked.is_empty() {
            set(&mut arguments, "count_by", json!(stage.reading.ranked));
        }
        latest(stage, &mut arguments);
        counted(stage, "search_logs", arguments, asked)
    })
}

/// The scope as filters of logs and events: there a job is a label.
fn record_filters(scope: &Scope) -> Vec<Value> {
    let mut filters = scope_filters(scope, &[]);
    if let Some(job) = &scope.job {
        filters.push(json!({ "dim": "job", "values": [job] }));
    }
    filters
}

/// What a line has to say: words in quotes, the kind of message that is asked for, its severity.
fn narrow_logs(stage: &Stage<'_>, contains: Option<&String>, arguments: &mut Value) {
    let reading = stage.reading;
    let words = normalised(&stage.ask.text, stage.lexicon);
    if let Some(text) = quoted(&stage.ask.text) {
        set(arguments, "contains", json!(text));
        return;
    }
    let says = stage
        .lexicon
        .stands_for
        .lines
        .iter()
        .filter_map(|(said, text)| Some((find(&words, said)?, std::cmp::Reverse(said.len()), text)));
    if let Some((_, _, text)) = says.min() {
        set(arguments, "contains", json!(text));
        return;
    }
    if reading.xid {
        set(arguments, "contains", json!("Xid"));
        return;
    }
    if let Some(text) = contains {
        set(arguments, "contains", json!(text));
    }
    let severity = stage.lexicon.stands_for.severities.iter().find(|(said, _)| find(&words, said).is_some());
    if let Some((_, severity)) = severity {
        set(arguments, "severity", json!(severity));
    }
}

/// The text between quotes.
fn quoted(text: &str) -> Option<&str> {
    [('"', '"'), ('“', '”'), ('`', '`'), ('\'', '\'')].into_iter().find_map(|(open, close)| {
        let (before, rest) = text.split_once(open)?;
        // The apostrophe of `J123's` opens nothing.
        let opens = before.is_empty() || before.ends_with([' ', '(', ':']);
        let (inside, _) = rest.split_once(close)?;
        (opens && !inside.trim().is_empty()).then(|| inside.trim())
    })
}

/// `the last 10 lines`: the latest first, so many.
fn latest(stage: &Stage<'_>, arguments: &mut Value) {
    let words = normalised(&stage.ask.text, stage.lexicon);
    let last = any(&words, &["last", "latest", "newest", "most recent", "tail"]);
    if let (true, Some(count)) = (last, stage.reading.count) {
        set(arguments, "latest", json!(true));
        set(arguments, "limit", json!(count));
    }
}

/// Makes a call, or hands on what it brought. That there is nothing of what was asked for, among others of its kind, is an answer: none.
fn counted(stage: &Stage<'_>, tool: &str, arguments: Value, asked: AskedRange) -> Turn {
    let made = stage.gathered.iter().find(|g| g.call.tool == tool && g.call.arguments == arguments);
    match made.and_then(|g| g.outcome.as_ref().ok()) {
        Some(output) if is_none_of_several(output) => {
            let mut draft = draft::from_output(output, Some(asked));
            draft.outcome = Some(Outcome::Answered);
            finish(draft)
        }
        Some(_) | None => call_once(stage, tool, arguments, Some(asked)),
    }
}

/// Whether nothing was found, though there are others in the very window that was asked about.
fn is_none_of_several(output: &ToolOutput) -> bool {
    let Some((first, probes)) = output.evidence.split_first() else { return false };
    let same = |piece: &&Evidence| piece.total > 0 && piece.from == first.from && piece.to == first.to;
    output.outcome == Some(Outcome::InsufficientData) && first.total == 0 && probes.iter().any(|piece| same(&piece))
}

/// Events of a window.
pub(super) fn events(stage: &Stage<'_>, scope: &Scope) -> Turn {
    windowed(stage, scope, |range, asked| {
        let mut arguments = with_window(json!({ "filters": record_filters(scope) }), range);
        // `rollouts and driver upgrades`: of two kinds all are listed.
        if let (Some(kind), false) = (&stage.reading.event_kind, stage.reading.event_kinds > 1) {
            set(&mut arguments, "kind", json!(kind));
        }
        let words = normalised(&stage.ask.text, stage.lexicon);
        let mut severities = stage.lexicon.stands_for.severities.iter().filter(|(_, severity)| *severity != "error");
        let severity = severities.find(|(said, _)| find(&words, said).is_some());
        if let (Some((_, severity)), Some(filters)) =
            (severity, arguments.get_mut("filters").and_then(Value::as_array_mut))
        {
            filters.push(json!({ "dim": "severity", "values": [severity] }));
        }
        if stage.reading.has("newest") {
            set(&mut arguments, "latest", json!(true));
        }
        latest(stage, &mut arguments);
        // Who asks when it was wants the last one.
        if stage.reading.has("when^") && arguments.get("latest").is_none() {
            set(&mut arguments, "latest", json!(true));
        }
        counted(stage, "list_events", arguments, asked)
    })
}

/// What there is of a kind.
pub(super) fn things(stage: &Stage<'_>, scope: &Scope) -> Turn {
    // `where does J132 run` asks for its nodes.
    let of_job = scope.job.as_ref().filter(|_| stage.reading.has("where_runs"));
    let kind = if of_job.is_some() { "node" } else { stage.reading.kind_many.unwrap_or("node") };
    windowed(stage, scope, |range, asked| {
        let but: Vec<&str> = scope.filters.iter().map(|(dim, _)| *dim).filter(|dim| *dim == kind).collect();
        let mut filters = scope_filters(scope, &but);
        filters.extend(of_job.map(|job| json!({ "dim": "job", "values": [job] })));
        let mut arguments = json!({ "kind": kind, "filters": filters, "limit": THINGS });
        // `what metrics do you have about power`
        if let (Some(typed), true) = (&stage.reading.metric_typed, kind == "metric") {
            set(&mut arguments, "search", json!(typed));
        }
        call_once(stage, "find_entities", with_window(arguments, range), Some(asked))
    })
}
