//! What is told from what, in the small shop.

use sightline_model::{Entity, Unit};

use super::shop_world::*;
use super::*;
use crate::worlds::noise;

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
