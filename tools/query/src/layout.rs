//! The output columns of each shape, with keys, order and limit.

use sightline_model::{Aggregation, Dataset, Dim, MetricKind};

use crate::error::QueryError;
use crate::query::{Order, Query, SampleOrder, Shape};
use crate::schema::{check_dim, fits, fitting, has_labels, has_values};
use crate::valid::{Held, Output, OutputColumn, ResolvedMetric};

/// Most grouping dimensions.
const MAX_GROUP_BY: usize = 8;
/// Shortest step; finer questions read samples.
const MIN_STEP_MS: u64 = 1000;

/// The outputs, whether rows are grouped by those that combine nothing, the order, and the limit.
type Layout = (Vec<OutputColumn>, bool, Vec<(usize, Order)>, u32);

/// Spells out the output columns of a shape. `common` is the kind of all metrics that are asked for, where several are by name.
pub(crate) fn lay_out(
    query: &Query,
    metric: Option<&ResolvedMetric>,
    common: Option<MetricKind>,
) -> Result<Layout, QueryError> {
    let aggregates = |aggregation: Aggregation, with_instant: bool| {
        check_fits(query.dataset, metric, common, aggregation, has_values(query.dataset))?;
        aggregates(query, aggregation, with_instant)
    };
    match &query.shape {
        Shape::Series { step_ms, align, group_by, aggregation, limit } => {
            let range_ms = u64::try_from(query.range.millis()).unwrap_or(0);
            if *step_ms < MIN_STEP_MS || *step_ms > range_ms.max(MIN_STEP_MS) {
                return Err(QueryError::BadStep { step_ms: *step_ms, range_ms });
            }
            let mut outputs = vec![named("bucket", Output::Bucket { step_ms: *step_ms, align: *align })];
            outputs.extend(keys(query, group_by, *aggregation)?);
            outputs.extend(aggregates(*aggregation, false)?);
            // By steps alone: the reader puts each step's rows in order, which costs the engine more than making them.
            Ok((outputs, true, ascending(0..1), *limit))
        }
        Shape::Rank { group_by, aggregation, order, limit } => {
            let mut outputs = keys(query, group_by, *aggregation)?;
            let keys = outputs.len();
            outputs.extend(aggregates(*aggregation, true)?);
            let value = outputs.iter().position(|c| c.name == "value");
            let mut by: Vec<(usize, Order)> = value.map(|index| (index, *order)).into_iter().collect();
            by.extend(ascending(0..keys));
            Ok((outputs, true, by, *limit))
        }
        Shape::Samples { group_by, order, limit } => {
            only_metrics(query, "samples")?;
            let mut outputs = vec![named("time", Output::Time)];
            outputs.extend(dims(query, group_by)?);
            let value = outputs.len();
            outputs.push(named("value", Output::Value));
            let mut by = match order {
                SampleOrder::Time => Vec::new(),
                SampleOrder::Latest => vec![(0, Order::Descending)],
                SampleOrder::Highest => vec![(value, Order::Descending)],
                SampleOrder::Lowest => vec![(value, Order::Ascending)],
            };
            let rest = (0..=value).filter(|index| by.iter().all(|(named, _)| named != index)).collect::<Vec<_>>();
            by.extend(rest.into_iter().map(|index| (index, Order::Ascending)));
            Ok((outputs, false, by, *limit))
        }
        Shape::Rows { order, limit } => {
            let outputs = row_columns(query.dataset)?;
            let mut by = vec![(0, *order)];
            by.extend(outputs.iter().enumerate().skip(1).filter_map(|(index, column)| {
                matches!(column.output, Output::Dim(_)).then_some((index, Order::Ascending))
            }));
            Ok((outputs, false, by, *limit))
        }
        Shape::Distinct { of, limit } => {
            if of.is_empty() {
                return Err(QueryError::ListSize { what: "the list of dimensions", length: 0, limit: MAX_GROUP_BY });
            }
            let mut outputs = dims(query, of)?;
            let keys = outputs.len();
            outputs.extend(seen());
            Ok((outputs, true, ascending(0..keys), *limit))
        }
        Shape::LabelKeys { limit } => {
            if !has_labels(query.dataset) {
                return Err(QueryError::ShapeDoesNotFit { dataset: query.dataset, what: "labels" });
            }
            let mut outputs = vec![named("key", Output::LabelKey)];
            outputs.extend(seen());
            Ok((outputs, true, ascending(0..1), *limit))
        }
    }
}

