//! A small shop: `front` calls `cart` and `catalog`, `cart` calls `db`. Six hours of past in ten-minute steps, two hours in minutes,
//! of which the last hour is asked about; a test bends what it wants to see.

use sightline_model::{Entity, Evidence, EvidenceRow, Point, Series, TimeRange, Unit};

use super::*;
use crate::diagnose::Diagnosis;
use crate::judged::{Judged, check, claims};
use crate::worlds::{at, blank, noise};

const SERVICES: [&str; 4] = ["front", "cart", "catalog", "db"];

/// Minutes of the world: the past until `RECENT`, the window from `WINDOW`.
const RECENT: usize = 360;
const WINDOW: usize = 420;
const END: usize = 480;

/// The fault begins here.
const ONSET: usize = 440;

type Values = Box<dyn Fn(usize, usize) -> Option<f64>>;

struct Shop {
    metrics: Vec<(Role, Unit, Values, Vec<Entity>)>,
    calls: Vec<Call>,
    lines: Option<Vec<(usize, &'static str, &'static str)>>,
    events: Vec<(usize, &'static str, &'static str, &'static str)>,
    has_past: bool,
}

fn service(name: &str) -> Entity {
    Entity::from([("service".to_owned(), name.to_owned())])
}

fn call(caller: &str, callee: &str) -> Call {
    Call { caller: caller.to_owned(), callee: callee.to_owned() }
}

/// Seconds that a request takes at a service when all is well, callees included.
fn usual(s: usize) -> f64 {
    [0.10, 0.06, 0.02, 0.03][s]
}

impl Shop {
    fn healthy() -> Self {
        let mut shop = Self {
            metrics: Vec::new(),
            calls: vec![call("front", "cart"), call("front", "catalog"), call("cart", "db")],
            lines: None,
            events: Vec::new(),
            has_past: true,
        };
        shop.add(Role::Latency, Unit::Seconds, |s, i| Some(usual(s) * (1.0 + 0.05 * noise(s, 1, i))));
        shop.add(Role::Availability, Unit::Percent, |s, i| Some(99.9 + 0.05 * noise(s, 2, i)));
        shop.add(Role::Requests, Unit::Requests, |s, i| Some(300.0 * (1.0 + 0.1 * noise(s, 3, i))));
        shop.add(Role::Cpu, Unit::None, |s, i| Some(0.4 + 0.02 * noise(s, 4, i)));
        shop.add(Role::Memory, Unit::Bytes, |s, i| Some(5e8 * (1.0 + 0.01 * noise(s, 5, i))));
        shop
    }

    fn add(&mut self, role: Role, unit: Unit, values: impl Fn(usize, usize) -> Option<f64> + 'static) {
        self.metrics.push((role, unit, Box::new(values), SERVICES.map(service).to_vec()));
    }

    /// The healthy value of a role goes through `bend`.
    fn bend(&mut self, role: Role, bend: impl Fn(usize, usize, f64) -> Option<f64> + 'static) {
        let metric = self.metrics.iter_mut().find(|m| m.0 == role).unwrap();
        let before = std::mem::replace(&mut metric.2, Box::new(|_, _| None));
        metric.2 = Box::new(move |s, i| bend(s, i, before(s, i)?));
    }

    fn remove(&mut self, role: Role) {
        self.metrics.retain(|m| m.0 != role);
    }

    /// `extra` seconds on a service and on everything in front of it.
    fn slow(&mut self, at: &'static str, extra: f64) {
        let chain: &[usize] = match at {
            "db" => &[0, 1, 3],
            "cart" => &[0, 1],
            "catalog" => &[0, 2],
            _ => &[0],
        };
        self.bend(Role::Latency, move |s, i, v| Some(if i >= ONSET && chain.contains(&s) { v + extra } else { v }));
    }

    /// A share of requests fails at a service and at everything in front of it.
    fn fail(&mut self, at: &'static str, points: f64) {
        let chain: &[usize] = if at == "cart" { &[0, 1] } else { &[0, 1, 3] };
        self.bend(Role::Availability, move |s, i, v| {
            Some(if i >= ONSET && chain.contains(&s) { v - points } else { v })
        });
    }

