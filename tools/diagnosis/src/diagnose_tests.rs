//! One small world for each cause, for each control, and for what is missing.

use crate::signal::Signal;
use crate::worlds::{World, noise};

/// Makes GPU (0, 3) hot and slow from minute 100 on; its peers wait, so they draw less and compute less.
fn hot(world: &mut World) {
    let slow = |i: usize| i >= 100;
    world.bend(Signal::SmClock, move |n, g, i, v| {
        Some(if (n, g) == (0, 3) && slow(i) { 1120.0 + 20.0 * noise(n, g, i) } else { v })
    });
    world.bend(Signal::GpuTemperature, move |n, g, i, v| Some(if (n, g) == (0, 3) && slow(i) { v + 20.0 } else { v }));
    world.bend(Signal::Power, move |n, g, i, v| {
        Some(match ((n, g) == (0, 3), slow(i)) {
            (true, true) => v * 0.6,
            (false, true) => v * 0.72,
            (_, false) => v,
        })
    });
    world.bend(Signal::TensorActive, move |n, g, i, v| Some(if slow(i) && (n, g) != (0, 3) { v * 0.6 } else { v }));
    world.bend(Signal::StepTime, move |_, _, i, v| Some(if slow(i) { v * 1.7 } else { v }));
}

fn verdict<'a>(
    outcome: &'a str,
    cause: &'a str,
    who: &[&str],
    onset: Option<usize>,
) -> (&'a str, &'a str, Vec<String>, Option<usize>) {
    (outcome, cause, who.iter().map(|w| (*w).to_owned()).collect(), onset)
}

#[test]
fn a_healthy_busy_job_is_compute_bound_and_not_at_fault() {
    let judged = World::healthy(2, 8).diagnose();
    assert_eq!(judged.verdict(), verdict("no_fault", "compute_bound", &["J123"], None));
    assert_eq!(judged.supported(), vec!["compute_bound"]);
}

#[test]
fn a_hot_slow_gpu_is_named_although_its_victims_look_worse() {
    let mut world = World::healthy(2, 8);
    hot(&mut world);
    world.bend(Signal::ClockReasons, |n, g, i, v| Some(if (n, g) == (0, 3) && i >= 100 { 72.0 } else { v }));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "thermal_throttling", &["n0/3"], Some(100)));
    assert_eq!(judged.supported(), vec!["thermal_throttling"]);
}

#[test]
fn heat_is_recognised_without_reason_bits_and_without_step_time() {
    let mut world = World::healthy(2, 8);
    hot(&mut world);
    world.without(&[Signal::ClockReasons, Signal::StepTime]);
    assert_eq!(world.diagnose().verdict(), verdict("answered", "thermal_throttling", &["n0/3"], Some(100)));
}

#[test]
fn a_single_gpu_is_compared_with_its_own_past() {
    let mut world = World::healthy(1, 4);
    hot(&mut world);
    world.gpus = 1;
    world.bend(Signal::SmClock, |_, _, i, v| Some(if i >= 100 { 600.0 } else { v }));
    world.bend(Signal::GpuTemperature, |_, _, i, v| Some(if i >= 100 { v + 22.0 } else { v }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "thermal_throttling", &["n0/0"], Some(100)));
}

#[test]
fn a_whole_node_can_be_hot() {
    let mut world = World::healthy(4, 8);
    world.bend(Signal::SmClock, |n, g, i, v| Some(if n == 2 && i >= 60 { 1300.0 + 15.0 * noise(n, g, i) } else { v }));
    world.bend(Signal::GpuTemperature, |n, _, i, v| Some(if n == 2 && i >= 60 { v + 18.0 } else { v }));
    let judged = world.diagnose();
    let (outcome, cause, who, onset) = judged.verdict();
    assert_eq!((outcome, cause, onset, who.len()), ("answered", "thermal_throttling", Some(60), 8));
    assert!(who.iter().all(|w| w.starts_with("n2/")), "{who:?}");
}

