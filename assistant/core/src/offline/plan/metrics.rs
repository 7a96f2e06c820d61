//! Questions about the numbers of a metric: its value, a ranking, a limit, a comparison.

use serde_json::{Value, json};
use sightline_model::{AskedRange, Candidate, MetricKind, Outcome, TimeRange};
use sightline_query::Catalogue;
use sightline_query::catalogue::{EntityLevel, Metric};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::limits::{Limit, in_unit};
use super::super::reading::{Class, Reading};
use super::super::resolve::Scope;
use super::super::time::asked;
use super::super::windows;
use super::super::words::{any, normalised};
use super::{MAX_CHOICES, Stage, call_once, finish, scope_filters, set, windowed, with_window};
use crate::ports::{Draft, Gathered, ToolCall, Turn};

/// How many are ranked unless a number is given.
const DEFAULT_COUNT: u32 = 10;
/// How many are listed where all beyond a limit are meant: as many as can be.
const ALL: u32 = 100;
/// So many samples beyond a limit are listed: the first tells when.
const FIRST_BEYOND: u32 = 5;

/// What to do next, once names and metric are known.
pub(super) fn next(stage: &Stage<'_>, scope: &Scope, metric: &str) -> Turn {
    match stage.reading.class {
        Class::TopK => windowed(stage, scope, |range, asked| top_k(stage, scope, metric, range, asked)),
        Class::Threshold => windowed(stage, scope, |range, asked| threshold(stage, scope, metric, range, asked)),
        Class::Compare => compare(stage, scope, metric),
        _ => windowed(stage, scope, |range, asked| value(stage, scope, metric, range, asked)),
    }
}

/// The arguments that all metric tools share.
fn shared(stage: &Stage<'_>, scope: &Scope, metric: &str, but: &[&str]) -> Value {
    let mut arguments = json!({ "metric": metric, "filters": scope_filters(scope, but) });
    if let (Some(job), false) = (&scope.job, but.contains(&"job")) {
        of_job(stage, &mut arguments, metric, job);
    }
    if let Some(aggregation) = aggregation(stage, metric) {
        set(&mut arguments, "aggregation", json!(aggregation));
    }
    arguments
}

/// How samples are combined: as the words say; of a counter its growth or its pace, which words tell apart as well.
fn aggregation(stage: &Stage<'_>, metric: &str) -> Option<String> {
    let said = stage.reading.aggregation.as_deref();
    if stage.catalogue.get(metric).map(Metric::kind) != Some(MetricKind::Counter) {
        return said.map(str::to_owned);
    }
    let words = normalised(&stage.ask.text, stage.lexicon);
    let paced = any(
        &words,
        &["per second", "per sec", "a second", "rate", "tok/s", "tokens/s", "throughput", "speed", "bandwidth"],
    );
    let summed = said == Some("sum")
        || stage.reading.has("how_many")
        || any(
            &words,
            &["consumption", "consumed", "consume", "used", "spent", "in all", "in total", "how much", "altogether"],
        );
    match said {
        _ if paced
            || stage.reading.limits.iter().any(|limit| limit.unit.contains('/') || limit.unit.ends_with("ps")) =>
        {
            Some("rate".to_owned())
        }
        _ if summed => Some("increase".to_owned()),
        // Of a counter no sample is a value.
        Some("max" | "min" | "avg" | "last") | None => None,
        Some(other) => Some(other.to_owned()),
    }
}

/// Limits a call to a job: what the job itself reports carries its id, everything else is told by the GPUs that it held.
pub(super) fn of_job(stage: &Stage<'_>, arguments: &mut Value, metric: &str, job: &str) {
    let own = matches!(stage.catalogue.get(metric).map(Metric::entity), Some(EntityLevel::Job | EntityLevel::Rank));
    if !own {
        set(arguments, "job", json!(job));
    } else if let Some(filters) = arguments.get_mut("filters").and_then(Value::as_array_mut) {
        filters.push(json!({ "dim": "job", "values": [job] }));
    }
}

