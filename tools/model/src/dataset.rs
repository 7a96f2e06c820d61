//! The logical datasets, their dimensions, metric kinds, units and aggregations: closed vocabularies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A logical dataset; a mapping ties it to a physical table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dataset {
    /// Metric samples.
    Metrics,
    /// Log lines.
    Logs,
    /// Spans of traces.
    Spans,
    /// Alerts, deploys, driver upgrades, faults.
    Events,
    /// Jobs.
    Jobs,
    /// Which job held which GPU when.
    JobGpus,
}

impl Dataset {
    /// Every dataset.
    pub const ALL: [Self; 6] = [Self::Metrics, Self::Logs, Self::Spans, Self::Events, Self::Jobs, Self::JobGpus];

    /// Its name on the wire and in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Spans => "spans",
            Self::Events => "events",
            Self::Jobs => "jobs",
            Self::JobGpus => "job_gpus",
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A dimension to filter or group by: a column of a dataset, or a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dim {
    /// The tenant a row belongs to.
    Tenant,
    /// The cluster.
    Cluster,
    /// The stored metric name.
    Metric,
    /// The node.
    Node,
    /// The GPU's index on its node, as text.
    Gpu,
    /// The service.
    Service,
    /// A log line's severity.
    Severity,
    /// A log line's or event's text.
    Body,
    /// An event's or job's kind.
    Kind,
    /// A job's id.
    JobId,
    /// A job's name.
    Name,
    /// A job's user.
    User,
    /// A job's state.
    State,
    /// A GPU's UUID in `job_gpus`.
    GpuUuid,
    /// A rank in `job_gpus`, as text.
    Rank,
    /// An attempt in `job_gpus`, as text.
    Attempt,
    /// A span's pod.
    Pod,
    /// A span's operation.
    Operation,
    /// A span's trace.
    TraceId,
    /// A span's own id.
    SpanId,
    /// A span's parent.
    ParentId,
    /// Any other label, by its canonical or stored key.
    Label(String),
}

impl Dim {
    /// Its name in results, evidence and arguments.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tenant => "tenant",
            Self::Cluster => "cluster",
            Self::Metric => "metric",
            Self::Node => "node",
            Self::Gpu => "gpu",
            Self::Service => "service",
            Self::Severity => "severity",
            Self::Body => "body",
            Self::Kind => "kind",
            Self::JobId => "job_id",
            Self::Name => "name",
            Self::User => "user",
            Self::State => "state",
            Self::GpuUuid => "gpu_uuid",
            Self::Rank => "rank",
            Self::Attempt => "attempt",
            Self::Pod => "pod",
            Self::Operation => "operation",
            Self::TraceId => "trace_id",
            Self::SpanId => "span_id",
            Self::ParentId => "parent_id",
            Self::Label(key) => key,
        }
    }
}

/// What kind of number a metric is; it decides which aggregations make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// A level that goes up and down.
    Gauge,
    /// A total that only grows, until it is reset.
    Counter,
    /// A distribution in `_bucket` series with `le`, `_sum` and `_count`.
    Histogram,
    /// A code, bit mask, flag or label-only metric: values are names, not amounts.
    State,
}

impl MetricKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
            Self::State => "state",
        }
    }
}

/// How samples are combined within a time step or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// Arithmetic mean of the samples.
    Avg,
    /// Smallest sample.
    Min,
    /// Largest sample.
    Max,
    /// Sum of the samples.
    Sum,
    /// Number of samples.
    Count,
    /// The latest sample.
    Last,
    /// Population standard deviation.
    Stddev,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Increase of a counter per second, reset-aware.
    Rate,
    /// Increase of a counter, reset-aware.
    Increase,
    /// Mean over time: each sample counts for as long as it stood until the next one.
    TimeAvg,
    /// Share of time, 0 to 1, in which the latest sample lay above a threshold.
    FractionAbove,
    /// Share of time, 0 to 1, in which the latest sample lay below a threshold.
    FractionBelow,
}

