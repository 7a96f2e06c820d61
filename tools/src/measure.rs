//! A metric under an aggregation: which of its series to fetch for it, and how to read them back.

use sightline_model::{Aggregation, Dataset, Dim, Evidence, EvidenceRow, MetricKind, Series, TimeRange, Unit};
use sightline_query::schema::{fits, fitting};
use sightline_query::{Filter, Match, MetricPart, Query, QueryError, Resolution, Shape};

use crate::reading::{
    Content, Ranked, combines, coverage, described, evidence, histogram_mean, histogram_quantiles, rank_histogram_mean,
    rank_histogram_quantiles, read_rank, read_series, unit_of,
};
use crate::tool::{Fetched, ToolContext, ToolError};

/// The name under which every metric is asked for at once.
pub(crate) const EVERY: &str = "*";

/// A metric as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measure {
    /// The catalogue's name, or [`EVERY`].
    pub(crate) metric: String,
    kind: MetricKind,
    unit: Unit,
    /// How it is combined.
    pub(crate) aggregation: Aggregation,
    /// What the shares of time are held against.
    pub(crate) threshold: Option<f64>,
    /// What was computed from the values, if anything was.
    pub(crate) derived: Option<Derived>,
}

/// What is computed from values that were read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Derived {
    /// Each point less the one before it.
    Delta,
    /// The mean of the last points.
    MovingAverage,
    /// The sum of all points so far.
    Cumulative,
    /// Each point divided by that of another metric.
    Ratio {
        /// The other metric, as in [`Measure::metric`].
        to: String,
        /// The unit of what is left.
        unit: Unit,
    },
}

/// Which rows of a metric are meant.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) range: TimeRange,
    pub(crate) filters: Vec<Filter>,
    pub(crate) placement: Option<Vec<(String, String)>>,
}

/// What came back of a measure: values, and what was sampled to get them.
pub(crate) struct Measured {
    pub(crate) series: Vec<Series>,
    sampled: Option<Vec<Series>>,
}

/// How the queries of a histogram or another kind are told apart.
#[derive(Clone, Copy, PartialEq)]
enum Parts {
    Plain,
    Quantile(f64),
    Mean,
    Observations,
}

impl Measure {
    /// The metric of that name, with the aggregation that was asked for or the one that its kind suggests.
    pub(crate) fn resolve(
        tool: &'static str,
        context: &ToolContext<'_>,
        name: &str,
        aggregation: Option<Aggregation>,
    ) -> Result<Self, ToolError> {
        let fault = |error: QueryError| ToolError::Arguments { tool, reason: error.to_string() };
        if name == EVERY {
            // What makes sense of a level can be asked of every metric; growth cannot.
            let aggregation = aggregation.unwrap_or(Aggregation::Avg);
            return Self::fitting(tool, EVERY, MetricKind::Gauge, Unit::None, aggregation);
        }
        let metric = match context.catalogue.resolve(name) {
            Resolution::Exact(metric) => metric,
            Resolution::Ambiguous(candidates) => {
                let candidates = candidates.iter().map(|m| m.id().to_owned()).collect();
                return Err(fault(QueryError::AmbiguousMetric { name: name.to_owned(), candidates }));
            }
            Resolution::Unknown { near } => {
                return Err(fault(QueryError::UnknownMetric { name: name.to_owned(), near }));
            }
        };
        let kind = metric.kind();
        let aggregation = aggregation.unwrap_or(match kind {
            MetricKind::Gauge => Aggregation::Avg,
            MetricKind::Counter => Aggregation::Rate,
            // What service objectives are written in.
            MetricKind::Histogram => Aggregation::P95,
            MetricKind::State => Aggregation::Last,
        });
        Self::fitting(tool, metric.id(), kind, metric.unit(), aggregation)
    }

