//! What went before: the drivers of the job's nodes, and earlier runs of the same name with their pace.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use sightline_diagnosis::{OtherRun, Signal, run_failed};
use sightline_model::{Aggregation, Dataset, Dim, Evidence, EvidenceRow, TimeRange};
use sightline_query::{Align, Filter, Match, MetricPart, Order, Query, Shape};

use crate::job_correlation::NAME;
use crate::job_correlation::queries::{cluster_filter, of_metric, step_ms};
use crate::job_correlation::scope::Scope;
use crate::list_rows::{list_rows, text_of};
use crate::reading::{Content, evidence, read_series};
use crate::tool::{Fetched, ToolContext, ToolError};

/// Earlier runs are looked for this far back.
const BACK: SignedDuration = SignedDuration::from_hours(14 * 24);

/// So many of them, the latest: two that agree are told from one by chance.
const MAX_RUNS: usize = 3;

/// So much of each is read, up to its end: a level needs no more.
const OF_A_RUN: SignedDuration = SignedDuration::from_hours(2);

/// Steps of it.
const STEPS: u64 = 60;

/// So much is read to learn the drivers: every sample carries its driver as a label.
const OF_DRIVERS: SignedDuration = SignedDuration::from_mins(15);

/// The label with the driver's version, by its canonical name.
const DRIVER: &str = "driver_version";

/// What a query of this file reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The nodes' drivers.
    Drivers,
    /// Runs of the same name.
    Runs,
    /// How many GPUs earlier runs held.
    Held,
    /// The step time of one earlier run.
    Pace,
}

/// What a query reads, if it is one of this file's.
pub(super) fn part(scope: &Scope, query: &Query) -> Option<Part> {
    let by = |wanted: &Dim| {
        query.filters.iter().find_map(|filter| match filter {
            Filter::Dim { dim, matches } if dim == wanted => Some(matches),
            Filter::Dim { .. } | Filter::Value { .. } => None,
        })
    };
    match (query.dataset, &query.shape) {
        (Dataset::Metrics, Shape::Distinct { of, .. }) => {
            of.contains(&Dim::Label(DRIVER.to_owned())).then_some(Part::Drivers)
        }
        (Dataset::Metrics, _) => match by(&Dim::Label("job".to_owned())) {
            Some(Match::Eq(job)) if *job != scope.job => Some(Part::Pace),
            _ => None,
        },
        (Dataset::Jobs, _) => by(&Dim::Name).map(|_| Part::Runs),
        (Dataset::JobGpus, _) => match by(&Dim::JobId) {
            Some(Match::In(_)) => Some(Part::Held),
            _ => None,
        },
        (Dataset::Logs | Dataset::Events | Dataset::Spans, _) => None,
    }
}

/// With the survey: the nodes' drivers, and the runs of the same name.
pub(super) fn first(context: &ToolContext<'_>, scope: &Scope, fetched: &[Fetched]) -> Result<Vec<Query>, ToolError> {
    let mut queries: Vec<Query> = drivers(context, scope).into_iter().collect();
    let jobs = fetched.iter().find(|f| f.round == 0 && f.query.dataset() == Dataset::Jobs);
    let rows = jobs.map(list_rows).transpose()?.unwrap_or_default();
    let own = rows.iter().find(|row| row.time == Some(scope.start)).map_or("", |row| text_of(row, "name"));
    let from = moved(scope.start, -BACK);
    if let Some(range) = TimeRange::new(from, scope.range.to()).filter(|_| !own.is_empty()) {
        let mut filters = cluster_filter(scope);
        filters.push(Filter::Dim { dim: Dim::Name, matches: Match::Eq(own.to_owned()) });
        queries.push(rows_of(context, Dataset::Jobs, range, filters));
    }
    Ok(queries)
}

/// The drivers at the end: a node may get another one between two attempts of a job, and the last one is what it runs on now.
fn drivers(context: &ToolContext<'_>, scope: &Scope) -> Option<Query> {
    let (from, to) = (scope.range.from(), scope.window.to());
    let range = TimeRange::new(from.max(moved(to, -OF_DRIVERS)), to).filter(|_| !scope.placements.is_empty())?;
    let of = vec![Dim::Node, Dim::Label(DRIVER.to_owned())];
    let shape = Shape::Distinct { of, limit: context.max_rows };
    Some(of_metric(scope, Signal::SmClock, "sm_clock", None, scope.of_names(range), shape))
}

/// With the closer look: size and pace of the latest runs that ended before the job began.
pub(super) fn second(context: &ToolContext<'_>, scope: &Scope, fetched: &[Fetched]) -> Result<Vec<Query>, ToolError> {
    let runs = fetched.iter().find(|f| part(scope, f.query.query()) == Some(Part::Runs));
    let Some(runs) = runs.filter(|_| context.may_read(Dataset::JobGpus)) else { return Ok(Vec::new()) };
    let rows = list_rows(runs)?;
    let mut past: Vec<(Timestamp, TimeRange, &str)> = rows
        .iter()
        .filter_map(|row| {
            let (start, end): (_, Timestamp) = (row.time?, text_of(row, "end").parse().ok()?);
            let span = TimeRange::new(start.max(moved(end, -OF_A_RUN)), end)?;
            (end <= scope.start && job_of(row) != scope.job).then(|| (end, span, job_of(row)))
        })
        .collect();
    past.sort_by_key(|(end, _, _)| std::cmp::Reverse(*end));
    past.truncate(MAX_RUNS);
    let mut queries: Vec<Query> = past.iter().map(|(_, span, job)| pace(context, scope, *span, job)).collect();
    let mut jobs: Vec<String> = past.iter().map(|(_, _, job)| (*job).to_owned()).collect();
    let mut from = past.iter().map(|(_, span, _)| span.from()).min();
    let mut to = past.iter().map(|p| p.0).max();
    if failed_like_others(scope, &rows) {
        // Where each of them ran tells whether they fail on one host only.
        for row in rows.iter().rev().take(MAX_SIBLINGS) {
            from = [from, row.time].into_iter().flatten().min();
            if !jobs.iter().any(|job| job == job_of(row)) {
                jobs.push(job_of(row).to_owned());
            }
        }
        to = Some(scope.range.to());
    }
    if let Some(range) = from.zip(to).and_then(|(from, to)| TimeRange::new(from, to)) {
        let filters = vec![Filter::Dim { dim: Dim::JobId, matches: Match::In(jobs) }];
        queries.push(rows_of(context, Dataset::JobGpus, range, filters));
    }
    Ok(queries)
}

