//! What a tool asks for: a typed, closed query. It names datasets, metrics and dimensions, never tables or columns.

use sightline_model::{Aggregation, Dataset, Dim, TimeRange};

/// A query as a tool means it. Anything can be written here; `Catalogue::check` makes it a [`crate::ValidQuery`].
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Which dataset.
    pub dataset: Dataset,
    /// The metric, by canonical or stored name; for dataset `metrics` only. `None` is every metric there: what is collected,
    /// how many samples of each, or a value by metric. With a filter that lists stored names it is these metrics
    /// together; growth can be asked of them if all are counters.
    pub metric: Option<String>,
    /// Which of a histogram's series are read; [`MetricPart::Samples`] for every other kind.
    pub part: MetricPart,
    /// The window. For jobs and GPU intervals: those that overlap it.
    pub range: TimeRange,
    /// Conditions, all of which must hold.
    pub filters: Vec<Filter>,
    /// Only rows of these (node, gpu) pairs. How a job's rows are read, so that cost follows the job's size.
    pub placement: Option<Vec<(String, String)>>,
    /// What `fraction_above` and `fraction_below` hold samples against, in the unit of the samples; finite. For those two only.
    pub threshold: Option<f64>,
    /// What comes back.
    pub shape: Shape,
}

/// Which series of a metric are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricPart {
    /// The metric's own samples.
    #[default]
    Samples,
    /// A histogram's cumulative `_bucket` series, told apart by the label `le`.
    Buckets,
    /// A histogram's `_sum` series.
    Sum,
    /// A histogram's `_count` series.
    Count,
}

impl MetricPart {
    /// The suffix of the stored name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Samples => "",
            Self::Buckets => "_bucket",
            Self::Sum => "_sum",
            Self::Count => "_count",
        }
    }
}

/// A condition on a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// A condition on a dimension's text.
    Dim {
        /// Which dimension.
        dim: Dim,
        /// What must hold.
        matches: Match,
    },
    /// A condition on the sample's value, or on a span's duration in microseconds.
    Value {
        /// How it is compared.
        op: ValueOp,
        /// With what; finite.
        bound: f64,
    },
}

/// A condition on text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// Equal.
    Eq(String),
    /// Not equal.
    NotEq(String),
    /// One of; not empty.
    In(Vec<String>),
    /// None of; not empty.
    NotIn(Vec<String>),
    /// Contains, case-sensitive.
    Contains(String),
    /// Contains, without regard to ASCII and Unicode case.
    ContainsFold(String),
    /// Begins with.
    Prefix(String),
    /// Matches a regular expression of RE2's syntax, anywhere in the text.
    Regex(String),
    /// Is there and not empty.
    Present,
    /// Is missing or empty.
    Absent,
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOp {
    /// Greater.
    Above,
    /// Less.
    Below,
    /// Greater or equal.
    AtLeast,
    /// Less or equal.
    AtMost,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
}

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Where time steps begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// At whole multiples of the step since 1970, as charts do: windows that overlap share their steps.
    #[default]
    Epoch,
    /// At the window's start: a step as long as the window is the window, a step of a day is the asker's day.
    Window,
}

/// What samples are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleOrder {
    /// Time, the earliest first.
    #[default]
    Time,
    /// Time, the latest first.
    Latest,
    /// Value, the largest first.
    Highest,
    /// Value, the smallest first.
    Lowest,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Per time step and group: `bucket`, the dimensions, `count`, `min`, `max`, `value`.
    /// For `rate` and `increase`: per time step and *series* (every label): `bucket`, the dimensions, what else tells series apart
    /// (`cluster`, `node`, `gpu`, `service`, `labels`), then `count`, `min`, `max`, `first`, `last`, `rise`, `first_time`,
    /// `last_time`, from which the reader adds up increases across steps and resets.
    /// For `time_avg`, `fraction_above` and `fraction_below` per step and series too: `count`, `min`, `max`, `held`, `first_time`,
    /// `last_time`; `held` adds up, over consecutive samples, the earlier one (or whether it is beyond the threshold, 0 or 1) times
    /// the milliseconds until the later one.
    Series {
        /// Length of a step, milliseconds; at least 1000.
        step_ms: u64,
        /// Where steps begin.
        align: Align,
        /// The dimensions that tell series apart.
        group_by: Vec<Dim>,
        /// How samples of a step are combined.
        aggregation: Aggregation,
        /// The most rows wanted (steps times groups).
        limit: u32,
    },
    /// Samples as stored: `time`, the dimensions, `value`. Dataset `metrics` only.
    Samples {
        /// The dimensions that tell series apart.
        group_by: Vec<Dim>,
        /// What they are ordered by.
        order: SampleOrder,
        /// The most rows wanted.
        limit: u32,
    },
    /// Per group over the whole window: the dimensions, `count`, `min`, `max`, `value`; ordered by `value`, then the dimensions.
    /// For `min`, `max` and `last` also `at`, the instant of that sample (the earliest, if several are equal).
    /// For what is told apart by series the same columns as [`Shape::Series`] without `bucket`, unordered by value: the reader ranks.
    Rank {
        /// The dimensions that tell groups apart; empty for one number over everything.
        group_by: Vec<Dim>,
        /// How samples are combined.
        aggregation: Aggregation,
        /// Which end comes first.
        order: Order,
        /// The most groups wanted.
        limit: u32,
    },
    /// The dataset's own rows in time order, with all their fields. Not for `metrics`.
    Rows {
        /// Which end of time comes first.
        order: Order,
        /// The most rows wanted.
        limit: u32,
    },
    /// Distinct combinations of dimensions: the dimensions, `count`, `first_time`, `last_time`.
    Distinct {
        /// The dimensions.
        of: Vec<Dim>,
        /// The most combinations wanted.
        limit: u32,
    },
    /// The keys of the labels that rows have: `key`, `count`, `first_time`, `last_time`. Not for `job_gpus`, which has no labels.
    LabelKeys {
        /// The most keys wanted.
        limit: u32,
    },
}
