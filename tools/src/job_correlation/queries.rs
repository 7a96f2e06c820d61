//! What to fetch about a job: a survey of every signal, then a closer look at what changed.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use sightline_diagnosis::{Focus, Scope as Level, Signal};
use sightline_model::{Aggregation, Dataset, Dim, MetricKind, TimeRange};
use sightline_query::{Align, Filter, Match, MetricPart, Order, Query, SampleOrder, Shape};

use crate::job_correlation::batches::{Batches, Reading, apart, metrics};
use crate::job_correlation::scope::{HORIZON, Scope};
use crate::job_correlation::whole;
use crate::tool::{Fetched, ToolContext, ToolError};

/// Points wanted of each series in the survey: at most a chart of a page's width, at least enough to tell a fault of an hour in
/// a day by the extremes of its two steps.
const MOST_STEPS: u64 = 300;
const FEWEST_STEPS: u64 = 48;

/// Steps of the counters that tell by how much they grew and roughly when: a counter is told apart by all of its labels, so
/// that each step is dear. NVLink's are not among them, since the first of many to err is the culprit.
const COUNTER_STEPS: u64 = 48;

/// Points of one metric over all GPUs that the survey aims at; thirty metrics of this size are read within a second.
const POINTS: u64 = 24_000;

/// Lengths of a step, seconds: none is below the exporter's default interval, and all divide the next tier's.
const STEPS: [u64; 10] = [30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600];

/// Other runs, or rows of who held what, looked at: the latest. A job of thousands of GPUs has as many rows of its own.
const MAX_RUNS: u32 = 10_000;

/// Nodes whose CPU time is read.
const CPU_NODES: usize = 4;

/// Log lines and events looked at.
const MAX_LINES: u32 = 2_000;

/// Log lines are read from this long before the job began: daemons complain once, when a node boots, and jobs that cannot run for it
/// come soon after.
const LINES_BEFORE: SignedDuration = SignedDuration::from_hours(2);

/// Events are read from this long before the job began: a node keeps what was installed on it the day before.
const EVENTS_BEFORE: SignedDuration = SignedDuration::from_hours(24);

/// The log lines that some cause reads: parts of a regular expression, any of which may occur.
const LOG_PATTERN: [&str; 16] = [
    "Xid",
    "[Cc]heckpoint",
    "Got async event",
    "Got completion",
    "Watchdog caught|NCCL operations have failed",
    "Link DOWN",
    "[Pp]reempt|PREEMPT",
    "[Oo]ut of memory|OutOfMemoryError|OUT_OF_MEMORY|MemoryAllocation|oom-kill|OOMKilled",
    "NCCL version",
    "driver version|Driver/library version|API mismatch|driver version is insufficient",
    "system not yet initialized|SystemNotReady",
    "not responding|blocked for more than",
    "SlowDown|slow requests|reduce your request rate",
    "failed to allocate memory",
    "NODE FAILURE|NodeNotReady|marked down",
    "(loss|grad|param|iteration).{0,60}\\b(NaN|nan|inf)\\b|\\b(NaN|nan) (loss|grad)",
];

/// Counters of errors and flags of failures: they stand still in good health. One look over the whole window tells whether they did;
/// only those that moved are read step by step.
const QUIET: [Signal; 16] = [
    Signal::LastXid,
    Signal::RemappedUncorrectable,
    Signal::RemappedCorrectable,
    Signal::RemapFailed,
    Signal::DoubleBitErrors,
    Signal::PcieReplays,
    Signal::NvlinkCrcFlit,
    Signal::NvlinkCrcData,
    Signal::NvlinkReplay,
    Signal::NvlinkRecovery,
    Signal::IbReceiveErrors,
    Signal::IbSymbolErrors,
    Signal::IbLinkDowned,
    Signal::IbLinkRecovery,
    Signal::NicReceiveErrors,
    Signal::NicTransmitErrors,
];

