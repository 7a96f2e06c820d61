//! Rows of this process, encoded for the product's tables.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use sightline_model::Dataset;
use sightline_model::rows::{EventRow, JobGpuRow, JobRow, Labels, LogRow, Rows, SpanRow};
use sightline_query::catalogue::{LabelAliases, is_blank};

use super::entities::{Entities, Origin, Scope, entities};
use super::row_binary as put;
use crate::native::OPEN_END_MS;

/// The most samples in one row of the intake table. The engine makes blocks of whole rows, so a row must stay small.
const SAMPLES_PER_RUN: usize = 512;

/// Encoded rows, to be inserted with [`super::insert_encoded`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedRows {
    pub(super) parts: BTreeMap<Dataset, Vec<u8>>,
    rows: BTreeMap<Dataset, u64>,
}

impl EncodedRows {
    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.parts.values().map(Vec::len).sum()
    }

    /// How many rows of each dataset it holds; samples count as rows.
    pub fn rows(&self) -> &BTreeMap<Dataset, u64> {
        &self.rows
    }

    fn part(&mut self, dataset: Dataset, rows: u64) -> &mut Vec<u8> {
        let count = self.rows.entry(dataset).or_default();
        *count = count.saturating_add(rows);
        self.parts.entry(dataset).or_default()
    }
}

/// Encodes rows as they are made. Does no I/O: take what is buffered now and then, and insert it.
#[derive(Clone, Debug)]
pub struct RowEncoder {
    aliases: LabelAliases,
    defaults: Scope,
    /// Labels of series recur with every metric and every hour.
    known: HashMap<Labels, Entities>,
    buffered: EncodedRows,
}

impl RowEncoder {
    /// An encoder that reads labels by these aliases.
    pub fn new(aliases: LabelAliases, defaults: Scope) -> Self {
        Self { aliases, defaults, known: HashMap::new(), buffered: EncodedRows::default() }
    }

    /// How many bytes wait to be taken.
    pub fn buffered_bytes(&self) -> usize {
        self.buffered.bytes()
    }

    /// Takes what was encoded so far.
    pub fn take(&mut self) -> EncodedRows {
        std::mem::take(&mut self.buffered)
    }

    /// Adds samples of one series, as milliseconds since 1970 and value. Missing samples (not finite, or DCGM's sentinels) are
    /// left out.
    pub fn series(&mut self, metric: &str, labels: &Labels, samples: impl IntoIterator<Item = (i64, f64)>) {
        if !self.known.contains_key(labels) {
            let read = entities(&self.aliases, &self.defaults, labels, Origin::Scraped);
            self.known.insert(labels.clone(), read);
        }
        let Some(Entities { tenant, cluster, node, gpu, service, pod: _, labels }) = self.known.get(labels) else {
            return;
        };
        let dcgm = metric.starts_with("DCGM_");
        let mut present =
            samples.into_iter().filter(|(_, value)| value.is_finite() && !(dcgm && is_blank(*value))).peekable();
        while present.peek().is_some() {
            let run: Vec<(i64, f64)> = present.by_ref().take(SAMPLES_PER_RUN).collect();
            let out = self.buffered.part(Dataset::Metrics, run.len() as u64);
            for column in [tenant, cluster, metric, node, gpu, service] {
                put::text(out, column);
            }
            put::labels(out, labels);
            put::length(out, run.len());
            for (time, _) in &run {
                put::int64(out, *time);
            }
            put::length(out, run.len());
            for (_, value) in &run {
                put::float64(out, *value);
            }
        }
    }

    /// Adds log lines.
    pub fn logs(&mut self, rows: &[LogRow]) {
        for LogRow { time, severity, service, labels, body } in rows {
            let row = self.written(labels);
            let out = self.buffered.part(Dataset::Logs, 1);
            let service = if service.is_empty() { &row.service } else { service };
            for column in [&row.tenant, &row.cluster, &row.node, &row.gpu, service, severity] {
                put::text(out, column);
            }
            put::labels(out, &row.labels);
            put::nanos(out, *time);
            put::text(out, body);
        }
    }

