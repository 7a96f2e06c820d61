//! Many signals in one query, and the queries of one signal each that this stands for.
//!
//! A query of its own for each signal would cost more in its ways than in its rows. Signals that are told apart by the same dimensions and
//! combined alike are read together, as long as what comes back stays within what every role may have at once; afterwards the result is
//! taken apart again, so that each signal is read as if it had been asked for alone, under the text that was sent for all.

use std::collections::{BTreeMap, BTreeSet};

use sightline_diagnosis::{Scope as Level, Signal};
use sightline_model::{Aggregation, Dim, ResultSet, Series};
use sightline_query::{Align, Filter, Match, Order, Query, Shape};

use crate::job_correlation::queries::{group_by, of_metric, with_stored_name};
use crate::job_correlation::scope::Scope;
use crate::reading::entity_key;
use crate::tool::{Fetched, ToolContext, ToolError};

/// Series in one result: what the role with the fewest may have.
const MAX_SERIES: usize = 2_000;

/// Rows in one result where they carry all labels of a series: some 300 bytes each, half of the bytes that any role may have back.
const MAX_WIDE_ROWS: usize = 100_000;

/// Devices and ports of one node, at most: eight network cards of two ports, disks and virtual ones.
const DEVICES: usize = 40;

/// How a metric is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading {
    /// Step by step.
    Steps {
        /// How samples of a step are combined.
        aggregation: Aggregation,
        /// The length of a step, milliseconds.
        step_ms: u64,
    },
    /// The last sample of the window, with the smallest and the largest.
    Whole,
}

impl Reading {
    /// Rows for each series.
    fn rows(self, scope: &Scope) -> usize {
        match self {
            Self::Steps { step_ms, .. } => {
                let steps = scope.range.millis().unsigned_abs().div_ceil(step_ms.max(1));
                usize::try_from(steps).unwrap_or(usize::MAX).saturating_add(1)
            }
            Self::Whole => 1,
        }
    }

    /// Whether its rows carry all labels.
    fn is_wide(self) -> bool {
        matches!(self, Self::Steps { aggregation, .. } if aggregation.is_by_series())
    }
}

struct Batch {
    signal: Signal,
    reading: Reading,
    group_by: Vec<Dim>,
    metrics: Vec<&'static str>,
}

/// Queries in the making.
pub(super) struct Batches<'a> {
    context: &'a ToolContext<'a>,
    scope: &'a Scope,
    batches: Vec<Batch>,
}

impl<'a> Batches<'a> {
    pub(super) fn new(context: &'a ToolContext<'a>, scope: &'a Scope) -> Self {
        Self { context, scope, batches: Vec::new() }
    }

    /// Adds a metric to the first batch that is read alike and has room.
    pub(super) fn add(&mut self, signal: Signal, metric: &'static str, reading: Reading) {
        let group_by = with_stored_name(group_by(signal));
        let series = self.series(signal);
        let room = self.room(reading, series);
        let alike = self.batches.iter_mut().find(|b| {
            b.signal.scope() == signal.scope()
                && b.reading == reading
                && b.group_by == group_by
                && b.metrics.len() < room
        });
        match alike {
            Some(batch) => batch.metrics.push(metric),
            None => self.batches.push(Batch { signal, reading, group_by, metrics: vec![metric] }),
        }
    }

    /// Series of one metric, at most as far as is known.
    fn series(&self, signal: Signal) -> usize {
        let placements = &self.scope.placements;
        match signal.scope() {
            Level::Gpu => placements.len(),
            Level::Node => placements.iter().map(|p| &p.node).collect::<BTreeSet<_>>().len().saturating_mul(DEVICES),
            Level::Job if group_by(signal).is_empty() => 1,
            Level::Job => placements.len(),
        }
        .max(1)
    }

    /// How many metrics of so many series fit into one query.
    fn room(&self, reading: Reading, series: usize) -> usize {
        let most = usize::try_from(self.context.max_rows).unwrap_or(usize::MAX);
        let rows = if reading.is_wide() { most.min(MAX_WIDE_ROWS) } else { most };
        let by_rows = rows / series.saturating_mul(reading.rows(self.scope)).max(1);
        by_rows.min(MAX_SERIES / series).max(1)
    }

    pub(super) fn into_queries(self) -> Vec<Query> {
        let Self { context, scope, batches } = self;
        batches.into_iter().filter_map(|batch| query(context, scope, batch)).collect()
    }
}