/// How much of the range is read to learn which GPU sits at which bus address: it does not change while a node is up.
const BUS_RANGE: SignedDuration = SignedDuration::from_hours(1);

/// The second round: every signal, over the job's own GPUs and nodes. Signals that are read alike are read by one query, as many as
/// the asker may have back at once.
pub(super) fn survey(context: &ToolContext<'_>, scope: &Scope) -> Vec<Query> {
    let mut batches = Batches::new(context, scope);
    for signal in Signal::ALL {
        // Only what a job is made of is read; a job without known GPUs has no node to ask about.
        if signal.scope() != Level::Job && scope.placements.is_empty() {
            continue;
        }
        for metric in signal.metrics() {
            let Some(aggregation) = aggregation(context, metric) else { continue };
            batches.add(*signal, metric, survey_read(scope, *signal, aggregation));
        }
    }
    let mut queries = batches.into_queries();
    if context.may_read(Dataset::Logs) && !scope.placements.is_empty() {
        let body = Filter::Dim { dim: Dim::Body, matches: Match::Regex(LOG_PATTERN.join("|")) };
        let mut filters = node_filters(scope);
        filters.push(body);
        queries.push(lines(context, Dataset::Logs, since(scope, LINES_BEFORE), filters));
        queries.push(bus_addresses(context, scope));
    }
    if context.may_read(Dataset::Events) {
        queries.push(lines(context, Dataset::Events, since(scope, EVENTS_BEFORE), cluster_filter(scope)));
    }
    if !scope.placements.is_empty() {
        queries.push(runs(context, Dataset::Jobs, scope.window, cluster_filter(scope)));
        if context.may_read(Dataset::JobGpus) {
            queries.push(runs(context, Dataset::JobGpus, scope.window, node_filters(scope)));
        }
    }
    queries
}

/// How a signal is read in the survey.
fn survey_read(scope: &Scope, signal: Signal, aggregation: Aggregation) -> Reading {
    match QUIET.contains(&signal) {
        true => Reading::Whole,
        false => Reading::Steps { aggregation, step_ms: survey_step_ms(scope, signal) },
    }
}

/// What moved of that which was only looked at as a whole: read step by step, for all members, so that who moved has peers.
pub(super) fn moved(context: &ToolContext<'_>, scope: &Scope, fetched: &[Fetched]) -> Result<Vec<Query>, ToolError> {
    let mut batches = Batches::new(context, scope);
    for one in fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Rank { .. })) {
        let Some((first, _)) = metrics(context, one).iter().find_map(|metric| quiet(metric)) else { continue };
        for part in apart(context, one, &group_by(first), |by| whole::series(one, by))? {
            let Some(metric) = part.alone.query.metric() else { continue };
            if whole::moved(&part.series, metric.kind)
                && let Some((signal, name)) = quiet(&metric.canonical)
                && let Some(aggregation) = aggregation(context, name)
            {
                batches.add(signal, name, Reading::Steps { aggregation, step_ms: survey_step_ms(scope, signal) });
            }
        }
    }
    Ok(batches.into_queries())
}

/// The signal that stands still in good health which a metric carries, and the metric's name.
fn quiet(metric: &str) -> Option<(Signal, &'static str)> {
    QUIET.iter().flat_map(|s| s.metrics().iter().map(move |m| (*s, *m))).find(|(_, name)| *name == metric)
}

