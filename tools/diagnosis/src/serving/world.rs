//! An inference service for the tests: replicas with a healthy level of every signal, and bends of it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sightline_model::{Component, Entity, Evidence, EvidenceRow, Point, Series, TimeRange};

use crate::judged::{Judged, check, claims};
use crate::serving::observation::{Grain, ServingObservations, ServingObserved, Span};
use crate::serving::signal::{How, ServingSignal as S};
use crate::worlds::{blank, noise};

/// Minutes from the first of the near series; the window is the last hour of four.
pub(crate) const NEAR: i64 = 240;
const WINDOW: i64 = 180;
const PAST: i64 = WINDOW - 48 * 60;

type What = (S, Grain, Span);
type Bend = Box<dyn Fn(usize, i64, f64) -> f64>;

/// The world.
pub(crate) struct World {
    replicas: usize,
    values: BTreeMap<S, f64>,
    bends: Vec<(S, Bend)>,
    events: Option<Vec<(i64, &'static str, &'static str)>>,
    kernel: Option<Vec<(i64, &'static str, &'static str)>>,
    starts: Vec<(usize, i64)>,
    born: BTreeMap<usize, i64>,
    lost: BTreeMap<usize, i64>,
}

pub(crate) fn at(minute: i64) -> Timestamp {
    let start: Timestamp = "2026-05-03T12:00:00Z".parse().unwrap();
    start.checked_add(SignedDuration::from_mins(minute)).unwrap()
}

fn pod(replica: usize) -> Entity {
    Entity::from([("pod".to_owned(), format!("chat-{replica}"))])
}

impl World {
    pub(crate) fn healthy(replicas: usize) -> Self {
        let values = [
            (S::FirstToken, 0.3),
            (S::InterToken, 0.03),
            (S::RequestLatency, 9.0),
            (S::QueueTime, 0.02),
            (S::PrefillTime, 0.25),
            (S::DecodeTime, 8.7),
            (S::PromptLength, 900.0),
            (S::AnswerLength, 290.0),
            (S::Running, 24.0),
            (S::Waiting, 0.2),
            (S::KvUsage, 0.45),
            (S::PromptTokens, 2_400.0),
            (S::GenerationTokens, 780.0),
            (S::HitRate, 0.6),
            (S::Preemptions, 0.0),
            (S::Served, 2.7),
            (S::Aborted, 0.01),
            (S::FrontEnd, 0.03),
        ];
        Self {
            replicas,
            values: BTreeMap::from(values),
            bends: Vec::new(),
            events: Some(Vec::new()),
            kernel: Some(Vec::new()),
            starts: Vec::new(),
            born: BTreeMap::new(),
            lost: BTreeMap::new(),
        }
    }

    /// A line of a node's kernel.
    pub(crate) fn kernel(&mut self, minute: i64, node: &'static str, body: &'static str) -> &mut Self {
        self.kernel.get_or_insert_default().push((minute, node, body));
        self
    }

    /// From `minute` on a signal is `factor` times its level.
    pub(crate) fn from(&mut self, minute: i64, signal: S, factor: f64) -> &mut Self {
        self.bend(signal, move |_, i, v| if i >= minute { v * factor } else { v })
    }

    /// From `minute` on a signal is at another level.
    pub(crate) fn to(&mut self, minute: i64, signal: S, level: f64) -> &mut Self {
        self.bend(signal, move |_, i, v| if i >= minute { level + (v - v.floor()) * level * 1e-3 } else { v })
    }

    pub(crate) fn bend(&mut self, signal: S, bend: impl Fn(usize, i64, f64) -> f64 + 'static) -> &mut Self {
        self.bends.push((signal, Box::new(bend)));
        self
    }

    pub(crate) fn with(&mut self, signal: S, level: f64) -> &mut Self {
        self.values.insert(signal, level);
        self
    }

    pub(crate) fn without(&mut self, signals: &[S]) -> &mut Self {
        self.values.retain(|s, _| !signals.contains(s));
        self
    }

    pub(crate) fn event(&mut self, minute: i64, kind: &'static str, body: &'static str) -> &mut Self {
        self.events.get_or_insert_default().push((minute, kind, body));
        self
    }

    /// A replica that starts at this minute and was not there before.
    pub(crate) fn born(&mut self, replica: usize, minute: i64) -> &mut Self {
        self.starts.push((replica, minute));
        self.born.insert(replica, minute);
        self
    }

    /// A replica that starts anew.
    pub(crate) fn restart(&mut self, replica: usize, minute: i64) -> &mut Self {
        self.starts.push((replica, minute));
        self
    }

    /// A replica whose engine is gone from this minute on; its GPUs stay.
    pub(crate) fn lose(&mut self, replica: usize, minute: i64) -> &mut Self {
        self.lost.insert(replica, minute);
        self
    }

