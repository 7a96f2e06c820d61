//! An inference service: what to fetch about its phases, its cache and its traffic, and the reading of it.
//!
//! Round two reads every signal twice: the window with some hours before it in short steps, and the days before in long ones.
//! Round three reads a few minutes around the moment it became slower, where steps were too long to date it.

mod read;
mod starts;

use sightline_diagnosis::{How, ServingSignal, diagnose_serving, serving_focus};
use sightline_model::{Aggregation, Dataset, Dim, Outcome, TimeRange};
use sightline_query::{Align, Filter, Match, MetricPart, Order, Query, Shape};

use crate::job_correlation::citing;
use crate::measure::{Measure, Rows};
use crate::service_correlation::NAME;
use crate::service_correlation::inventory::Inventory;
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput};
use read::CaseFile;

/// Hours before the window that are read in short steps: a level must have been held for some time to be usual.
const LEAD: jiff::SignedDuration = jiff::SignedDuration::from_hours(3);

/// Steps of the window with its lead, and of the days before.
const NEAR_STEPS: u64 = 480;
const PAST_STEPS: u64 = 294;

/// Points of one metric over all replicas that a query aims at.
const POINTS: u64 = 48_000;

/// Lengths of a step, seconds. The shortest is above any usual scrape interval.
const STEPS: [u64; 9] = [30, 60, 120, 300, 600, 900, 1800, 3600, 7200];

/// Steps around the moment of a change: the scrape interval that serving engines are mostly run with.
const CLOSE_STEP_MS: u64 = 15_000;

/// Events looked at.
const MAX_EVENTS: u32 = 2_000;

/// Kernel lines looked at.
const MAX_LINES: u32 = 500;

/// Labels that carry the version of an engine.
const VERSIONS: [&str; 2] = ["version", "engine_version"];

/// A metric with the conditions under which it carries a signal.
#[derive(Clone, Debug, PartialEq)]
struct Source {
    signal: ServingSignal,
    metric: &'static str,
    filter: Option<Filter>,
}

/// What to fetch next, `rounds` rounds being there.
pub(super) fn queries(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    rounds: usize,
    fetched: &[Fetched],
) -> Result<Vec<Query>, ToolError> {
    match rounds {
        1 => survey(context, inventory),
        2 => {
            let file = CaseFile::read(context, inventory, fetched)?;
            match serving_focus(&file.observations(inventory)).and_then(|r| r.intersect(&inventory.range)) {
                Some(around) => series(context, inventory, around, CLOSE_STEP_MS, false),
                None => Ok(Vec::new()),
            }
        }
        _ => Ok(Vec::new()),
    }
}

/// The window with its lead.
fn near_range(inventory: &Inventory) -> TimeRange {
    let lead = jiff::SignedDuration::from_millis(inventory.window.millis()).max(LEAD);
    let from = inventory.window.from().checked_sub(lead).unwrap_or(inventory.window.from());
    TimeRange::new(from.max(inventory.range.from()), inventory.window.to()).unwrap_or(inventory.window)
}

fn survey(context: &ToolContext<'_>, inventory: &Inventory) -> Result<Vec<Query>, ToolError> {
    let near = near_range(inventory);
    let replicas = inventory.replicas.count as u64;
    let mut queries = series(context, inventory, near, step_ms(near, NEAR_STEPS, replicas), true)?;
    if near != inventory.range {
        let step = step_ms(inventory.range, PAST_STEPS, replicas);
        queries.extend(series(context, inventory, inventory.range, step, false)?);
    }
    let shape =
        Shape::Distinct { of: VERSIONS.iter().map(|v| Dim::Label((*v).to_owned())).collect(), limit: context.max_rows };
    queries.push(rows_of(Dataset::Metrics, inventory.range, vec![inventory.filter()], shape));
    if context.may_read(Dataset::Events) {
        let shape = Shape::Rows { order: Order::Ascending, limit: context.max_rows.min(MAX_EVENTS) };
        queries.push(rows_of(Dataset::Events, near, Vec::new(), shape));
    }
    if context.may_read(Dataset::Logs) {
        queries.extend(kernel_lines(context, inventory, near));
    }
    Ok(queries)
}

/// What the kernels say of GPUs that broke; and on which nodes the pods are, by the rows of their GPUs: engines name their pod alone.
fn kernel_lines(context: &ToolContext<'_>, inventory: &Inventory, near: TimeRange) -> Vec<Query> {
    let lines = Filter::Dim { dim: Dim::Body, matches: Match::Contains("Xid".to_owned()) };
    let shape = Shape::Rows { order: Order::Ascending, limit: context.max_rows.min(MAX_LINES) };
    let mut queries = vec![rows_of(Dataset::Logs, near, vec![lines], shape)];
    if !inventory.replicas.pods.is_empty() {
        let pods = inventory.replicas.pods.iter().cloned().collect();
        let of_pods = Filter::Dim { dim: Dim::Label("pod".to_owned()), matches: Match::In(pods) };
        let shape = Shape::Distinct { of: vec![Dim::Node], limit: context.max_rows };
        queries.push(rows_of(Dataset::Metrics, near, vec![of_pods], shape));
    }
    queries
}

