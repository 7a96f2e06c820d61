//! From a reading to calls, turn by turn, and to the draft at the end.

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Candidate, Outcome, Role, TenantScope, TimeRange};
use sightline_query::Catalogue;
use sightline_query::catalogue::EntityLevel;
use sightline_tools::ToolOutput;

use super::draft;
use super::reading::{Class, MetricMention, Reading};
use super::time::asked;
use super::why;
use crate::ports::{Ask, Draft, Gathered, ToolCall, Turn};

/// How many are ranked unless a number is given.
const DEFAULT_COUNT: u32 = 10;
/// The most choices offered with one question back.
pub(super) const MAX_CHOICES: usize = 5;

/// What to do next.
pub(super) fn next(
    ask: &Ask,
    zone: &TimeZone,
    reading: &Reading,
    catalogue: &Catalogue,
    gathered: &[Gathered],
) -> Turn {
    if let Some(refusal) = refusal(ask, reading) {
        return finish(refusal);
    }
    match reading.class {
        Class::Why(subject) => why::next(ask, zone, reading, subject, gathered),
        Class::Value => with_metric(ask, reading, catalogue, |metric| value(ask, zone, reading, metric, gathered)),
        Class::TopK => with_metric(ask, reading, catalogue, |metric| {
            let ranked = ranked(reading, metric, catalogue);
            top_k(ask, zone, reading, metric, &ranked, gathered)
        }),
        Class::Compare => with_metric(ask, reading, catalogue, |metric| compare(zone, reading, metric, gathered)),
        Class::Logs => listing(ask, zone, reading, "search_logs", gathered),
        Class::Events => listing(ask, zone, reading, "list_events", gathered),
        Class::Meaning => super::meaning::next(ask, zone, reading, gathered),
        Class::Write => finish(draft::read_only()),
        Class::Other => finish(draft::cannot_yet()),
    }
}

pub(super) fn finish(draft: Draft) -> Turn {
    Turn::Draft(Box::new(draft))
}

pub(super) fn call(tool: &str, arguments: Value) -> Turn {
    Turn::Calls(vec![ToolCall { tool: tool.to_owned(), arguments }])
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

/// The window that was named, or the default one, said as such.
pub(super) fn window(ask: &Ask, zone: &TimeZone, reading: &Reading) -> Option<(TimeRange, AskedRange)> {
    match reading.times.first() {
        Some(time) => Some((time.range, asked(time.range, &time.typed, zone))),
        None => {
            let from = ask.as_of.checked_sub(1.hour()).ok()?;
            let range = TimeRange::new(from, ask.as_of)?;
            Some((range, asked(range, "the last hour, as no time was named", zone)))
        }
    }
}

/// The output of the latest call of a tool.
pub(super) fn output<'a>(gathered: &'a [Gathered], tool: &str) -> Option<Result<&'a ToolOutput, &'a str>> {
    let latest = gathered.iter().rev().find(|g| g.call.tool == tool)?;
    Some(latest.outcome.as_ref().map_err(|none| none.for_people.as_str()))
}

/// The draft of a class that makes one call: what it found, or why not.
pub(super) fn from_call(result: Result<&ToolOutput, &str>, time_range: Option<AskedRange>) -> Turn {
    finish(match result {
        Ok(output) => draft::from_output(output, time_range),
        Err(sentence) => draft::call_failed(sentence, time_range),
    })
}

