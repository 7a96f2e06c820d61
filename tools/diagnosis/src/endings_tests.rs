//! Jobs that failed, that have only begun, or whose node got another driver: what must not pass for a healthy, busy job.

use crate::signal::Signal;
use crate::training_worlds::{gpu_oom, verdict, watched};
use crate::worlds::{World, noise};

fn xid_119(world: &mut World, node: usize, minute: usize, gpu: usize) {
    let line = format!(
        "NVRM: Xid (PCI:0000:{gpu:02x}:00): 119, pid=10200, name=python3, Timeout after 45s of waiting for RPC response from GPU{gpu} GSP!"
    );
    world.log(node, minute, &line);
}

fn upgraded(world: &mut World, node: usize, minute: usize) {
    world.events.push((minute, format!("driver_upgrade@{node}"), "driver upgraded".to_owned()));
}

#[test]
fn a_job_that_failed_for_no_recorded_reason_is_not_called_healthy() {
    let mut world = watched(2, 8);
    (world.state, world.ended) = ("completed", true);
    assert_eq!(world.diagnose().outcome(), "no_fault");
    world.state = "failed";
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("compute_bound")), ("insufficient_data", "ruled_out"));
    assert!(judged.0.headline.text.contains("failed"), "{}", judged.0.headline.text);
}

#[test]
fn a_window_before_the_end_of_a_failed_job_is_judged_by_itself() {
    let mut world = watched(2, 8);
    (world.state, world.window) = ("failed", (0, 120));
    assert_eq!(world.diagnose().outcome(), "no_fault");
}

#[test]
fn being_busy_does_not_explain_memory_that_ran_out() {
    assert_eq!(gpu_oom().diagnose().supported(), ["out_of_memory"]);
}

#[test]
fn a_job_of_a_few_minutes_has_no_past_to_be_compared_with() {
    let mut world = watched(1, 8);
    (world.window, world.minutes) = ((0, 7), 7);
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("compute_bound")), ("insufficient_data", "ruled_out"));
    (world.window, world.minutes) = ((0, 60), 60);
    assert_eq!(world.diagnose().outcome(), "no_fault");
}

#[test]
fn without_a_timer_gpus_that_do_less_are_not_called_healthy() {
    let mut world = watched(2, 8);
    world.without(&[Signal::StepTime, Signal::ComputeTime, Signal::CommunicationTime, Signal::DataLoading]);
    assert_eq!(world.diagnose().outcome(), "no_fault");
    world.bend(Signal::TensorActive, |_, _, i, v| Some(if i >= 120 { v * 0.7 } else { v }));
    assert_eq!(world.diagnose().outcome(), "insufficient_data");
}

#[test]
fn timeouts_on_a_node_that_just_got_another_driver_are_the_drivers_unless_the_gpu_reports_harm() {
    let mut world = watched(2, 4);
    world.minutes = 240;
    upgraded(&mut world, 1, 60);
    xid_119(&mut world, 1, 140, 2);
    assert_eq!(world.diagnose().verdict(), verdict("answered", "driver_regression", &["n1"], Some(140)));
    world.set_increase(Signal::RemappedUncorrectable, |n, g, i| Some(if (n, g, i) == (1, 2, 130) { 3.0 } else { 0.0 }));
    assert_eq!(world.diagnose().verdict().1, "hardware_degradation");
}

#[test]
fn timeouts_on_another_node_than_the_upgraded_one_are_not_the_drivers() {
    let mut world = watched(2, 4);
    upgraded(&mut world, 0, 60);
    xid_119(&mut world, 1, 140, 2);
    assert_eq!(world.diagnose().verdict().1, "hardware_degradation");
}

#[test]
fn an_upgrade_between_a_faster_run_and_this_one_makes_one_earlier_run_enough() {
    let mut world = watched(2, 8);
    (world.runs, world.image) = (vec![("trainer:7", 0.9)], "trainer:7");
    assert_eq!(world.diagnose().outcome(), "no_fault");
    upgraded(&mut world, 0, 0);
    upgraded(&mut world, 1, 0);
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.verdict().1), ("answered", "driver_regression"));
}

#[test]
fn all_nodes_of_one_round_of_upgrades_are_meant() {
    let mut world = watched(2, 8);
    world.drivers = vec!["570.86.10"; 2];
    upgraded(&mut world, 0, 118);
    upgraded(&mut world, 1, 121);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 125 { v * 1.25 } else { v }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "driver_regression", &["n0", "n1"], Some(125)));
}

