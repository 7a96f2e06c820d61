//! Causes that look alike from afar, and what tells them apart.

use crate::signal::Signal;
use crate::worlds::{World, noise};

type Verdict = (&'static str, &'static str, Vec<String>, Option<usize>);

fn verdict(outcome: &'static str, cause: &'static str, who: &[&str], onset: Option<usize>) -> Verdict {
    (outcome, cause, who.iter().map(|w| (*w).to_owned()).collect(), onset)
}

/// All ranks compute alike and wait little.
fn timed(nodes: usize, gpus: usize) -> World {
    let mut world = World::healthy(nodes, gpus);
    world.set(Signal::ComputeTime, |n, g, i| Some(1.1 + 0.01 * noise(n, g + 7, i)));
    world.set(Signal::CommunicationTime, |n, g, i| Some(0.08 + 0.01 * noise(n, g + 8, i)));
    world
}

/// From a minute on these ranks compute longer, and all others wait for them.
fn wait_for(world: &mut World, culprit: impl Fn(usize, usize) -> bool + Copy + 'static, from: usize) {
    world.bend(Signal::StepTime, move |_, _, i, v| Some(if i >= from { v + 0.6 } else { v }));
    world.bend(Signal::ComputeTime, move |n, g, i, v| Some(if culprit(n, g) && i >= from { v + 0.6 } else { v }));
    world
        .bend(Signal::CommunicationTime, move |n, g, i, v| Some(if !culprit(n, g) && i >= from { v + 0.6 } else { v }));
}

/// Host memory of node 1 falls from minute 20 on and is used up at minute 120; the others keep theirs.
fn leaking(world: &mut World) {
    world.set(Signal::HostMemoryAvailable, |n, g, i| {
        let left = if n == 1 { 1500.0 - 15.0 * (i.clamp(20, 119) - 20) as f64 } else { 1500.0 };
        Some(if n == 1 && i >= 120 { 12.0 + noise(n, g, i) } else { left.max(20.0) + 3.0 * noise(n, g, i) })
    });
}

#[test]
fn a_leak_that_has_taken_everything_is_a_leak_although_memory_is_level_since() {
    let mut world = timed(3, 8);
    leaking(&mut world);
    wait_for(&mut world, |n, _| n == 1, 120);
    let judged = world.diagnose();
    let (outcome, cause, who, onset) = judged.verdict();
    assert_eq!((outcome, cause, who), ("answered", "memory_leak", vec!["n1".to_owned()]));
    assert!(onset.is_some_and(|at| (118..=120).contains(&at)), "{onset:?}");
    assert_eq!(judged.status("network_congestion"), "ruled_out");
}

#[test]
fn host_memory_that_is_taken_once_and_then_kept_is_no_leak() {
    let mut world = timed(3, 8);
    world.set(Signal::HostMemoryAvailable, |n, g, i| Some(if i < 5 { 2000.0 } else { 1500.0 } + 3.0 * noise(n, g, i)));
    assert_eq!(world.diagnose().status("memory_leak"), "ruled_out");
    world.set(Signal::HostMemoryAvailable, |n, g, i| Some(if i < 5 { 2000.0 } else { 90.0 } + noise(n, g, i)));
    assert_eq!(world.diagnose().status("memory_leak"), "ruled_out");
}

#[test]
fn ranks_that_wait_no_longer_than_before_are_waited_for_and_the_network_is_not_full() {
    let mut world = timed(3, 8);
    wait_for(&mut world, |n, _| n == 2, 100);
    assert_eq!(world.diagnose().status("network_congestion"), "ruled_out");
    let mut full = timed(3, 8);
    full.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 100 { v + 0.6 } else { v }));
    full.bend(Signal::CommunicationTime, |_, _, i, v| Some(if i >= 100 { v + 0.6 } else { v }));
    assert_eq!(full.diagnose().verdict(), verdict("answered", "network_congestion", &["J123"], Some(100)));
}