#[test]
fn one_gpu_held_below_its_peers_is_power_capping() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::SmClock, |n, g, i, v| {
        Some(if (n, g) == (1, 5) && i >= 80 { 1280.0 + 12.0 * noise(n, g, i) } else { v })
    });
    world.bend(Signal::Power, |n, g, i, v| {
        Some(if (n, g) == (1, 5) && i >= 80 { 300.0 + 0.5 * noise(n, g, i) } else { v })
    });
    world.bend(Signal::GpuTemperature, |n, g, i, v| Some(if (n, g) == (1, 5) && i >= 80 { v - 14.0 } else { v }));
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 80 { v * 1.5 } else { v }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "power_capping", &["n1/5"], Some(80)));
    world.without(&[Signal::ClockReasons]);
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "power_capping", &["n1/5"], Some(80)));
    assert_eq!(judged.status("thermal_throttling"), "ruled_out");
}

#[test]
fn a_power_cap_on_every_gpu_is_normal() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::SmClock, |n, g, i, v| Some(v - 330.0 + 12.0 * noise(n, g, i)));
    world.set(Signal::Power, |n, g, i| Some(699.0 + 0.6 * noise(n, g, i)));
    world.set(Signal::PowerLimit, |_, _, _| Some(700.0));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("no_fault", "compute_bound", &["J123"], None));
    assert_eq!((judged.status("power_capping"), judged.status("thermal_throttling")), ("ruled_out", "ruled_out"));
}

#[test]
fn a_low_clock_that_nothing_explains_is_a_slow_worker() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::SmClock, |n, g, i, v| Some(if (n, g) == (0, 6) && i >= 90 { 1305.0 } else { v }));
    world.bend(Signal::Power, |n, g, i, v| Some(if (n, g) == (0, 6) && i >= 90 { v * 0.7 } else { v }));
    world.bend(Signal::GpuTemperature, |n, g, i, v| Some(if (n, g) == (0, 6) && i >= 90 { v - 8.0 } else { v }));
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 90 { v * 1.5 } else { v }));
    world.bend(Signal::ClockReasons, |n, g, i, v| Some(if (n, g) == (0, 6) && i >= 90 { 0.0 } else { v }));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "slow_worker", &["n0/6"], Some(90)));
    assert_eq!((judged.status("thermal_throttling"), judged.status("power_capping")), ("ruled_out", "ruled_out"));
}

#[test]
fn the_idle_rank_that_all_others_wait_for_is_the_culprit() {
    let mut world = World::healthy(4, 8);
    world.bend(Signal::Utilization, |n, g, i, v| {
        Some(if i < 120 {
            v
        } else if (n, g) == (3, 1) {
            12.0 + 3.0 * noise(n, g, i)
        } else {
            100.0
        })
    });
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 120 { v * 6.0 } else { v }));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "slow_worker", &["n3/1"], Some(120)));
}

#[test]
fn input_that_comes_late_starves_all_gpus_alike() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 150 { v + 1.0 } else { v }));
    world.bend(Signal::Utilization, |_, _, i, v| Some(if i >= 150 { v * 0.55 } else { v }));
    world.bend(Signal::Power, |_, _, i, v| Some(if i >= 150 { v * 0.6 } else { v }));
    let inferred = world.diagnose();
    assert_eq!(inferred.verdict(), verdict("answered", "data_loader_bottleneck", &["J123"], Some(150)));
    world.set(Signal::DataLoading, |_, _, i| Some(if i >= 150 { 1.02 } else { 0.02 } + 0.004 * noise(0, 1, i)));
    let timed = world.diagnose();
    assert_eq!(timed.verdict(), verdict("answered", "data_loader_bottleneck", &["J123"], Some(150)));
    world.set(Signal::DataLoading, |_, _, i| Some(0.02 + 0.004 * noise(0, 1, i)));
    assert_eq!(world.diagnose().status("data_loader_bottleneck"), "ruled_out");
}

#[test]
fn a_job_that_always_waited_for_input_is_found_by_its_timer() {
    let mut world = World::healthy(1, 8);
    world.set(Signal::DataLoading, |_, _, i| Some(0.6 + 0.01 * noise(0, 1, i)));
    world.bend(Signal::Utilization, |_, _, _, v| Some(v * 0.5));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "data_loader_bottleneck", &["J123"], None));
}

