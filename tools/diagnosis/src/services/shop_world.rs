//! A small shop: `front` calls `cart` and `catalog`, `cart` calls `db`. Six hours of past in ten-minute steps, two hours in minutes,
//! of which the last hour is asked about; a test bends what it wants to see.

use sightline_model::{Entity, Evidence, EvidenceRow, Point, Series, TimeRange, Unit};

use super::*;
use crate::diagnose::Diagnosis;
use crate::judged::{Judged, check, claims};
use crate::worlds::{at, blank, noise};

pub(super) const SERVICES: [&str; 4] = ["front", "cart", "catalog", "db"];

/// Minutes of the world: the past until `RECENT`, the window from `WINDOW`.
pub(super) const RECENT: usize = 360;
pub(super) const WINDOW: usize = 420;
pub(super) const END: usize = 480;

/// The fault begins here.
pub(super) const ONSET: usize = 440;

pub(super) type Values = Box<dyn Fn(usize, usize) -> Option<f64>>;

pub(super) struct Shop {
    pub(super) metrics: Vec<(Role, Unit, Values, Vec<Entity>)>,
    pub(super) calls: Vec<Call>,
    pub(super) lines: Option<Vec<(usize, &'static str, &'static str)>>,
    pub(super) events: Vec<(usize, &'static str, &'static str, &'static str)>,
    /// Names of metrics, by their place, where a role has several.
    pub(super) families: Vec<(usize, &'static str)>,
    pub(super) has_past: bool,
}

pub(super) fn service(name: &str) -> Entity {
    Entity::from([("service".to_owned(), name.to_owned())])
}

pub(super) fn call(caller: &str, callee: &str) -> Call {
    Call { caller: caller.to_owned(), callee: callee.to_owned() }
}

/// Seconds that a request takes at a service when all is well, callees included.
pub(super) fn usual(s: usize) -> f64 {
    [0.10, 0.06, 0.02, 0.03][s]
}

impl Shop {
    pub(super) fn healthy() -> Self {
        let mut shop = Self {
            metrics: Vec::new(),
            calls: vec![call("front", "cart"), call("front", "catalog"), call("cart", "db")],
            lines: None,
            events: Vec::new(),
            families: Vec::new(),
            has_past: true,
        };
        shop.add(Role::Latency, Unit::Seconds, |s, i| Some(usual(s) * (1.0 + 0.05 * noise(s, 1, i))));
        shop.add(Role::Availability, Unit::Percent, |s, i| Some(99.9 + 0.05 * noise(s, 2, i)));
        shop.add(Role::Requests, Unit::Requests, |s, i| Some(300.0 * (1.0 + 0.1 * noise(s, 3, i))));
        shop.add(Role::Cpu, Unit::None, |s, i| Some(0.4 + 0.02 * noise(s, 4, i)));
        shop.add(Role::Memory, Unit::Bytes, |s, i| Some(5e8 * (1.0 + 0.01 * noise(s, 5, i))));
        shop
    }

    pub(super) fn add(&mut self, role: Role, unit: Unit, values: impl Fn(usize, usize) -> Option<f64> + 'static) {
        self.metrics.push((role, unit, Box::new(values), SERVICES.map(service).to_vec()));
    }

    /// The healthy value of a role goes through `bend`.
    pub(super) fn bend(&mut self, role: Role, bend: impl Fn(usize, usize, f64) -> Option<f64> + 'static) {
        let metric = self.metrics.iter_mut().find(|m| m.0 == role).unwrap();
        let before = std::mem::replace(&mut metric.2, Box::new(|_, _| None));
        metric.2 = Box::new(move |s, i| bend(s, i, before(s, i)?));
    }

    pub(super) fn remove(&mut self, role: Role) {
        self.metrics.retain(|m| m.0 != role);
    }

    /// `extra` seconds on a service and on everything in front of it.
    pub(super) fn slow(&mut self, at: &'static str, extra: f64) {
        let chain: &[usize] = match at {
            "db" => &[0, 1, 3],
            "cart" => &[0, 1],
            "catalog" => &[0, 2],
            _ => &[0],
        };
        self.bend(Role::Latency, move |s, i, v| Some(if i >= ONSET && chain.contains(&s) { v + extra } else { v }));
    }

    /// A share of requests fails at a service and at everything in front of it.
    pub(super) fn fail(&mut self, at: &'static str, points: f64) {
        let chain: &[usize] = if at == "cart" { &[0, 1] } else { &[0, 1, 3] };
        self.bend(Role::Availability, move |s, i, v| {
            Some(if i >= ONSET && chain.contains(&s) { v - points } else { v })
        });
    }

    pub(super) fn judge(&self) -> Judged {
        self.judge_of("front")
    }

    pub(super) fn judge_of(&self, asked: &str) -> Judged {
        let mut pieces: Vec<(Role, &str, bool, Evidence)> = Vec::new();
        for (place, (role, unit, values, entities)) in self.metrics.iter().enumerate() {
            let family = self.families.iter().find(|(of, _)| *of == place).map_or("", |(_, family)| *family);
            for past in [true, false] {
                if past && !self.has_past {
                    continue;
                }
                let (minutes, step) = if past { (0..RECENT, 10) } else { (RECENT..END, 1) };
                let mut piece = blank(pieces.len() + 1, "metrics");
                piece.unit = *unit;
                piece.metric = Some(format!("{role:?}_avg"));
                piece.step_seconds = Some(60.0 * step as f64);
                (piece.from, piece.to) = (at(minutes.start), at(minutes.end));
                let point = |s: usize, i: usize| {
                    let value = values(s, i)?;
                    Some(Point { time: at(i), value, min: value, max: value, count: 1 })
                };
                let series = entities.iter().enumerate().map(|(s, entity)| Series {
                    entity: entity.clone(),
                    points: minutes.clone().step_by(step).filter_map(|i| point(s, i)).collect(),
                });
                piece.series = series.filter(|s| !s.points.is_empty()).collect();
                pieces.push((*role, family, past, piece));
            }
        }
        let rows = |n: usize, dataset: &str, rows: Vec<EvidenceRow>| {
            let mut piece = blank(n, dataset);
            piece.rows = rows;
            piece
        };
        let row = |minute: usize, service: &str, fields: &[(&str, &str)]| EvidenceRow {
            entity: Entity::from([("service".to_owned(), service.to_owned())]),
            time: Some(at(minute)),
            fields: fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..EvidenceRow::default()
        };
        let callees = self.calls.iter().map(|c| row(0, &c.callee, &[("called_by", &c.caller)])).collect();
        let calls = rows(901, "metrics", callees);
        let events =
            self.events.iter().map(|(m, s, kind, body)| row(*m, s, &[("kind", kind), ("body", body)])).collect();
        let events = rows(902, "events", events);
        let lines = self.lines.iter().flatten().map(|(m, s, body)| row(*m, s, &[("body", body)])).collect();
        let lines = rows(903, "logs", lines);
        let mut series = Vec::new();
        for (role, family, past, piece) in &pieces {
            let there =
                series.last_mut().filter(|s: &&mut ServiceSeries<'_>| self.has_past && s.role == *role && !*past);
            match there {
                Some(there) => there.recent = piece,
                None => series.push(ServiceSeries { role: *role, family, past: past.then_some(piece), recent: piece }),
            }
        }
        let observations = ServiceObservations {
            service: asked.to_owned(),
            window: TimeRange::new(at(WINDOW), at(END)).unwrap(),
            series,
            calls: self.calls.clone(),
            calls_evidence: Some(&calls),
            events: Some(&events),
            error_lines: self.lines.as_ref().map(|_| &lines),
        };
        let diagnosis: Diagnosis = diagnose_service(&observations);
        let mut all: Vec<&Evidence> = pieces.iter().map(|(_, _, _, piece)| piece).collect();
        all.extend([&calls, &events, &lines]);
        for claim in claims(&diagnosis) {
            check(claim, &all);
        }
        assert!(diagnosis.causes.iter().all(|c| IDS.contains(&c.id.as_str())));
        assert_eq!(diagnosis.causes.len(), IDS.len(), "every cause comes back");
        Judged(diagnosis)
    }
}
