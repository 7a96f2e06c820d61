//! What looks like a fault and is the measurement.

use crate::signal::Signal;
use crate::worlds::{World, noise};

fn names(who: &[&str]) -> Vec<String> {
    who.iter().map(|w| (*w).to_owned()).collect()
}

#[test]
fn counters_that_read_zero_on_busy_gpus_are_dead_and_the_job_is_well() {
    let mut world = World::healthy(2, 8);
    for signal in [Signal::SmActive, Signal::TensorActive, Signal::DramActive] {
        world.set(signal, |_, _, _| Some(0.0));
    }
    assert_eq!(world.diagnose().verdict(), ("no_fault", "telemetry_artifact", names(&["J123"]), None));
    // GPUs that only wait draw little: their counters may be right.
    world.set(Signal::Power, |n, g, i| Some(if i < 120 { 640.0 } else { 150.0 } + noise(n, g, i)));
    world.window = (130, 240);
    assert_eq!(world.diagnose().status("telemetry_artifact"), "ruled_out");
}

#[test]
fn counters_that_stop_while_the_gpus_go_on_are_missing_and_not_zero() {
    let mut world = World::healthy(1, 8);
    for signal in [Signal::SmActive, Signal::TensorActive, Signal::DramActive] {
        world.bend(signal, |_, g, i, v| (g != 3 || i < 60).then_some(v));
    }
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("no_fault", "telemetry_artifact", names(&["n0/3"]), None));
    assert!(judged.0.data_health.iter().any(|l| l.contains("missing, not zero")), "{:?}", judged.0.data_health);
}

#[test]
fn an_exporter_that_repeats_its_last_values_is_seen_by_what_must_move() {
    let mut world = World::healthy(2, 4);
    for signal in [Signal::Power, Signal::GpuTemperature, Signal::SmClock, Signal::Utilization, Signal::SmActive] {
        world.bend(signal, |n, _, i, v| if n == 1 && i >= 100 { None } else { Some(v) });
        let last = move |n: usize, g: usize| match signal {
            Signal::Power => 641.0 + (n + g) as f64,
            Signal::GpuTemperature => 63.0,
            Signal::SmClock => 1961.0,
            Signal::Utilization => 98.0,
            _ => 0.88,
        };
        world.fill(signal, move |n, g, i| (n == 1 && i >= 100).then(|| last(n, g)));
    }
    let flat = world.diagnose();
    assert_eq!(flat.verdict(), ("no_fault", "telemetry_artifact", names(&["n1"]), None));
    // Power is named, and the temperature that does not move either is held to it.
    assert_eq!(flat.0.causes[0].claims[0].comparisons.len(), 2);
    // Whole degrees stand still on healthy GPUs, power does not.
    let mut rounded = World::healthy(2, 4);
    rounded.set(Signal::GpuTemperature, |_, _, _| Some(63.0));
    assert_eq!(rounded.diagnose().status("telemetry_artifact"), "ruled_out");
}

#[test]
fn an_exporter_that_came_back_by_itself_repeated_its_values_for_a_while() {
    let frozen = |until: usize| {
        let mut world = World::healthy(2, 4);
        for (signal, still) in [(Signal::Power, 641.0), (Signal::GpuTemperature, 63.0)] {
            let here = move |n: usize, i: usize| n == 1 && (100..until).contains(&i);
            world.bend(signal, move |n, _, i, v| Some(if here(n, i) { still } else { v }));
        }
        world.diagnose()
    };
    assert_eq!(frozen(180).verdict(), ("no_fault", "telemetry_artifact", names(&["n1"]), None));
    // A load that does not change for a quarter of an hour comes and goes.
    assert_eq!(frozen(112).status("telemetry_artifact"), "ruled_out");
}

#[test]
fn an_old_code_in_the_gauge_is_told_as_old_and_a_new_one_is_not() {
    let mut world = World::healthy(2, 8);
    world.set(Signal::LastXid, |n, g, _| Some(if (n, g) == (1, 3) { 31.0 } else { 0.0 }));
    assert_eq!(world.diagnose().verdict(), ("no_fault", "telemetry_artifact", names(&["n1/3"]), None));
    world.set(Signal::LastXid, |n, g, i| Some(if (n, g) == (1, 3) && i >= 90 { 31.0 } else { 0.0 }));
    assert_eq!(world.diagnose().status("telemetry_artifact"), "ruled_out");
}

#[test]
fn a_slice_of_a_gpu_that_shows_more_than_all_is_no_fault() {
    let mut world = World::healthy(1, 4);
    world.set(Signal::SmActive, |n, g, i| Some(1.29 + 0.01 * noise(n, g, i)));
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.first().id.as_str()), ("no_fault", "compute_bound"));
    assert!(judged.0.data_health.iter().any(|l| l.contains("slice of a GPU")), "{:?}", judged.0.data_health);
}

#[test]
fn a_clock_that_is_off_is_told_and_accuses_nobody() {
    let mut world = World::healthy(3, 4);
    world.set(Signal::ClockOffset, |n, _, i| Some(if n == 2 { 190.0 } else { 0.001 } + 0.001 * noise(n, 0, i)));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("no_fault", "telemetry_artifact", vec!["n2".to_owned()], None));
    assert!(judged.0.data_health.iter().any(|l| l.contains("the clock of n2 is off")), "{:?}", judged.0.data_health);
}

#[test]
fn a_row_that_was_remapped_in_a_job_that_keeps_its_pace_is_watched_and_no_fault() {
    let mut world = World::healthy(2, 8);
    world.log(
        1,
        80,
        "NVRM: Xid (PCI:0000:03:00): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.",
    );
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("hardware_degradation")), ("no_fault", "supported"));
    world.log(1, 82, "NVRM: Xid (PCI:0000:03:00): 64, pid='<unknown>', name=<unknown>, Row Remapper Error: All reserved rows for bank are remapped");
    assert_eq!(world.diagnose().verdict(), ("answered", "hardware_degradation", names(&["n1/3"]), Some(80)));
}

#[test]
fn a_few_symbol_errors_of_one_port_are_how_fast_links_are() {
    let mut world = World::healthy(4, 8);
    world.set_increase(Signal::IbSymbolErrors, |n, _, i| Some(if n == 2 && i % 10 == 0 { 1.0 } else { 0.0 }));
    assert_eq!(world.diagnose().status("network_link_fault"), "ruled_out");
    world.set_increase(Signal::IbSymbolErrors, |n, _, _| Some(if n == 2 { 40.0 } else { 0.0 }));
    assert_eq!(world.diagnose().verdict().1, "network_link_fault");
}

#[test]
fn a_gpu_that_only_follows_its_boost_group_is_not_the_slow_one() {
    let mut world = World::healthy(1, 8);
    let slow = |i: usize| i >= 100;
    world.bend(Signal::SmClock, move |_, g, i, v| Some(if g < 3 && slow(i) { 1200.0 } else { v }));
    world.bend(Signal::GpuTemperature, move |_, g, i, v| Some(if g == 1 && slow(i) { v + 22.0 } else { v }));
    world.bend(Signal::ClockReasons, move |_, g, i, v| {
        Some(match (g, slow(i)) {
            (1, true) => 64.0,
            (0 | 2, true) => 16.0,
            _ => v,
        })
    });
    world.bend(Signal::StepTime, move |_, _, i, v| Some(if slow(i) { v * 1.6 } else { v }));
    assert_eq!(world.diagnose().verdict(), ("answered", "thermal_throttling", names(&["n0/1"]), Some(100)));
}