    fn judge(&self) -> Judged {
        self.judge_of("front")
    }

    fn judge_of(&self, asked: &str) -> Judged {
        let mut pieces: Vec<(Option<Role>, bool, Evidence)> = Vec::new();
        for (role, unit, values, entities) in &self.metrics {
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
                pieces.push((Some(*role), past, piece));
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
        for (role, past, piece) in &pieces {
            match (role, past) {
                (Some(role), true) => {
                    series.push(ServiceSeries { role: *role, family: "", past: Some(piece), recent: piece })
                }
                (Some(role), false) => match series.last_mut().filter(|s| self.has_past && s.role == *role) {
                    Some(there) => there.recent = piece,
                    None => series.push(ServiceSeries { role: *role, family: "", past: None, recent: piece }),
                },
                (None, _) => {}
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
        let mut all: Vec<&Evidence> = pieces.iter().map(|(_, _, piece)| piece).collect();
        all.extend([&calls, &events, &lines]);
        for claim in claims(&diagnosis) {
            check(claim, &all);
        }
        assert!(diagnosis.causes.iter().all(|c| IDS.contains(&c.id.as_str())));
        assert_eq!(diagnosis.causes.len(), IDS.len(), "every cause comes back");
        Judged(diagnosis)
    }
}

#[test]
fn a_shop_in_which_nothing_happens_has_no_fault() {
    let judged = Shop::healthy().judge();
    assert_eq!((judged.outcome(), judged.supported()), ("no_fault", vec![]));
}

#[test]
fn a_daily_peak_is_no_fault() {
    let mut shop = Shop::healthy();
    // Every hour the same ten minutes are slow: the past knows it.
    shop.bend(Role::Latency, |_, i, v| Some(if i % 60 < 10 { v * 1.8 } else { v }));
    assert_eq!(shop.judge().outcome(), "no_fault");
}

#[test]
fn callers_inherit_latency_and_the_deepest_service_is_named_with_its_onset() {
    for (place, extra) in [("db", 0.2), ("cart", 0.1), ("catalog", 0.05)] {
        let mut shop = Shop::healthy();
        shop.remove(Role::Cpu);
        shop.remove(Role::Memory);
        shop.slow(place, extra);
        let expected = ("answered", "dependency_failure", vec![place.to_owned()], Some(ONSET));
        assert_eq!(shop.judge().verdict(), expected, "{place}");
    }
}

#[test]
fn a_service_that_takes_more_cpu_and_a_leaf_that_is_throttled_are_told() {
    let mut shop = Shop::healthy();
    shop.slow("cart", 0.2);
    shop.bend(Role::Cpu, |s, i, v| Some(if s == 1 && i >= ONSET { v * 2.4 } else { v }));
    assert_eq!(shop.judge().verdict(), ("answered", "cpu_contention", vec!["cart".to_owned()], Some(ONSET)));

    let mut shop = Shop::healthy();
    shop.slow("db", 0.2);
    shop.add(Role::CpuThrottle, Unit::Seconds, |s, i| {
        Some(if s == 3 && i >= ONSET { 20.0 } else { 0.1 + 0.01 * noise(s, 6, i) })
    });
    let judged = shop.judge();
    assert_eq!((judged.first().id.as_str(), judged.verdict().2), ("cpu_contention", vec!["db".to_owned()]));
}

#[test]
fn memory_at_its_limit_is_told_from_memory_that_is_large() {
    let mut shop = Shop::healthy();
    shop.slow("cart", 0.2);
    shop.add(Role::MemoryLimit, Unit::Bytes, |_, _| Some(1e9));
    shop.bend(Role::Memory, |s, i, v| Some(if s == 1 && i >= ONSET { 9.7e8 } else { v }));
    assert_eq!(shop.judge().verdict().1, "memory_pressure");

    // `db` has always been nearly full, and `cart` is slow for another reason.
    let mut shop = Shop::healthy();
    shop.slow("cart", 0.2);
    shop.add(Role::MemoryLimit, Unit::Bytes, |_, _| Some(1e9));
    shop.bend(Role::Memory, |s, _, v| Some(if s == 3 { 9.6e8 } else { v }));
    assert_eq!(shop.judge().status("memory_pressure"), "ruled_out");
}

#[test]
fn errors_come_from_the_deepest_service_that_fails() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 8.0);
    let judged = shop.judge();
    assert_eq!(judged.verdict(), ("answered", "error_spike", vec!["cart".to_owned()], Some(ONSET)));
    assert_eq!((judged.status("cpu_contention"), judged.status("memory_pressure")), ("ruled_out", "ruled_out"));
}

#[test]
fn a_roll_out_just_before_outranks_what_it_led_to_and_one_of_another_service_does_not() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 8.0);
    shop.events.push((ONSET - 4, "cart", "deploy", "cart v42"));
    assert_eq!(shop.judge().first().id, "software_regression");
    shop.events = vec![(ONSET - 4, "catalog", "deploy", "catalog v7")];
    let judged = shop.judge();
    assert_eq!((judged.first().id.as_str(), judged.status("software_regression")), ("error_spike", "ruled_out"));
}

