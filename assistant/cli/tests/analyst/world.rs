//! One small fleet's hour, made once and written twice: as rows of the product and as rows of the corpus' own tables.

use jiff::Timestamp;
use sightline_model::rows::{EventRow, JobRow, Labels, LogRow, MetricRow, Rows};

/// The asker's tenant, and another one in the same tables.
pub(crate) const TENANTS: [&str; 2] = ["tenant-a", "tenant-b"];
/// Stands in every text of the other tenant's rows.
pub(crate) const CANARY: &str = "zyzzyva";
/// 2026-01-01T00:00:00Z, milliseconds.
pub(crate) const FROM: i64 = 1_767_225_600_000;
const HOUR: i64 = 3_600_000;
const GPUS: i64 = 8;
/// Series begin so far apart that no two samples share an instant: what the originals order by time is then told apart.
const APART: i64 = 97;

/// A sample as both sides get it.
pub(crate) struct Sample {
    pub(crate) tenant: &'static str,
    pub(crate) place: Place,
    pub(crate) gpu: i64,
    pub(crate) job: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) at: i64,
    pub(crate) value: f64,
    pub(crate) labels: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) cluster: &'static str,
    pub(crate) node: &'static str,
}

pub(crate) struct Line {
    pub(crate) tenant: &'static str,
    pub(crate) place: Place,
    pub(crate) at: i64,
    pub(crate) severity: &'static str,
    pub(crate) body: String,
    pub(crate) attrs: Vec<(&'static str, String)>,
}

pub(crate) struct Happening {
    pub(crate) tenant: &'static str,
    pub(crate) place: Place,
    pub(crate) at: i64,
    pub(crate) kind: &'static str,
    /// 0 for what is no Xid.
    pub(crate) xid: i64,
    pub(crate) message: String,
}

pub(crate) struct Job {
    pub(crate) tenant: &'static str,
    pub(crate) id: String,
    pub(crate) user: &'static str,
    pub(crate) queue: &'static str,
    pub(crate) state: &'static str,
    pub(crate) gpus: i64,
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
}

/// Everything, of both tenants.
pub(crate) struct World {
    pub(crate) samples: Vec<Sample>,
    pub(crate) lines: Vec<Line>,
    pub(crate) happenings: Vec<Happening>,
    pub(crate) jobs: Vec<Job>,
}

/// SplitMix64: the same world every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

const PLACES: [Place; 5] = [
    Place { cluster: "east", node: "a1" },
    Place { cluster: "east", node: "a2" },
    Place { cluster: "west", node: "a3" },
    Place { cluster: "west", node: "a4" },
    Place { cluster: "west", node: "a5" },
];
const JOBS: [&str; 5] = ["J120", "J120", "J121", "J122", "J99"];
const OPERATIONS: [&str; 4] = ["AllReduce", "AllGather", "AllReduce", "ReduceScatter"];

/// A metric: how often it is sampled, on how many nodes and GPUs, between which values.
const METRICS: [(&str, i64, usize, i64, f64, f64); 10] = [
    ("gpu_util", 60_000, 5, GPUS, 0.0, 100.0),
    ("gpu_temp", 120_000, 5, GPUS, 35.0, 88.0),
    ("gpu_power_w", 120_000, 4, GPUS, 120.0, 690.0),
    ("gpu_mem_used", 300_000, 5, GPUS, 2.0, 79.0),
    ("latency_ms", 60_000, 3, 1, 5.0, 250.0),
    ("step_time", 120_000, 4, 1, 0.8, 2.4),
    ("rx_bytes", 300_000, 4, 1, 1e8, 9e8),
    ("tx_bytes", 300_000, 4, 1, 1e8, 9e8),
    ("nccl_time_ms", 300_000, 4, 1, -4.0, 30.0),
    ("rare_errors", 900_000, 1, 1, 1.0, 3.0),
];

pub(crate) fn build() -> World {
    let mut random = Random(7);
    let mut world = World { samples: Vec::new(), lines: Vec::new(), happenings: Vec::new(), jobs: Vec::new() };
    for tenant in TENANTS {
        samples(tenant, &mut random, &mut world.samples);
        lines(tenant, &mut random, &mut world.lines);
        happenings(tenant, &mut random, &mut world.happenings);
        jobs(tenant, &mut random, &mut world.jobs);
    }
    world
}

/// Samples that belong to no node, written after the rest: the originals count them under a node without a name.
pub(crate) fn without_node() -> World {
    let place = Place { cluster: "east", node: "" };
    let sample = |beat: i64| Sample {
        tenant: TENANTS[0],
        place,
        gpu: 0,
        job: "J120",
        metric: "gpu_util",
        at: FROM + 90_013 + beat * 20_000,
        value: 3.5 * beat as f64,
        labels: Vec::new(),
    };
    World { samples: (0..40).map(sample).collect(), lines: Vec::new(), happenings: Vec::new(), jobs: Vec::new() }
}

fn samples(tenant: &'static str, random: &mut Random, all: &mut Vec<Sample>) {
    let mut series = 0;
    for (metric, step, nodes, gpus, low, high) in METRICS {
        for (index, place) in PLACES.iter().enumerate().take(nodes) {
            for gpu in 0..gpus {
                series += 1;
                let mut labels = Vec::new();
                // Only some series have a pod, so that what has none can be asked for.
                if index < 3 {
                    labels.push(("pod", format!("{}pod-{}-{}", mark(tenant), place.node, gpu % 3)));
                }
                if metric == "nccl_time_ms" {
                    labels.push(("nccl_op", OPERATIONS[index].to_owned()));
                }
                // A little before and after the hour too: the window's ends must cut them off.
                for beat in -2..=(HOUR / step + 1) {
                    let at = beat * step + series * APART;
                    let value = random.between(low, high * (1.0 - 0.07 * index as f64));
                    // Four minutes in which nothing reports, and a node that falls silent.
                    let silent = (1_800_000..2_040_000).contains(&at) || (index == 4 && at > 2_700_000);
                    if !silent {
                        let value = if tenant == TENANTS[0] { value } else { value + 7777.0 };
                        let (place, job, labels) = (*place, JOBS[index], labels.clone());
                        all.push(Sample { tenant, place, gpu, job, metric, at: FROM + at, value, labels });
                    }
                }
            }
        }
    }
}

fn mark(tenant: &str) -> String {
    if tenant == TENANTS[0] { String::new() } else { format!("{CANARY} ") }
}

/// What is written, how severe it is, and how many lines of a hundred begin so.
fn bodies() -> Vec<(String, &'static str)> {
    let long = format!("worker loop {}", "x".repeat(220));
    [
        ("NVRM: Xid (PCI:0000:0f:00): 79, pid=1234, name=python, GPU has fallen off the bus.", "ERROR"),
        ("NVRM: xid counters read", "INFO"),
        ("XidX is no token and NvXid neither", "INFO"),
        ("read Xid_count=3", "WARN"),
        ("NCCL WARN NET/IB : Got completion with error 12", "WARN"),
        ("nccl warn in lower case", "INFO"),
        ("CUDA Out Of Memory: tried to allocate 2 GiB", "ERROR"),
        ("out of memory: killed process 77", "FATAL"),
        ("it's; DROP TABLE x -- not code", "INFO"),
        ("SELECT 1 FROM system.users", "WARN"),
        ("C:\\path 'quoted'", "INFO"),
        ("C:\\path 'quoted' and more", "INFO"),
        ("disk is 100% full", "ERROR"),
        ("disk is 100\\ full", "INFO"),
        ("GPU 温度高 on the board", "WARN"),
        (long.as_str(), "INFO"),
    ]
    .map(|(body, severity)| (body.to_owned(), severity))
    .into()
}

fn lines(tenant: &'static str, random: &mut Random, all: &mut Vec<Line>) {
    let bodies = bodies();
    let mut number = 0;
    for (kind, (body, severity)) in bodies.iter().enumerate() {
        // A different number of each, so that no two counts are equal.
        for _ in 0..(3 + kind * 2) {
            number += 1;
            let at = (random.unit() * 4_200_000.0) as i64 - 300_000;
            // Minutes without a line, and no two lines at one instant.
            let at = at - at.rem_euclid(300) + number;
            let quiet = (900_000..1_140_000).contains(&at);
            // A node's share falls from the first to the last.
            let place = PLACES[((random.unit() * random.unit()) * 5.0) as usize];
            let body = if kind == 15 { format!("{body}{number}") } else { body.clone() };
            let attrs = if number % 3 == 0 { vec![("trace_id", format!("t{number}"))] } else { Vec::new() };
            if !quiet {
                let body = format!("{}{body}", mark(tenant));
                all.push(Line { tenant, place, at: FROM + at, severity, body, attrs });
            }
        }
    }
}

fn happenings(tenant: &'static str, random: &mut Random, all: &mut Vec<Happening>) {
    let mut push = |index: usize, at: i64, kind: &'static str, xid: i64| {
        let message = format!("{}{kind} number {at}", mark(tenant));
        all.push(Happening { tenant, place: PLACES[index], at: FROM + at, kind, xid, message });
    };
    // Only two nodes have Xids; each code another number of times.
    for (place, xid, times) in [(0, 79, 5), (0, 48, 3), (2, 63, 4), (2, 13, 6), (0, 94, 1)] {
        for _ in 0..times {
            push(place, (random.unit() * 3_500_000.0) as i64, "xid", xid);
        }
    }
    for beat in 0..12 {
        push(beat % 5, -400_000 + 400_000 * i64::try_from(beat).unwrap_or(0), "deploy", 0);
    }
    // On both ends of the ten minutes that are asked about.
    push(3, 600_000, "alert", 0);
    push(1, 1_200_000, "alert", 0);
    push(1, 1_200_001, "alert", 0);
}