    fn value(&self, signal: S, replica: usize, minute: i64) -> Option<f64> {
        if self.born.get(&replica).is_some_and(|born| minute < *born) {
            return None;
        }
        if !signal.is_of_gpus() && self.lost.get(&replica).is_some_and(|lost| minute >= *lost) {
            return None;
        }
        let level = *self.values.get(&signal)?;
        let place = usize::try_from(minute - PAST).unwrap();
        let wobble = 1.0 + 0.06 * noise(replica, signal.words().len(), place);
        let bends = self.bends.iter().filter(|(s, _)| *s == signal);
        // No number is no sample.
        Some(bends.fold(level * wobble, |v, (_, bend)| bend(replica, minute, v))).filter(|value| value.is_finite())
    }

    fn series(&self, signal: S, grain: Grain, span: Span) -> Vec<Series> {
        let (from, to, step) = match span {
            Span::Near => (0, NEAR, 1),
            Span::Past => (PAST, NEAR, 10),
            Span::Close => (0, 0, 1),
        };
        let minutes = || (from..to).filter(move |i| (i - from) % step == 0);
        let point = |i: i64, value: f64| Point { time: at(i), value, min: value, max: value, count: 4 };
        match grain {
            Grain::Replicas => (0..self.replicas)
                .map(|r| Series {
                    entity: pod(r),
                    points: minutes().filter_map(|i| Some(point(i, self.value(signal, r, i)?))).collect(),
                })
                .collect(),
            Grain::Service => {
                let mean = |i: i64| {
                    let all: Vec<f64> = (0..self.replicas).filter_map(|r| self.value(signal, r, i)).collect();
                    let sum = all.iter().sum::<f64>();
                    let adds_up = matches!(signal.how(), How::Rate) || signal == S::Served;
                    (!all.is_empty()).then(|| if adds_up { sum } else { sum / all.len() as f64 })
                };
                let points = minutes().filter_map(|i| Some(point(i, mean(i)?))).collect();
                vec![Series { entity: Entity::new(), points }]
            }
        }
    }

    pub(crate) fn diagnose(&self) -> Judged {
        let mut all: Vec<(What, Evidence)> = Vec::new();
        for signal in self.values.keys() {
            for grain in [Grain::Service, Grain::Replicas] {
                for (span, step) in [(Span::Near, 60.0), (Span::Past, 600.0)] {
                    let mut evidence = blank(all.len() + 1, "metrics");
                    evidence.series = self.series(*signal, grain, span);
                    evidence.step_seconds = Some(step);
                    all.push(((*signal, grain, span), evidence));
                }
            }
        }
        let mut starts = blank(all.len() + 1, "metrics");
        starts.rows = self
            .starts
            .iter()
            .map(|(r, minute)| EvidenceRow { entity: pod(*r), time: Some(at(*minute)), ..EvidenceRow::default() })
            .collect();
        let mut events = blank(all.len() + 2, "events");
        events.rows = self
            .events
            .iter()
            .flatten()
            .map(|(minute, kind, body)| EvidenceRow {
                entity: Entity::from([("service".to_owned(), "chat".to_owned())]),
                time: Some(at(*minute)),
                fields: [("kind", *kind), ("body", *body)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
                ..EvidenceRow::default()
            })
            .collect();
        let mut kernel = blank(all.len() + 3, "logs");
        kernel.rows = self
            .kernel
            .iter()
            .flatten()
            .map(|(minute, node, body)| EvidenceRow {
                entity: Entity::from([("node".to_owned(), (*node).to_owned())]),
                time: Some(at(*minute)),
                fields: [("body".to_owned(), (*body).to_owned())].into(),
                ..EvidenceRow::default()
            })
            .collect();
        let observations = ServingObservations {
            service: Component::from([("service".to_owned(), "chat".to_owned())]),
            window: TimeRange::new(at(WINDOW), at(NEAR)).unwrap(),
            observed: all
                .iter()
                .map(|((signal, grain, span), evidence)| ServingObserved {
                    signal: *signal,
                    grain: *grain,
                    span: *span,
                    evidence,
                })
                .collect(),
            starts: Some(&starts),
            events: self.events.as_ref().map(|_| &events),
            logs: self.kernel.as_ref().map(|_| &kernel),
            versions: None,
        };
        let diagnosis = crate::serving::diagnose_serving(&observations);
        let evidence: Vec<&Evidence> = all.iter().map(|(_, e)| e).chain([&starts, &events, &kernel]).collect();
        for claim in claims(&diagnosis) {
            check(claim, &evidence);
        }
        Judged(diagnosis)
    }
}

/// Outcome, first supported cause, its components in short, the minute of its onset.
pub(crate) fn verdict(judged: &Judged) -> (&'static str, String, Vec<String>, Option<i64>) {
    let first = judged.first();
    let id = if first.rank == 1 { first.id.clone() } else { "none".to_owned() };
    let components = if first.rank == 1 {
        let of = |c: &Component| c.values().rev().cloned().collect::<Vec<_>>().join("/");
        first.components.iter().map(of).collect()
    } else {
        Vec::new()
    };
    let onset = first.onset.map(|o| (o.as_second() - at(0).as_second()) / 60);
    (judged.outcome(), id, components, onset)
}