fn value(stage: &Stage<'_>, scope: &Scope, metric: &str, range: TimeRange, asked: AskedRange) -> Turn {
    let reading = stage.reading;
    let made = |metric: &str| {
        let mut arguments = with_window(shared(stage, scope, metric, &[]), range);
        if reading.has("when") && matches!(reading.aggregation.as_deref(), Some("max" | "min")) {
            // The sample itself tells when it was.
            let order = if reading.aggregation.as_deref() == Some("max") { "highest" } else { "lowest" };
            if let Some(object) = arguments.as_object_mut() {
                object.remove("aggregation");
            }
            set(&mut arguments, "samples", json!(order));
            set(&mut arguments, "limit", json!(1));
        } else if let Some((kind, _)) = &scope.sides {
            set(&mut arguments, "group_by", json!([kind]));
        } else if !reading.ranked.is_empty() && (reading.has("each_side") || reading.has("kind_many")) {
            set(&mut arguments, "group_by", json!(reading.ranked));
        }
        if let (Some(step), None) = (reading.step, arguments.get("samples")) {
            set(&mut arguments, "step_seconds", json!(step));
        }
        ToolCall { tool: "metric_range".to_owned(), arguments }
    };
    let mut calls = vec![made(metric)];
    calls.extend(reading.also.iter().map(|also| made(also)));
    several(stage, calls, asked)
}

/// Makes calls and hands on what they brought together.
pub(super) fn several(stage: &Stage<'_>, calls: Vec<ToolCall>, asked: AskedRange) -> Turn {
    let made: Vec<&Gathered> =
        calls.iter().filter_map(|call| stage.gathered.iter().find(|g| g.call == *call)).collect();
    if made.len() < calls.len() {
        return Turn::Calls(calls);
    }
    let found: Vec<&ToolOutput> = made.iter().filter_map(|g| g.outcome.as_ref().ok()).collect();
    let Some((first, rest)) = found.split_first() else {
        let sentence = made
            .first()
            .and_then(|g| g.outcome.as_ref().err())
            .map_or("nothing was read", |none| none.for_people.as_str());
        return finish(draft::call_failed(sentence, Some(asked)));
    };
    let mut draft = draft::from_output(first, Some(asked));
    for more in rest {
        join(&mut draft, more);
    }
    finish(draft)
}

/// Adds what another call brought.
pub(super) fn join(draft: &mut Draft, more: &ToolOutput) {
    draft.claims.extend(more.headline.iter().filter(|headline| !more.claims.contains(headline)).cloned());
    draft.claims.extend(more.claims.iter().cloned());
    draft.data_health.extend(more.data_health.iter().cloned());
    draft.data_health.dedup();
    if draft.outcome == Some(Outcome::InsufficientData)
        && more.outcome.is_none_or(|outcome| outcome == Outcome::Answered)
    {
        draft.outcome = Some(Outcome::Answered);
        draft.headline = more.headline.clone();
    }
}

/// What is ranked: what the question says, else what the metric is measured of.
pub(super) fn ranked(reading: &Reading, metric: &str, catalogue: &Catalogue) -> Vec<&'static str> {
    let level = catalogue.get(metric).map(Metric::entity);
    let own = match level {
        Some(EntityLevel::Gpu | EntityLevel::Link) => vec!["node", "gpu"],
        Some(EntityLevel::Node | EntityLevel::Device | EntityLevel::NvSwitch) | None => vec!["node"],
        Some(EntityLevel::Job) => vec!["job"],
        Some(EntityLevel::Rank) => vec!["job", "rank"],
        Some(EntityLevel::Model | EntityLevel::Service) => vec!["service"],
        Some(EntityLevel::Pod) => vec!["pod"],
        Some(EntityLevel::Cluster) => vec!["cluster"],
    };
    // A job's GPUs are no jobs: `which gpu of job J7`.
    if reading.ranked.is_empty() || (reading.ranked == ["job"] && reading.job.is_some()) {
        own
    } else {
        reading.ranked.clone()
    }
}

/// The limit on the metric, in its unit.
fn limit_of<'r>(stage: &Stage<'r>, metric: &str) -> Result<Option<(&'r Limit, f64)>, Box<Draft>> {
    let Some(limit) = stage.reading.limits.first() else { return Ok(None) };
    let unit = stage.catalogue.get(metric).map_or(sightline_model::Unit::None, Metric::unit);
    match in_unit(limit.amount, &limit.unit, unit) {
        Ok(bound) => Ok(Some((limit, rounded(bound)))),
        Err(()) => {
            let sentence = format!(
                "“{}” is no limit for {metric}, which is measured in {}; name it in that unit.",
                crate::ground::clean(&limit.typed),
                unit.as_str()
            );
            Err(Box::new(draft::plain(Outcome::Clarify, &sentence)))
        }
    }
}

