//! Five tenants beside each other in every table. Each has a word of its own in every text and a number of its own in every sample; no
//! two words share a letter, nor does the word of nobody, so that none is nearer to another's names than the rest.

use jiff::{Timestamp, ToSpan as _};
use sightline_model::rows::{EventRow, JobGpuRow, JobRow, Labels, LogRow, MetricRow, Rows, SpanRow};

/// The tenants: their words are their names.
pub(crate) const TENANTS: [&str; 5] = ["xqaj", "zvku", "wgpb", "yhfc", "rdtm"];
/// As long, and nobody's.
pub(crate) const NOBODY: &str = "nlos";
/// When it is asked.
pub(crate) const NOW: &str = "2025-06-02T10:00:00Z";

/// The digits with which every number of a tenant begins.
pub(crate) fn digits(tenant: &str) -> &'static str {
    let at = TENANTS.iter().position(|known| *known == tenant).unwrap();
    ["3141592", "2718281", "1414213", "1732050", "1618033"][at]
}

pub(crate) fn node(tenant: &str) -> String {
    format!("{tenant}-n1")
}

pub(crate) fn job(tenant: &str) -> String {
    format!("{tenant}-run-7")
}

fn labels(tenant: &str, more: &[(&str, &str)]) -> Labels {
    let own = [
        ("tenant", tenant.to_owned()),
        ("cluster", format!("{tenant}-east")),
        ("Hostname", node(tenant)),
        ("node", node(tenant)),
        ("image", tenant.to_owned()),
        ("pod", format!("{tenant}-pod")),
        ("model", format!("{tenant}-model")),
        ("rack", format!("{tenant}-rack")),
        ("service", format!("{tenant}-service")),
    ];
    own.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        .collect()
}

/// The rows of one tenant; `many` times as many lines, jobs and series, for a neighbour that grows.
pub(crate) fn rows_of(tenant: &str, many: usize) -> Rows {
    let mut rows = Rows::default();
    let from: Timestamp = "2025-06-02T08:00:00Z".parse().unwrap();
    let now: Timestamp = NOW.parse().unwrap();
    let number: f64 = format!("{}123", digits(tenant)).parse().unwrap();
    for copy in 0..many {
        let gpus = [2 * copy, 2 * copy + 1].map(|gpu| gpu.to_string());
        let job_id = if copy == 0 { job(tenant) } else { format!("{tenant}-run-7{copy}") };
        rows.jobs.push(JobRow {
            job_id: job_id.clone(),
            name: format!("{tenant}-pretrain"),
            tenant: tenant.to_owned(),
            cluster: format!("{tenant}-east"),
            user: format!("{tenant}-user"),
            kind: "training".to_owned(),
            state: "running".to_owned(),
            submit: from,
            start: from,
            end: None,
            labels: labels(tenant, &[]),
        });
        for (rank, gpu) in (0_u32..).zip(&gpus) {
            rows.job_gpus.push(JobGpuRow {
                job_id: job_id.clone(),
                tenant: tenant.to_owned(),
                cluster: format!("{tenant}-east"),
                attempt: 0,
                node: node(tenant),
                gpu: gpu.clone(),
                gpu_uuid: format!("GPU-{tenant}-{gpu}"),
                rank,
                start: from,
                end: None,
            });
        }
        let mut time = from;
        while time < now {
            for gpu in &gpus {
                for metric in [
                    "DCGM_FI_DEV_GPU_TEMP",
                    "DCGM_FI_DEV_SM_CLOCK",
                    "DCGM_FI_DEV_POWER_USAGE",
                    &format!("{tenant}_metric"),
                ] {
                    let labels = labels(tenant, &[("gpu", gpu)]);
                    rows.metrics.push(MetricRow { time, metric: metric.to_owned(), labels, value: number });
                }
            }
            let labels = labels(tenant, &[]);
            let body = format!("{tenant} NVRM: Xid 79");
            rows.logs.push(LogRow {
                time,
                severity: "error".to_owned(),
                service: format!("{tenant}-service"),
                labels: labels.clone(),
                body: body.clone(),
            });
            rows.events.push(EventRow { time, kind: format!("{tenant}-kind"), labels: labels.clone(), body });
            rows.spans.push(SpanRow {
                time,
                duration_us: 1_000,
                trace_id: format!("{tenant}-trace"),
                span_id: format!("{tenant}-span"),
                parent_id: String::new(),
                service: format!("{tenant}-service"),
                pod: format!("{tenant}-pod"),
                operation: format!("{tenant}-operation"),
                labels,
            });
            time = time.checked_add(5.minutes()).unwrap();
        }
    }
    rows
}

pub(crate) fn add(rows: &mut Rows, more: Rows) {
    let Rows { metrics, logs, spans, events, jobs, job_gpus } = more;
    rows.metrics.extend(metrics);
    rows.logs.extend(logs);
    rows.spans.extend(spans);
    rows.events.extend(events);
    rows.jobs.extend(jobs);
    rows.job_gpus.extend(job_gpus);
}