#[test]
fn dips_that_meet_checkpoints_are_checkpoints() {
    let mut world = World::healthy(2, 4);
    world.bend(Signal::Utilization, |_, _, i, v| Some(if i % 30 < 5 && i > 5 { 4.0 } else { v }));
    world.bend(Signal::Power, |_, _, i, v| Some(if i % 30 < 5 && i > 5 { v * 0.3 } else { v }));
    world.events = (1..8).map(|k| (k * 30, "checkpoint".to_owned(), "checkpoint written".to_owned())).collect();
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "checkpoint_stall", &["J123"], None));
}

#[test]
fn checkpoints_that_take_longer_are_found_by_their_timer() {
    let mut world = World::healthy(2, 4);
    world.set(Signal::CheckpointTime, |_, _, i| {
        (i % 10 == 0).then_some(if i >= 120 { 95.0 } else { 12.0 } + noise(0, 2, i))
    });
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "checkpoint_stall", &["J123"], Some(120)));
}

#[test]
fn storage_pressure_on_the_nodes_is_named_beside_the_loader() {
    let mut world = World::healthy(3, 8);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 100 { v * 2.0 } else { v }));
    world.bend(Signal::Utilization, |_, _, i, v| Some(if i >= 100 { v * 0.5 } else { v }));
    world.set_increase(Signal::IoPressure, |n, _, i| Some(if i >= 100 { 30.0 } else { 0.5 } + 0.2 * noise(n, 0, i)));
    let judged = world.diagnose();
    let mut supported = judged.supported();
    supported.sort_unstable();
    assert_eq!(supported, vec!["data_loader_bottleneck", "storage_bottleneck"]);
}

#[test]
fn a_gpu_that_vanishes_is_found_by_its_silence_and_the_kernel_log() {
    let mut world = World::healthy(2, 8);
    let gone = |n: usize, g: usize, i: usize, v: f64| ((n, g) != (1, 2) || i < 130).then_some(v);
    for signal in [Signal::SmClock, Signal::GpuTemperature, Signal::Power, Signal::Utilization, Signal::MemoryUsed] {
        world.bend(signal, gone);
    }
    world.bend(Signal::StepTime, |_, _, i, v| (i < 130).then_some(v));
    let silent = world.diagnose();
    assert_eq!(silent.verdict(), verdict("answered", "gpu_fell_off_bus", &["n1/2"], Some(129)));
    world.log(1, 130, "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
    let logged = world.diagnose();
    assert_eq!(logged.verdict(), verdict("answered", "gpu_fell_off_bus", &["n1/2"], Some(130)));
}

#[test]
fn a_node_that_takes_the_job_down_has_failed_and_one_that_does_not_lacks_telemetry() {
    let mut world = World::healthy(3, 4);
    for signal in [Signal::SmClock, Signal::GpuTemperature, Signal::Power, Signal::Utilization, Signal::MemoryUsed] {
        world.bend(signal, |n, _, i, v| (n != 1 || i < 140).then_some(v));
    }
    let gap = world.diagnose();
    assert_eq!(gap.status("telemetry_gap"), "supported");
    assert_eq!((gap.outcome(), gap.status("node_failure")), ("no_fault", "ruled_out"));
    let missing = gap.0.causes.iter().find(|cause| cause.id == "telemetry_gap").unwrap();
    assert_eq!(missing.onset, Some(crate::worlds::at(139)));
    assert!(missing.claims.iter().any(|claim| claim.text.contains("before the hole")), "{:?}", missing.claims);
    world.bend(Signal::StepTime, |_, _, i, v| (i < 141).then_some(v));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "node_failure", &["n1"], Some(139)));
}

#[test]
fn remapped_rows_and_memory_xids_are_hardware_degradation() {
    let mut world = World::healthy(2, 8);
    world.set_increase(Signal::RemappedUncorrectable, |n, g, i| Some(if (n, g, i) == (0, 4, 77) { 1.0 } else { 0.0 }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "hardware_degradation", &["n0/4"], Some(77)));
    let mut logged = World::healthy(2, 8);
    logged.log(0, 78, "NVRM: Xid (PCI:0000:04:00): 94, pid=2503421, name=python3, Ch 00000008");
    assert_eq!(logged.diagnose().verdict(), verdict("answered", "hardware_degradation", &["n0/4"], Some(78)));
    // A line with a bus address that no series tells is of the GPU that counts.
    world.log(0, 78, "NVRM: Xid (PCI:0007:e9:00): 64, pid='<unknown>', name=<unknown>, Row Remapper Error: (0x0000) - All reserved rows for bank are remapped");
    assert_eq!(world.diagnose().verdict(), verdict("answered", "hardware_degradation", &["n0/4"], Some(77)));
}

