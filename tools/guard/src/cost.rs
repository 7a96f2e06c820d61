//! What a query is expected to read, before it runs.

use jiff::Timestamp;
use sightline_model::{Dataset, Dim};
use sightline_policies::Limits;
use sightline_query::{Filter, Match, Output, ValidQuery};

/// The finest data that is designed for: one sample a second of each GPU.
const FINEST_SAMPLE_MS: u64 = 1000;
/// The most GPUs of one node; eight is usual, and the largest single hosts have sixteen.
const GPUS_PER_NODE: u64 = 16;
/// The engine is asked for an estimate when a bound may be used to more than one part in this many.
const WORTH_ASKING: u64 = 10;

/// What is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Rows.
    pub rows: u64,
    /// Bytes, as the engine counts them: columns in memory, not on disk.
    pub bytes: u64,
}

impl Estimate {
    /// So many rows of this query, and the bytes they take.
    pub fn of_rows(query: &ValidQuery, rows: u64) -> Self {
        Self { rows, bytes: rows.saturating_mul(row_bytes(query)) }
    }

    /// An upper bound that needs no engine: named series, each with the finest samples over the whole window.
    ///
    /// None when the query does not name its series. A GPU may have several series of one metric (one a link, for example), so a
    /// query can read more than this: the bounds that the engine keeps are what holds, this only saves asking it.
    pub fn upper_bound(query: &ValidQuery) -> Option<Self> {
        if query.dataset() != Dataset::Metrics {
            return None;
        }
        // Several metrics are as many series of each place as there are names.
        let metrics = match query.metric() {
            Some(_) => 1,
            None => length(query.filters().iter().find_map(|filter| listed(filter, &Dim::Metric))?),
        };
        let samples = u64::try_from(query.range().millis()).unwrap_or(0).div_ceil(FINEST_SAMPLE_MS);
        Some(Self::of_rows(query, named_series(query)?.saturating_mul(metrics).saturating_mul(samples)))
    }

    /// The bytes to set aside for a query of which only this bound is known: ten times as many. Under that bound the engine is not
    /// asked while ten times of it fit in every bound, which leaves room for the series that a GPU has of one metric (one a link, or
    /// one a spelling of the metric's name, of which nobody knows how many are stored). What is set aside has the same room, so that a
    /// cancelled query does not read more than it is charged for; what is not read comes back.
    pub fn bytes_to_reserve(self) -> u64 {
        self.bytes.saturating_mul(WORTH_ASKING)
    }

    /// Whether this much, or an unknown amount, comes so near to a bound that the engine should be asked first.
    pub fn is_worth_asking(bound: Option<Self>, limits: &Limits, left: Option<BytesLeft>) -> bool {
        let Some(Self { rows, bytes }) = bound else { return true };
        let bytes_bound = left.map_or(limits.max_bytes_read, |left| left.bytes.min(limits.max_bytes_read));
        rows > limits.max_rows_read / WORTH_ASKING || bytes > bytes_bound / WORTH_ASKING
    }
}

/// What is left of a day's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesLeft {
    /// How many.
    pub bytes: u64,
    /// When the next day's budget begins.
    pub resets: Timestamp,
}

/// How many series a query names: its (node, gpu) pairs, or the nodes and GPUs of its filters.
fn named_series(query: &ValidQuery) -> Option<u64> {
    if let Some(pairs) = query.placement() {
        return Some(length(pairs.len()));
    }
    let named = |dim: &Dim| query.filters().iter().find_map(|filter| listed(filter, dim)).map(length);
    let nodes = named(&Dim::Node)?;
    Some(nodes.saturating_mul(named(&Dim::Gpu).unwrap_or(GPUS_PER_NODE)))
}

/// How many values a filter lists for a dimension, if it lists any.
pub(crate) fn listed(filter: &Filter, wanted: &Dim) -> Option<usize> {
    match filter {
        Filter::Dim { dim, matches } if dim == wanted => match matches {
            Match::Eq(_) => Some(1),
            Match::In(values) => Some(values.len()),
            Match::NotEq(_)
            | Match::NotIn(_)
            | Match::Contains(_)
            | Match::ContainsFold(_)
            | Match::Prefix(_)
            | Match::Regex(_)
            | Match::Present
            | Match::Absent => None,
        },
        Filter::Dim { .. } | Filter::Value { .. } => None,
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Bytes that one row of this query takes when it is read.
///
/// Measured as `read_bytes / read_rows` over what the tools asked of the demo fleet (256 GPUs, 14 million samples), the largest of
/// each kind rounded up, so that a window suggested because of them fits in truth. What makes rows wide is text, so rows whose labels
/// or bodies are read count apart: metrics 21 and 242, logs and events 13 and 76, jobs 140, GPU intervals 75. No tool reads spans
/// yet; they are taken to be as wide as jobs.
pub(crate) fn row_bytes(query: &ValidQuery) -> u64 {
    row_bytes_of(query.dataset(), reads_text(query))
}

/// The same where only the dataset is known: as if its texts were read.
pub(crate) fn row_bytes_at_most(dataset: Dataset) -> u64 {
    row_bytes_of(dataset, true)
}

fn row_bytes_of(dataset: Dataset, with_text: bool) -> u64 {
    match dataset {
        Dataset::Metrics if with_text => 250,
        Dataset::Metrics => 24,
        Dataset::Logs | Dataset::Events if with_text => 80,
        Dataset::Logs | Dataset::Events => 16,
        Dataset::Jobs | Dataset::Spans => 150,
        Dataset::JobGpus => 80,
    }
}

/// Whether labels or bodies are put out or asked about.
fn reads_text(query: &ValidQuery) -> bool {
    let wide = |dim: &Dim| matches!(dim, Dim::Label(_) | Dim::Body);
    let put_out = query.outputs().iter().any(|column| match &column.output {
        Output::Dim(dim) => wide(dim),
        Output::Labels | Output::LabelKey => true,
        Output::Bucket { .. }
        | Output::Time
        | Output::EndTime
        | Output::SubmitTime
        | Output::DurationMicros
        | Output::Value
        | Output::Count
        | Output::Min
        | Output::Max
        | Output::Avg
        | Output::Sum
        | Output::Stddev
        | Output::Quantile(_)
        | Output::First
        | Output::Last
        | Output::Rise
        | Output::Held(_)
        | Output::MinTime
        | Output::MaxTime
        | Output::FirstTime
        | Output::LastTime => false,
    });
    let asked = query.filters().iter().any(|filter| match filter {
        Filter::Dim { dim, .. } => wide(dim),
        Filter::Value { .. } => false,
    });
    put_out || asked
}
