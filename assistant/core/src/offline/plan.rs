//! From a reading to calls, turn by turn, and to the draft at the end.

mod counts;
mod jobs;
mod lists;
mod metrics;
mod overview;

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Candidate, Outcome, Role, TenantScope, TimeRange};
use sightline_query::Catalogue;
use sightline_query::catalogue::{EntityLevel, Metric};
use sightline_tools::ToolOutput;

use super::draft;
use super::lexicon::Lexicon;
use super::reading::{Class, MetricMention, Reading};
use super::resolve::{Resolved, Scope, resolve};
use super::why;
use crate::ports::{Ask, Draft, Gathered, ToolCall, Turn};

/// The most choices offered with one question back.
pub(super) const MAX_CHOICES: usize = 5;
/// All that a plan is made from.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) ask: &'a Ask,
    pub(super) zone: &'a TimeZone,
    pub(super) reading: &'a Reading,
    pub(super) catalogue: &'a Catalogue,
    pub(super) lexicon: &'a Lexicon,
    pub(super) gathered: &'a [Gathered],
}

/// What to do next.
pub(super) fn next(stage: &Stage<'_>) -> Turn {
    let Stage { ask, zone, reading, gathered, .. } = *stage;
    if let Some(refusal) = refusal(ask, reading) {
        return finish(refusal);
    }
    match reading.class {
        Class::Why(subject) => why::next(stage, subject),
        Class::Meaning => super::meaning::next(ask, zone, reading, gathered),
        Class::Write => finish(draft::read_only()),
        Class::Forbidden => finish(draft::forbidden()),
        Class::Sql => finish(draft::no_sql()),
        Class::Abilities => finish(draft::abilities()),
        Class::Other => finish(draft::cannot_yet()),
        Class::Value | Class::TopK | Class::Threshold | Class::Compare => {
            scoped(stage, |scope| with_metric(stage, scope, |metric| metrics::next(stage, scope, metric)))
        }
        Class::Count => scoped(stage, |scope| counts::next(stage, scope)),
        Class::Waste => scoped(stage, |scope| counts::waste(stage, scope)),
        Class::Logs => scoped(stage, |scope| lists::logs(stage, scope)),
        Class::Events => scoped(stage, |scope| lists::events(stage, scope)),
        Class::FindJobs => scoped(stage, |scope| jobs::next(stage, scope)),
        Class::List => scoped(stage, |scope| lists::things(stage, scope)),
        Class::Health => overview::next(stage, &Scope::default()),
    }
}

/// Whether all is well with what is named.
pub(super) fn overview(stage: &Stage<'_>, scope: &Scope) -> Turn {
    overview::next(stage, scope)
}

pub(super) fn finish(draft: Draft) -> Turn {
    Turn::Draft(Box::new(draft))
}

pub(super) fn call(tool: &str, arguments: Value) -> Turn {
    Turn::Calls(vec![ToolCall { tool: tool.to_owned(), arguments }])
}

/// Goes on once the names of the question are known.
fn scoped(stage: &Stage<'_>, then: impl FnOnce(&Scope) -> Turn) -> Turn {
    match resolve(stage) {
        Resolved::Scope(scope) => then(&scope),
        Resolved::Look(calls) => Turn::Calls(calls),
        Resolved::Ask(draft) => finish(*draft),
    }
}

/// Goes on once the window is known.
pub(super) fn windowed(stage: &Stage<'_>, scope: &Scope, then: impl FnOnce(TimeRange, AskedRange) -> Turn) -> Turn {
    match super::windows::window(stage, scope) {
        super::windows::Window::Known(range, asked) => then(range, asked),
        super::windows::Window::Look(call) => Turn::Calls(vec![*call]),
        super::windows::Window::Ask(draft) => finish(*draft),
    }
}

/// A question that names a tenant which is not the asker's is refused, whether or not there is one of that name.
fn refusal(ask: &Ask, reading: &Reading) -> Option<Draft> {
    let named = reading.tenant.as_deref()?;
    match (&ask.principal.tenants, ask.principal.role) {
        (TenantScope::All, _) | (_, Role::Admin) => None,
        (TenantScope::Only(own), Role::Viewer | Role::Operator | Role::Auditor) => {
            let is_own = own.iter().any(|tenant| tenant.eq_ignore_ascii_case(named));
            let list = own.iter().cloned().collect::<Vec<_>>().join(", ");
            (!is_own).then(|| draft::other_tenant(&list))
        }
    }
}

/// The output of the latest call of a tool.
pub(super) fn output<'a>(gathered: &'a [Gathered], tool: &str) -> Option<Result<&'a ToolOutput, &'a str>> {
    let latest = gathered.iter().rev().find(|g| g.call.tool == tool)?;
    Some(latest.outcome.as_ref().map_err(|none| none.for_people.as_str()))
}

/// Makes a call, or hands on what it brought.
pub(super) fn call_once(stage: &Stage<'_>, tool: &str, arguments: Value, time_range: Option<AskedRange>) -> Turn {
    let made = stage.gathered.iter().find(|g| g.call.tool == tool && g.call.arguments == arguments);
    match made {
        Some(made) => from_call(made.outcome.as_ref().map_err(|none| none.for_people.as_str()), time_range),
        None => call(tool, arguments),
    }
}