#[test]
fn an_old_code_in_the_sticky_gauge_is_no_fault_and_a_new_one_is() {
    let mut world = World::healthy(2, 8);
    world.set(Signal::LastXid, |n, g, _| Some(if (n, g) == (1, 1) { 64.0 } else { 0.0 }));
    assert_eq!(world.diagnose().outcome(), "no_fault");
    world.set(Signal::LastXid, |n, g, i| Some(if (n, g) == (1, 1) && i >= 50 { 64.0 } else { 0.0 }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "hardware_degradation", &["n1/1"], Some(50)));
}

#[test]
fn an_application_xid_accuses_no_hardware() {
    let mut world = World::healthy(2, 8);
    world.log(0, 78, "NVRM: Xid (PCI:0000:04:00): 31, pid=25, name=python3, Ch 00000008");
    assert_eq!(world.diagnose().outcome(), "no_fault");
}

#[test]
fn the_first_nvlink_xid_names_the_culprit_not_the_most_frequent() {
    let mut world = World::healthy(1, 8);
    world.log(0, 90, "NVRM: Xid (PCI:0000:05:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6)");
    for bus in 0..4 {
        world.log(
            0,
            91,
            &format!("NVRM: Xid (PCI:0000:{bus:02x}:00): 45, pid=18, name=p, Ch 01 caused by previous Xid 149"),
        );
    }
    assert_eq!(world.diagnose().verdict(), verdict("answered", "nvlink_fault", &["n0/5"], Some(90)));
}

#[test]
fn nvlink_replays_on_one_gpu_are_a_fault() {
    let mut world = World::healthy(1, 8);
    world.set_increase(Signal::NvlinkReplay, |_, g, i| Some(if g == 2 && i >= 60 && i % 4 == 0 { 3.0 } else { 0.0 }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "nvlink_fault", &["n0/2"], Some(60)));
}

#[test]
fn errors_on_one_nodes_port_are_a_link_fault_and_a_few_on_all_are_not() {
    let mut world = World::healthy(4, 8);
    world.set_increase(Signal::IbSymbolErrors, |n, _, i| Some(if i % 9 == n { 1.0 } else { 0.0 }));
    assert_eq!(world.diagnose().status("network_link_fault"), "ruled_out");
    world.set_increase(Signal::IbSymbolErrors, |n, _, i| {
        Some(if n == 2 && i >= 100 {
            400.0 + 50.0 * noise(n, 0, i)
        } else if i % 9 == n {
            1.0
        } else {
            0.0
        })
    });
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 100 { v * 1.4 } else { v }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "network_link_fault", &["n2"], Some(100)));
}

#[test]
fn waits_on_all_nodes_are_congestion() {
    let mut world = World::healthy(4, 8);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 110 { v * 1.6 } else { v }));
    world.bend(Signal::TensorActive, |_, _, i, v| Some(if i >= 110 { v * 0.6 } else { v }));
    world.set_increase(Signal::IbTransmitWait, |n, _, i| {
        Some(if i >= 110 { 9e6 } else { 4e5 } * (1.0 + 0.1 * noise(n, 0, i)))
    });
    assert_eq!(world.diagnose().verdict(), verdict("answered", "network_congestion", &["J123"], Some(110)));
}

#[test]
fn a_link_with_fewer_lanes_is_pcie_degradation_and_an_idle_generation_is_not_looked_at() {
    let mut world = World::healthy(2, 4);
    world.set(Signal::PcieWidth, |n, g, i| Some(if (n, g) == (1, 3) && i >= 70 { 8.0 } else { 16.0 }));
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 70 { v * 1.2 } else { v }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "pcie_degradation", &["n1/3"], Some(70)));
}

#[test]
fn memory_that_climbs_to_the_end_is_a_leak_and_a_warm_up_is_not() {
    let mut world = World::healthy(1, 4);
    world.bend(Signal::MemoryUsed, |_, _, i, v| Some(v * 0.5 + 120.0 * i as f64));
    assert_eq!(world.diagnose().first().id, "memory_leak");
    let mut warm = World::healthy(1, 4);
    warm.bend(Signal::MemoryUsed, |_, _, i, v| Some(if i < 20 { v * (0.4 + 0.03 * i as f64) } else { v }));
    assert_eq!(warm.diagnose().status("memory_leak"), "ruled_out");
}

