//! Small worlds for tests: a healthy job whose signals a test bends.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use sightline_model::{Coverage, Entity, Evidence, EvidenceId, EvidenceRow, Point, Read, Series, TimeRange, Unit};

use crate::diagnose::diagnose;
use crate::judged::{Judged, check, claims};
use crate::observation::{Attempt, Job, Observations, Observed, OtherRun, Placement};
use crate::signal::{Scope, Signal};

type Values = Box<dyn Fn(usize, usize, usize) -> Option<f64>>;

/// A job on `nodes` times `gpus` GPUs with one point a minute.
pub(crate) struct World {
    pub(crate) nodes: usize,
    pub(crate) gpus: usize,
    pub(crate) minutes: usize,
    signals: BTreeMap<Signal, Values>,
    increases: Vec<Signal>,
    /// Timers of the job that come once a rank.
    pub(crate) ranked: Vec<Signal>,
    logs: Option<Vec<(usize, usize, String)>>,
    pub(crate) events: Vec<(usize, String, String)>,
    pub(crate) window: (usize, usize),
    pub(crate) ended: bool,
    pub(crate) state: &'static str,
    /// The driver of each node; none when it is not known.
    pub(crate) drivers: Vec<&'static str>,
    /// Earlier runs, the latest last: their image and their step time.
    pub(crate) runs: Vec<(&'static str, f64)>,
    /// All runs of the same name, the job among them: their nodes and how they ended.
    pub(crate) siblings: Vec<(Vec<usize>, &'static str)>,
    /// The image that the job runs.
    pub(crate) image: &'static str,
    /// Attempts as minutes from, to; one over the whole time unless set.
    pub(crate) attempts: Vec<(usize, Option<usize>)>,
    /// Other runs: job, name, minutes from, to, state, nodes.
    pub(crate) others: Vec<Run>,
}

pub(crate) type Run = (&'static str, &'static str, usize, Option<usize>, &'static str, Vec<usize>);

/// The modes of a CPU, by the index that stands in the place of a GPU's.
pub(crate) const MODES: [&str; 4] = ["idle", "user", "system", "iowait"];

/// Noise in -1..1 that is the same on every run and unlike between members.
pub(crate) fn noise(node: usize, gpu: usize, i: usize) -> f64 {
    let x = ((node * 131 + gpu * 17 + 7) as f64 * 0.731 + i as f64 * 12.9898).sin() * 43758.5453;
    2.0 * (x - x.floor()) - 1.0
}

impl World {
    pub(crate) fn healthy(nodes: usize, gpus: usize) -> Self {
        let mut world = Self {
            nodes,
            gpus,
            minutes: 240,
            signals: BTreeMap::new(),
            increases: Vec::new(),
            ranked: vec![Signal::ComputeTime, Signal::CommunicationTime],
            logs: None,
            events: Vec::new(),
            window: (0, 240),
            ended: false,
            state: "running",
            attempts: Vec::new(),
            others: Vec::new(),
            drivers: Vec::new(),
            runs: Vec::new(),
            siblings: Vec::new(),
            image: "",
        };
        world.set(Signal::SmClock, |n, g, i| Some(1960.0 + 6.0 * noise(n, g, i) + g as f64));
        world.set(Signal::GpuTemperature, |n, g, i| Some(62.0 + 1.5 * g as f64 + 0.8 * noise(n, g + 50, i)));
        world.set(Signal::Power, |n, g, i| Some(640.0 + 9.0 * noise(n, g + 90, i)));
        world.set(Signal::Utilization, |n, g, i| Some(98.0 + noise(n, g + 30, i)));
        world.set(Signal::SmActive, |n, g, i| Some(0.88 + 0.02 * noise(n, g + 20, i)));
        world.set(Signal::TensorActive, |n, g, i| Some(0.52 + 0.02 * noise(n, g + 10, i)));
        world.set(Signal::DramActive, |n, g, i| Some(0.41 + 0.02 * noise(n, g + 60, i)));
        world.set(Signal::ClockReasons, |_, _, _| Some(4.0));
        world.set(Signal::MemoryUsed, |n, g, i| Some(70_000.0 + 20.0 * noise(n, g + 40, i)));
        world.set(Signal::StepTime, |_, _, i| Some(1.2 + 0.02 * noise(0, 0, i)));
        world.set_increase(Signal::RemappedUncorrectable, |_, _, _| Some(0.0));
        world
    }

    pub(crate) fn set(&mut self, signal: Signal, values: impl Fn(usize, usize, usize) -> Option<f64> + 'static) {
        self.signals.insert(signal, Box::new(values));
    }

    pub(crate) fn set_increase(
        &mut self,
        signal: Signal,
        values: impl Fn(usize, usize, usize) -> Option<f64> + 'static,
    ) {
        self.increases.push(signal);
        self.set(signal, values);
    }

    /// Bends a signal: the healthy value goes through `bend`.
    pub(crate) fn bend(&mut self, signal: Signal, bend: impl Fn(usize, usize, usize, f64) -> Option<f64> + 'static) {
        let Some(before) = self.signals.remove(&signal) else { panic!("{signal:?} is not there") };
        self.set(signal, move |n, g, i| bend(n, g, i, before(n, g, i)?));
    }

    /// Fills in where a signal has nothing.
    pub(crate) fn fill(&mut self, signal: Signal, with: impl Fn(usize, usize, usize) -> Option<f64> + 'static) {
        let Some(before) = self.signals.remove(&signal) else { panic!("{signal:?} is not there") };
        self.set(signal, move |n, g, i| before(n, g, i).or_else(|| with(n, g, i)));
    }

    pub(crate) fn without(&mut self, signals: &[Signal]) {
        self.signals.retain(|s, _| !signals.contains(s));
    }

    pub(crate) fn lacks(&self, signal: Signal) -> bool {
        !self.signals.contains_key(&signal)
    }

    /// Signals of the healthy world that are not collected in this one.
    pub(crate) fn lacking(&self) -> Vec<Signal> {
        [Signal::ClockReasons, Signal::StepTime].into_iter().filter(|s| self.lacks(*s)).collect()
    }

    pub(crate) fn log(&mut self, node: usize, minute: usize, body: &str) {
        self.logs.get_or_insert_default().push((node, minute, body.to_owned()));
    }

    pub(crate) fn read_logs(&mut self) {
        self.logs.get_or_insert_default();
    }

    pub(crate) fn diagnose(&self) -> Judged {
        let evidence = self.evidence();
        let observations = self.observations(&evidence);
        let diagnosis = diagnose(&observations);
        for claim in claims(&diagnosis) {
            check(claim, &evidence.iter().map(|(_, e)| e).collect::<Vec<_>>());
        }
        Judged(diagnosis)
    }

    pub(crate) fn observations<'a>(&self, evidence: &'a [(Option<Signal>, Evidence)]) -> Observations<'a> {
        let job = Job {
            id: "J123".to_owned(),
            placements: self.placements(),
            start: at(0),
            end: self.ended.then(|| at(self.window.1)),
            state: self.state.to_owned(),
            evidence: None,
        };
        let mut bus_ids = BTreeMap::new();
        for p in &job.placements {
            bus_ids.insert((p.node.clone(), 0, p.gpu.parse::<u8>().unwrap(), 0), p.gpu.clone());
        }
        let of = |dataset: &str| evidence.iter().find(|(s, e)| s.is_none() && e.dataset == dataset).map(|(_, e)| e);
        Observations {
            job,
            window: TimeRange::new(at(self.window.0), at(self.window.1)).unwrap(),
            observed: evidence
                .iter()
                .filter_map(|(signal, evidence)| Some(Observed { signal: (*signal)?, evidence }))
                .collect(),
            logs: of("logs"),
            events: of("events"),
            held: of("job_gpus"),
            attempts: self.attempts(),
            beside: of("jobs"),
            others: self.others(),
            drivers: rows(evidence, "drivers"),
            history: rows(evidence, "history"),
            siblings: self.siblings(),
            earlier: self.earlier(evidence),
            bus_ids,
        }
    }

    fn attempts(&self) -> Vec<Attempt> {
        let whole = [(0, None)];
        let all = if self.attempts.is_empty() { whole.as_slice() } else { self.attempts.as_slice() };
        let nodes: BTreeSet<String> = (0..self.nodes).map(node).collect();
        let attempt = |(row, (from, to)): (usize, &(usize, Option<usize>))| Attempt {
            number: row.to_string(),
            from: at(*from),
            to: to.map(at),
            nodes: nodes.clone(),
            row,
        };
        all.iter().enumerate().map(attempt).collect()
    }

    fn others(&self) -> Vec<OtherRun> {
        let run = |(row, (job, name, from, to, state, nodes)): (usize, &Run)| OtherRun {
            job: (*job).to_owned(),
            name: (*name).to_owned(),
            from: at(*from),
            to: to.map(at),
            state: (*state).to_owned(),
            nodes: nodes.iter().map(|n| node(*n)).collect(),
            row,
        };
        self.others.iter().enumerate().map(run).collect()
    }

    /// The scheduler's books: the GPUs of each attempt by its first row, and other runs.
    fn books(&self, first: usize) -> [Evidence; 2] {
        let mut held = blank(first, "job_gpus");
        held.rows = self
            .attempts()
            .iter()
            .map(|a| EvidenceRow {
                entity: Entity::from([("node".to_owned(), node(0)), ("gpu".to_owned(), "0".to_owned())]),
                time: Some(a.from),
                ..EvidenceRow::default()
            })
            .collect();
        let mut runs = blank(first + 1, "jobs");
        runs.rows = self
            .others()
            .iter()
            .map(|o| EvidenceRow {
                entity: Entity::from([("job".to_owned(), o.job.clone())]),
                time: Some(o.from),
                fields: BTreeMap::from([
                    ("state".to_owned(), o.state.clone()),
                    ("end".to_owned(), o.to.map(|to| to.to_string()).unwrap_or_default()),
                ]),
                ..EvidenceRow::default()
            })
            .collect();
        [held, runs]
    }

    fn placements(&self) -> Vec<Placement> {
        let pairs = (0..self.nodes).flat_map(|n| (0..self.gpus).map(move |g| (n, g)));
        pairs
            .map(|(n, g)| Placement { node: node(n), gpu: g.to_string(), rank: Some((n * self.gpus + g).to_string()) })
            .collect()
    }

    pub(crate) fn evidence(&self) -> Vec<(Option<Signal>, Evidence)> {
        let mut all = Vec::new();
        for (signal, values) in &self.signals {
            let members: Vec<(Entity, usize, usize)> = match signal.scope() {
                Scope::Gpu => self
                    .placements()
                    .iter()
                    .map(|p| (p.component(), p.node.trim_start_matches('n').parse().unwrap(), p.gpu.parse().unwrap()))
                    .collect(),
                Scope::Node if *signal == Signal::CpuTime => (0..self.nodes)
                    .flat_map(|n| (0..MODES.len()).map(move |m| (n, m)))
                    .map(|(n, m)| {
                        let mode = ("mode".to_owned(), MODES[m].to_owned());
                        (Entity::from([("node".to_owned(), node(n)), mode]), n, m)
                    })
                    .collect(),
                Scope::Node => (0..self.nodes).map(|n| (Entity::from([("node".to_owned(), node(n))]), n, 0)).collect(),
                Scope::Job if self.ranked.contains(signal) => {
                    let ranks = (0..self.nodes).flat_map(|n| (0..self.gpus).map(move |g| (n, g)));
                    ranks
                        .map(|(n, g)| {
                            let rank = (n * self.gpus + g).to_string();
                            (Entity::from([("node".to_owned(), node(n)), ("rank".to_owned(), rank)]), n, g)
                        })
                        .collect()
                }
                Scope::Job => vec![(Entity::from([("job".to_owned(), "J123".to_owned())]), 0, 0)],
            };
            let series = members
                .into_iter()
                .map(|(entity, n, g)| Series {
                    entity,
                    points: (0..self.minutes)
                        .filter_map(|i| {
                            let value = values(n, g, i)?;
                            Some(Point { time: at(i), value, min: value, max: value, count: 2 })
                        })
                        .collect(),
                })
                .collect();
            let aggregation = if self.increases.contains(signal) { "increase per 60 s" } else { "avg per 60 s" };
            let mut evidence = blank(all.len() + 1, "metrics");
            evidence.metric = Some(signal.metrics()[0].to_owned());
            evidence.aggregation = Some(aggregation.to_owned());
            evidence.series = series;
            evidence.step_seconds = Some(60.0);
            all.push((Some(*signal), evidence));
        }
        if let Some(lines) = &self.logs {
            let mut evidence = blank(all.len() + 1, "logs");
            evidence.rows = lines
                .iter()
                .map(|(n, minute, body)| EvidenceRow {
                    entity: Entity::from([("node".to_owned(), node(*n))]),
                    time: Some(at(*minute)),
                    fields: BTreeMap::from([("body".to_owned(), body.clone())]),
                    ..EvidenceRow::default()
                })
                .collect();
            all.push((None, evidence));
        }
        let mut evidence = blank(all.len() + 1, "events");
        evidence.rows = self
            .events
            .iter()
            .map(|(minute, kind, body)| {
                // `kind@2` happened on the third node.
                let (kind, on) = kind.split_once('@').map_or((kind.as_str(), None), |(k, n)| (k, Some(n)));
                EvidenceRow {
                    entity: on.map(|n| ("node".to_owned(), node(n.parse().unwrap()))).into_iter().collect(),
                    time: Some(at(*minute)),
                    fields: BTreeMap::from([("kind".to_owned(), kind.to_owned()), ("body".to_owned(), body.clone())]),
                    ..EvidenceRow::default()
                }
            })
            .collect();
        all.push((None, evidence));
        let [held, runs] = self.books(all.len() + 1);
        all.extend([(None, held), (None, runs)]);
        self.beside(&mut all);
        all
    }
}

/// The piece of evidence of a data set.
fn rows<'a>(evidence: &'a [(Option<Signal>, Evidence)], dataset: &str) -> Option<&'a Evidence> {
    evidence.iter().map(|(_, e)| e).find(|e| e.dataset == dataset)
}

pub(crate) fn node(n: usize) -> String {
    format!("n{n}")
}

/// Minute `i` of the world.
pub(crate) fn at(i: usize) -> Timestamp {
    let start: Timestamp = "2026-05-03T12:00:00Z".parse().unwrap();
    start.checked_add(SignedDuration::from_mins(i64::try_from(i).unwrap())).unwrap()
}

pub(crate) fn blank(n: usize, dataset: &str) -> Evidence {
    Evidence {
        id: EvidenceId::new(format!("E{n}")),
        tool: "job_correlation".to_owned(),
        dataset: dataset.to_owned(),
        metric: None,
        canonical_metric: None,
        labels: BTreeMap::new(),
        aggregation: None,
        unit: Unit::None,
        from: at(0),
        to: at(240),
        step_seconds: None,
        points: 0,
        stats: None,
        rows: Vec::new(),
        series: Vec::new(),
        coverage: Coverage::default(),
        total: 0,
        returned: 0,
        truncated: false,
        read: Read::default(),
        query_id: None,
        sql: None,
        params: BTreeMap::new(),
        entry_id: None,
    }
}
