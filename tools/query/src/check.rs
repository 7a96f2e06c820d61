//! `Catalogue::check`: from a query to a valid query, or the reason why not.

use sightline_model::{Aggregation, Dataset, Dim, MetricKind};

use crate::catalogue::{Catalogue, Resolution};
use crate::error::QueryError;
use crate::pattern::check_pattern;
use crate::query::{Filter, Match, MetricPart, Order, Query, SampleOrder, Shape};
use crate::schema::{check_dim, fits, fitting, has_labels, has_values};
use crate::valid::{Held, Output, OutputColumn, ResolvedMetric, ValidQuery};

/// Longest text in a filter, bytes: longer than any name or line fragment a person types, short enough to bind a thousand of.
const MAX_TEXT: usize = 2048;
/// Longest `in` list.
const MAX_LIST: usize = 1000;
/// Most (node, gpu) pairs: a job on every GPU of the largest cluster the product is made for, twice over.
const MAX_PLACEMENT: usize = 20_000;
/// Most filters.
const MAX_FILTERS: usize = 16;
/// Most grouping dimensions.
const MAX_GROUP_BY: usize = 8;
/// Shortest step; finer questions read samples.
const MIN_STEP_MS: u64 = 1000;
/// Highest limit that makes sense to hold in memory; roles allow less.
const MAX_LIMIT: u32 = 1_000_000;

impl Catalogue {
    /// Checks a query against the catalogue and the datasets' schema.
    ///
    /// # Errors
    /// The first fault found, with what to ask instead.
    pub fn check(&self, query: &Query) -> Result<ValidQuery, QueryError> {
        let metric = self.resolve_for(query)?;
        check_filters(query)?;
        check_placement(query)?;
        check_threshold(query)?;
        let (outputs, grouped, order, limit) = lay_out(query, metric.as_ref())?;
        if limit == 0 || limit > MAX_LIMIT {
            return Err(QueryError::BadLimit { limit, cap: MAX_LIMIT });
        }
        Ok(ValidQuery { query: query.clone(), metric, outputs, grouped, order, limit })
    }

    fn resolve_for(&self, query: &Query) -> Result<Option<ResolvedMetric>, QueryError> {
        let Some(name) = &query.metric else { return Ok(None) };
        if query.dataset != Dataset::Metrics {
            return Err(QueryError::MetricNotApplicable { dataset: query.dataset });
        }
        if name.len() > MAX_TEXT {
            return Err(QueryError::TextTooLong { length: name.len(), limit: MAX_TEXT });
        }
        let metric = match self.resolve(name) {
            Resolution::Exact(metric) => metric,
            Resolution::Ambiguous(candidates) => {
                let candidates = candidates.iter().map(|m| m.id().to_owned()).collect();
                return Err(QueryError::AmbiguousMetric { name: name.clone(), candidates });
            }
            Resolution::Unknown { near } => return Err(QueryError::UnknownMetric { name: name.clone(), near }),
        };
        let is_histogram = metric.kind() == MetricKind::Histogram;
        let reads_part = query.part != MetricPart::Samples;
        // Distinct asks what exists; it reads a histogram's parts as well as anything else.
        if is_histogram != reads_part {
            let part = match query.part {
                MetricPart::Samples => "samples (a histogram has buckets, a sum and a count)",
                MetricPart::Buckets => "buckets",
                MetricPart::Sum => "sum",
                MetricPart::Count => "count",
            };
            return Err(QueryError::PartDoesNotFit { metric: metric.id().to_owned(), kind: metric.kind(), part });
        }
        let stored = metric.stored().map(|name| format!("{name}{}", query.part.suffix())).collect();
        let kind = if is_histogram { MetricKind::Counter } else { metric.kind() };
        Ok(Some(ResolvedMetric { canonical: metric.id().to_owned(), stored, kind, unit: metric.unit() }))
    }
}

fn check_filters(query: &Query) -> Result<(), QueryError> {
    if query.filters.len() > MAX_FILTERS {
        return Err(QueryError::ListSize { what: "the filter", length: query.filters.len(), limit: MAX_FILTERS });
    }
    for filter in &query.filters {
        match filter {
            Filter::Dim { dim, matches } => {
                check_dim(query.dataset, dim)?;
                check_match(matches)?;
            }
            Filter::Value { bound, .. } => {
                if !has_values(query.dataset) {
                    return Err(QueryError::ShapeDoesNotFit { dataset: query.dataset, what: "a value comparison" });
                }
                if !bound.is_finite() {
                    return Err(QueryError::BoundNotFinite);
                }
            }
        }
    }
    Ok(())
}

/// A threshold is there exactly for the aggregations that hold samples against one.
fn check_threshold(query: &Query) -> Result<(), QueryError> {
    let aggregation = match &query.shape {
        Shape::Series { aggregation, .. } | Shape::Rank { aggregation, .. } => Some(*aggregation),
        Shape::Samples { .. } | Shape::Rows { .. } | Shape::Distinct { .. } | Shape::LabelKeys { .. } => None,
    };
    match (query.threshold, aggregation.filter(|a| a.needs_threshold())) {
        (Some(threshold), Some(_)) if !threshold.is_finite() => Err(QueryError::BoundNotFinite),
        (Some(_), None) => Err(QueryError::ThresholdNotUsed),
        (None, Some(aggregation)) => Err(QueryError::MissingThreshold { aggregation }),
        (Some(_), Some(_)) | (None, None) => Ok(()),
    }
}