/// So many runs of the name are placed on their nodes.
const MAX_SIBLINGS: usize = 60;

/// Whether the job failed as others of its name did, so that it matters where.
fn failed_like_others(scope: &Scope, rows: &[EvidenceRow]) -> bool {
    let failed = rows.iter().filter(|row| run_failed(text_of(row, "state"))).count();
    run_failed(&scope.state) && failed >= 2 && rows.len() > failed
}

/// Where the runs of the name ran; their rows are those of the runs.
pub(super) fn siblings(runs: &Evidence, held: &BTreeMap<String, BTreeSet<String>>) -> Vec<OtherRun> {
    let run = |(row, one): (usize, &EvidenceRow)| {
        let job = job_of(one);
        Some(OtherRun {
            job: job.to_owned(),
            name: text_of(one, "name").to_owned(),
            from: one.time?,
            to: text_of(one, "end").parse().ok(),
            state: text_of(one, "state").to_owned(),
            nodes: held.get(job)?.clone(),
            row,
        })
    };
    runs.rows.iter().enumerate().filter_map(run).collect()
}

fn pace(context: &ToolContext<'_>, scope: &Scope, range: TimeRange, job: &str) -> Query {
    let label = || Dim::Label("job".to_owned());
    let mut filters = cluster_filter(scope);
    filters.push(Filter::Dim { dim: label(), matches: Match::Eq(job.to_owned()) });
    let shape = Shape::Series {
        step_ms: step_ms(range, STEPS),
        align: Align::Epoch,
        group_by: vec![label(), Dim::Metric],
        aggregation: Aggregation::Avg,
        limit: context.max_rows,
    };
    Query {
        dataset: Dataset::Metrics,
        metric: Some("step_time".to_owned()),
        part: MetricPart::Samples,
        range,
        filters,
        placement: None,
        threshold: None,
        shape,
    }
}

fn rows_of(context: &ToolContext<'_>, dataset: Dataset, range: TimeRange, filters: Vec<Filter>) -> Query {
    let shape = Shape::Rows { order: Order::Descending, limit: context.max_rows };
    Query { dataset, metric: None, part: MetricPart::Samples, range, filters, placement: None, threshold: None, shape }
}

/// The evidence of a part; none when it has nothing or is cut: from cut data nothing is judged.
pub(super) fn piece(part: Part, fetched: &Fetched, n: usize) -> Result<Option<Evidence>, ToolError> {
    let cut = fetched.result.truncated && part != Part::Runs;
    if fetched.result.rows.is_empty() || cut {
        return Ok(None);
    }
    let content = match part {
        Part::Pace => Content::Series(read_series(fetched, &[Dim::Label("job".to_owned())], Aggregation::Avg)?),
        Part::Drivers => Content::Rows(seen(list_rows(fetched)?)),
        Part::Runs | Part::Held => Content::Rows(list_rows(fetched)?),
    };
    Ok(Some(evidence(fetched, NAME, n, content)))
}

/// Rows of what was seen, dated by when it was seen first.
fn seen(mut rows: Vec<EvidenceRow>) -> Vec<EvidenceRow> {
    for row in &mut rows {
        row.time = row.fields.get("first_time").and_then(|at| at.parse().ok());
    }
    rows
}

/// What each run held, by its id; of rows that were cut, nothing.
pub(super) fn held(fetched: &Fetched) -> Result<Held, ToolError> {
    let mut held: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    if fetched.result.truncated {
        return Ok(Held::default());
    }
    for row in list_rows(fetched)? {
        let gpu = (text_of(&row, "node").to_owned(), text_of(&row, "gpu").to_owned());
        let its = held.entry(job_of(&row).to_owned()).or_default();
        if !its.contains(&gpu) {
            its.push(gpu);
        }
    }
    let nodes = held.iter().map(|(job, gpus)| (job.clone(), gpus.iter().map(|(node, _)| node.clone()).collect()));
    let nodes = nodes.collect();
    Ok(Held { sizes: held.into_iter().map(|(job, gpus)| (job, gpus.len())).collect(), nodes })
}

/// What runs of the name held, by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// How many GPUs.
    pub(super) sizes: BTreeMap<String, usize>,
    /// On which nodes.
    pub(super) nodes: BTreeMap<String, BTreeSet<String>>,
}

/// The job a row is about.
pub(super) fn job_of(row: &EvidenceRow) -> &str {
    match text_of(row, "job_id") {
        "" => text_of(row, "job"),
        id => id,
    }
}

fn moved(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(at)
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
