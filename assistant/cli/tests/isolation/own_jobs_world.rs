//! One tenant, one node, two users: Ann's GPUs are another's before and after, beside them runs Bob's job, and in another cluster a node
//! and a job go by the same names. What is not Ann's carries a word or a number that must never reach her.

use jiff::{Timestamp, ToSpan as _};
use sightline_model::rows::{EventRow, JobGpuRow, JobRow, Labels, LogRow, MetricRow, Rows, SpanRow};

/// Stands in every text that is not Ann's.
pub(crate) const FOREIGN: &str = "zyzzyva";
/// How every number begins that is not Ann's.
pub(crate) const FOREIGN_DIGITS: &str = "7919191";
const FOREIGN_NUMBER: f64 = 7_919_191_123.0;
/// Stands in every line that is Ann's.
pub(crate) const OWN: &str = "annsline";

pub(crate) const OWN_JOB: &str = "J1001";
pub(crate) const BOBS_JOB: &str = "J1002";
/// As long as the others, and nobody's.
pub(crate) const NO_JOB: &str = "J1009";

/// When it is asked.
pub(crate) const NOW: &str = "2025-06-02T10:00:00Z";
/// While it ran.
const OWN_TIME: (&str, &str) = ("2025-06-02T08:00:00Z", "2025-06-02T09:00:00Z");
/// Samples of one metric that are Ann's: two GPUs for an hour, every 30 s.
pub(crate) const OWN_SAMPLES: u64 = 240;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn labels(cluster: &str, more: &[(&str, &str)]) -> Labels {
    let own = [("tenant", "atlas"), ("cluster", cluster)];
    own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn rows() -> Rows {
    let mut rows = Rows::default();
    jobs(&mut rows);
    samples(&mut rows);
    lines(&mut rows);
    rows
}

/// Whose, which, where, from, until, on which GPUs.
type JobOf = (&'static str, &'static str, &'static str, &'static str, Option<&'static str>, &'static [&'static str]);

fn jobs(rows: &mut Rows) {
    let jobs: [JobOf; 5] = [
        ("ann", OWN_JOB, "east", OWN_TIME.0, Some(OWN_TIME.1), &["0", "1"]),
        ("bob", BOBS_JOB, "east", OWN_TIME.0, Some("2025-06-02T09:30:00Z"), &["2", "3"]),
        ("bob", "J1003", "east", OWN_TIME.1, None, &["0"]),
        ("bob", "J1000", "east", "2025-06-02T07:00:00Z", Some(OWN_TIME.0), &["0", "1"]),
        ("bob", OWN_JOB, "west", OWN_TIME.0, Some(OWN_TIME.1), &["0", "7"]),
    ];
    for (user, id, cluster, from, until, gpus) in jobs {
        let word = if user == "ann" { "ann" } else { FOREIGN };
        rows.jobs.push(JobRow {
            job_id: id.to_owned(),
            name: format!("{word}-pretrain"),
            tenant: "atlas".to_owned(),
            cluster: cluster.to_owned(),
            user: user.to_owned(),
            kind: "training".to_owned(),
            state: if until.is_some() { "completed" } else { "running" }.to_owned(),
            submit: at(from),
            start: at(from),
            end: until.map(at),
            labels: labels(cluster, &[("image", word)]),
        });
        for (rank, gpu) in (0_u32..).zip(gpus) {
            rows.job_gpus.push(JobGpuRow {
                job_id: id.to_owned(),
                tenant: "atlas".to_owned(),
                cluster: cluster.to_owned(),
                attempt: 0,
                node: "n1".to_owned(),
                gpu: (*gpu).to_owned(),
                gpu_uuid: format!("GPU-{word}-{gpu}"),
                rank,
                start: at(from),
                end: until.map(at),
            });
        }
    }
}

fn samples(rows: &mut Rows) {
    let gpu_metrics =
        ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL"];
    let (own_from, own_to) = (at(OWN_TIME.0), at(OWN_TIME.1));
    let mut time = at("2025-06-02T07:00:00Z");
    while time < at(NOW) {
        for cluster in ["east", "west"] {
            for gpu in ["0", "1", "2", "3"] {
                let is_own = cluster == "east" && matches!(gpu, "0" | "1") && own_from <= time && time < own_to;
                let word = if is_own { "ann" } else { FOREIGN };
                for metric in gpu_metrics {
                    let labels = labels(cluster, &[("Hostname", "n1"), ("gpu", gpu), ("image", word)]);
                    let value = if is_own { 60.0 } else { FOREIGN_NUMBER };
                    rows.metrics.push(MetricRow { time, metric: metric.to_owned(), labels, value });
                }
            }
            // Of the node as a whole: everybody's on it.
            let labels = labels(cluster, &[("Hostname", "n1"), ("image", FOREIGN)]);
            let metric = "node_memory_MemAvailable_bytes".to_owned();
            rows.metrics.push(MetricRow { time, metric, labels, value: FOREIGN_NUMBER });
        }
        time = time.checked_add(30.seconds()).unwrap();
    }
    let (metric, labels) = (format!("{FOREIGN}_metric"), labels("east", &[("Hostname", "n1"), ("gpu", "2")]));
    rows.metrics.push(MetricRow { time: own_from, metric, labels, value: FOREIGN_NUMBER });
}

fn lines(rows: &mut Rows) {
    let during = "2025-06-02T08:30:00Z";
    // When, where, the GPU, the job, and whether it is Ann's.
    let lines = [
        (during, "east", Some("0"), None, true),
        (during, "east", None, Some(OWN_JOB), true),
        (during, "east", Some("2"), None, false),
        (during, "east", Some("2"), Some(BOBS_JOB), false),
        (during, "east", None, None, false),
        (during, "west", Some("0"), None, false),
        (during, "west", None, Some(OWN_JOB), false),
        ("2025-06-02T07:30:00Z", "east", Some("0"), None, false),
        (OWN_TIME.1, "east", Some("0"), None, false),
        (OWN_TIME.1, "east", None, Some(OWN_JOB), false),
    ];
    for (time, cluster, gpu, job, is_own) in lines {
        let time = at(time);
        let word = if is_own { OWN } else { FOREIGN };
        let mut labels = labels(cluster, &[("node", "n1"), ("image", word)]);
        labels.extend(gpu.map(|gpu| ("gpu".to_owned(), gpu.to_owned())));
        labels.extend(job.map(|job| ("job_id".to_owned(), job.to_owned())));
        let body = format!("{word} NVRM: Xid 79");
        rows.logs.push(LogRow {
            time,
            severity: "error".to_owned(),
            service: word.to_owned(),
            labels: labels.clone(),
            body: body.clone(),
        });
        rows.events.push(EventRow { time, kind: "fault".to_owned(), labels: labels.clone(), body });
        rows.spans.push(SpanRow {
            time,
            duration_us: 1_000,
            trace_id: format!("{word}-trace"),
            span_id: format!("{word}-span"),
            parent_id: String::new(),
            service: word.to_owned(),
            pod: format!("{word}-pod"),
            operation: word.to_owned(),
            labels,
        });
    }
}
