//! Evidence: what a tool fetched, so that a reader can check every sentence against it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dataset::Unit;
use crate::id::{EvidenceId, QueryId};
use crate::rows::Labels;

/// What a series or row is about: canonical name to value, for example `node=atlas-n07, gpu=3`. Values are text.
pub type Entity = BTreeMap<String, String>;

/// What a query read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// Rows read from storage.
    pub rows: u64,
    /// Bytes read from storage.
    pub bytes: u64,
    /// Wall time at the engine and on the way, milliseconds.
    pub wall_ms: f64,
}

impl Read {
    /// Rows of a granule, ClickHouse's default. Rounding up to whole ones hides how full the last one is, and a query that read
    /// nothing counts as one, so that an index that spared it the granule does not show either.
    const GRANULE_ROWS: u64 = 8_192;

    /// The least that is shown of bytes: about a granule of the widest rows. Above it only powers of two are shown: how long the
    /// texts of a neighbour's rows are would show in anything finer.
    const LEAST_BYTES: u64 = 1024 * 1024;

    /// What one query read, as it is shown to whoever may not know how many rows others have: the engine reads whole granules, and
    /// a neighbour's rows lie in them. Each query is rounded by itself and sums are made of what is rounded: of a rounded sum the
    /// exact size of a small table could be found by adding to it, step by step, what is known.
    #[must_use]
    pub fn rounded(self) -> Self {
        let rows = self.rows.max(1).div_ceil(Self::GRANULE_ROWS).saturating_mul(Self::GRANULE_ROWS);
        let bytes = self.bytes.max(Self::LEAST_BYTES).checked_next_power_of_two().unwrap_or(u64::MAX);
        Self { rows, bytes, ..self }
    }
}

/// One time step of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The start of the step, or the sample's own time where nothing was combined.
    pub time: Timestamp,
    /// The value under the evidence's aggregation.
    pub value: f64,
    /// The smallest sample in the step.
    pub min: f64,
    /// The largest sample in the step.
    pub max: f64,
    /// How many samples the step holds; never 0 (a step without samples is no point).
    pub count: u64,
}

/// The statistics of a series or of all series of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Samples.
    pub count: u64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Mean, weighted by samples.
    pub mean: f64,
    /// Median of the points' values.
    pub median: f64,
    /// 95th percentile of the points' values.
    pub p95: f64,
    /// The first point's value.
    pub first: f64,
    /// The last point's value.
    pub last: f64,
}

/// Names of the statistics a fact may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stat {
    /// Samples.
    Count,
    /// Smallest sample.
    Min,
    /// Largest sample.
    Max,
    /// Mean weighted by samples.
    Mean,
    /// Median of the points.
    Median,
    /// 95th percentile of the points.
    P95,
    /// First point.
    First,
    /// Last point.
    Last,
    /// Sum of the points' values (an increase over the window, for a counter).
    Sum,
}

impl Stat {
    /// Every statistic.
    pub const ALL: [Self; 9] =
        [Self::Count, Self::Min, Self::Max, Self::Mean, Self::Median, Self::P95, Self::First, Self::Last, Self::Sum];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Median => "median",
            Self::P95 => "p95",
            Self::First => "first",
            Self::Last => "last",
            Self::Sum => "sum",
        }
    }

    /// The statistic of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

/// One series: an entity and its points in time order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is about.
    pub entity: Entity,
    /// Its points, ascending in time.
    pub points: Vec<Point>,
}

/// A row of a ranking or a list (jobs, log lines, events).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvidenceRow {
    /// What it is about.
    pub entity: Entity,
    /// Its value, for a ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its place in the ranking, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// When it happened, for a line or an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Further fields by name (`body`, `kind`, `state`, `start`, …). Untrusted text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub fields: BTreeMap<String, String>,
}

/// A stretch without samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Whose gap it is; empty when all series lack it.
    pub entity: Entity,
    /// From.
    pub from: Timestamp,
    /// To.
    pub to: Timestamp,
}

/// How much of what should be there was there. Missing is not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Samples expected from the series' own usual interval; none where it cannot be told.
    pub expected: Option<u64>,
    /// Samples seen.
    pub seen: u64,
    /// The first sample.
    pub first: Option<Timestamp>,
    /// The last sample.
    pub last: Option<Timestamp>,
    /// Gaps, longest first, at most a handful.
    pub gaps: Vec<Gap>,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its name within the answer, `E1`, `E2`, …; given by core when the answer is put together.
    pub id: EvidenceId,
    /// The tool that fetched it.
    pub tool: String,
    /// The dataset, or `knowledge`.
    pub dataset: String,
    /// The stored metric name.
    pub metric: Option<String>,
    /// The catalogue's name for it.
    pub canonical_metric: Option<String>,
    /// The filters it was fetched under, as labels.
    pub labels: Labels,
    /// The aggregation, for example `avg per 60 s`.
    pub aggregation: Option<String>,
    /// The unit of the values.
    pub unit: Unit,
    /// The fetched window's start.
    pub from: Timestamp,
    /// The fetched window's end, exclusive.
    pub to: Timestamp,
    /// The length of a time step, seconds; none for rows and rankings.
    pub step_seconds: Option<f64>,
    /// How many points the series hold in all.
    pub points: u64,
    /// Statistics over all series; none without points.
    pub stats: Option<Stats>,
    /// Rows of a ranking or a list, or one row a series (its mean) for a small set of series.
    pub rows: Vec<EvidenceRow>,
    /// The series themselves; left out of the answer's JSON, served at `/v1/evidence/{answer_id}.{id}`.
    #[serde(skip)]
    pub series: Vec<Series>,
    /// How complete it is.
    pub coverage: Coverage,
    /// How many rows or series exist.
    pub total: u64,
    /// How many are here.
    pub returned: u64,
    /// Whether something was cut.
    pub truncated: bool,
    /// What was read for it.
    pub read: Read,
    /// The engine's id of the query.
    pub query_id: Option<QueryId>,
    /// The SQL text that was sent.
    pub sql: Option<String>,
    /// Its parameters, name to the exact text sent.
    pub params: BTreeMap<String, String>,
    /// The knowledge entry, for dataset `knowledge`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry_id: Option<String>,
}
