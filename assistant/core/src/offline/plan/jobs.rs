//! Jobs by owner, state, kind, size, age and place; counted where their number is asked for.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Candidate, Outcome, TimeRange};

use super::super::draft;
use super::super::limits::{Age, Limit};
use super::super::resolve::Scope;
use super::super::time::asked;
use super::super::words::{Word, any, find, normalised};
use super::{Stage, call_once, finish, scope_filters, set, windowed, with_window};
use crate::ports::{Gathered, ToolCall, Turn};

/// What narrows a list of jobs: a look without it tells whether any are recorded at all.
const NARROWS: [&str; 5] = ["filters", "count_by", "order", "min_gpus", "started"];
/// A moment in the life of a job: what ran then and still runs is older than that.
const MOMENT: SignedDuration = SignedDuration::from_mins(1);

/// What to do next.
pub(super) fn next(stage: &Stage<'_>, scope: &Scope) -> Turn {
    let reading = stage.reading;
    // Jobs are booked under the scheduler's users, and who asks is none of them.
    if reading.own && reading.users.is_empty() {
        let sentence =
            "Jobs are booked under the scheduler's users, and I do not know which of them you are; name the user.";
        let counted =
            Candidate { label: "jobs by user".to_owned(), question: "How many jobs per user today?".to_owned() };
        return finish(draft::clarify(sentence, vec![counted]));
    }
    // What runs on a node is written on its ranks' samples, not on the job.
    if !scope.of("node").is_empty() && users(stage, scope).is_empty() && scope.job.is_none() {
        return windowed(stage, scope, |range, asked| {
            let arguments = json!({ "kind": "label_value", "label": "job", "dataset": "metrics", "filters": scope_filters(scope, &[]) });
            on_node(stage, with_window(arguments, range), range, asked)
        });
    }
    windowed(stage, scope, |range, asked| of_window(stage, scope, range, asked))
}

/// The jobs that were on a node, then what the scheduler says of them: whose they are, and since when.
fn on_node(stage: &Stage<'_>, arguments: Value, range: TimeRange, asked: AskedRange) -> Turn {
    let made = stage.gathered.iter().find(|g| g.call.tool == "find_entities" && g.call.arguments == arguments);
    let Some(Ok(found)) = made.map(|g| g.outcome.as_ref()) else {
        return call_once(stage, "find_entities", arguments, Some(asked));
    };
    let mut ids: Vec<&String> =
        found.evidence.iter().flat_map(|piece| &piece.rows).filter_map(|row| row.entity.get("job")).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return call_once(stage, "find_entities", arguments, Some(asked));
    }
    let filters = json!([{ "dim": "job", "values": ids }]);
    call_once(stage, "find_entities", with_window(json!({ "kind": "job", "filters": filters }), range), Some(asked))
}

/// Whose jobs are asked for.
fn users(stage: &Stage<'_>, scope: &Scope) -> Vec<String> {
    // `atlas-b's jobs` are those of a place.
    let is_thing = |user: &String| scope.filters.iter().any(|(_, values)| values.contains(user));
    let mut users: Vec<String> = stage.reading.users.iter().filter(|user| !is_thing(user)).cloned().collect();
    users.extend(scope.users.iter().filter(|user| !stage.reading.users.contains(user)).cloned());
    users
}

fn of_window(stage: &Stage<'_>, scope: &Scope, range: TimeRange, asked: AskedRange) -> Turn {
    let reading = stage.reading;
    let words = normalised(&stage.ask.text, stage.lexicon);
    let mut filters = scope_filters(scope, &["service", "model", "gpu", "rank", "node"]);
    let users = users(stage, scope);
    if !users.is_empty() {
        filters.push(json!({ "dim": "user", "values": users }));
    }
    // Who holds or uses GPUs does so now.
    let holds = any(&words, &["hold", "holds", "holding", "have", "use", "uses", "using", "own", "owns", "occupy"]);
    let aged = aged(stage);
    let state = match &reading.state {
        // `is it still running`, `when did J126 end`: of a job that is named its state is asked for, not told.
        Some(_) | None if scope.job.is_some() => None,
        Some(state) => Some(state.clone()),
        // `what is petrov running`
        None if reading.has("runs_what") && reading.times.is_empty() => Some("running".to_owned()),
        None if aged.is_some() || reading.has("longer") || (holds && !users.is_empty() && reading.times.is_empty()) => {
            Some("running".to_owned())
        }
        None => None,
    };
    if let Some(state) = state {
        filters.push(json!({ "dim": "state", "values": [state] }));
    }
    for (said, kind) in [
        ("inference", "inference"),
        ("serving", "inference"),
        ("training jobs", "training"),
        ("training job", "training"),
        ("training runs", "training"),
        ("training run", "training"),
        ("trainings", "training"),
    ] {
        if find(&words, said).is_some() {
            filters.push(json!({ "dim": "kind", "values": [kind] }));
            break;
        }
    }
    let (range, asked) = aged.unwrap_or((range, asked));
    let mut arguments = with_window(json!({ "kind": "job", "filters": filters }), range);
    if reading.has("started") && scope.job.is_none() && reading.age.is_none() {
        set(&mut arguments, "started", json!(true));
    }
    if reading.has("longer") || reading.age.is_some() {
        set(&mut arguments, "order", json!("duration"));
    } else if reading.has("larger") {
        set(&mut arguments, "order", json!("gpus"));
    }
    if let Some(least) = least_gpus(stage) {
        set(&mut arguments, "order", json!("gpus"));
        set(&mut arguments, "min_gpus", json!(least));
    }
    if let Some(by) = counted_by(stage, scope, &words).filter(|_| scope.job.is_none()) {
        set(&mut arguments, "count_by", json!(by));
    }
    match (&scope.job, &scope.jobs_called) {
        (Some(job), _) => set(&mut arguments, "search", json!(job)),
        (None, Some(called)) => set(&mut arguments, "search", json!(called)),
        (None, None) => {}
    }
    or_none(stage, arguments, asked)
}

