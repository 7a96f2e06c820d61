//! Rows of a recorded incident as they are ingested: what the generator makes, what the bundle files hold.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Labels of one row, canonical or as they were scraped.
pub type Labels = BTreeMap<String, String>;

/// One sample of one metric series.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRow {
    /// When it was sampled, millisecond precision.
    pub time: Timestamp,
    /// The stored metric name, for example `DCGM_FI_DEV_GPU_TEMP`.
    pub metric: String,
    /// The labels as scraped, with `tenant` and `cluster` among them.
    pub labels: Labels,
    /// The sample; never NaN for a missing sample (a missing sample is no row).
    pub value: f64,
}

/// One log line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRow {
    /// When it was written, nanosecond precision.
    pub time: Timestamp,
    /// Severity as written, for example `error`.
    pub severity: String,
    /// The writing service, for example `kernel`.
    pub service: String,
    /// Further labels (`node`, `tenant`, `cluster`, …).
    pub labels: Labels,
    /// The line itself: untrusted text.
    pub body: String,
}

/// One span of a distributed trace.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanRow {
    /// When it began, nanosecond precision.
    pub time: Timestamp,
    /// How long it took, microseconds.
    pub duration_us: i64,
    /// The trace.
    pub trace_id: String,
    /// This span.
    pub span_id: String,
    /// The span it belongs to; empty for a root.
    pub parent_id: String,
    /// The service that did the work.
    pub service: String,
    /// The pod it ran in.
    pub pod: String,
    /// What it did.
    pub operation: String,
    /// Further labels.
    pub labels: Labels,
}

/// An alert, deploy, driver upgrade, fault and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// When it happened, millisecond precision.
    pub time: Timestamp,
    /// `alert`, `deploy`, `driver_upgrade`, `config`, `scale`, `preemption`, `fault`, `maintenance`, or another word.
    pub kind: String,
    /// What it is about (`node`, `service`, `job`, …).
    pub labels: Labels,
    /// One line of text: untrusted.
    pub body: String,
}

/// One job as the scheduler knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// The scheduler's id, for example `J123`.
    pub job_id: String,
    /// The name its user gave it.
    pub name: String,
    /// Whose it is.
    pub tenant: String,
    /// Where it runs.
    pub cluster: String,
    /// Who submitted it.
    pub user: String,
    /// `training`, `inference`, `batch`, …
    pub kind: String,
    /// `pending`, `running`, `completed`, `failed`, `cancelled`, …
    pub state: String,
    /// When it was submitted.
    pub submit: Timestamp,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; none while it runs.
    pub end: Option<Timestamp>,
    /// Further labels (framework, model, image, …).
    pub labels: Labels,
}

/// One GPU held by one attempt of one job over an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct JobGpuRow {
    /// The job.
    pub job_id: String,
    /// Whose it is; filled from the job where the file has none.
    pub tenant: String,
    /// Where it runs; filled from the job where the file has none.
    pub cluster: String,
    /// The attempt, from 0.
    pub attempt: u32,
    /// The node's name.
    pub node: String,
    /// The GPU's index on the node, as text.
    pub gpu: String,
    /// The GPU's UUID.
    pub gpu_uuid: String,
    /// The rank that ran on it.
    pub rank: u32,
    /// From when.
    pub start: Timestamp,
    /// Until when; none while it runs.
    pub end: Option<Timestamp>,
}

/// All rows of a bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Metric samples.
    pub metrics: Vec<MetricRow>,
    /// Log lines.
    pub logs: Vec<LogRow>,
    /// Spans.
    pub spans: Vec<SpanRow>,
    /// Events.
    pub events: Vec<EventRow>,
    /// Jobs.
    pub jobs: Vec<JobRow>,
    /// GPU intervals of jobs.
    pub job_gpus: Vec<JobGpuRow>,
}
