//! Causes of slow training in pairs that look alike, and the check that tells them apart.

use crate::signal::Signal;
use crate::training_worlds::{
    cpu_preprocessing, deploy, gpu_oom, host_oom, host_to_device, kernels, late_input, newer_driver, slower, stages,
    uneven, verdict, watched,
};
use crate::worlds::noise;

#[test]
fn busy_cpus_without_late_input_and_late_input_with_idle_cpus_are_no_preprocessing_bottleneck() {
    let mut busy = watched(3, 8);
    busy.bend(Signal::CpuTime, |_, mode, _, v| Some([90.0, 3500.0, 240.0, 8.0][mode] + 0.01 * v));
    assert_eq!(
        (busy.diagnose().outcome(), busy.diagnose().status("cpu_preprocessing_bottleneck")),
        ("no_fault", "ruled_out")
    );
    let mut late = watched(3, 8);
    late_input(&mut late, 100);
    let judged = late.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "data_loader_bottleneck", &["J123"], Some(100)));
    assert_eq!(judged.status("cpu_preprocessing_bottleneck"), "ruled_out");
}

#[test]
fn cpus_are_judged_by_pressure_where_their_time_is_not_collected_and_by_nothing_otherwise() {
    let mut world = cpu_preprocessing();
    world.without(&[Signal::CpuTime]);
    world.set_increase(Signal::CpuPressure, |n, _, i| Some(if i >= 110 { 42.0 } else { 3.0 } + noise(n, 0, i)));
    assert_eq!(world.diagnose().first().id, "cpu_preprocessing_bottleneck");
    world.without(&[Signal::CpuPressure]);
    let blind = world.diagnose();
    assert_eq!(
        (blind.first().id.as_str(), blind.status("cpu_preprocessing_bottleneck")),
        ("data_loader_bottleneck", "no_data")
    );
}

#[test]
fn waits_for_io_that_come_with_checkpoints_are_writing_and_not_reading() {
    let mut world = watched(2, 4);
    let written = |i: usize| i % 30 < 5 && i >= 60;
    slower(&mut world, 60, 0.4);
    for signal in [Signal::Utilization, Signal::Power] {
        world.bend(signal, move |_, _, i, v| Some(if written(i) { v * 0.1 } else { v }));
    }
    world.bend(Signal::IoPressure, move |_, _, i, v| Some(if written(i) { 55.0 } else { v }));
    let unrecorded = world.diagnose();
    assert_eq!(
        (unrecorded.first().id.as_str(), unrecorded.status("storage_bottleneck")),
        ("checkpoint_stall", "ruled_out")
    );
    world.bend(Signal::IoPressure, |_, _, _, _| Some(0.5));
    assert_ne!(world.diagnose().status("checkpoint_stall"), "supported");
}

#[test]
fn a_barrier_that_keeps_utilisation_up_shows_its_stalls_in_power() {
    let mut world = watched(2, 4);
    world.bend(Signal::Power, |_, _, i, v| Some(if i % 24 < 4 && i > 20 { 210.0 } else { v }));
    world.events = (1..10).map(|k| (k * 24, "checkpoint".to_owned(), "checkpoint written".to_owned())).collect();
    assert_eq!(world.diagnose().first().id, "checkpoint_stall");
}

#[test]
fn full_links_on_busy_gpus_and_one_narrow_link_are_not_moving_data() {
    let mut busy = watched(2, 8);
    busy.bend(Signal::PcieReceive, |_, _, _, _| Some(2.6e10));
    assert_eq!(busy.diagnose().status("host_to_device_bottleneck"), "ruled_out");
    let mut narrow = host_to_device();
    narrow.set(Signal::PcieWidth, |n, g, _| Some(if (n, g) == (0, 2) { 4.0 } else { 16.0 }));
    let judged = narrow.diagnose();
    assert_eq!(
        (judged.first().id.as_str(), judged.status("host_to_device_bottleneck")),
        ("pcie_degradation", "ruled_out")
    );
}

#[test]
fn without_a_loader_timer_full_links_are_told_from_a_loader() {
    let mut world = host_to_device();
    world.without(&[Signal::DataLoading, Signal::PcieWidth, Signal::PcieGeneration]);
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "host_to_device_bottleneck", &["J123"], Some(100)));
    assert_eq!(judged.status("data_loader_bottleneck"), "ruled_out");
}

#[test]
fn a_host_that_kills_is_named_and_full_gpu_memory_alone_is_no_fault() {
    assert_eq!(host_oom().diagnose().verdict(), verdict("answered", "out_of_memory", &["n0"], Some(180)));
    let mut full = watched(2, 8);
    full.set(Signal::MemoryUsed, |_, _, _| Some(80_900.0));
    full.set(Signal::MemoryFree, |_, _, _| Some(130.0));
    assert_eq!((full.diagnose().outcome(), full.diagnose().status("out_of_memory")), ("no_fault", "ruled_out"));
    (full.state, full.ended) = ("failed", true);
    assert_eq!(full.diagnose().first().id, "out_of_memory");
}