/// GPU (0, 2) runs slower from minute 60 on; every thirty minutes the load lightens for two.
fn lightening(clock_comes_back: bool) -> World {
    let mut world = World::healthy(2, 8);
    world.without(&[Signal::ClockReasons]);
    let light = |i: usize| i % 30 >= 28;
    let slow = |n: usize, g: usize, i: usize| (n, g) == (0, 2) && i >= 60;
    world.bend(Signal::SmClock, move |n, g, i, v| {
        let held = !(clock_comes_back && light(i));
        // A clock moves in steps and so scatters more than power does, held or not.
        Some(if slow(n, g, i) && held { 1100.0 + 15.0 * noise(n, g, i).signum() } else { v })
    });
    world.bend(Signal::Power, move |n, g, i, v| {
        Some(match (light(i), slow(n, g, i)) {
            (true, _) => 150.0,
            (false, true) => 240.0 + 0.5 * noise(n, g, i),
            (false, false) => v,
        })
    });
    world.bend(Signal::GpuTemperature, move |n, g, i, v| Some(if slow(n, g, i) { v - 12.0 } else { v }));
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 60 { v * 1.7 } else { v }));
    world
}

#[test]
fn a_clock_that_stays_low_when_the_load_lightens_is_not_held_by_a_power_limit() {
    assert_eq!(lightening(false).diagnose().verdict(), verdict("answered", "slow_worker", &["n0/2"], Some(60)));
    assert_eq!(lightening(true).diagnose().verdict(), verdict("answered", "power_capping", &["n0/2"], Some(60)));
}

#[test]
fn a_gpu_far_below_its_known_limit_or_with_no_time_under_limits_is_not_power_capped() {
    let capped = |world: &World| world.diagnose().status("power_capping");
    let mut world = World::healthy(2, 8);
    let slow = |n: usize, g: usize, i: usize| (n, g) == (0, 2) && i >= 60;
    world.without(&[Signal::ClockReasons]);
    world.bend(Signal::SmClock, move |n, g, i, v| {
        Some(if slow(n, g, i) { 1100.0 + 15.0 * noise(n, g, i).signum() } else { v })
    });
    world.bend(Signal::Power, move |n, g, i, v| Some(if slow(n, g, i) { 240.0 + 0.5 * noise(n, g, i) } else { v }));
    world.bend(Signal::GpuTemperature, move |n, g, i, v| Some(if slow(n, g, i) { v - 12.0 } else { v }));
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 60 { v * 1.7 } else { v }));
    assert_eq!(capped(&world), "supported");
    world.set(Signal::PowerLimit, |_, _, _| Some(700.0));
    assert_eq!(capped(&world), "ruled_out");
    world.without(&[Signal::PowerLimit]);
    world.set_increase(Signal::PowerViolation, |_, _, _| Some(0.0));
    assert_eq!(capped(&world), "ruled_out");
}

#[test]
fn remapped_rows_explain_the_worker_that_others_wait_for_but_not_any_other() {
    let line =
        "NVRM: Xid (PCI:0000:05:00): 63, pid=41218, Row Remapper: New row marked for remapping, reset gpu to activate.";
    let mut world = timed(2, 8);
    wait_for(&mut world, |n, g| (n, g) == (1, 5), 90);
    world.read_logs();
    let unnamed = world.diagnose();
    assert_eq!(unnamed.verdict(), verdict("answered", "slow_worker", &["n1/5"], Some(90)));
    world.log(1, 90, line);
    let named = world.diagnose();
    assert_eq!(named.verdict(), verdict("answered", "hardware_degradation", &["n1/5"], Some(90)));
    assert_eq!((named.status("slow_worker"), named.status("network_congestion")), ("ruled_out", "ruled_out"));
    let mut elsewhere = timed(2, 8);
    wait_for(&mut elsewhere, |n, g| (n, g) == (0, 5), 90);
    elsewhere.log(1, 90, line);
    assert_eq!(elsewhere.diagnose().verdict(), verdict("answered", "slow_worker", &["n0/5"], Some(90)));
}

#[test]
fn a_rank_that_waits_less_by_a_sliver_of_the_step_is_nobodys_culprit() {
    let mut world = timed(2, 8);
    // A third of the others' wait, yet two hundredths of the step.
    world.bend(Signal::CommunicationTime, |n, g, _, v| Some(if (n, g) == (1, 1) { v / 1.5 } else { v }));
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("slow_worker")), ("no_fault", "ruled_out"));
}
