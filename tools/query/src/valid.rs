//! A query that passed the catalogue, with its output columns spelled out. Only `Catalogue::check` makes one.

use sightline_model::{Aggregation, Column, ColumnKind, Dataset, Dim, MetricKind, TimeRange, Unit};

use crate::query::{Align, Filter, Order, Query};

/// The metric a valid query reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedMetric {
    /// The catalogue's name.
    pub canonical: String,
    /// The stored names that mean it; never empty.
    pub stored: Vec<String>,
    /// Its kind.
    pub kind: MetricKind,
    /// The unit of its samples.
    pub unit: Unit,
}

/// What one output column holds. Closed: the guard prints each of these in exactly one way.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The start of the time step.
    Bucket {
        /// Its length, milliseconds.
        step_ms: u64,
        /// Where steps begin.
        align: Align,
    },
    /// A dimension.
    Dim(Dim),
    /// All labels of the row.
    Labels,
    /// Each key of the row's labels: a row counts once for each.
    LabelKey,
    /// The row's own time (for jobs and GPU intervals: its start).
    Time,
    /// When a job or interval ended; null while it runs.
    EndTime,
    /// When a job was submitted.
    SubmitTime,
    /// A span's duration, microseconds.
    DurationMicros,
    /// The sample.
    Value,
    /// Number of rows.
    Count,
    /// Smallest sample.
    Min,
    /// Largest sample.
    Max,
    /// Mean of the samples.
    Avg,
    /// Sum of the samples.
    Sum,
    /// Population standard deviation.
    Stddev,
    /// A quantile of the samples, by linear interpolation.
    Quantile(QuantileLevel),
    /// The sample with the smallest time.
    First,
    /// The sample with the largest time.
    Last,
    /// Sum of the rises between consecutive samples; falls (resets) add nothing.
    Rise,
    /// What consecutive samples held for how long, added up: see [`Held`].
    Held(Held),
    /// When the smallest sample was taken; the earliest, if several are equal.
    MinTime,
    /// When the largest sample was taken; the earliest, if several are equal.
    MaxTime,
    /// The smallest time.
    FirstTime,
    /// The largest time.
    LastTime,
}

/// What is multiplied by the time until the next sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// The sample itself.
    Value,
    /// 1 where it lies above, else 0.
    Above(f64),
    /// 1 where it lies below, else 0.
    Below(f64),
}

/// The quantiles that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantileLevel {
    /// The median.
    P50,
    /// 0.90.
    P90,
    /// 0.95.
    P95,
    /// 0.99.
    P99,
}

impl Output {
    /// The kind of the column it makes.
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Bucket { .. }
            | Self::Time
            | Self::EndTime
            | Self::SubmitTime
            | Self::MinTime
            | Self::MaxTime
            | Self::FirstTime
            | Self::LastTime => ColumnKind::Time,
            Self::Dim(_) | Self::LabelKey => ColumnKind::Text,
            Self::Labels => ColumnKind::Labels,
            Self::DurationMicros | Self::Count => ColumnKind::Int,
            Self::Value
            | Self::Min
            | Self::Max
            | Self::Avg
            | Self::Sum
            | Self::Stddev
            | Self::Quantile(_)
            | Self::First
            | Self::Last
            | Self::Rise
            | Self::Held(_) => ColumnKind::Float,
        }
    }

    /// Whether it combines rows (and so cannot be a grouping key).
    pub fn is_aggregate(&self) -> bool {
        match self {
            Self::Bucket { .. }
            | Self::Dim(_)
            | Self::Labels
            | Self::LabelKey
            | Self::Time
            | Self::EndTime
            | Self::SubmitTime
            | Self::DurationMicros
            | Self::Value => false,
            Self::Count
            | Self::Min
            | Self::Max
            | Self::Avg
            | Self::Sum
            | Self::Stddev
            | Self::Quantile(_)
            | Self::First
            | Self::Last
            | Self::Rise
            | Self::Held(_)
            | Self::MinTime
            | Self::MaxTime
            | Self::FirstTime
            | Self::LastTime => true,
        }
    }

    /// The output that gives this aggregation's value; none for what is added up from the parts of each series.
    pub fn of(aggregation: Aggregation) -> Option<Self> {
        match aggregation {
            Aggregation::Avg => Some(Self::Avg),
            Aggregation::Min => Some(Self::Min),
            Aggregation::Max => Some(Self::Max),
            Aggregation::Sum => Some(Self::Sum),
            Aggregation::Count => Some(Self::Count),
            Aggregation::Last => Some(Self::Last),
            Aggregation::Stddev => Some(Self::Stddev),
            Aggregation::P50 => Some(Self::Quantile(QuantileLevel::P50)),
            Aggregation::P90 => Some(Self::Quantile(QuantileLevel::P90)),
            Aggregation::P95 => Some(Self::Quantile(QuantileLevel::P95)),
            Aggregation::P99 => Some(Self::Quantile(QuantileLevel::P99)),
            Aggregation::Rate
            | Aggregation::Increase
            | Aggregation::TimeAvg
            | Aggregation::FractionAbove
            | Aggregation::FractionBelow => None,
        }
    }
}

/// One output column with the name a tool knows it by.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    /// The name, for example `node`, `bucket`, `value`. Never printed into SQL.
    pub name: String,
    /// What it holds.
    pub output: Output,
}

/// A query that may be put to the guard. Guaranteed: the dataset has every dimension that is named, a metric that is named is known
/// and its kind fits the aggregation, a threshold is there exactly where one is needed, texts and lists are within their caps, patterns compile under RE2's rules, bounds are finite,
/// grouping outputs stand before aggregates, and order and limit are set.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidQuery {
    pub(crate) query: Query,
    pub(crate) metric: Option<ResolvedMetric>,
    pub(crate) outputs: Vec<OutputColumn>,
    pub(crate) grouped: bool,
    pub(crate) order: Vec<(usize, Order)>,
    pub(crate) limit: u32,
}

impl ValidQuery {
    /// The query as the tool wrote it.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The dataset it reads.
    pub fn dataset(&self) -> Dataset {
        self.query.dataset
    }

    /// The window.
    pub fn range(&self) -> TimeRange {
        self.query.range
    }

    /// The conditions.
    pub fn filters(&self) -> &[Filter] {
        &self.query.filters
    }

    /// The (node, gpu) pairs it is limited to.
    pub fn placement(&self) -> Option<&[(String, String)]> {
        self.query.placement.as_deref()
    }

    /// The metric, for dataset `metrics`.
    pub fn metric(&self) -> Option<&ResolvedMetric> {
        self.metric.as_ref()
    }

    /// The output columns in order; grouping keys first.
    pub fn outputs(&self) -> &[OutputColumn] {
        &self.outputs
    }

    /// Whether rows are grouped by the non-aggregate outputs.
    pub fn grouped(&self) -> bool {
        self.grouped
    }

    /// The order, as indexes into the outputs.
    pub fn order(&self) -> &[(usize, Order)] {
        &self.order
    }

    /// The most rows that come back.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The result columns a tool will see.
    pub fn columns(&self) -> Vec<Column> {
        self.outputs.iter().map(|c| Column { name: c.name.clone(), kind: c.output.kind() }).collect()
    }
}