#[test]
fn a_leak_that_ends_in_a_kill_is_a_leak_first() {
    let mut world = gpu_oom();
    world.bend(Signal::MemoryUsed, |_, _, i, v| Some(v * 0.5 + 120.0 * i as f64));
    assert_eq!(world.diagnose().supported()[..2], ["memory_leak", "out_of_memory"]);
}

#[test]
fn retries_with_far_more_reserved_than_taken_are_fragmentation() {
    let mut world = watched(1, 8);
    slower(&mut world, 120, 0.4);
    world.set_increase(Signal::AllocRetries, |_, _, i| Some(if i >= 120 { 3.0 } else { 0.0 }));
    world.set(Signal::MemoryReserved, |_, _, i| Some(if i >= 120 { 76.0 } else { 52.0 }));
    world.set(Signal::MemoryActive, |_, _, _| Some(31.0));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "out_of_memory", &["J123"], Some(120)));
    assert!(judged.first().claims.iter().any(|c| c.text.contains("fragmented")));
}

#[test]
fn gpus_that_wait_have_less_tensor_activity_and_no_worse_kernels() {
    let mut waiting = kernels();
    waiting.bend(Signal::SmActive, |_, _, i, v| Some(if i >= 90 { v * 0.4 } else { v }));
    assert_eq!(waiting.diagnose().status("inefficient_kernels"), "ruled_out");
    let mut precision = kernels();
    precision.set(Signal::Fp32Active, |n, g, i| Some(if i >= 90 { 0.45 } else { 0.03 } + 0.01 * noise(n, g, i)));
    assert_eq!(precision.diagnose().first().id, "inefficient_kernels");
}

#[test]
fn tensor_cores_that_were_never_used_are_found_and_memory_bound_work_is_not() {
    let mut unused = watched(1, 8);
    unused.bend(Signal::TensorActive, |_, _, _, v| Some(v * 0.08));
    assert_eq!(unused.diagnose().first().id, "inefficient_kernels");
    unused.bend(Signal::DramActive, |_, _, _, v| Some(v + 0.35));
    assert_eq!(
        (unused.diagnose().outcome(), unused.diagnose().first().id.as_str()),
        ("no_fault", "memory_bandwidth_bound")
    );
}

#[test]
fn the_same_last_rank_is_a_slow_worker_and_a_changing_one_is_uneven_work_by_the_waits_alone_too() {
    let mut same = watched(2, 8);
    slower(&mut same, 80, 0.5);
    same.bend(Signal::ComputeTime, |n, g, i, v| Some(if i >= 80 && (n, g) == (1, 2) { v + 0.5 } else { v }));
    same.bend(Signal::CommunicationTime, |n, g, i, v| Some(if i >= 80 && (n, g) != (1, 2) { v + 0.5 } else { v }));
    let judged = same.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "slow_worker", &["n1/2"], Some(80)));
    assert_eq!(judged.status("workload_imbalance"), "ruled_out");
    let mut waits = uneven();
    waits.without(&[Signal::ComputeTime]);
    assert_eq!(waits.diagnose().verdict(), verdict("answered", "workload_imbalance", &["J123"], Some(80)));
}

#[test]
fn scattered_ranks_with_more_to_do_from_the_start_are_uneven_work_and_two_of_them_are_not() {
    let more = |n: usize, g: usize| [(0, 2), (0, 7), (1, 1), (1, 4), (3, 6)].contains(&(n, g));
    let mut experts = watched(4, 8);
    experts.bend(Signal::ComputeTime, move |n, g, _, v| Some(if more(n, g) { v * 1.25 } else { v }));
    experts.bend(Signal::CommunicationTime, move |n, g, _, v| Some(if more(n, g) { v } else { v + 0.27 }));
    assert_eq!(experts.diagnose().verdict(), verdict("answered", "workload_imbalance", &["J123"], None));
    let mut two = watched(4, 8);
    two.bend(Signal::ComputeTime, |n, g, _, v| Some(if [(0, 2), (2, 5)].contains(&(n, g)) { v * 1.25 } else { v }));
    let judged = two.diagnose();
    assert_eq!((judged.first().id.as_str(), judged.status("workload_imbalance")), ("slow_worker", "ruled_out"));
}

#[test]
fn a_node_that_is_slow_from_the_start_is_no_stage_unless_its_memory_says_so() {
    let mut node = watched(4, 4);
    node.bend(Signal::ComputeTime, |n, _, _, v| Some(if n == 2 { v + 0.35 } else { v }));
    assert_eq!(node.diagnose().status("pipeline_stage_imbalance"), "ruled_out");
    node.bend(Signal::MemoryUsed, |n, _, _, v| Some(if n == 2 { v * 0.8 } else { v }));
    let judged = node.diagnose();
    assert_eq!((judged.first().id.as_str(), judged.status("slow_worker")), ("pipeline_stage_imbalance", "ruled_out"));
    let mut later = stages();
    later.bend(Signal::ComputeTime, |n, g, i, v| Some(if (n, g / 4) == (0, 1) && i < 120 { v - 0.35 } else { v }));
    assert_eq!(later.diagnose().status("pipeline_stage_imbalance"), "ruled_out");
}