    fn fitting(
        tool: &'static str,
        name: &str,
        kind: MetricKind,
        unit: Unit,
        aggregation: Aggregation,
    ) -> Result<Self, ToolError> {
        if fits(kind, aggregation) {
            return Ok(Self { metric: name.to_owned(), kind, unit, aggregation, threshold: None, derived: None });
        }
        let error = QueryError::AggregationDoesNotFit {
            metric: if name == EVERY { "every metric" } else { name }.to_owned(),
            kind,
            aggregation,
            fitting: fitting(kind).iter().map(|a| a.as_str().to_owned()).collect(),
        };
        Err(ToolError::Arguments { tool, reason: error.to_string() })
    }

    /// The same, with what its share of time is held against.
    ///
    /// # Errors
    /// When a threshold is given that is not used, or one is needed and missing.
    pub(crate) fn against(self, tool: &'static str, threshold: Option<f64>) -> Result<Self, ToolError> {
        let fault = |error: QueryError| Err(ToolError::Arguments { tool, reason: error.to_string() });
        match (threshold, self.aggregation.needs_threshold()) {
            (Some(_), false) => fault(QueryError::ThresholdNotUsed),
            (None, true) => fault(QueryError::MissingThreshold { aggregation: self.aggregation }),
            (Some(_), true) | (None, false) => Ok(Self { threshold, ..self }),
        }
    }

    /// The same, with what is computed from its values.
    pub(crate) fn computed(self, derived: Option<Derived>) -> Self {
        Self { derived, ..self }
    }

    /// Whether it is of every metric at once.
    pub(crate) fn is_every(&self) -> bool {
        self.metric == EVERY
    }

    /// What a reader must know who takes one number of several metrics for a quantity.
    pub(crate) fn mixed(&self, group_by: &[Dim], filters: &[Filter]) -> Option<String> {
        let of_one = |filter: &Filter| matches!(filter, Filter::Dim { dim: Dim::Metric, matches: Match::Eq(_) });
        let apart = group_by.contains(&Dim::Metric) || filters.iter().any(of_one);
        (self.is_every() && !apart && self.aggregation != Aggregation::Count).then(|| {
            "these numbers mix metrics of different units; add `metric` to `group_by`, or filter by it".to_owned()
        })
    }

    /// The unit of the values.
    pub(crate) fn unit(&self) -> Unit {
        match &self.derived {
            Some(Derived::Ratio { unit, .. }) => *unit,
            Some(Derived::Delta | Derived::MovingAverage | Derived::Cumulative) | None => {
                unit_of(self.kind, self.unit, self.aggregation)
            }
        }
    }

    /// The same values as samples, not combined.
    ///
    /// # Errors
    /// When the metric has none of its own.
    pub(crate) fn uncombined(self, tool: &'static str) -> Result<Self, ToolError> {
        if self.kind == MetricKind::Histogram {
            let reason =
                format!("`{}` is a histogram and has no samples of its own; ask for its p95 or avg", self.metric);
            return Err(ToolError::Arguments { tool, reason });
        }
        Ok(Self { aggregation: Aggregation::Last, ..self })
    }

    /// In how many queries it is read.
    pub(crate) fn reads(&self) -> usize {
        match self.parts() {
            Parts::Plain | Parts::Quantile(_) | Parts::Observations => 1,
            Parts::Mean => 2,
        }
    }

    /// Whether two groups' values give their union's: a histogram's quantiles and means do not, without its buckets.
    pub(crate) fn combines(&self) -> bool {
        combines(self.aggregation) && matches!(self.parts(), Parts::Plain | Parts::Observations)
    }

    /// Whether values of groups add up to their union's.
    pub(crate) fn sums(&self) -> bool {
        self.combines()
            && match self.aggregation {
                Aggregation::Sum | Aggregation::Count | Aggregation::Rate | Aggregation::Increase => true,
                Aggregation::Avg
                | Aggregation::Min
                | Aggregation::Max
                | Aggregation::Last
                | Aggregation::Stddev
                | Aggregation::P50
                | Aggregation::P90
                | Aggregation::P95
                | Aggregation::P99
                | Aggregation::TimeAvg
                | Aggregation::FractionAbove
                | Aggregation::FractionBelow => false,
            }
    }