#[test]
fn what_is_outside_is_known_by_the_lines_of_its_callers() {
    let mut shop = Shop::healthy();
    shop.calls.push(call("cart", "payments"));
    shop.fail("cart", 8.0);
    shop.lines = Some(vec![(ONSET + 1, "cart", "POST https://payments/charge: context deadline exceeded")]);
    assert_eq!(shop.judge().verdict().1, "dependency_failure");
    assert_eq!(shop.judge().verdict().2, vec!["payments".to_owned()]);
}

#[test]
fn a_callee_that_falls_silent_is_gone() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 30.0);
    for role in [Role::Latency, Role::Availability, Role::Requests, Role::Cpu, Role::Memory] {
        shop.bend(role, |s, i, v| (s != 3 || i < ONSET).then_some(v));
    }
    let judged = shop.judge();
    assert_eq!(judged.verdict(), ("answered", "dependency_failure", vec!["db".to_owned()], Some(ONSET - 1)));
}

#[test]
fn time_lost_between_caller_and_callee_is_the_networks() {
    let mut shop = Shop::healthy();
    shop.slow("front", 0.15);
    shop.add(Role::OwnTime, Unit::Microseconds, |s, i| Some(20_000.0 * (1.0 + 0.05 * noise(s, 7, i))));
    let edges = shop
        .calls
        .iter()
        .map(|c| Entity::from([("from".to_owned(), c.caller.clone()), ("to".to_owned(), c.callee.clone())]));
    let edges: Vec<Entity> = edges.collect();
    let gap =
        |s: usize, i: usize| Some(if s != 1 && i >= ONSET { 80_000.0 } else { 2_000.0 * (1.0 + 0.1 * noise(s, 8, i)) });
    // Calls to `cart`, and calls of it, but not those to `catalog`.
    shop.metrics.push((Role::Gap, Unit::Microseconds, Box::new(gap), edges));
    let judged = shop.judge();
    assert_eq!((judged.first().id.as_str(), judged.verdict().2), ("network_delay", vec!["cart".to_owned()]));
    assert_eq!(judged.status("cpu_contention"), "ruled_out");
}

#[test]
fn more_traffic_explains_more_cpu() {
    let mut shop = Shop::healthy();
    shop.slow("front", 0.1);
    shop.bend(Role::Requests, |_, i, v| Some(if i >= ONSET { v * 2.5 } else { v }));
    shop.bend(Role::Cpu, |_, i, v| Some(if i >= ONSET { v * 2.3 } else { v }));
    assert_eq!(shop.judge().first().id, "traffic_surge");
}

#[test]
fn the_one_replica_that_is_off_is_named() {
    let mut shop = Shop::healthy();
    shop.slow("cart", 0.2);
    shop.remove(Role::Cpu);
    let pod =
        |name: &str| Entity::from([("service".to_owned(), "cart".to_owned()), ("pod".to_owned(), name.to_owned())]);
    let pods = ["cart-a", "cart-b", "cart-c"].map(pod).to_vec();
    let cpu = |s: usize, i: usize| Some(if s == 1 && i >= ONSET { 0.95 } else { 0.4 + 0.02 * noise(s, 4, i) });
    shop.metrics.push((Role::Cpu, Unit::None, Box::new(cpu), pods));
    let first = shop.judge().first().clone();
    assert_eq!((first.id.as_str(), first.components[0]["pod"].as_str()), ("cpu_contention", "cart-b"));
}