/// Without the dust of a conversion: 185 °F are 85 °C.
fn rounded(bound: f64) -> f64 {
    let scaled = (bound * 1e9).round() / 1e9;
    if scaled.is_finite() { scaled } else { bound }
}

fn top_k(stage: &Stage<'_>, scope: &Scope, metric: &str, range: TimeRange, asked: AskedRange) -> Turn {
    let reading = stage.reading;
    let bound = match limit_of(stage, metric) {
        Ok(bound) => bound,
        Err(draft) => return finish(*draft),
    };
    let group_by = ranked(reading, metric, stage.catalogue);
    let mut arguments = with_window(shared(stage, scope, metric, &[]), range);
    let mut ascending = reading.ascending;
    if let Some((limit, bound)) = bound {
        let above = matches!(limit.op, "gt" | "ge");
        set(&mut arguments, if above { "above" } else { "below" }, json!(bound));
        ascending = !above;
        // `between 500 and 650 W`: the other end of the band.
        if let Some(other) = reading.limits.get(1).filter(|other| other.first == limit.first) {
            let unit = stage.catalogue.get(metric).map_or(sightline_model::Unit::None, Metric::unit);
            if let Ok(other) = in_unit(other.amount, &other.unit, unit) {
                set(&mut arguments, "below", json!(rounded(other)));
            }
        }
        let band = reading.limits.len() > 1;
        // `which GPUs were over 85 °C` asks whether any sample was.
        if reading.aggregation.is_none() && !band && !is_now(reading) && (above || reading.has("any_time")) {
            set(&mut arguments, "aggregation", json!(if above { "max" } else { "min" }));
        }
    }
    set(&mut arguments, "group_by", json!(group_by));
    set(&mut arguments, "k", json!(reading.count.unwrap_or(if bound.is_some() { ALL } else { DEFAULT_COUNT })));
    set(&mut arguments, "order", json!(if ascending { "lowest" } else { "highest" }));
    call_once(stage, "top_k", arguments, Some(asked))
}

/// Whether the present is asked for, where a mean over minutes is meant and no single sample.
pub(super) fn is_now(reading: &Reading) -> bool {
    reading.times.first().is_none_or(|time| time.moment == super::super::time::Moment::Now)
}

fn threshold(stage: &Stage<'_>, scope: &Scope, metric: &str, range: TimeRange, asked: AskedRange) -> Turn {
    let reading = stage.reading;
    let (limit, bound) = match limit_of(stage, metric) {
        Ok(Some(bound)) => bound,
        Ok(None) => return finish(draft::cannot_yet()),
        Err(draft) => return finish(*draft),
    };
    let above = matches!(limit.op, "gt" | "ge");
    let mut arguments = with_window(shared(stage, scope, metric, &[]), range);
    if reading.has("how_long") && !reading.has("when^") {
        set(&mut arguments, "aggregation", json!(if above { "fraction_above" } else { "fraction_below" }));
        set(&mut arguments, "threshold", json!(bound));
        set(&mut arguments, "step_seconds", json!(0));
        return call_once(stage, "metric_range", arguments, Some(asked));
    }
    // A percentile is known per step only: its steps are shown, and whether it was beyond the limit over the whole window.
    if reading.aggregation.as_deref().is_some_and(|name| !matches!(name, "max" | "min" | "last" | "avg")) {
        let mut whole = arguments.clone();
        set(&mut whole, "group_by", json!(ranked(reading, metric, stage.catalogue)));
        set(&mut whole, if above { "above" } else { "below" }, json!(bound));
        let call = |tool: &str, arguments| ToolCall { tool: tool.to_owned(), arguments };
        return several(stage, vec![call("metric_range", arguments), call("top_k", whole)], asked);
    }
    // No sample of a counter is its pace: what went over is told by the pace of each, and its steps tell when.
    if stage.catalogue.get(metric).map(Metric::kind) == Some(MetricKind::Counter) {
        return paced(stage, arguments, metric, (above, bound), asked);
    }
    let one = scope.job.is_some() || ["gpu", "node", "service"].iter().any(|dim| !scope.of(dim).is_empty());
    if !one || reading.ranked == ["node"] {
        return top_k(stage, scope, metric, range, asked);
    }
    if let Some(object) = arguments.as_object_mut() {
        object.remove("aggregation");
    }
    if let Some(filters) = arguments.get_mut("filters").and_then(Value::as_array_mut) {
        filters.push(json!({ "dim": "value", "op": limit.op, "values": [bound.to_string()] }));
    }
    set(&mut arguments, "samples", json!("time"));
    set(&mut arguments, "limit", json!(FIRST_BEYOND));
    call_once(stage, "metric_range", arguments, Some(asked))
}