    fn parts(&self) -> Parts {
        if self.kind != MetricKind::Histogram {
            return Parts::Plain;
        }
        match self.aggregation {
            Aggregation::P50 => Parts::Quantile(0.50),
            Aggregation::P90 => Parts::Quantile(0.90),
            Aggregation::P95 => Parts::Quantile(0.95),
            Aggregation::P99 => Parts::Quantile(0.99),
            Aggregation::Rate | Aggregation::Increase => Parts::Observations,
            // Only the mean is left of what fits a histogram.
            Aggregation::Avg
            | Aggregation::Min
            | Aggregation::Max
            | Aggregation::Sum
            | Aggregation::Count
            | Aggregation::Last
            | Aggregation::Stddev
            | Aggregation::TimeAvg
            | Aggregation::FractionAbove
            | Aggregation::FractionBelow => Parts::Mean,
        }
    }

    /// The part of the metric that tells whether it is there at all.
    pub(crate) fn probe_part(&self) -> MetricPart {
        if self.kind == MetricKind::Histogram { MetricPart::Count } else { MetricPart::Samples }
    }

    /// The queries whose results give the values. `shape` is told the dimensions and the aggregation to read by; the stored
    /// name is among the dimensions, so that the answer can say which spelling was found.
    pub(crate) fn queries(
        &self,
        rows: &Rows,
        group_by: &[Dim],
        shape: impl Fn(Vec<Dim>, Aggregation) -> Shape,
    ) -> Vec<Query> {
        let reads: Vec<(MetricPart, Aggregation, Option<Dim>)> = match self.parts() {
            Parts::Plain => vec![(MetricPart::Samples, self.aggregation, None)],
            Parts::Quantile(_) => {
                vec![(MetricPart::Buckets, Aggregation::Increase, Some(Dim::Label("le".to_owned())))]
            }
            Parts::Mean => {
                vec![(MetricPart::Sum, Aggregation::Increase, None), (MetricPart::Count, Aggregation::Increase, None)]
            }
            Parts::Observations => vec![(MetricPart::Count, self.aggregation, None)],
        };
        reads
            .into_iter()
            .map(|(part, aggregation, extra)| {
                let mut dims: Vec<Dim> = group_by.to_vec();
                // Of every metric at once, only the group is told apart: a percentile of several is theirs together.
                let stored = (!self.is_every()).then_some(Dim::Metric);
                dims.extend(stored.into_iter().chain(extra).filter(|d| !group_by.contains(d)));
                Query { part, ..self.query(rows, shape(dims, aggregation)) }
            })
            .collect()
    }

    /// A query over the metric's own samples.
    pub(crate) fn query(&self, rows: &Rows, shape: Shape) -> Query {
        Query {
            dataset: Dataset::Metrics,
            metric: (!self.is_every()).then(|| self.metric.clone()),
            part: MetricPart::Samples,
            range: rows.range,
            filters: rows.filters.clone(),
            placement: rows.placement.clone(),
            threshold: self.threshold,
            shape,
        }
    }

    /// The series in the results of [`Measure::queries`], in the same order.
    pub(crate) fn series(&self, fetched: &[&Fetched], group_by: &[Dim]) -> Result<Measured, ToolError> {
        let histogram = match (self.parts(), fetched) {
            (Parts::Plain | Parts::Observations, [one]) => {
                return Ok(Measured { series: read_series(one, group_by, self.aggregation)?, sampled: None });
            }
            (Parts::Quantile(q), [buckets]) => histogram_quantiles(buckets, group_by, q)?,
            (Parts::Mean, [sum, count]) => histogram_mean(sum, count, group_by)?,
            _ => return Ok(Measured { series: Vec::new(), sampled: None }),
        };
        Ok(Measured { series: histogram.series, sampled: Some(histogram.sampled) })
    }

