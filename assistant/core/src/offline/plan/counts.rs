//! How many there are of something, and what is held or there and not used.

use serde_json::{Value, json};
use sightline_model::TimeRange;
use sightline_query::catalogue::Metric;

use super::super::draft;
use super::super::limits::in_unit;
use super::super::reading::MetricMention;
use super::super::resolve::Scope;
use super::super::words::{any, normalised};
use super::metrics::is_now;
use super::{Stage, call_once, finish, jobs, lists, scope_filters, set, windowed, with_window};
use crate::ports::Turn;

/// Below this mean utilisation, percent, a GPU does nothing: what a display or a monitor's own reads make of it stays under it.
const IDLE_PERCENT: f64 = 5.0;
/// As many as a ranking lists.
const ALL: u32 = 100;
const UTILIZATION: &str = "gpu_utilization";

/// What to do next for a count.
pub(super) fn next(stage: &Stage<'_>, scope: &Scope) -> Turn {
    let reading = stage.reading;
    if reading.has("logs") || reading.xid {
        return lists::logs(stage, scope);
    }
    // `how often did it save a checkpoint`: what is no counter counts nothing, and its lines do.
    let counts = |id: &String| {
        let kind = stage.catalogue.get(id).map(Metric::kind);
        kind == Some(sightline_model::MetricKind::Counter) || !reading.limits.is_empty()
    };
    let counted = matches!(&reading.metric, MetricMention::One(id) if counts(id));
    if reading.has("says_line") && reading.kind_many.is_none() && !counted {
        return lists::logs(stage, scope);
    }
    if reading.has("events") && !reading.has("metric") {
        return lists::events(stage, scope);
    }
    if reading.has("idle") {
        return waste(stage, scope);
    }
    if let (MetricMention::One(metric), Some(limit)) = (&reading.metric, reading.limits.first()) {
        let unit = stage.catalogue.get(metric).map_or(sightline_model::Unit::None, Metric::unit);
        let Ok(bound) = in_unit(limit.amount, &limit.unit, unit) else { return finish(draft::cannot_yet()) };
        return windowed(stage, scope, |range, asked| {
            let above = matches!(limit.op, "gt" | "ge");
            let mut arguments = ranking(stage, scope, metric, range, !above);
            set(&mut arguments, if above { "above" } else { "below" }, json!(bound));
            if !is_now(reading) || reading.has("any_of") {
                set(&mut arguments, "aggregation", json!(if above { "max" } else { "min" }));
            }
            call_once(stage, "top_k", arguments, Some(asked))
        });
    }
    let of_jobs = reading.has("jobs") || reading.has("people") || !reading.users.is_empty() || reading.own;
    if of_jobs {
        return jobs::next(stage, scope);
    }
    if let (MetricMention::One(_), false) = (&reading.metric, reading.kind_many.is_some()) {
        let MetricMention::One(metric) = &reading.metric else { return finish(draft::cannot_yet()) };
        return super::metrics::next(stage, scope, metric);
    }
    lists::things(stage, scope)
}

fn ranking(stage: &Stage<'_>, scope: &Scope, metric: &str, range: TimeRange, ascending: bool) -> Value {
    let group_by = super::metrics::ranked(stage.reading, metric, stage.catalogue);
    let mut arguments = with_window(
        json!({
            "metric": metric, "filters": scope_filters(scope, &[]), "group_by": group_by, "k": ALL,
            "order": if ascending { "lowest" } else { "highest" },
        }),
        range,
    );
    if let Some(job) = &scope.job {
        super::metrics::of_job(stage, &mut arguments, metric, job);
    }
    arguments
}

/// GPUs that do nothing, of those that are asked about; by job where jobs are.
pub(super) fn waste(stage: &Stage<'_>, scope: &Scope) -> Turn {
    windowed(stage, scope, |range, asked| {
        let mut arguments = ranking(stage, scope, UTILIZATION, range, true);
        // `are n05 and n06 idle`: of the nodes that are named.
        let reading = stage.reading;
        let words = normalised(&stage.ask.text, stage.lexicon);
        let of_gpus = any(&words, &["gpu", "gpus", "card", "cards"]) || !scope.of("gpu").is_empty();
        if reading.ranked.is_empty() && !scope.of("node").is_empty() && !of_gpus {
            set(&mut arguments, "group_by", json!(["node"]));
        }
        // `who is wasting GPUs`: whoever's jobs hold them.
        if reading.has("who_holds") && reading.ranked != ["job"] && !reading.has("host") {
            set(&mut arguments, "group_by", json!(["job"]));
        }
        let bound = stage
            .reading
            .limits
            .first()
            .and_then(|limit| in_unit(limit.amount, &limit.unit, sightline_model::Unit::Percent).ok());
        set(&mut arguments, "below", json!(bound.unwrap_or(IDLE_PERCENT)));
        set(&mut arguments, "aggregation", json!("avg"));
        call_once(stage, "top_k", arguments, Some(asked))
    })
}
