//! Nodes that die, hosts on which alone runs fail, fabrics that break, and neighbours that come and go.

use crate::signal::Signal;
use crate::worlds::{World, noise};

const GONE: usize = 140;

fn names(who: &[&str]) -> Vec<String> {
    who.iter().map(|w| (*w).to_owned()).collect()
}

/// Node n1 falls silent at minute 140 and the job stands still until minute 170, when another attempt goes on.
fn died() -> World {
    let mut world = World::healthy(3, 4);
    for signal in [Signal::SmClock, Signal::GpuTemperature, Signal::Power, Signal::Utilization, Signal::MemoryUsed] {
        world.bend(signal, |n, _, i, v| (n != 1 || i < GONE).then_some(v));
    }
    world.bend(Signal::StepTime, |_, _, i, v| (!(GONE..170).contains(&i)).then_some(v));
    for signal in [Signal::SmActive, Signal::TensorActive, Signal::DramActive] {
        world
            .bend(signal, |n, _, i, v| (n != 1 || i < GONE).then_some(if (GONE..165).contains(&i) { 0.02 } else { v }));
    }
    world.attempts = vec![(0, Some(166)), (169, None)];
    world
}

#[test]
fn a_job_that_was_started_again_without_the_node_did_not_go_on() {
    let mut world = died();
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("answered", "node_failure", names(&["n1"]), Some(GONE - 1)));
    // The scheduler's word is proof, whichever node's log has it.
    world.log(0, 165, "error: Nodes n1 not responding, setting DOWN");
    for rank in [0, 1, 2, 3, 8, 9, 10, 11] {
        world.log(0, 164, &format!("[rank{rank}] Watchdog caught collective operation timeout: WorkNCCL(OpType=X)"));
    }
    let told = world.diagnose();
    assert_eq!(told.verdict(), ("answered", "node_failure", names(&["n1"]), Some(GONE - 1)));
    assert!(told.first().claims.iter().any(|c| c.text.contains("{line}")));
}

#[test]
fn a_job_that_ended_well_lost_no_node() {
    let mut world = World::healthy(3, 4);
    for signal in [Signal::SmClock, Signal::GpuTemperature, Signal::Power, Signal::Utilization, Signal::MemoryUsed] {
        world.bend(signal, |n, _, i, v| (n != 1 || i < 233).then_some(v));
    }
    world.bend(Signal::StepTime, |_, _, i, v| (i < 236).then_some(v));
    (world.ended, world.state) = (true, "completed");
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("node_failure")), ("no_fault", "ruled_out"));
    world.state = "failed";
    assert_eq!(world.diagnose().first().id, "node_failure");
}

#[test]
fn runs_that_fail_on_one_host_only_point_at_it_and_prove_nothing() {
    let mut world = World::healthy(1, 8);
    (world.ended, world.state) = (true, "FAILED");
    let runs = |failed: usize, elsewhere: &'static str| {
        let here = (0..failed).map(|_| (vec![0], "FAILED"));
        let away = (0..4).map(|i| (vec![1 + i % 2], if i == 0 { elsewhere } else { "COMPLETED" }));
        here.chain(away).collect::<Vec<_>>()
    };
    world.siblings = runs(3, "COMPLETED");
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("answered", "hardware_degradation", names(&["n0"]), None));
    assert!(judged.0.headline.text.contains("not proven"), "{}", judged.0.headline.text);
    // Twice may be chance, and a failure elsewhere speaks against the host.
    for siblings in [runs(2, "COMPLETED"), runs(3, "FAILED"), Vec::new()] {
        world.siblings = siblings;
        let judged = world.diagnose();
        assert_eq!((judged.outcome(), judged.status("hardware_degradation")), ("insufficient_data", "ruled_out"));
    }
}

#[test]
fn links_of_most_gpus_that_break_at_once_are_the_nodes_fabric() {
    let mut world = World::healthy(2, 8);
    for gpu in 0..8 {
        world.log(1, 120, &format!("NVRM: Xid (PCI:0000:{gpu:02x}:00): 145, RLW_REMAP Fatal XC0 i0 Link 00 (0x1)"));
    }
    assert_eq!(world.diagnose().verdict(), ("answered", "nvlink_fault", names(&["n1"]), Some(120)));
    let mut one = World::healthy(2, 8);
    one.log(1, 120, "NVRM: Xid (PCI:0000:03:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x1)");
    assert_eq!(one.diagnose().verdict().2, names(&["n1/3"]));
}

/// The job waits for its input from minute 120 to 180.
fn starved() -> World {
    let slow = |i: usize| (120..180).contains(&i);
    let mut world = World::healthy(2, 8);
    world.bend(Signal::StepTime, move |_, _, i, v| Some(if slow(i) { v + 1.0 } else { v }));
    world.set(Signal::DataLoading, move |n, g, i| Some(if slow(i) { 1.0 } else { 0.02 } + 0.004 * noise(n, g, i)));
    world.bend(Signal::Utilization, move |_, _, i, v| Some(if slow(i) { 0.55 * v } else { v }));
    world.bend(Signal::Power, move |_, _, i, v| Some(if slow(i) { 0.6 * v } else { v }));
    world
}

#[test]
fn a_run_that_came_and_went_with_the_slow_stretch_is_the_neighbour() {
    let mut world = starved();
    assert_eq!(world.diagnose().first().id, "data_loader_bottleneck");
    world.others.push(("J500", "etl", 119, Some(180), "completed", vec![]));
    assert_eq!(world.diagnose().verdict(), ("answered", "noisy_neighbour", names(&["J500"]), Some(120)));
    // One that only began then may have nothing to do with it.
    world.others = vec![("J500", "etl", 119, None, "running", vec![])];
    assert_eq!(world.diagnose().first().id, "data_loader_bottleneck");
}

#[test]
fn a_checkpoint_more_is_no_traffic_of_its_own() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 120 { v * 1.4 } else { v }));
    world.set_increase(Signal::IoPressure, |n, g, i| Some(if i >= 120 { 25.0 } else { 1.0 } + 0.4 * noise(n, g, i)));
    let burst = |i: usize| i == 60 || (i >= 120 && i.is_multiple_of(15));
    world.set_increase(Signal::NetworkSent, move |_, _, i| Some(if burst(i) { 9.0e10 } else { 1.0e9 }));
    world.set_increase(Signal::NetworkReceived, |_, _, i| Some(if i >= 120 { 2.0e9 } else { 4.0e9 }));
    world.others.push(("J500", "etl", 117, None, "running", vec![]));
    assert_eq!(world.diagnose().verdict(), ("answered", "noisy_neighbour", names(&["J500"]), Some(120)));
}