fn jobs(tenant: &'static str, random: &mut Random, all: &mut Vec<Job>) {
    let states = ["COMPLETED", "FAILED", "COMPLETED", "CANCELLED", "COMPLETED", "RUNNING"];
    let queues = ["batch", "prod", "batch", "research", "prod", "batch"];
    // The last two began before the hour and after it.
    for number in 0..14 {
        let start = match number {
            12 => -1_200_000,
            13 => 4_000_000,
            _ => number * 240_000 + 7_000,
        };
        let kind = usize::try_from(number).unwrap_or(0) % 6;
        let seconds = 100 + number * 37 + (random.unit() * 30.0) as i64;
        // The one that began before reaches into the hour.
        let seconds = if number == 12 { 2_000 } else { seconds };
        all.push(Job {
            tenant,
            id: if number == 12 { "J99".to_owned() } else { format!("J{}", 117 + number) },
            user: if tenant == TENANTS[0] { ["ana", "ben", "cyd"][kind % 3] } else { CANARY },
            queue: queues[kind],
            state: states[kind],
            gpus: 8 * (1 + number % 3),
            start: FROM + start,
            end: (states[kind] != "RUNNING" || number == 12).then_some(FROM + start + seconds * 1000),
        });
    }
}

fn time(at: i64) -> Timestamp {
    Timestamp::from_millisecond(at).unwrap()
}

