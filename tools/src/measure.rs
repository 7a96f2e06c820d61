//! A metric under an aggregation: which of its series to fetch for it, and how to read them back.

use sightline_model::{Aggregation, Dataset, Dim, Evidence, EvidenceRow, MetricKind, Series, TimeRange, Unit};
use sightline_query::schema::{fits, fitting};
use sightline_query::{Filter, MetricPart, Query, QueryError, Resolution, Shape};

use crate::reading::{
    Content, Ranked, combines, coverage, described, evidence, histogram_mean, histogram_quantiles, rank_histogram_mean,
    rank_histogram_quantiles, read_rank, read_series, unit_of,
};
use crate::tool::{Fetched, ToolContext, ToolError};

/// A metric as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measure {
    /// The catalogue's name.
    pub(crate) metric: String,
    kind: MetricKind,
    unit: Unit,
    /// How it is combined.
    pub(crate) aggregation: Aggregation,
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
        if !fits(kind, aggregation) {
            return Err(fault(QueryError::AggregationDoesNotFit {
                metric: metric.id().to_owned(),
                kind,
                aggregation,
                fitting: fitting(kind).iter().map(|a| a.as_str().to_owned()).collect(),
            }));
        }
        Ok(Self { metric: metric.id().to_owned(), kind, unit: metric.unit(), aggregation })
    }

    /// The unit of the values.
    pub(crate) fn unit(&self) -> Unit {
        unit_of(self.kind, self.unit, self.aggregation)
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
                dims.extend([Dim::Metric].into_iter().chain(extra).filter(|d| !group_by.contains(d)));
                Query {
                    dataset: Dataset::Metrics,
                    metric: Some(self.metric.clone()),
                    part,
                    range: rows.range,
                    filters: rows.filters.clone(),
                    placement: rows.placement.clone(),
                    threshold: None,
                    shape: shape(dims, aggregation),
                }
            })
            .collect()
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
        evidence.labels.insert("metric".to_owned(), self.metric.clone());
    }
}

fn step_ms(fetched: &Fetched) -> Option<u64> {
    match &fetched.query.query().shape {
        Shape::Series { step_ms, .. } => Some(*step_ms),
        Shape::Samples { .. }
        | Shape::Rank { .. }
        | Shape::Rows { .. }
        | Shape::Distinct { .. }
        | Shape::LabelKeys { .. } => None,
    }
}