fn query(context: &ToolContext<'_>, scope: &Scope, batch: Batch) -> Option<Query> {
    let Batch { signal, reading, group_by, metrics } = batch;
    let (limit, range) = (context.max_rows, scope.read_by(reading));
    let shape = match reading {
        Reading::Steps { aggregation, step_ms } => {
            Shape::Series { step_ms, align: Align::Epoch, group_by, aggregation, limit }
        }
        Reading::Whole => Shape::Rank { group_by, aggregation: Aggregation::Last, order: Order::Descending, limit },
    };
    let mut query = of_metric(scope, signal, metrics.first()?, None, range, shape);
    if metrics.len() > 1 {
        let stored: Vec<String> = metrics
            .iter()
            .filter_map(|metric| context.catalogue.get(metric))
            .flat_map(|metric| metric.stored().map(str::to_owned))
            .collect();
        query.metric = None;
        query.filters.push(Filter::Dim { dim: Dim::Metric, matches: Match::In(stored) });
    }
    Some(query)
}

/// The stored names that a query of several metrics reads.
fn listed(query: &Query) -> Option<&[String]> {
    query.filters.iter().find_map(|filter| match filter {
        Filter::Dim { dim: Dim::Metric, matches: Match::In(names) } => Some(names.as_slice()),
        Filter::Dim { .. } | Filter::Value { .. } => None,
    })
}

/// The metrics that a query reads, by canonical name.
pub(super) fn metrics(context: &ToolContext<'_>, fetched: &Fetched) -> Vec<String> {
    if let Some(own) = fetched.query.metric() {
        return vec![own.canonical.clone()];
    }
    let mut found: Vec<String> = Vec::new();
    for name in listed(fetched.query.query()).unwrap_or_default() {
        if let Some(metric) = context.catalogue.by_stored(name)
            && !found.iter().any(|known| known == metric.id())
        {
            found.push(metric.id().to_owned());
        }
    }
    found
}

/// One metric's part of what was fetched.
pub(super) struct Part {
    /// The query as if the metric had been asked for alone; without rows, which are read into the series.
    pub(super) alone: Fetched,
    /// Its series.
    pub(super) series: Vec<Series>,
    /// The spelling that was found, where it was only one.
    pub(super) stored: Option<String>,
}

/// What was fetched of one or several metrics, taken apart. `read` gives the series told apart by these dimensions.
pub(super) fn apart(
    context: &ToolContext<'_>,
    fetched: &Fetched,
    group_by: &[Dim],
    read: impl Fn(&[Dim]) -> Result<Vec<Series>, ToolError>,
) -> Result<Vec<Part>, ToolError> {
    let query = fetched.query.query();
    let mut by_name = group_by.to_vec();
    by_name.push(Dim::Metric);
    let mut parts: BTreeMap<String, (Vec<Series>, BTreeSet<String>)> = BTreeMap::new();
    for mut one in read(&by_name)? {
        let Some(stored) = one.entity.remove(entity_key(&Dim::Metric)) else { continue };
        let Some(metric) = context.catalogue.by_stored(&stored) else { continue };
        let (series, names) = parts.entry(metric.id().to_owned()).or_default();
        names.insert(stored);
        series.push(one);
    }
    let of_metric = |filter: &&Filter| !matches!(filter, Filter::Dim { dim: Dim::Metric, .. });
    let filters: Vec<Filter> = query.filters.iter().filter(of_metric).cloned().collect();
    let part = |metric: String| {
        let alone = Query { metric: Some(metric.clone()), filters: filters.clone(), ..query.clone() };
        let query = context.catalogue.check(&alone).ok()?;
        let ResultSet { columns, read, query_id, truncated, .. } = &fetched.result;
        let result = ResultSet {
            columns: columns.clone(),
            rows: Vec::new(),
            read: *read,
            query_id: query_id.clone(),
            truncated: *truncated,
        };
        let (sql, params) = (fetched.sql.clone(), fetched.params.clone());
        let (series, names) = parts.remove(&metric).unwrap_or_default();
        let stored = if names.len() == 1 { names.into_iter().next() } else { None };
        let alone = Fetched { round: fetched.round, query, result, sql, params };
        Some(Part { alone, series: joined(series), stored })
    };
    Ok(metrics(context, fetched).into_iter().filter_map(part).collect())
}

/// Series of one entity under two spellings of a metric are one series: an exporter was renamed. Where both were written at one instant
/// they say the same, and the first is kept.
fn joined(mut series: Vec<Series>) -> Vec<Series> {
    series.sort_by(|a, b| a.entity.cmp(&b.entity));
    let mut found: Vec<Series> = Vec::new();
    for one in series {
        match found.last_mut().filter(|last| last.entity == one.entity) {
            None => found.push(one),
            Some(last) => {
                last.points.extend(one.points);
                last.points.sort_by_key(|p| p.time);
                last.points.dedup_by_key(|p| p.time);
            }
        }
    }
    found
}