#[test]
fn different_drivers_on_equally_fast_nodes_are_no_fault() {
    let mut world = newer_driver();
    world.bend(Signal::ComputeTime, |n, _, _, v| Some(if n % 2 == 1 { v / 1.2 } else { v }));
    world.bend(Signal::CommunicationTime, |n, g, i, _| Some(0.08 + 0.01 * noise(n, g + 8, i)));
    let judged = world.diagnose();
    assert_eq!(
        (judged.outcome(), judged.status("driver_regression"), judged.status("config_mismatch")),
        ("no_fault", "ruled_out", "ruled_out")
    );
}

#[test]
fn timeouts_of_the_system_processor_on_newer_drivers_only_are_the_drivers() {
    let mut world = watched(4, 4);
    world.drivers = vec!["510.85.02", "525.60.13", "525.60.13", "510.85.02"];
    for (node, minute) in [(1, 40), (2, 95)] {
        world.log(node, minute, "NVRM: Xid (PCI:0000:01:00): 119, pid=10200, name=NvmlTaskRunner, Timeout after 45s of waiting for RPC response from GPU5 GSP! Expected function 76 (GSP_RM_CONTROL)");
    }
    assert_eq!(world.diagnose().verdict(), verdict("answered", "driver_regression", &["n1", "n2"], Some(40)));
    world.drivers = vec!["525.60.13"; 4];
    assert_eq!(world.diagnose().first().id, "hardware_degradation");
}

#[test]
fn an_upgrade_right_before_the_slowdown_is_taken_and_a_later_or_earlier_one_is_not() {
    let with = |minute: usize| {
        let mut world = watched(2, 8);
        slower(&mut world, 130, 0.3);
        world.events.push((minute, "driver_upgrade".to_owned(), "driver upgraded".to_owned()));
        world.diagnose()
    };
    assert_eq!(with(126).verdict(), verdict("answered", "driver_regression", &["J123"], Some(130)));
    for minute in [20, 150] {
        assert_eq!(
            (with(minute).outcome(), with(minute).status("driver_regression")),
            ("insufficient_data", "ruled_out")
        );
    }
}

#[test]
fn a_deploy_near_a_slow_gpu_is_not_blamed() {
    let mut world = deploy();
    world.bend(Signal::SmClock, |n, g, i, v| Some(if (n, g) == (0, 5) && i >= 130 { 1300.0 } else { v }));
    world.bend(Signal::ClockReasons, |n, g, i, v| Some(if (n, g) == (0, 5) && i >= 130 { 64.0 } else { v }));
    let judged = world.diagnose();
    assert_eq!((judged.first().id.as_str(), judged.status("software_regression")), ("thermal_throttling", "ruled_out"));
}

#[test]
fn a_job_slower_than_its_own_earlier_runs_has_regressed_and_one_as_fast_has_not() {
    let mut world = watched(2, 8);
    (world.runs, world.image) = (vec![("trainer:1", 0.9), ("trainer:1", 0.91)], "trainer:2");
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "software_regression", &["J123"], None));
    // Without a record of what changed, two runs that agree are needed.
    world.image = "trainer:1";
    assert_eq!(world.diagnose().first().id, "software_regression");
    world.runs = vec![("trainer:1", 0.9)];
    assert_eq!(world.diagnose().outcome(), "no_fault");
    world.runs = vec![("trainer:1", 1.19), ("trainer:1", 1.21)];
    assert_eq!((world.diagnose().outcome(), world.diagnose().status("software_regression")), ("no_fault", "ruled_out"));
}

#[test]
fn nccl_versions_that_differ_and_clocks_set_differently_are_mismatches() {
    let mut world = watched(4, 4);
    for n in 0..4 {
        world.log(n, 1, if n == 3 { "NCCL version 2.18.3+cuda12.1" } else { "NCCL version 2.21.5+cuda12.4" });
    }
    assert_eq!(world.diagnose().verdict(), verdict("answered", "config_mismatch", &["n3"], Some(1)));
    let mut clocks = watched(4, 4);
    clocks.set(Signal::AppClock, |n, _, _| Some(if n == 2 { 1410.0 } else { 1980.0 }));
    clocks.bend(Signal::SmClock, |n, g, i, v| Some(if n == 2 { 1410.0 + 2.0 * noise(n, g, i) } else { v }));
    clocks.bend(Signal::ClockReasons, |n, _, _, v| Some(if n == 2 { 2.0 } else { v }));
    assert_eq!(clocks.diagnose().verdict(), verdict("answered", "config_mismatch", &["n2"], None));
}