impl Aggregation {
    /// Every aggregation.
    pub const ALL: [Self; 16] = [
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Count,
        Self::Last,
        Self::Stddev,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::Rate,
        Self::Increase,
        Self::TimeAvg,
        Self::FractionAbove,
        Self::FractionBelow,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
            Self::Count => "count",
            Self::Last => "last",
            Self::Stddev => "stddev",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Rate => "rate",
            Self::Increase => "increase",
            Self::TimeAvg => "time_avg",
            Self::FractionAbove => "fraction_above",
            Self::FractionBelow => "fraction_below",
        }
    }

    /// Whether it is defined within one series only, by what lies between its samples: growth, and what stood for how long.
    pub fn is_by_series(self) -> bool {
        match self {
            Self::Rate | Self::Increase | Self::TimeAvg | Self::FractionAbove | Self::FractionBelow => true,
            Self::Avg
            | Self::Min
            | Self::Max
            | Self::Sum
            | Self::Count
            | Self::Last
            | Self::Stddev
            | Self::P50
            | Self::P90
            | Self::P95
            | Self::P99 => false,
        }
    }

    /// Whether it is a share of time beyond a threshold, which it then needs.
    pub fn needs_threshold(self) -> bool {
        matches!(self, Self::FractionAbove | Self::FractionBelow)
    }

    /// The aggregation of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.as_str() == text)
    }
}

macro_rules! units {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $symbol:literal;)*) => {
        /// The unit of a number as it is stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Unit {
            $($(#[$doc])* $name,)*
        }

        impl Unit {
            /// Its name in data files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// What is printed behind a number; empty for plain counts.
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol,)* }
            }

            /// The unit of that name.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($wire => Some(Self::$name),)* _ => None }
            }
        }
    };
}

units! {
    /// A plain number.
    None = "none", "";
    /// A number of things.
    Count = "count", "";
    /// Things per second.
    PerSecond = "per_second", "/s";
    /// 0 to 100.
    Percent = "percent", "%";
    /// 0 to 1.
    Ratio = "ratio", "";
    /// Degrees Celsius.
    Celsius = "celsius", "°C";
    /// Watts.
    Watts = "watts", "W";
    /// Millijoules.
    Millijoules = "millijoules", "mJ";
    /// Joules.
    Joules = "joules", "J";
    /// Megahertz.
    Megahertz = "megahertz", "MHz";
    /// Hertz.
    Hertz = "hertz", "Hz";
    /// Bytes.
    Bytes = "bytes", "B";
    /// Mebibytes.
    Mebibytes = "mebibytes", "MiB";
    /// Gibibytes.
    Gibibytes = "gibibytes", "GiB";
    /// Bytes per second.
    BytesPerSecond = "bytes_per_second", "B/s";
    /// Megabytes per second.
    MegabytesPerSecond = "megabytes_per_second", "MB/s";
    /// Seconds.
    Seconds = "seconds", "s";
    /// Milliseconds.
    Milliseconds = "milliseconds", "ms";
    /// Microseconds.
    Microseconds = "microseconds", "µs";
    /// Nanoseconds.
    Nanoseconds = "nanoseconds", "ns";
    /// Tokens.
    Tokens = "tokens", "tokens";
    /// Tokens per second.
    TokensPerSecond = "tokens_per_second", "tokens/s";
    /// Requests.
    Requests = "requests", "requests";
    /// Requests per second.
    RequestsPerSecond = "requests_per_second", "requests/s";
    /// Samples per second.
    SamplesPerSecond = "samples_per_second", "samples/s";
    /// TFLOP/s.
    TeraflopsPerSecond = "teraflops_per_second", "TFLOP/s";
    /// PCIe or NVLink lanes.
    Lanes = "lanes", "lanes";
    /// A code such as an Xid.
    Code = "code", "";
    /// A mask of bits.
    Bitmask = "bitmask", "";
    /// 0 or 1.
    Boolean = "boolean", "";
    /// A time as seconds since 1970.
    UnixSeconds = "unix_seconds", "s since 1970";
}

impl Unit {
    /// The unit of this quantity per second, for the rate of a counter.
    pub fn per_second(self) -> Self {
        match self {
            Self::Bytes => Self::BytesPerSecond,
            Self::Tokens => Self::TokensPerSecond,
            Self::Requests => Self::RequestsPerSecond,
            // A counter of seconds grows by seconds per second: a share of time.
            Self::Seconds => Self::Ratio,
            Self::Joules => Self::Watts,
            Self::None
            | Self::Count
            | Self::PerSecond
            | Self::Percent
            | Self::Ratio
            | Self::Celsius
            | Self::Watts
            | Self::Millijoules
            | Self::Megahertz
            | Self::Hertz
            | Self::Mebibytes
            | Self::Gibibytes
            | Self::BytesPerSecond
            | Self::MegabytesPerSecond
            | Self::Milliseconds
            | Self::Microseconds
            | Self::Nanoseconds
            | Self::TokensPerSecond
            | Self::RequestsPerSecond
            | Self::SamplesPerSecond
            | Self::TeraflopsPerSecond
            | Self::Lanes
            | Self::Code
            | Self::Bitmask
            | Self::Boolean
            | Self::UnixSeconds => Self::PerSecond,
        }
    }
}