/// How often and when something was seen.
fn seen() -> [OutputColumn; 3] {
    [named("count", Output::Count), named("first_time", Output::FirstTime), named("last_time", Output::LastTime)]
}

fn named(name: &str, output: Output) -> OutputColumn {
    OutputColumn { name: name.to_owned(), output }
}

fn ascending(indexes: std::ops::Range<usize>) -> Vec<(usize, Order)> {
    indexes.map(|index| (index, Order::Ascending)).collect()
}

fn only_metrics(query: &Query, what: &'static str) -> Result<(), QueryError> {
    if query.dataset == Dataset::Metrics {
        Ok(())
    } else {
        Err(QueryError::ShapeDoesNotFit { dataset: query.dataset, what })
    }
}

fn dims(query: &Query, list: &[Dim]) -> Result<Vec<OutputColumn>, QueryError> {
    if list.len() > MAX_GROUP_BY {
        return Err(QueryError::ListSize { what: "`group_by`", length: list.len(), limit: MAX_GROUP_BY });
    }
    let mut columns: Vec<OutputColumn> = Vec::new();
    for dim in list {
        check_dim(query.dataset, dim)?;
        if columns.iter().all(|c| c.name != dim.as_str()) {
            columns.push(named(dim.as_str(), Output::Dim(dim.clone())));
        }
    }
    Ok(columns)
}

/// The grouping keys. Growth, and how long a sample stood, are only defined within one series: what tells series apart is added.
fn keys(query: &Query, group_by: &[Dim], aggregation: Aggregation) -> Result<Vec<OutputColumn>, QueryError> {
    let mut columns = dims(query, group_by)?;
    if query.dataset == Dataset::Metrics && aggregation.is_by_series() {
        for dim in [Dim::Metric, Dim::Cluster, Dim::Node, Dim::Gpu, Dim::Service] {
            if columns.iter().all(|c| c.name != dim.as_str()) {
                columns.push(OutputColumn { name: dim.as_str().to_owned(), output: Output::Dim(dim) });
            }
        }
        columns.push(named("labels", Output::Labels));
    }
    Ok(columns)
}

fn aggregates(query: &Query, aggregation: Aggregation, with_instant: bool) -> Result<Vec<OutputColumn>, QueryError> {
    if !has_values(query.dataset) {
        // Lines, events and jobs can be counted.
        return if aggregation == Aggregation::Count {
            Ok(vec![named("value", Output::Count)])
        } else {
            Err(QueryError::ShapeDoesNotFit { dataset: query.dataset, what: "anything but a count" })
        };
    }
    let mut columns = vec![named("count", Output::Count), named("min", Output::Min), named("max", Output::Max)];
    let parts = |held: Held| {
        [
            named("held", Output::Held(held)),
            named("first_time", Output::FirstTime),
            named("last_time", Output::LastTime),
        ]
    };
    let threshold = query.threshold.unwrap_or_default();
    match aggregation {
        Aggregation::Rate | Aggregation::Increase => columns.extend([
            named("first", Output::First),
            named("last", Output::Last),
            named("rise", Output::Rise),
            named("first_time", Output::FirstTime),
            named("last_time", Output::LastTime),
        ]),
        Aggregation::TimeAvg => columns.extend(parts(Held::Value)),
        Aggregation::FractionAbove => columns.extend(parts(Held::Above(threshold))),
        Aggregation::FractionBelow => columns.extend(parts(Held::Below(threshold))),
        Aggregation::Avg
        | Aggregation::Min
        | Aggregation::Max
        | Aggregation::Sum
        | Aggregation::Count
        | Aggregation::Last
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99 => {
            columns.extend(Output::of(aggregation).map(|output| named("value", output)));
            let instant = match aggregation {
                Aggregation::Min => Some(Output::MinTime),
                Aggregation::Max => Some(Output::MaxTime),
                Aggregation::Last => Some(Output::LastTime),
                Aggregation::Avg
                | Aggregation::Sum
                | Aggregation::Count
                | Aggregation::Stddev
                | Aggregation::P50
                | Aggregation::P90
                | Aggregation::P95
                | Aggregation::P99
                | Aggregation::Rate
                | Aggregation::Increase
                | Aggregation::TimeAvg
                | Aggregation::FractionAbove
                | Aggregation::FractionBelow => None,
            };
            columns.extend(instant.filter(|_| with_instant).map(|output| named("at", output)));
        }
    }
    Ok(columns)
}

