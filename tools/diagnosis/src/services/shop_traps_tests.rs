//! What looks like something else, or hides: noise, gaps, worst minutes, unknown calls.

use sightline_model::{Entity, Unit};

use super::shop_world::*;
use super::*;
use crate::worlds::noise;

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

#[test]
fn a_percentile_is_held_against_the_same_percentile() {
    let mut shop = Shop::healthy();
    shop.calls.clear();
    shop.remove(Role::Latency);
    // The tail is noisy, so that the median is what shows it.
    for (family, times, scatter) in [("latency_p50", 1.0, 0.02), ("latency_p90", 2.0, 0.3)] {
        shop.add(Role::Latency, Unit::Seconds, move |s, i| {
            let extra = if i >= ONSET && s < 2 { 0.2 } else { 0.0 };
            Some((usual(s) + extra) * times * (1.0 + scatter * noise(s, 9, i)))
        });
        shop.families.push((shop.metrics.len() - 1, family));
    }
    let judged = shop.judge();
    let claims = &judged.first().claims;
    assert_eq!(judged.verdict().2, vec!["cart".to_owned()]);
    assert_eq!(claims[1].citations, claims[0].citations);
}

#[test]
fn calls_that_fail_with_nothing_on_the_other_side_accuse_the_callee() {
    let unanswered = |edge: (&str, &str), share: f64| {
        let mut shop = Shop::healthy();
        shop.fail("cart", 8.0);
        let edge = Entity::from([("from".to_owned(), edge.0.to_owned()), ("to".to_owned(), edge.1.to_owned())]);
        let failing = move |_: usize, i: usize| Some(if i >= ONSET { share } else { 0.0 });
        shop.metrics.push((Role::Unanswered, Unit::Percent, Box::new(failing), vec![edge]));
        shop.judge()
    };
    let judged = unanswered(("cart", "db"), 30.0);
    assert_eq!((judged.first().id.as_str(), judged.verdict().2), ("dependency_failure", vec!["db".to_owned()]));
    // Nearly none, or of a service that the asked one does not call.
    assert_eq!(unanswered(("cart", "db"), 0.6).first().id, "error_spike");
    assert_eq!(unanswered(("elsewhere", "db"), 30.0).first().id, "error_spike");
}

#[test]
fn an_address_that_refuses_is_the_callee_that_fell_silent() {
    let refused = |silent: bool| {
        let mut shop = Shop::healthy();
        shop.fail("cart", 8.0);
        shop.add(Role::OwnTime, Unit::Microseconds, move |s, i| {
            (!(silent && s == 3 && i >= ONSET)).then_some(20_000.0 * (1.0 + 0.05 * noise(s, 7, i)))
        });
        shop.lines = Some(vec![(ONSET + 1, "cart", "dial tcp 10.42.7.19:6379: connect: connection refused")]);
        shop.judge()
    };
    let judged = refused(true);
    assert_eq!((judged.first().id.as_str(), judged.verdict().2), ("dependency_failure", vec!["db".to_owned()]));
    // Nobody is silent: the address may be anybody's.
    assert_eq!(refused(false).first().id, "error_spike");
}

#[test]
fn one_kill_for_want_of_memory_is_told_by_its_line() {
    let killed = |minute: usize, line: &'static str| {
        let mut shop = Shop::healthy();
        shop.fail("cart", 8.0);
        shop.lines = Some(vec![(minute, "kubelet", line)]);
        shop.judge()
    };
    let line = "Memory cgroup out of memory: Killed process 2231 (java) in pod cart-6c9f7d8b5-x2x9z";
    let judged = killed(ONSET + 1, line);
    assert_eq!((judged.first().id.as_str(), judged.verdict().2), ("memory_pressure", vec!["cart".to_owned()]));
    // Long before, or a pod of somebody whose name begins alike.
    assert_eq!(killed(WINDOW, line).first().id, "error_spike");
    let other = "Memory cgroup out of memory: Killed process 2231 (java) in pod cartographer-6c9f7d8b5-x2x9z";
    assert_eq!(killed(ONSET + 1, other).first().id, "error_spike");
}

#[test]
fn a_limit_that_is_met_while_its_own_requests_are_as_many_as_ever_is_no_ones_traffic() {
    let surged = |culprit: f64| {
        let mut shop = Shop::healthy();
        shop.slow("cart", 0.1);
        shop.bend(Role::Requests, move |s, i, v| {
            Some(if i >= ONSET { v * if s == 1 { culprit } else { 2.5 } } else { v })
        });
        shop.add(Role::CpuThrottle, Unit::Seconds, |s, i| {
            Some(if s == 1 && i >= ONSET { 20.0 } else { 0.1 + 0.01 * noise(s, 6, i) })
        });
        shop.judge()
    };
    assert_eq!(surged(2.5).first().id, "traffic_surge");
    assert_eq!(surged(1.0).first().id, "cpu_contention");
}