fn rows_of(dataset: Dataset, range: TimeRange, filters: Vec<Filter>, shape: Shape) -> Query {
    Query { dataset, metric: None, part: MetricPart::Samples, range, filters, placement: None, threshold: None, shape }
}

/// Every signal of the service over a range; those of its pods' GPUs and memory too if wanted.
fn series(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    range: TimeRange,
    step_ms: u64,
    with_pods: bool,
) -> Result<Vec<Query>, ToolError> {
    let mut queries = Vec::new();
    for source in sources(inventory) {
        let of_pods = source.signal.is_of_pods();
        if of_pods && !with_pods {
            continue;
        }
        let Some(measure) = measure(context, &source) else { continue };
        let filters = if of_pods {
            let pods = inventory.replicas.pods.iter().cloned().collect();
            vec![Filter::Dim { dim: Dim::Label("pod".to_owned()), matches: Match::In(pods) }]
        } else {
            std::iter::once(inventory.filter()).chain(source.filter.clone()).collect()
        };
        let rows = Rows { range, filters, placement: None };
        let shape = |group_by: Vec<Dim>, aggregation: Aggregation| Shape::Series {
            step_ms,
            align: Align::Epoch,
            group_by,
            aggregation,
            limit: context.max_rows,
        };
        for query in measure.queries(&rows, &inventory.replicas.dims, shape) {
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
    }
    Ok(queries)
}

/// The metrics that carry a signal, as far as the service has them.
fn sources(inventory: &Inventory) -> Vec<Source> {
    let mut all = Vec::new();
    for signal in ServingSignal::ALL.iter().copied() {
        for metric in signal.metrics() {
            let there = if signal.is_of_pods() {
                !inventory.replicas.pods.is_empty()
            } else {
                inventory.metrics.contains(*metric)
            };
            if there {
                let filters = filters(signal, metric);
                all.extend(filters.into_iter().map(|filter| Source { signal, metric, filter }));
            }
        }
    }
    all
}

/// Which rows of a metric carry the signal; sites name the label of a status differently, so each is asked for.
fn filters(signal: ServingSignal, metric: &str) -> Vec<Option<Filter>> {
    let is = |key: &str, value: &str| {
        Some(Filter::Dim { dim: Dim::Label(key.to_owned()), matches: Match::Eq(value.to_owned()) })
    };
    match (signal, metric) {
        (ServingSignal::Aborted, "requests_finished") => vec![is("finished_reason", "abort")],
        (ServingSignal::Rejected, "http_requests") => {
            ["status", "code", "status_code"].map(|key| is(key, "429")).to_vec()
        }
        (ServingSignal::Rejected, _) => vec![is("err", "overloaded")],
        _ => vec![None],
    }
}

/// How a source is read; none for metrics that the catalogue keeps in a form the signal is not read in.
fn measure(context: &ToolContext<'_>, source: &Source) -> Option<Measure> {
    let aggregation = match source.signal.how() {
        How::Mean | How::Level => Aggregation::Avg,
        How::Rate => Aggregation::Rate,
        How::Computed => return None,
    };
    Measure::resolve(NAME, context, source.metric, Some(aggregation)).ok()
}

/// The shortest length of a step that keeps a range within its number of steps and points.
fn step_ms(range: TimeRange, steps: u64, replicas: u64) -> u64 {
    let steps = steps.min(POINTS / replicas.max(1)).max(1);
    let wanted = (range.millis().unsigned_abs() / 1000).div_ceil(steps);
    STEPS.into_iter().find(|s| *s >= wanted).unwrap_or(wanted) * 1000
}

/// The diagnosis.
pub(super) fn judged(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    fetched: &[Fetched],
) -> Result<ToolOutput, ToolError> {
    let file = CaseFile::read(context, inventory, fetched)?;
    let mut diagnosis = diagnose_serving(&file.observations(inventory));
    // What is missing rests on what is there.
    if let (Outcome::InsufficientData, true, Some(known)) =
        (diagnosis.outcome, diagnosis.headline.citations.is_empty(), file.first_id())
    {
        diagnosis.headline.citations.push(known);
    }
    diagnosis.data_health.splice(0..0, file.notes.clone());
    let name = &inventory.name;
    let output = ToolOutput {
        suggestions: vec![
            format!("show the p95 time to first token of {name}"),
            format!("show the KV cache usage of {name}"),
        ],
        evidence: file.evidence(),
        ..ToolOutput::from(diagnosis)
    };
    Ok(citing::keep_what_counts(output, |_| false))
}
