//! Lists: log lines, events, jobs, and what there is of a kind.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sightline_model::{Candidate, TimeRange};

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
        narrow_logs(stage, &mut arguments);
        // `which nodes have the most Xid errors`: as many for each.
        let words = normalised(&stage.ask.text, stage.lexicon);
        if any(&words, &["per severity", "by severity", "each severity"]) {
            set(&mut arguments, "count_by", json!(["severity"]));
        } else if !stage.reading.ranked.is_empty() {
            set(&mut arguments, "count_by", json!(stage.reading.ranked));
        }
        latest(stage, &mut arguments);
        call_once(stage, "search_logs", arguments, Some(asked))
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
fn narrow_logs(stage: &Stage<'_>, arguments: &mut Value) {
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

/// Events of a window.
pub(super) fn events(stage: &Stage<'_>, scope: &Scope) -> Turn {
    windowed(stage, scope, |range, asked| {
        let mut arguments = with_window(json!({ "filters": record_filters(scope) }), range);
        if let Some(kind) = &stage.reading.event_kind {
            set(&mut arguments, "kind", json!(kind));
        }
        latest(stage, &mut arguments);
        call_once(stage, "list_events", arguments, Some(asked))
    })
}

/// Jobs by owner, state, kind and place; counted where their number is asked for.
pub(super) fn jobs(stage: &Stage<'_>, scope: &Scope) -> Turn {
    let reading = stage.reading;
    let words = normalised(&stage.ask.text, stage.lexicon);
    // Jobs are booked under the scheduler's users, and who asks is none of them.
    if reading.own && reading.users.is_empty() {
        let sentence =
            "Jobs are booked under the scheduler's users, and I do not know which of them you are; name the user.";
        let counted =
            Candidate { label: "jobs by user".to_owned(), question: "How many jobs per user today?".to_owned() };
        return finish(draft::clarify(sentence, vec![counted]));
    }
    // What runs on a node is written on its ranks' samples, not on the job.
    if !scope.of("node").is_empty() && reading.users.is_empty() {
        return windowed(stage, scope, |range, asked| {
            let arguments = json!({ "kind": "label_value", "label": "job", "dataset": "metrics", "filters": scope_filters(scope, &[]) });
            call_once(stage, "find_entities", with_window(arguments, range), Some(asked))
        });
    }
    let mut filters = scope_filters(scope, &["service", "model", "gpu", "rank"]);
    if !reading.users.is_empty() {
        filters.push(json!({ "dim": "user", "values": reading.users }));
    }
    if let Some(state) = &reading.state {
        filters.push(json!({ "dim": "state", "values": [state] }));
    }
    for (said, kind) in
        [("inference", "inference"), ("serving", "inference"), ("training jobs", "training"), ("trainings", "training")]
    {
        if find(&words, said).is_some() {
            filters.push(json!({ "dim": "kind", "values": [kind] }));
            break;
        }
    }
    windowed(stage, scope, |range, asked| {
        // A job that was not named with a time is looked for among all that the recording holds.
        let range = if reading.times.is_empty() && reading.anchor.is_none() { back(stage, range) } else { range };
        let asked = if reading.times.is_empty() {
            super::super::time::asked(range, "the last two days, as no time was named", stage.zone)
        } else {
            asked
        };
        let mut arguments = with_window(json!({ "kind": "job", "filters": filters }), range);
        if reading.has("started") {
            set(&mut arguments, "started", json!(true));
        }
        if reading.has("how_many") || reading.has("each_side") {
            let by: Vec<&str> =
                if any(&words, &["per user", "by user", "each user", "per owner", "people", "by owner", "who"]) {
                    vec!["user"]
                } else if any(&words, &["per cluster", "by cluster", "each cluster"]) {
                    vec!["cluster"]
                } else if any(&words, &["by state", "per state"]) {
                    vec!["state"]
                } else if !reading.users.is_empty() {
                    vec!["user"]
                } else {
                    Vec::new()
                };
            if !by.is_empty() {
                set(&mut arguments, "count_by", json!(by));
            }
        }
        if let Some(job) = &scope.job {
            set(&mut arguments, "search", json!(job));
        }
        call_once(stage, "find_entities", arguments, Some(asked))
    })
}

fn back(stage: &Stage<'_>, range: TimeRange) -> TimeRange {
    let from = stage.ask.as_of.checked_sub(SignedDuration::from_hours(48)).unwrap_or(range.from());
    TimeRange::new(from, range.to()).unwrap_or(range)
}

/// What there is of a kind.
pub(super) fn things(stage: &Stage<'_>, scope: &Scope) -> Turn {
    let kind = stage.reading.kind_many.unwrap_or("node");
    windowed(stage, scope, |range, asked| {
        let but: Vec<&str> = scope.filters.iter().map(|(dim, _)| *dim).filter(|dim| *dim == kind).collect();
        let arguments = json!({ "kind": kind, "filters": scope_filters(scope, &but), "limit": THINGS });
        call_once(stage, "find_entities", with_window(arguments, range), Some(asked))
    })
}