/// The third round: the stretches that deserve it, as they are stored, or in the exporter's own steps where they are long.
pub(super) fn closer(context: &ToolContext<'_>, scope: &Scope, wanted: &[Focus]) -> Vec<Query> {
    let mut queries: Vec<Query> = Vec::new();
    for focus in wanted {
        let Some(range) = focus.range.intersect(&scope.range) else { continue };
        let group_by = with_stored_name(group_by(focus.signal));
        // The job's own series may come once a rank.
        let members = if focus.placements.is_empty() { scope.placements.len() } else { focus.placements.len() };
        let members = members.max(1) as u64;
        let Some(aggregation) = aggregation(context, &focus.metric) else { continue };
        // Samples of a second over half an hour are as many as steps of half a minute over half a day.
        let steps = range.millis().unsigned_abs() / 1000;
        let shape = if steps * members <= POINTS && aggregation != Aggregation::Increase {
            Shape::Samples { group_by, order: SampleOrder::Time, limit: context.max_rows }
        } else {
            let step_ms = step_ms(range, POINTS / members);
            Shape::Series { step_ms, align: Align::Epoch, group_by, aggregation, limit: context.max_rows }
        };
        let pairs: Vec<(String, String)> = focus.placements.iter().map(|p| (p.node.clone(), p.gpu.clone())).collect();
        let placement = (!pairs.is_empty()).then_some(pairs);
        let query = of_metric(scope, focus.signal, &focus.metric, placement, range, shape);
        if !queries.contains(&query) {
            queries.push(query);
        }
    }
    queries
}

/// How a metric is combined per step; `None` for metrics that the catalogue lacks or keeps as histograms.
pub(super) fn aggregation(context: &ToolContext<'_>, metric: &str) -> Option<Aggregation> {
    match context.catalogue.get(metric)?.kind() {
        MetricKind::Gauge => Some(Aggregation::Avg),
        MetricKind::Counter => Some(Aggregation::Increase),
        MetricKind::State => Some(Aggregation::Last),
        MetricKind::Histogram => None,
    }
}

/// What tells the series of a signal apart.
pub(super) fn group_by(signal: Signal) -> Vec<Dim> {
    let label = |key: &str| Dim::Label(key.to_owned());
    match signal.scope() {
        Level::Gpu => vec![Dim::Node, Dim::Gpu],
        Level::Node if signal == Signal::CpuTime => vec![Dim::Node, label("mode")],
        Level::Node => vec![Dim::Node, label("device"), label("port")],
        Level::Job => match signal {
            // Ranks of a synchronous job agree on these.
            Signal::StepTime | Signal::Throughput | Signal::CheckpointTime | Signal::TrainingSteps => Vec::new(),
            _ => vec![Dim::Node, Dim::Gpu, label("rank"), label("pp_rank"), label("pipeline_stage")],
        },
    }
}

/// The stored name is read along, so that the evidence can say which spelling was found.
pub(super) fn with_stored_name(mut group_by: Vec<Dim>) -> Vec<Dim> {
    group_by.push(Dim::Metric);
    group_by
}

pub(super) fn of_metric(
    scope: &Scope,
    signal: Signal,
    metric: &str,
    placement: Option<Vec<(String, String)>>,
    range: TimeRange,
    shape: Shape,
) -> Query {
    let all = || scope.placements.iter().map(|p| (p.node.clone(), p.gpu.clone())).collect();
    let (filters, placement) = match signal.scope() {
        Level::Gpu => (cluster_filter(scope), Some(placement.unwrap_or_else(all))),
        Level::Node if signal == Signal::CpuTime => (cpu_filters(scope), None),
        Level::Node => (node_filters(scope), None),
        Level::Job => {
            let mut filters = cluster_filter(scope);
            filters.push(Filter::Dim { dim: Dim::Label("job".to_owned()), matches: Match::Eq(scope.job.clone()) });
            (filters, None)
        }
    };
    let metric = Some(metric.to_owned());
    Query {
        dataset: Dataset::Metrics,
        metric,
        part: MetricPart::Samples,
        range,
        filters,
        placement,
        threshold: None,
        shape,
    }
}

/// Other runs, and who held the job's nodes: among the rows that the asker may see.
fn runs(context: &ToolContext<'_>, dataset: Dataset, range: TimeRange, filters: Vec<Filter>) -> Query {
    let shape = Shape::Rows { order: Order::Descending, limit: context.max_rows.min(MAX_RUNS) };
    Query { dataset, metric: None, part: MetricPart::Samples, range, filters, placement: None, threshold: None, shape }
}