/// What jobs are counted by.
fn counted_by(stage: &Stage<'_>, scope: &Scope, words: &[Word<'_>]) -> Option<Vec<&'static str>> {
    let reading = stage.reading;
    // `which user has the most GPUs`
    let who_most = reading.has("larger") && any(words, &["which user", "who", "what user", "users"]);
    if !(reading.has("how_many") || reading.has("each_side") || who_most) {
        return None;
    }
    if any(words, &["per user", "by user", "each user", "per owner", "people", "by owner", "who", "users"]) {
        Some(vec!["user"])
    } else if any(words, &["per cluster", "by cluster", "each cluster"]) {
        Some(vec!["cluster"])
    } else if any(words, &["by state", "per state"]) {
        Some(vec!["state"])
    } else {
        (!users(stage, scope).is_empty()).then(|| vec!["user"])
    }
}

/// `jobs with more than 16 GPUs`: the fewest that a job must hold.
fn least_gpus(stage: &Stage<'_>) -> Option<u32> {
    let words = normalised(&stage.ask.text, stage.lexicon);
    let of_gpus = |limit: &&Limit| {
        let behind = words.get(limit.first + limit.length).map(|word| word.folded.as_str());
        limit.unit.is_empty() && matches!(behind, Some("gpus" | "gpu" | "cards"))
    };
    let limit = stage.reading.limits.iter().find(of_gpus)?;
    let least = match limit.op {
        "gt" => limit.amount.floor() + 1.0,
        "ge" => limit.amount.ceil(),
        _ => return None,
    };
    (0.0..1e9).contains(&least).then_some(least as u32)
}

/// `running longer than a day`: what ran a day ago, and still runs.
fn aged(stage: &Stage<'_>) -> Option<(TimeRange, AskedRange)> {
    let Age { longer, span, .. } = stage.reading.age.as_ref()?;
    let as_of = stage.ask.as_of;
    let then = as_of.to_zoned_datetime(stage.zone.clone()).checked_sub(*span).ok()?.timestamp();
    let (range, said) = if *longer {
        (TimeRange::new(then.checked_sub(MOMENT).ok()?, then)?, "the moment before which they must have begun")
    } else {
        (TimeRange::new(then, as_of)?, "the time in which they must have begun")
    };
    Some((range, asked(range, said, stage.zone)))
}

/// Makes the call, or hands on what it brought. That no job fits is an answer where jobs are recorded at all.
fn or_none(stage: &Stage<'_>, arguments: Value, asked: AskedRange) -> Turn {
    let made = |arguments: &Value| {
        let is_it = |g: &&Gathered| g.call.tool == "find_entities" && g.call.arguments == *arguments;
        stage.gathered.iter().find(is_it).and_then(|g| g.outcome.as_ref().ok())
    };
    let narrowed = arguments.get("search").is_none();
    match made(&arguments) {
        Some(output) if output.outcome == Some(Outcome::InsufficientData) && narrowed => {
            let all = everything(&arguments);
            match made(&all) {
                None if !stage.gathered.iter().any(|g| g.call.arguments == all) => {
                    Turn::Calls(vec![ToolCall { tool: "find_entities".to_owned(), arguments: all }])
                }
                Some(any) if any.outcome == Some(Outcome::Answered) => {
                    let mut draft = draft::from_output(output, Some(asked));
                    draft.outcome = Some(Outcome::Answered);
                    finish(draft)
                }
                Some(_) | None => call_once(stage, "find_entities", arguments, Some(asked)),
            }
        }
        Some(_) | None => call_once(stage, "find_entities", arguments, Some(asked)),
    }
}

/// The same call without what narrows it: whether any job is recorded in that window.
fn everything(arguments: &Value) -> Value {
    let mut all = arguments.clone();
    if let Some(object) = all.as_object_mut() {
        NARROWS.iter().for_each(|name| {
            object.remove(*name);
        });
        object.insert("limit".to_owned(), json!(1));
    }
    all
}