/// Whether the metric's kind, or what a span's duration is, fits the aggregation.
fn check_fits(
    dataset: Dataset,
    metric: Option<&ResolvedMetric>,
    common: Option<MetricKind>,
    aggregation: Aggregation,
    has_values: bool,
) -> Result<(), QueryError> {
    // What has no values is only counted, which `aggregates` sees to.
    if !has_values {
        return Ok(());
    }
    // Growth is told apart by series, and so by metric: it can be asked of several counters at once. Of every metric together only
    // what makes sense of a level can be asked; a span's duration is one.
    let (name, kind) = match metric {
        Some(metric) => (metric.canonical.as_str(), metric.kind),
        None if dataset == Dataset::Spans => ("duration", MetricKind::Gauge),
        None if common == Some(MetricKind::Counter)
            && matches!(aggregation, Aggregation::Rate | Aggregation::Increase) =>
        {
            ("the counters together", MetricKind::Counter)
        }
        None => ("every metric", MetricKind::Gauge),
    };
    let held_for_no_time = dataset == Dataset::Spans && aggregation.is_by_series();
    if fits(kind, aggregation) && !held_for_no_time {
        return Ok(());
    }
    let fitting = fitting(kind).iter().filter(|a| dataset != Dataset::Spans || !a.is_by_series());
    Err(QueryError::AggregationDoesNotFit {
        metric: name.to_owned(),
        kind,
        aggregation,
        fitting: fitting.map(|a| a.as_str().to_owned()).collect(),
    })
}

/// The columns of a dataset's own rows, time first.
fn row_columns(dataset: Dataset) -> Result<Vec<OutputColumn>, QueryError> {
    let dim = |d: Dim| {
        let name = d.as_str().to_owned();
        OutputColumn { name, output: Output::Dim(d) }
    };
    let time = named("time", Output::Time);
    let labels = named("labels", Output::Labels);
    let columns = match dataset {
        Dataset::Metrics => return Err(QueryError::ShapeDoesNotFit { dataset, what: "rows (ask for samples)" }),
        Dataset::Logs => vec![
            time,
            dim(Dim::Cluster),
            dim(Dim::Node),
            dim(Dim::Gpu),
            dim(Dim::Service),
            dim(Dim::Severity),
            dim(Dim::Body),
            labels,
        ],
        Dataset::Spans => vec![
            time,
            dim(Dim::Cluster),
            dim(Dim::Service),
            dim(Dim::Pod),
            dim(Dim::Operation),
            dim(Dim::TraceId),
            dim(Dim::SpanId),
            dim(Dim::ParentId),
            named("duration_us", Output::DurationMicros),
            labels,
        ],
        Dataset::Events => vec![
            time,
            dim(Dim::Cluster),
            dim(Dim::Node),
            dim(Dim::Gpu),
            dim(Dim::Service),
            dim(Dim::Kind),
            dim(Dim::Body),
            labels,
        ],
        Dataset::Jobs => vec![
            time,
            dim(Dim::Tenant),
            dim(Dim::Cluster),
            dim(Dim::JobId),
            dim(Dim::Name),
            dim(Dim::User),
            dim(Dim::Kind),
            dim(Dim::State),
            named("submit", Output::SubmitTime),
            named("end", Output::EndTime),
            labels,
        ],
        Dataset::JobGpus => vec![
            time,
            dim(Dim::Cluster),
            dim(Dim::JobId),
            dim(Dim::Attempt),
            dim(Dim::Node),
            dim(Dim::Gpu),
            dim(Dim::GpuUuid),
            dim(Dim::Rank),
            named("end", Output::EndTime),
        ],
    };
    Ok(columns)
}