#[test]
fn five_samples_and_no_past_are_enough_for_a_clear_change() {
    let mut shop = Shop::healthy();
    shop.has_past = false;
    shop.fail("cart", 8.0);
    for role in [Role::Latency, Role::Availability, Role::Requests, Role::Cpu, Role::Memory] {
        shop.bend(role, |_, i, v| (i >= WINDOW && i % 10 == 0).then_some(v));
    }
    assert_eq!(shop.judge().verdict().1, "error_spike");
}

#[test]
fn a_service_of_which_nothing_is_recorded_cannot_be_judged() {
    let mut shop = Shop::healthy();
    for role in [Role::Latency, Role::Availability] {
        shop.bend(role, |s, _, v| (s != 0).then_some(v));
    }
    assert_eq!(shop.judge().outcome(), "insufficient_data");
}

#[test]
fn a_slow_callee_that_hardly_moves_the_mean_of_the_asked_service_is_a_hint() {
    let mut shop = Shop::healthy();
    shop.remove(Role::Cpu);
    shop.remove(Role::Memory);
    // The callee's requests are few among all of them.
    shop.bend(Role::Latency, |s, i, v| Some(if s == 2 && i >= ONSET { v + 0.02 } else { v }));
    assert_eq!(shop.judge().verdict(), ("answered", "dependency_failure", vec!["catalog".to_owned()], Some(ONSET)));
    let mut shop = Shop::healthy();
    shop.bend(Role::Latency, |s, i, v| Some(if s == 2 && i >= ONSET { v + 0.002 } else { v }));
    assert_eq!(shop.judge().outcome(), "no_fault");
}

#[test]
fn what_a_service_behind_shows_while_the_asked_one_is_well_is_no_fault_of_it() {
    let mut shop = Shop::healthy();
    shop.slow("db", 0.2);
    assert_eq!(shop.judge_of("catalog").outcome(), "no_fault");
}

#[test]
fn where_no_service_is_named_the_one_that_nobody_calls_is_looked_at() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 8.0);
    let judged = shop.judge_of("");
    assert_eq!(judged.verdict(), ("answered", "error_spike", vec!["cart".to_owned()], Some(ONSET)));
    assert_eq!(Shop::healthy().judge_of("").outcome(), "no_fault");
}

#[test]
fn without_a_call_graph_the_service_of_which_most_is_off_is_named() {
    let mut shop = Shop::healthy();
    shop.calls.clear();
    // Everything in front of `db` is slower too, and all by very much.
    shop.bend(Role::Latency, |s, i, v| {
        let times = [14.0, 10.0, 1.0, 60.0][s];
        Some(if i >= ONSET { v * times } else { v })
    });
    for asked in ["front", ""] {
        assert_eq!(shop.judge_of(asked).verdict().2, vec!["db".to_owned()], "{asked}");
    }
}

#[test]
fn without_a_call_graph_the_asked_service_is_left_to_what_may_lie_behind_it() {
    let slow = |busy: usize| {
        let mut shop = Shop::healthy();
        shop.calls.clear();
        shop.slow("cart", 0.2);
        // Half of the requests to `front` go on to the others, or the other way round.
        shop.bend(Role::Requests, move |s, _, v| Some(if s == busy { 2.0 * v } else { v }));
        shop
    };
    assert_eq!(slow(0).judge().verdict().2, vec!["cart".to_owned()]);
    // `front` gets more than `cart`: it does not lie behind it.
    assert_eq!(slow(0).judge_of("cart").verdict().2, vec!["cart".to_owned()]);
    // Its own CPU says more than that its callee is slow too.
    let mut shop = slow(0);
    shop.bend(Role::Cpu, |s, i, v| Some(if s == 0 && i >= ONSET { v * 8.0 } else { v }));
    assert_eq!(shop.judge().verdict().2, vec!["front".to_owned()]);
}