fn check_match(matches: &Match) -> Result<(), QueryError> {
    match matches {
        Match::Eq(text)
        | Match::NotEq(text)
        | Match::Contains(text)
        | Match::ContainsFold(text)
        | Match::Prefix(text) => check_text(text),
        Match::In(list) | Match::NotIn(list) => {
            if list.is_empty() || list.len() > MAX_LIST {
                return Err(QueryError::ListSize { what: "an `in` list", length: list.len(), limit: MAX_LIST });
            }
            list.iter().try_for_each(|text| check_text(text))
        }
        Match::Regex(pattern) => {
            check_text(pattern)?;
            check_pattern(pattern).map_err(|reason| QueryError::BadPattern { pattern: pattern.clone(), reason })
        }
        Match::Present | Match::Absent => Ok(()),
    }
}

fn check_text(text: &str) -> Result<(), QueryError> {
    if text.len() > MAX_TEXT {
        return Err(QueryError::TextTooLong { length: text.len(), limit: MAX_TEXT });
    }
    Ok(())
}

fn check_placement(query: &Query) -> Result<(), QueryError> {
    let Some(pairs) = &query.placement else { return Ok(()) };
    check_dim(query.dataset, &Dim::Node)?;
    check_dim(query.dataset, &Dim::Gpu)?;
    if pairs.is_empty() || pairs.len() > MAX_PLACEMENT {
        return Err(QueryError::ListSize { what: "the placement", length: pairs.len(), limit: MAX_PLACEMENT });
    }
    pairs.iter().try_for_each(|(node, gpu)| check_text(node).and_then(|()| check_text(gpu)))
}

type Layout = (Vec<OutputColumn>, bool, Vec<(usize, Order)>, u32);

/// Spells out the output columns of a shape.
fn lay_out(query: &Query, metric: Option<&ResolvedMetric>) -> Result<Layout, QueryError> {
    match &query.shape {
        Shape::Series { step_ms, align, group_by, aggregation, limit } => {
            let range_ms = u64::try_from(query.range.millis()).unwrap_or(0);
            if *step_ms < MIN_STEP_MS || *step_ms > range_ms.max(MIN_STEP_MS) {
                return Err(QueryError::BadStep { step_ms: *step_ms, range_ms });
            }
            let mut outputs = vec![named("bucket", Output::Bucket { step_ms: *step_ms, align: *align })];
            outputs.extend(keys(query, group_by, *aggregation)?);
            let keys = outputs.len();
            outputs.extend(aggregates(query, metric, *aggregation, false)?);
            Ok((outputs, true, ascending(0..keys), *limit))
        }
        Shape::Rank { group_by, aggregation, order, limit } => {
            let mut outputs = keys(query, group_by, *aggregation)?;
            let keys = outputs.len();
            outputs.extend(aggregates(query, metric, *aggregation, true)?);
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
    if query.dataset == Dataset::Metrics && by_series(aggregation) {
        for dim in [Dim::Metric, Dim::Cluster, Dim::Node, Dim::Gpu, Dim::Service] {
            if columns.iter().all(|c| c.name != dim.as_str()) {
                columns.push(OutputColumn { name: dim.as_str().to_owned(), output: Output::Dim(dim) });
            }
        }
        columns.push(named("labels", Output::Labels));
    }
    Ok(columns)
}

/// Whether it is defined within one series only.
fn by_series(aggregation: Aggregation) -> bool {
    match aggregation {
        Aggregation::Rate
        | Aggregation::Increase
        | Aggregation::TimeAvg
        | Aggregation::FractionAbove
        | Aggregation::FractionBelow => true,
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
        | Aggregation::P99 => false,
    }
}

fn aggregates(
    query: &Query,
    metric: Option<&ResolvedMetric>,
    aggregation: Aggregation,
    with_instant: bool,
) -> Result<Vec<OutputColumn>, QueryError> {
    if !has_values(query.dataset) {
        // Lines, events and jobs can be counted.
        return if aggregation == Aggregation::Count {
            Ok(vec![named("value", Output::Count)])
        } else {
            Err(QueryError::ShapeDoesNotFit { dataset: query.dataset, what: "anything but a count" })
        };
    }
    check_fits(query.dataset, metric, aggregation)?;
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
fn check_fits(dataset: Dataset, metric: Option<&ResolvedMetric>, aggregation: Aggregation) -> Result<(), QueryError> {
    // Of every metric together only what makes sense of a level can be asked; a span's duration is one.
    let (name, kind) = match metric {
        Some(metric) => (metric.canonical.as_str(), metric.kind),
        None if dataset == Dataset::Spans => ("duration", MetricKind::Gauge),
        None => ("every metric", MetricKind::Gauge),
    };
    let held_for_no_time = dataset == Dataset::Spans && by_series(aggregation);
    if fits(kind, aggregation) && !held_for_no_time {
        return Ok(());
    }
    let fitting = fitting(kind).iter().filter(|a| dataset != Dataset::Spans || !by_series(**a));
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