#[test]
fn a_warm_day_is_nobodys_fault() {
    let mut world = World::healthy(2, 8);
    let day = |i: usize| (i as f64 / 240.0 * std::f64::consts::PI).sin();
    world.bend(Signal::GpuTemperature, move |_, _, i, v| Some(v + 6.0 * day(i)));
    world.bend(Signal::SmClock, move |_, _, i, v| Some(v * (1.0 - 0.018 * day(i))));
    world.bend(Signal::StepTime, move |_, _, i, v| Some(v * (1.0 + 0.018 * day(i))));
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("ambient_variation")), ("no_fault", "supported"));
}

#[test]
fn a_job_bound_by_memory_says_so() {
    let mut world = World::healthy(1, 8);
    world.bend(Signal::DramActive, |_, _, _, v| Some(v + 0.35));
    world.bend(Signal::TensorActive, |_, _, _, v| Some(v - 0.4));
    assert_eq!(world.diagnose().verdict(), verdict("no_fault", "memory_bandwidth_bound", &["J123"], None));
}

#[test]
fn nothing_collected_is_insufficient_data_and_not_innocence() {
    let mut world = World::healthy(2, 8);
    world.without(Signal::ALL);
    let judged = world.diagnose();
    assert_eq!(judged.outcome(), "insufficient_data");
    let judged_all_the_same: Vec<&str> = judged
        .0
        .causes
        .iter()
        .filter(|c| c.status != sightline_model::CauseStatus::NoData)
        .map(|c| c.id.as_str())
        .collect();
    // That the job kept its GPUs stands in the scheduler's books.
    assert_eq!(judged_all_the_same, vec!["preemption"]);
}

#[test]
fn a_missing_metric_is_no_data_for_its_cause_and_not_ruled_out() {
    let mut world = World::healthy(2, 8);
    world.without(&[Signal::SmClock, Signal::MemoryUsed, Signal::RemappedUncorrectable]);
    let judged = world.diagnose();
    let missing = [
        "thermal_throttling",
        "power_capping",
        "slow_worker",
        "hardware_degradation",
        "memory_leak",
        "pcie_degradation",
    ];
    assert!(missing.iter().all(|id| judged.status(id) == "no_data"), "{:?}", missing.map(|id| judged.status(id)));
}

#[test]
fn a_slowdown_that_nothing_explains_is_not_blamed_on_anybody() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 100 { v * 1.5 } else { v }));
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.supported()), ("insufficient_data", vec![]));
}

#[test]
fn profiling_counters_that_read_zero_on_busy_gpus_are_called_broken() {
    let mut world = World::healthy(2, 8);
    world.set(Signal::SmActive, |_, _, _| Some(0.0));
    let judged = world.diagnose();
    assert_eq!(judged.outcome(), "no_fault");
    assert!(judged.0.data_health.iter().any(|l| l.contains("SM activity read zero")), "{:?}", judged.0.data_health);
}

#[test]
fn a_fault_before_the_window_is_not_todays_cause() {
    let mut world = World::healthy(2, 8);
    world.window = (160, 240);
    world.bend(Signal::SmClock, |n, g, i, v| Some(if (n, g) == (0, 3) && (20..60).contains(&i) { 1100.0 } else { v }));
    assert_eq!(world.diagnose().outcome(), "no_fault");
}

#[test]
fn the_diagnosis_of_a_hot_gpu_reads_well() {
    let mut world = World::healthy(2, 8);
    hot(&mut world);
    world.read_logs();
    let judged = world.diagnose();
    let first = judged.first();
    let mut text = format!("{}\n", judged.0.headline.text);
    for claim in judged.0.claims.iter().chain([&first.why]).chain(&first.claims) {
        text.push_str(&format!("- {}\n", claim.text));
    }
    for cause in judged.0.causes.iter().skip(1) {
        text.push_str(&format!("{:?} {}: {}\n", cause.status, cause.id, cause.why.text));
    }
    insta::assert_snapshot!(text);
}