fn labels(tenant: &str, place: Place, more: impl IntoIterator<Item = (&'static str, String)>) -> Labels {
    let own = [("tenant", tenant), ("cluster", place.cluster), ("node", place.node)];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    own.into_iter().chain(more.into_iter().map(|(key, value)| (key.to_owned(), value))).collect()
}

impl World {
    /// As rows of the product.
    pub(crate) fn rows(&self) -> Rows {
        let metrics = self.samples.iter().map(|s| {
            let more = [("gpu", s.gpu.to_string()), ("job_id", s.job.to_owned())];
            let labels = labels(s.tenant, s.place, s.labels.iter().cloned().chain(more));
            MetricRow { time: time(s.at), metric: s.metric.to_owned(), labels, value: s.value }
        });
        let logs = self.lines.iter().map(|l| LogRow {
            time: time(l.at),
            severity: l.severity.to_owned(),
            service: "kernel".to_owned(),
            labels: labels(l.tenant, l.place, l.attrs.iter().cloned()),
            body: l.body.clone(),
        });
        let events = self.happenings.iter().map(|h| EventRow {
            time: time(h.at),
            kind: h.kind.to_owned(),
            labels: labels(h.tenant, h.place, (h.xid > 0).then(|| ("xid", h.xid.to_string()))),
            body: h.message.clone(),
        });
        let jobs = self.jobs.iter().map(|j| JobRow {
            job_id: j.id.clone(),
            name: format!("{} run", j.id),
            tenant: j.tenant.to_owned(),
            cluster: "east".to_owned(),
            user: j.user.to_owned(),
            kind: "training".to_owned(),
            state: j.state.to_owned(),
            submit: time(j.start),
            start: time(j.start),
            end: j.end.map(time),
            labels: [("queue", j.queue.to_owned()), ("gpus", j.gpus.to_string())]
                .map(|(key, value)| (key.to_owned(), value))
                .into(),
        });
        Rows {
            metrics: metrics.collect(),
            logs: logs.collect(),
            events: events.collect(),
            jobs: jobs.collect(),
            ..Rows::default()
        }
    }
}