    /// Adds spans.
    pub fn spans(&mut self, rows: &[SpanRow]) {
        for SpanRow { time, duration_us, trace_id, span_id, parent_id, service, pod, operation, labels } in rows {
            let row = self.written(labels);
            let out = self.buffered.part(Dataset::Spans, 1);
            let service = if service.is_empty() { &row.service } else { service };
            let pod = if pod.is_empty() { &row.pod } else { pod };
            for column in [&row.tenant, &row.cluster, &row.node, service, pod, operation] {
                put::text(out, column);
            }
            put::labels(out, &row.labels);
            put::nanos(out, *time);
            put::int64(out, *duration_us);
            for column in [trace_id, span_id, parent_id] {
                put::text(out, column);
            }
        }
    }

    /// Adds events.
    pub fn events(&mut self, rows: &[EventRow]) {
        for EventRow { time, kind, labels, body } in rows {
            let row = self.written(labels);
            let out = self.buffered.part(Dataset::Events, 1);
            for column in [&row.tenant, &row.cluster, &row.node, &row.gpu, &row.service, kind] {
                put::text(out, column);
            }
            put::labels(out, &row.labels);
            put::millis(out, *time);
            put::text(out, body);
        }
    }

    /// Adds jobs.
    pub fn jobs(&mut self, rows: &[JobRow]) {
        for JobRow { job_id, name, tenant, cluster, user, kind, state, submit, start, end, labels } in rows {
            let row = self.written(labels);
            let out = self.buffered.part(Dataset::Jobs, 1);
            let tenant = if tenant.is_empty() { &row.tenant } else { tenant };
            let cluster = if cluster.is_empty() { &row.cluster } else { cluster };
            for column in [tenant, cluster, job_id, name, user, kind, state] {
                put::text(out, column);
            }
            put::labels(out, &row.labels);
            put::millis(out, *submit);
            put::millis(out, *start);
            end_time(out, *end);
        }
    }

    /// Adds GPU intervals; their tenant and cluster must be filled in, else they get the defaults.
    pub fn job_gpus(&mut self, rows: &[JobGpuRow]) {
        for JobGpuRow { job_id, tenant, cluster, attempt, node, gpu, gpu_uuid, rank, start, end } in rows {
            let defaults = &self.defaults;
            let tenant = if tenant.is_empty() { &defaults.tenant } else { tenant };
            let cluster = if cluster.is_empty() { &defaults.cluster } else { cluster };
            let out = self.buffered.part(Dataset::JobGpus, 1);
            for column in [tenant, cluster, job_id] {
                put::text(out, column);
            }
            put::uint32(out, *attempt);
            for column in [node, gpu, gpu_uuid] {
                put::text(out, column);
            }
            put::uint32(out, *rank);
            put::millis(out, *start);
            end_time(out, *end);
        }
    }

    /// Adds all rows of a bundle. GPU intervals without a tenant or cluster take those of the job of that id, if it is the only
    /// one.
    pub fn rows(&mut self, rows: &Rows) {
        let mut series: BTreeMap<(&str, &Labels), Vec<(i64, f64)>> = BTreeMap::new();
        for row in &rows.metrics {
            let samples = series.entry((row.metric.as_str(), &row.labels)).or_default();
            samples.push((row.time.as_millisecond(), row.value));
        }
        for ((metric, labels), samples) in series {
            self.series(metric, labels, samples);
        }
        self.logs(&rows.logs);
        self.spans(&rows.spans);
        self.events(&rows.events);
        self.jobs(&rows.jobs);
        let mut jobs: HashMap<&str, Option<&JobRow>> = HashMap::new();
        for job in &rows.jobs {
            // Two jobs of one id: neither may lend its tenant.
            jobs.entry(&job.job_id).and_modify(|known| *known = None).or_insert(Some(job));
        }
        let filled: Vec<JobGpuRow> = rows
            .job_gpus
            .iter()
            .map(|held| with_scope_of(held, jobs.get(held.job_id.as_str()).copied().flatten()))
            .collect();
        self.job_gpus(&filled);
    }

    fn written(&self, labels: &Labels) -> Entities {
        entities(&self.aliases, &self.defaults, labels, Origin::Written)
    }
}

fn with_scope_of(held: &JobGpuRow, job: Option<&JobRow>) -> JobGpuRow {
    let mut filled = held.clone();
    if let Some(job) = job {
        if filled.tenant.is_empty() {
            filled.tenant.clone_from(&job.tenant);
        }
        if filled.cluster.is_empty() {
            filled.cluster.clone_from(&job.cluster);
        }
    }
    filled
}

fn end_time(out: &mut Vec<u8>, end: Option<Timestamp>) {
    put::int64(out, end.map_or(OPEN_END_MS, Timestamp::as_millisecond));
}