    /// The groups in the results of [`Measure::queries`], not yet in order.
    pub(crate) fn ranked(&self, fetched: &[&Fetched], group_by: &[Dim]) -> Result<Vec<Ranked>, ToolError> {
        match (self.parts(), fetched) {
            (Parts::Plain | Parts::Observations, [one]) => read_rank(one, group_by, self.aggregation),
            (Parts::Quantile(q), [buckets]) => rank_histogram_quantiles(buckets, group_by, q),
            (Parts::Mean, [sum, count]) => rank_histogram_mean(sum, count, group_by),
            _ => Ok(Vec::new()),
        }
    }

    /// The evidence of measured series: the first piece holds the values; where two queries were combined, the second holds
    /// what the first was divided by.
    pub(crate) fn series_evidence(
        &self,
        fetched: &[&Fetched],
        group_by: &[Dim],
        measured: Measured,
        tool: &str,
        first: usize,
    ) -> Result<Vec<Evidence>, ToolError> {
        let Some((values, rest)) = fetched.split_first() else { return Ok(Vec::new()) };
        let mut list = vec![evidence(values, tool, first, Content::Series(measured.series))];
        for (index, other) in rest.iter().enumerate() {
            let series = read_series(other, group_by, Aggregation::Increase)?;
            list.push(evidence(other, tool, first + index + 1, Content::Series(series)));
        }
        if let Some(head) = list.first_mut() {
            self.correct(head, step_ms(values));
            if let Some(sampled) = measured.sampled {
                head.coverage = coverage(&sampled, values.query.range(), step_ms(values).unwrap_or(0));
            }
        }
        Ok(list)
    }

    /// The evidence of a ranking's rows, with the same order of pieces.
    pub(crate) fn rank_evidence(
        &self,
        fetched: &[&Fetched],
        group_by: &[Dim],
        rows: Vec<EvidenceRow>,
        tool: &str,
        first: usize,
    ) -> Result<Vec<Evidence>, ToolError> {
        let Some((values, rest)) = fetched.split_first() else { return Ok(Vec::new()) };
        let mut list = vec![evidence(values, tool, first, Content::Rows(rows))];
        for (index, other) in rest.iter().enumerate() {
            let rows = read_rank(other, group_by, Aggregation::Increase)?
                .into_iter()
                .map(|r| EvidenceRow { entity: r.entity, value: Some(r.value), ..EvidenceRow::default() })
                .collect();
            list.push(evidence(other, tool, first + index + 1, Content::Rows(rows)));
        }
        if let Some(head) = list.first_mut() {
            self.correct(head, None);
        }
        Ok(list)
    }

    /// What a reader sees of the values is the measure, not the growth it was computed from.
    fn correct(&self, evidence: &mut Evidence, step_ms: Option<u64>) {
        evidence.aggregation = Some(described(self.aggregation, step_ms));
        evidence.unit = self.unit();
        self.label(evidence);
    }

    /// Names what was measured, so that a sentence can.
    pub(crate) fn label(&self, evidence: &mut Evidence) {
        if !self.is_every() {
            evidence.labels.insert("metric".to_owned(), self.metric.clone());
        }
        if let Some(threshold) = self.threshold {
            evidence.labels.insert("threshold".to_owned(), threshold.to_string());
        }
        if let Some(Derived::Ratio { to, .. }) = &self.derived {
            evidence.labels.insert("divided_by".to_owned(), to.clone());
        }
    }
}

/// The length of the steps of a series that was read; none for another shape.
pub(crate) fn step_ms(fetched: &Fetched) -> Option<u64> {
    match &fetched.query.query().shape {
        Shape::Series { step_ms, .. } => Some(*step_ms),
        Shape::Samples { .. }
        | Shape::Rank { .. }
        | Shape::Rows { .. }
        | Shape::Distinct { .. }
        | Shape::LabelKeys { .. } => None,
    }
}