/// A limit on the pace of a counter, or on how much it grew: `over 2 GB/s on ib_receive_bytes`, `more than 100 symbol errors`.
fn paced(stage: &Stage<'_>, mut arguments: Value, metric: &str, beyond: (bool, f64), asked: AskedRange) -> Turn {
    let (above, bound) = beyond;
    let by_time =
        stage.reading.limits.first().is_some_and(|limit| limit.unit.contains('/') || limit.unit.ends_with("ps"));
    set(&mut arguments, "aggregation", json!(if by_time { "rate" } else { "increase" }));
    let mut ranking = arguments.clone();
    set(&mut ranking, "group_by", json!(ranked(stage.reading, metric, stage.catalogue)));
    set(&mut ranking, if above { "above" } else { "below" }, json!(bound));
    let call = |tool: &str, arguments| ToolCall { tool: tool.to_owned(), arguments };
    several(stage, vec![call("metric_range", arguments), call("top_k", ranking)], asked)
}

fn compare(stage: &Stage<'_>, scope: &Scope, metric: &str) -> Turn {
    let reading = stage.reading;
    if let Some(anchor) = reading.anchor.as_ref().filter(|anchor| anchor.both_sides)
        && let Some(kind) = &anchor.kind
    {
        return windowed(stage, scope, |range, asked| {
            let mut arguments = with_window(shared(stage, scope, metric, &[]), since_days(stage, range));
            set(&mut arguments, "event", json!(kind));
            call_once(stage, "compare", arguments, Some(asked))
        });
    }
    if let Some((before, after)) = windows::two(stage) {
        let how = asked(after, "the later of the two time ranges", stage.zone);
        let mut arguments = with_window(shared(stage, scope, metric, &[]), after);
        set(&mut arguments, "base_from", json!(before.from().to_string()));
        set(&mut arguments, "base_to", json!(before.to().to_string()));
        return call_once(stage, "compare", arguments, Some(how));
    }
    if let Some((kind, [one, other])) = &scope.sides {
        return windowed(stage, scope, |range, asked| {
            let mut arguments = with_window(shared(stage, scope, metric, &[kind]), range);
            let rest = scope_filters(scope, &[kind]);
            let with = |name: &String| {
                let mut filters = rest.clone();
                filters.push(json!({ "dim": kind, "values": [name] }));
                json!(filters)
            };
            set(&mut arguments, "filters", with(one));
            set(&mut arguments, "base_filters", with(other));
            call_once(stage, "compare", arguments, Some(asked))
        });
    }
    let choices: Vec<Candidate> = ["today and yesterday", "the last hour and the hour before"]
        .into_iter()
        .take(MAX_CHOICES)
        .map(|with| Candidate {
            label: with.to_owned(),
            question: format!("{}, {with}", stage.ask.text.trim_end_matches(['?', '.'])),
        })
        .collect();
    finish(draft::clarify("What should be compared? Name two time ranges, or two things of a kind.", choices))
}

/// An event is looked for in the last days unless a longer window was named.
fn since_days(stage: &Stage<'_>, range: TimeRange) -> TimeRange {
    let from = stage.ask.as_of.checked_sub(jiff::SignedDuration::from_hours(48)).unwrap_or(range.from());
    TimeRange::new(range.from().min(from), stage.ask.as_of).unwrap_or(range)
}