/// The draft of a class that makes one call: what it found, or why not.
pub(super) fn from_call(result: Result<&ToolOutput, &str>, time_range: Option<AskedRange>) -> Turn {
    finish(match result {
        Ok(output) => draft::from_output(output, time_range),
        Err(sentence) => draft::call_failed(sentence, time_range),
    })
}

/// Of several metrics those that what is named has: a job its own pace, a service its requests.
fn of_scope<'r>(stage: &Stage<'_>, scope: &Scope, candidates: &'r [String]) -> Vec<&'r String> {
    let of = |levels: &[EntityLevel]| -> Vec<&'r String> {
        let level = |id: &str| stage.catalogue.get(id).map(Metric::entity);
        candidates.iter().filter(|id| level(id).is_some_and(|level| levels.contains(&level))).collect()
    };
    let named = |kind: &str| !scope.of(kind).is_empty();
    let tries: &[&[EntityLevel]] = if scope.job.is_some() || matches!(&scope.sides, Some(("job", _))) || named("rank") {
        &[&[EntityLevel::Job, EntityLevel::Rank], &[EntityLevel::Gpu]]
    } else if named("service") || named("model") || named("pod") {
        &[&[EntityLevel::Model, EntityLevel::Service, EntityLevel::Pod]]
    } else if named("gpu") {
        &[&[EntityLevel::Gpu, EntityLevel::Link]]
    } else {
        &[]
    };
    match tries.iter().map(|levels| of(levels)).find(|left| !left.is_empty()) {
        // The list's own order says which is meant most often; of a GPU's memory and its links that would be a guess.
        Some(left) if !named("gpu") => left.into_iter().take(1).collect(),
        Some(left) => left,
        None => candidates.iter().collect(),
    }
}

/// Goes on with the metric, or asks which one is meant.
fn with_metric(stage: &Stage<'_>, scope: &Scope, then: impl FnOnce(&str) -> Turn) -> Turn {
    let Stage { ask, reading, catalogue, .. } = *stage;
    let choice = |typed: &str, id: &str| {
        let meaning = catalogue.get(id).map_or("", |m| m.meaning());
        Candidate { label: format!("{id}: {meaning}"), question: ask.text.replacen(typed, id, 1) }
    };
    match &reading.metric {
        MetricMention::One(id) => then(id),
        MetricMention::Several { typed, candidates } => {
            let left = of_scope(stage, scope, candidates);
            if let [only] = left.as_slice() {
                return then(only);
            }
            let choices = left.iter().take(MAX_CHOICES).map(|id| choice(typed, id)).collect();
            let sentence =
                format!("“{}” can mean several metrics; which one do you mean?", crate::ground::clean(typed));
            finish(draft::clarify(&sentence, choices))
        }
        MetricMention::None { near, typed: Some(typed) } => {
            let typed_clean = crate::ground::clean(typed);
            if near.is_empty() {
                let sentence = format!("No metric is called `{typed_clean}`.");
                return finish(draft::plain(Outcome::InsufficientData, &sentence));
            }
            let choices = near
                .iter()
                .take(MAX_CHOICES)
                .map(|name| Candidate { label: name.clone(), question: ask.text.replacen(typed, name, 1) });
            let sentence = format!("No metric is called `{typed_clean}`; did you mean one of these?");
            finish(draft::clarify(&sentence, choices.collect()))
        }
        MetricMention::None { typed: None, .. } => finish(draft::cannot_yet()),
    }
}

/// Filters from the entities that were named, as they were typed.
fn filters(reading: &Reading) -> Value {
    let filters = reading.named.iter().map(|(dim, value)| json!({ "dim": dim, "values": [value] }));
    Value::Array(filters.collect())
}

/// The arguments that all metric tools share, for a question whose names were typed in full.
pub(super) fn metric_arguments(reading: &Reading, metric: &str) -> Value {
    let mut arguments = json!({ "metric": metric, "filters": filters(reading) });
    if let Some(job) = &reading.job {
        set(&mut arguments, "job", json!(job));
    }
    if let Some(aggregation) = &reading.aggregation {
        set(&mut arguments, "aggregation", json!(aggregation));
    }
    arguments
}

/// Filters of a scope, but for these dimensions.
pub(super) fn scope_filters(scope: &Scope, but: &[&str]) -> Vec<Value> {
    let kept = scope.filters.iter().filter(|(dim, _)| !but.contains(dim));
    let left_out = scope.without.iter().filter(|(dim, _)| !but.contains(dim));
    let kept = kept.map(|(dim, values)| json!({ "dim": dim, "values": values }));
    kept.chain(left_out.map(|(dim, values)| json!({ "dim": dim, "op": "not", "values": values }))).collect()
}

/// Sets an argument.
pub(super) fn set(arguments: &mut Value, name: &str, value: Value) {
    if let Some(object) = arguments.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}

pub(super) fn with_window(mut arguments: Value, range: TimeRange) -> Value {
    set(&mut arguments, "from", json!(range.from().to_string()));
    set(&mut arguments, "to", json!(range.to().to_string()));
    arguments
}