fn lines(context: &ToolContext<'_>, dataset: Dataset, range: TimeRange, filters: Vec<Filter>) -> Query {
    let shape = Shape::Rows { order: Order::Ascending, limit: context.max_rows.min(MAX_LINES) };
    Query { dataset, metric: None, part: MetricPart::Samples, range, filters, placement: None, threshold: None, shape }
}

/// What is read of the job, and what came before its beginning where the window holds that.
fn since(scope: &Scope, before: SignedDuration) -> TimeRange {
    let from = scope.start.checked_sub(before).unwrap_or(scope.start);
    let from = if scope.range.from() > scope.start { scope.range.from() } else { from };
    // A long job leaves no room for it: nobody's query may be longer than the horizon.
    let longest = scope.range.to().checked_sub(HORIZON).unwrap_or(from);
    TimeRange::new(from.max(longest).min(scope.range.from()), scope.range.to()).unwrap_or(scope.range)
}

fn bus_addresses(context: &ToolContext<'_>, scope: &Scope) -> Query {
    let until = scope.range.from().checked_add(BUS_RANGE).unwrap_or(scope.range.to());
    let range = TimeRange::new(scope.range.from(), until.min(scope.range.to())).unwrap_or(scope.range);
    let of = vec![Dim::Node, Dim::Gpu, Dim::Label("pci_bus_id".to_owned())];
    let shape = Shape::Distinct { of, limit: context.max_rows };
    of_metric(scope, Signal::GpuTemperature, "gpu_temperature", None, scope.of_names(range), shape)
}

pub(super) fn cluster_filter(scope: &Scope) -> Vec<Filter> {
    if scope.cluster.is_empty() {
        return Vec::new();
    }
    vec![Filter::Dim { dim: Dim::Cluster, matches: Match::Eq(scope.cluster.clone()) }]
}

/// CPU time has a series for each CPU and mode of a node: a few nodes tell how the others fare, and four modes how busy they are.
fn cpu_filters(scope: &Scope) -> Vec<Filter> {
    let nodes: BTreeSet<&String> = scope.placements.iter().map(|p| &p.node).collect();
    let every = nodes.len().div_ceil(CPU_NODES).max(1);
    let some = nodes.into_iter().step_by(every).cloned().collect();
    let mut filters = cluster_filter(scope);
    filters.push(Filter::Dim { dim: Dim::Node, matches: Match::In(some) });
    let modes = ["idle", "iowait", "system", "user"].map(str::to_owned).to_vec();
    filters.push(Filter::Dim { dim: Dim::Label("mode".to_owned()), matches: Match::In(modes) });
    filters
}

pub(super) fn node_filters(scope: &Scope) -> Vec<Filter> {
    let nodes: BTreeSet<String> = scope.placements.iter().map(|p| p.node.clone()).collect();
    let mut filters = cluster_filter(scope);
    filters.push(Filter::Dim { dim: Dim::Node, matches: Match::In(nodes.into_iter().collect()) });
    filters
}

fn survey_step_ms(scope: &Scope, signal: Signal) -> u64 {
    let steps = match signal {
        Signal::ThermalViolation
        | Signal::PowerViolation
        | Signal::RemappedUncorrectable
        | Signal::RemappedCorrectable
        | Signal::DoubleBitErrors
        | Signal::CpuTime => COUNTER_STEPS,
        _ => (POINTS / scope.placements.len().max(1) as u64).clamp(FEWEST_STEPS, MOST_STEPS),
    };
    step_ms(scope.range, steps)
}

pub(super) fn step_ms(range: TimeRange, steps: u64) -> u64 {
    let wanted = (range.millis().unsigned_abs() / 1000).div_ceil(steps.max(1));
    let seconds = STEPS.into_iter().find(|s| *s >= wanted).unwrap_or(wanted);
    // A step is never longer than its window.
    (seconds * 1000).min(range.millis().unsigned_abs().max(1000))
}