#[test]
fn what_lasts_has_its_worst_minutes_anywhere_in_it() {
    let mut shop = Shop::healthy();
    shop.slow("cart", 0.2);
    // Slow for forty minutes: the callee is at its worst in the last ten, its caller in the first ones.
    shop.bend(Role::Latency, |s, i, v| {
        Some(match s {
            0 if (ONSET..ONSET + 10).contains(&i) => v * 1.2,
            1 if i >= END - 10 => v * 1.2,
            _ => v,
        })
    });
    shop.bend(Role::Cpu, |s, i, v| Some(if s == 1 && i >= ONSET { v * 2.4 } else { v }));
    assert_eq!(shop.judge().verdict(), ("answered", "cpu_contention", vec!["cart".to_owned()], Some(ONSET)));
}

#[test]
fn a_sample_or_two_that_fall_back_do_not_end_what_began() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 8.0);
    shop.bend(Role::Availability, |s, i, v| Some(if s < 2 && [ONSET + 4, ONSET + 20].contains(&i) { 99.9 } else { v }));
    shop.bend(Role::Availability, |s, i, v| Some(if s < 2 && i >= END - 12 { v - 3.0 } else { v }));
    assert_eq!(shop.judge().verdict().3, Some(ONSET));
}

#[test]
fn more_packets_are_lost_where_more_are_sent() {
    let lossy = |traffic: f64| {
        let mut shop = Shop::healthy();
        shop.slow("front", 0.1);
        shop.bend(Role::Requests, move |_, i, v| Some(if i >= ONSET { v * traffic } else { v }));
        shop.add(Role::NetworkErrors, Unit::Count, |_, i| Some(if i >= ONSET { 66.0 } else { 22.0 }));
        shop.judge()
    };
    assert_eq!(lossy(3.0).first().id, "traffic_surge");
    assert_eq!(lossy(1.0).first().id, "network_delay");
}

#[test]
fn what_is_first_seen_in_the_middle_of_the_window_cannot_be_compared() {
    let mut shop = Shop::healthy();
    shop.has_past = false;
    for role in [Role::Latency, Role::Availability, Role::Requests] {
        shop.bend(role, |_, i, v| (i >= WINDOW + 30).then_some(v));
    }
    assert_eq!(shop.judge().outcome(), "insufficient_data");
}

#[test]
fn a_wait_before_a_call_after_a_roll_out_is_the_callers_own_and_lost_packets_make_it_the_networks() {
    let slow = || {
        let mut shop = Shop::healthy();
        shop.slow("cart", 0.15);
        let own = |s: usize, i: usize| {
            let extra = if s == 1 && i >= ONSET { 150_000.0 } else { 0.0 };
            Some(20_000.0 * (1.0 + 0.05 * noise(s, 7, i)) + extra)
        };
        shop.add(Role::OwnTime, Unit::Microseconds, own);
        let edge = Entity::from([("from".to_owned(), "cart".to_owned()), ("to".to_owned(), "db".to_owned())]);
        let wait =
            |s: usize, i: usize| Some(if i >= ONSET { 150_000.0 } else { 2_000.0 * (1.0 + 0.1 * noise(s, 8, i)) });
        shop.metrics.push((Role::Wait, Unit::Microseconds, Box::new(wait), vec![edge]));
        shop
    };
    let mut shop = slow();
    shop.events.push((ONSET - 2, "cart", "deploy", "cart v42"));
    assert_eq!(shop.judge().first().id, "software_regression");
    let mut shop = slow();
    shop.add(Role::NetworkErrors, Unit::Count, |s, i| Some(if s == 3 && i >= ONSET { 90.0 } else { 1.0 }));
    assert_eq!((shop.judge().first().id.as_str(), shop.judge().verdict().2), ("network_delay", vec!["db".to_owned()]));
}

