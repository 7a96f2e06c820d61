//! `Catalogue::check`: from a query to a valid query, or the reason why not.

use sightline_model::{Aggregation, Dataset, Dim, MetricKind};

use crate::catalogue::{Catalogue, Resolution};
use crate::error::QueryError;
use crate::layout::lay_out;
use crate::pattern::check_pattern;
use crate::query::{Filter, Match, MetricPart, Query, Shape};
use crate::schema::{check_dim, has_values};
use crate::valid::{ResolvedMetric, ValidQuery};

/// Longest text in a filter, bytes: longer than any name or line fragment a person types, short enough to bind a thousand of.
const MAX_TEXT: usize = 2048;
/// Longest `in` list.
const MAX_LIST: usize = 1000;
/// Most (node, gpu) pairs: a job on every GPU of the largest cluster the product is made for, twice over.
const MAX_PLACEMENT: usize = 20_000;
/// Most filters.
const MAX_FILTERS: usize = 16;
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
        check_neighbours(query)?;
        let (outputs, grouped, order, limit) = lay_out(query, metric.as_ref(), self.common_kind(query))?;
        if limit == 0 || limit > MAX_LIMIT {
            return Err(QueryError::BadLimit { limit, cap: MAX_LIMIT });
        }
        Ok(ValidQuery { query: query.clone(), metric, outputs, grouped, order, limit })
    }

    /// The kind of several metrics that are asked for together, by a list of stored names: theirs if all are known and of one kind.
    /// A histogram's series are no samples of it, so they are of none.
    fn common_kind(&self, query: &Query) -> Option<MetricKind> {
        if query.metric.is_some() || query.dataset != Dataset::Metrics {
            return None;
        }
        let names = query.filters.iter().find_map(|filter| match filter {
            Filter::Dim { dim: Dim::Metric, matches: Match::Eq(name) } => Some(std::slice::from_ref(name)),
            Filter::Dim { dim: Dim::Metric, matches: Match::In(names) } => Some(names.as_slice()),
            Filter::Dim { .. } | Filter::Value { .. } => None,
        })?;
        let mut kinds = names.iter().map(|name| self.by_stored(name).map(|metric| metric.kind()));
        let first = kinds.next()??;
        let alike = kinds.all(|kind| kind == Some(first));
        (alike && first != MetricKind::Histogram).then_some(first)
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

fn aggregation_of(query: &Query) -> Option<Aggregation> {
    match &query.shape {
        Shape::Series { aggregation, .. } | Shape::Rank { aggregation, .. } => Some(*aggregation),
        Shape::Samples { .. } | Shape::Rows { .. } | Shape::Distinct { .. } | Shape::LabelKeys { .. } => None,
    }
}

/// What lies between samples can only be told from all of them: leaving some out by value would make others neighbours.
fn check_neighbours(query: &Query) -> Result<(), QueryError> {
    let by_value = query.filters.iter().any(|filter| matches!(filter, Filter::Value { .. }));
    match aggregation_of(query).filter(|aggregation| aggregation.is_by_series()) {
        Some(aggregation) if by_value => Err(QueryError::ValueFilterDoesNotFit { aggregation }),
        Some(_) | None => Ok(()),
    }
}

/// A threshold is there exactly for the aggregations that hold samples against one.
fn check_threshold(query: &Query) -> Result<(), QueryError> {
    match (query.threshold, aggregation_of(query).filter(|a| a.needs_threshold())) {
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