/// Goes on with the metric, or asks which one is meant.
fn with_metric(ask: &Ask, reading: &Reading, catalogue: &Catalogue, then: impl FnOnce(&str) -> Turn) -> Turn {
    let choice = |typed: &str, id: &str| {
        let meaning = catalogue.get(id).map_or("", |m| m.meaning());
        Candidate { label: format!("{id}: {meaning}"), question: ask.text.replacen(typed, id, 1) }
    };
    match &reading.metric {
        MetricMention::One(id) => then(id),
        MetricMention::Several { typed, candidates } => {
            let choices = candidates.iter().take(MAX_CHOICES).map(|id| choice(typed, id)).collect();
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

/// Filters from the entities that were named.
fn filters(reading: &Reading) -> Value {
    let filters = reading.named.iter().map(|(dim, value)| json!({ "dim": dim, "values": [value] }));
    Value::Array(filters.collect())
}

/// The arguments that all metric tools share.
pub(super) fn metric_arguments(reading: &Reading, metric: &str) -> Value {
    let mut arguments = json!({ "metric": metric, "filters": filters(reading) });
    if let Some(object) = arguments.as_object_mut() {
        if let Some(job) = &reading.job {
            object.insert("job".to_owned(), json!(job));
        }
        if let Some(aggregation) = reading.aggregation {
            object.insert("aggregation".to_owned(), json!(aggregation));
        }
    }
    arguments
}

pub(super) fn with_window(mut arguments: Value, range: TimeRange) -> Value {
    if let Some(object) = arguments.as_object_mut() {
        object.insert("from".to_owned(), json!(range.from().to_string()));
        object.insert("to".to_owned(), json!(range.to().to_string()));
    }
    arguments
}

fn value(ask: &Ask, zone: &TimeZone, reading: &Reading, metric: &str, gathered: &[Gathered]) -> Turn {
    let Some((range, asked)) = window(ask, zone, reading) else { return finish(draft::cannot_yet()) };
    match output(gathered, "metric_range") {
        Some(result) => from_call(result, Some(asked)),
        None => {
            let mut arguments = with_window(metric_arguments(reading, metric), range);
            if let (false, Some(object)) = (reading.ranked.is_empty(), arguments.as_object_mut()) {
                object.insert("group_by".to_owned(), json!(reading.ranked));
            }
            call("metric_range", arguments)
        }
    }
}

/// What is ranked: what the question says, else what the metric is measured of.
fn ranked(reading: &Reading, metric: &str, catalogue: &Catalogue) -> Vec<&'static str> {
    if !reading.ranked.is_empty() {
        return reading.ranked.clone();
    }
    let Some(metric) = catalogue.get(metric) else { return vec!["node"] };
    match metric.entity() {
        EntityLevel::Gpu | EntityLevel::Link => vec!["node", "gpu"],
        EntityLevel::Node | EntityLevel::Device | EntityLevel::NvSwitch => vec!["node"],
        EntityLevel::Job => vec!["job"],
        EntityLevel::Rank => vec!["job", "rank"],
        EntityLevel::Model => vec!["model"],
        EntityLevel::Service => vec!["service"],
        EntityLevel::Pod => vec!["pod"],
        EntityLevel::Cluster => vec!["cluster"],
    }
}

fn top_k(
    ask: &Ask,
    zone: &TimeZone,
    reading: &Reading,
    metric: &str,
    ranked: &[&'static str],
    gathered: &[Gathered],
) -> Turn {
    let Some((range, asked)) = window(ask, zone, reading) else { return finish(draft::cannot_yet()) };
    match output(gathered, "top_k") {
        Some(result) => from_call(result, Some(asked)),
        None => {
            let mut arguments = with_window(metric_arguments(reading, metric), range);
            if let Some(object) = arguments.as_object_mut() {
                object.insert("group_by".to_owned(), json!(ranked));
                object.insert("k".to_owned(), json!(reading.count.unwrap_or(DEFAULT_COUNT)));
                object.insert("order".to_owned(), json!(if reading.ascending { "lowest" } else { "highest" }));
            }
            call("top_k", arguments)
        }
    }
}

fn compare(zone: &TimeZone, reading: &Reading, metric: &str, gathered: &[Gathered]) -> Turn {
    let Some((before, after)) = two_windows(reading) else {
        let sentence = "Name two time ranges to compare, for example `today and yesterday`.";
        return finish(draft::plain(Outcome::Clarify, sentence));
    };
    let asked = asked(after, "the later of the two time ranges", zone);
    match output(gathered, "compare") {
        Some(result) => from_call(result, Some(asked)),
        None => {
            let mut arguments = with_window(metric_arguments(reading, metric), after);
            if let Some(object) = arguments.as_object_mut() {
                object.insert("base_from".to_owned(), json!(before.from().to_string()));
                object.insert("base_to".to_owned(), json!(before.to().to_string()));
            }
            call("compare", arguments)
        }
    }
}

/// Log lines or events of a window, latest first where there may be many.
fn listing(ask: &Ask, zone: &TimeZone, reading: &Reading, tool: &'static str, gathered: &[Gathered]) -> Turn {
    if reading.job.is_some() {
        // Answering for all nodes instead would say more than was asked.
        return finish(draft::not_by_job());
    }
    let Some((range, asked)) = window(ask, zone, reading) else { return finish(draft::cannot_yet()) };
    if let Some(result) = output(gathered, tool) {
        return from_call(result, Some(asked));
    }
    let mut arguments = with_window(json!({ "filters": filters(reading) }), range);
    if let Some(object) = arguments.as_object_mut() {
        if tool == "search_logs" && reading.xid {
            object.insert("contains".to_owned(), json!("Xid"));
        }
        if let (true, Some(kind)) = (tool == "list_events", reading.event_kind) {
            object.insert("kind".to_owned(), json!(kind));
        }
    }
    call(tool, arguments)
}

/// The earlier and the later window: both named, or one named with the one before it.
fn two_windows(reading: &Reading) -> Option<(TimeRange, TimeRange)> {
    match reading.times.as_slice() {
        [first, second, ..] if first.range.from() <= second.range.from() => Some((first.range, second.range)),
        [first, second, ..] => Some((second.range, first.range)),
        [only] if reading.and_before => {
            let length = jiff::SignedDuration::from_millis(only.range.millis());
            let from = only.range.from().checked_sub(length).ok()?;
            Some((TimeRange::new(from, only.range.from())?, only.range))
        }
        [_] | [] => None,
    }
}