#[test]
fn a_gap_that_is_little_beside_what_a_service_adds_is_not_what_makes_requests_slow() {
    let mut shop = Shop::healthy();
    shop.slow("catalog", 0.2);
    let own = |s: usize, i: usize| {
        Some(if s == 2 && i >= ONSET { 220_000.0 } else { 20_000.0 * (1.0 + 0.05 * noise(s, 7, i)) })
    };
    shop.add(Role::OwnTime, Unit::Microseconds, own);
    shop.bend(Role::Cpu, |s, i, v| Some(if s == 2 && i >= ONSET { v * 2.4 } else { v }));
    let edge = Entity::from([("from".to_owned(), "cart".to_owned()), ("to".to_owned(), "db".to_owned())]);
    let gap = |s: usize, i: usize| Some(if i >= ONSET { 4_000.0 } else { 2_000.0 * (1.0 + 0.1 * noise(s, 8, i)) });
    shop.metrics.push((Role::Gap, Unit::Microseconds, Box::new(gap), vec![edge]));
    let judged = shop.judge();
    assert_eq!((judged.first().id.as_str(), judged.status("network_delay")), ("cpu_contention", "ruled_out"));
}

#[test]
fn a_store_that_refuses_connections_is_known_by_the_lines_of_whoever_calls_it() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 8.0);
    shop.calls.push(call("catalog", "store"));
    shop.add(Role::ErrorLines, Unit::Count, |s, i| (s == 2).then_some(if i >= ONSET { 40.0 } else { 0.1 }));
    shop.lines = Some(vec![(ONSET + 1, "catalog", "could not reach store:5432: connection refused (attempt 2)")]);
    assert_eq!(shop.judge().verdict().1, "dependency_failure");
    assert_eq!(shop.judge().verdict().2, vec!["store".to_owned()]);
}

#[test]
fn a_store_that_others_reach_is_not_gone_because_of_a_line_that_is_always_there() {
    let shop = |said: &[usize]| {
        let mut shop = Shop::healthy();
        shop.fail("cart", 8.0);
        let line = "could not reach db:5432: connection refused (attempt 2)";
        shop.lines = Some(said.iter().map(|minute| (*minute, "cart", line)).collect());
        shop
    };
    // What reaches `db` goes well: by its own telemetry nothing is wrong with it.
    assert_eq!(shop(&[ONSET + 1, ONSET + 2]).judge().verdict().1, "dependency_failure");
    assert_eq!(shop(&[WINDOW, ONSET + 1, ONSET + 2]).judge().verdict().1, "error_spike");
}

#[test]
fn without_a_call_graph_a_service_that_is_down_is_known_by_its_memory() {
    let mut shop = Shop::healthy();
    shop.calls.clear();
    shop.fail("cart", 8.0);
    shop.bend(Role::Memory, |s, i, v| Some(if s == 3 && i >= ONSET { v * (1.4 + 0.1 * (i % 5) as f64) } else { v }));
    let judged = shop.judge();
    assert_eq!((judged.first().id.as_str(), judged.verdict().2), ("memory_pressure", vec!["db".to_owned()]));
}

#[test]
fn a_wait_that_nobody_feels_explains_no_failures() {
    let mut shop = Shop::healthy();
    shop.fail("cart", 8.0);
    let edge = Entity::from([("from".to_owned(), "cart".to_owned()), ("to".to_owned(), "db".to_owned())]);
    let wait = |s: usize, i: usize| Some(if i >= ONSET { 1_900.0 } else { 900.0 * (1.0 + 0.1 * noise(s, 8, i)) });
    shop.metrics.push((Role::Wait, Unit::Microseconds, Box::new(wait), vec![edge]));
    assert_eq!(shop.judge().supported(), vec!["error_spike"]);
}

#[test]
fn traffic_explains_the_limit_that_is_met_with_it() {
    let mut shop = Shop::healthy();
    shop.slow("front", 0.1);
    shop.bend(Role::Requests, |_, i, v| Some(if i >= ONSET { v * 2.5 } else { v }));
    shop.add(Role::CpuThrottle, Unit::Seconds, |s, i| {
        Some(if i >= ONSET { 20.0 } else { 0.1 + 0.01 * noise(s, 6, i) })
    });
    assert_eq!(shop.judge().first().id, "traffic_surge");
}