#[test]
fn links_that_are_full_for_the_part_of_a_step_in_which_nothing_is_computed_are_the_narrow_place() {
    // Two fifths of each step are copies at the speed of the link, so that the mean rate is two fifths of it.
    let world = |rate: f64| {
        let mut world = watched(2, 8);
        world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 100 { v / 0.6 } else { v }));
        world.bend(Signal::PcieReceive, move |n, g, i, v| Some(if i >= 100 { rate + 2e8 * noise(n, g, i) } else { v }));
        for signal in [Signal::SmActive, Signal::TensorActive, Signal::Utilization, Signal::Power] {
            world.bend(signal, |_, _, i, v| Some(if i >= 100 { v * 0.6 } else { v }));
        }
        world
    };
    assert_eq!(
        world(0.4 * 2.5e10).diagnose().verdict(),
        verdict("answered", "host_to_device_bottleneck", &["J123"], Some(100))
    );
    assert_eq!(world(2e9).diagnose().status("host_to_device_bottleneck"), "ruled_out");
}

#[test]
fn long_pauses_of_all_gpus_that_come_again_are_late_input_and_short_ones_are_not() {
    let world = |pause: usize| {
        let mut world = watched(2, 8);
        world.without(&[Signal::StepTime, Signal::DataLoading, Signal::ComputeTime, Signal::CommunicationTime]);
        for signal in [Signal::Utilization, Signal::Power, Signal::SmActive, Signal::TensorActive] {
            world.bend(signal, move |_, _, i, v| Some(if i % 75 >= 75 - pause { v * 0.1 } else { v }));
        }
        world
    };
    assert_eq!(world(7).diagnose().verdict(), verdict("answered", "data_loader_bottleneck", &["J123"], None));
    assert_eq!(world(2).diagnose().outcome(), "no_fault");
}

#[test]
fn ranks_that_take_turns_at_waiting_for_input_are_a_slow_loader_and_not_uneven_work() {
    let mut world = watched(1, 8);
    world.ranked.push(Signal::DataLoading);
    let last = |g: usize, i: usize| i / 30 % 8 == g;
    world.bend(Signal::StepTime, |_, _, _, v| Some(v + 0.5));
    world.bend(Signal::DataLoading, move |_, g, i, v| Some(if last(g, i) { v + 0.5 } else { v }));
    world.bend(Signal::CommunicationTime, move |_, g, i, v| Some(if last(g, i) { v } else { v + 0.5 }));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), verdict("answered", "data_loader_bottleneck", &["J123"], None));
    assert_eq!((judged.status("workload_imbalance"), judged.status("slow_worker")), ("ruled_out", "ruled_out"));
}

#[test]
fn the_node_whose_ranks_are_late_is_named_and_its_busy_cpus_are_why() {
    let world = |busy: bool| {
        let mut world = watched(4, 8);
        world.ranked.push(Signal::DataLoading);
        world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 110 { v + 0.9 } else { v }));
        world.bend(Signal::DataLoading, |n, _, i, v| Some(if i >= 110 && n == 2 { v + 0.9 } else { v }));
        world.bend(Signal::CommunicationTime, |n, _, i, v| Some(if i >= 110 && n != 2 { v + 0.9 } else { v }));
        world.bend(Signal::CpuTime, move |n, mode, i, v| {
            Some(if busy && n == 2 && i >= 110 { [90.0, 3500.0, 240.0, 8.0][mode] + 0.01 * v } else { v })
        });
        world.diagnose()
    };
    assert_eq!(world(true).verdict(), verdict("answered", "cpu_preprocessing_bottleneck", &["n2"], Some(110)));
    assert_eq!(world(false).verdict(), verdict("answered", "data_loader_bottleneck", &["n2"], Some(110)));
}

#[test]
fn the_only_rank_whose_input_is_late_is_named_and_not_its_node() {
    let mut world = watched(4, 8);
    world.ranked.push(Signal::DataLoading);
    let late = |n: usize, g: usize, i: usize| i >= 110 && (n, g) == (2, 1);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 110 { v + 0.9 } else { v }));
    world.bend(Signal::DataLoading, move |n, g, i, v| Some(if late(n, g, i) { v + 0.9 } else { v }));
    world.bend(Signal::CommunicationTime, move |n, g, i, v| Some(if i >= 110 && !late(n, g, i) { v + 0.9 } else { v }));
    assert_eq!(world.diagnose().verdict(), verdict("answered", "data_loader_bottleneck", &["n2/1"], Some(110)));
}
