//! Jobs that stand still, lose their GPUs, or wait for somebody else.

use crate::signal::Signal;
use crate::worlds::{World, noise};

const HALT: usize = 150;

/// All GPUs spin in a collective from minute 150 on, except those that `waits` leaves out, and the job makes no progress.
fn hang(nodes: usize, gpus: usize, waits: impl Fn(usize, usize) -> bool + Copy + 'static) -> World {
    let mut world = World::healthy(nodes, gpus);
    let spins = move |n: usize, g: usize, i: usize| i >= HALT && waits(n, g);
    world.bend(Signal::StepTime, |_, _, i, v| (i < HALT).then_some(v));
    world.bend(Signal::Utilization, move |n, g, i, v| Some(if spins(n, g, i) { 100.0 } else { v }));
    world.bend(Signal::Power, move |n, g, i, v| Some(if spins(n, g, i) { 190.0 + 3.0 * noise(n, g, i) } else { v }));
    world.bend(Signal::SmActive, move |n, g, i, v| Some(if spins(n, g, i) { 0.1 } else { v }));
    world.bend(Signal::TensorActive, move |n, g, i, v| Some(if spins(n, g, i) { 0.0 } else { v }));
    world.bend(Signal::DramActive, move |n, g, i, v| Some(if spins(n, g, i) { 0.01 } else { v }));
    world
}

fn names(who: &[&str]) -> Vec<String> {
    who.iter().map(|w| (*w).to_owned()).collect()
}

#[test]
fn a_job_that_spins_without_progress_hangs_since_it_stopped_and_not_since_it_ended() {
    let mut world = hang(2, 8, |_, _| true);
    assert_eq!(world.diagnose().verdict(), ("answered", "collective_hang", names(&["J123"]), Some(HALT - 1)));
    world.without(&[Signal::SmActive, Signal::TensorActive, Signal::DramActive]);
    assert_eq!(world.diagnose().verdict().1, "collective_hang");
    // A step counter that goes on being written tells it too.
    let mut counted = hang(2, 8, |_, _| true);
    counted.without(&[Signal::StepTime]);
    counted.set_increase(Signal::TrainingSteps, |_, _, i| Some(if i < HALT { 50.0 } else { 0.0 }));
    assert_eq!(counted.diagnose().verdict(), ("answered", "collective_hang", names(&["J123"]), Some(HALT - 1)));
    // So does an exporter that repeats the last step time.
    let mut stuck = hang(2, 8, |_, _| true);
    stuck.set(Signal::StepTime, |_, _, i| Some(1.2 + 0.02 * noise(0, 0, i.min(HALT - 1))));
    assert_eq!(stuck.diagnose().verdict(), ("answered", "collective_hang", names(&["J123"]), Some(HALT - 1)));
}

#[test]
fn the_gpu_with_nothing_to_do_is_the_one_that_all_others_wait_for() {
    let mut world = hang(2, 8, |n, g| (n, g) != (1, 4));
    world.bend(Signal::Utilization, |n, g, i, v| Some(if (n, g) == (1, 4) && i >= HALT { 0.0 } else { v }));
    world.bend(Signal::Power, |n, g, i, v| Some(if (n, g) == (1, 4) && i >= HALT { 90.0 } else { v }));
    assert_eq!(world.diagnose().verdict(), ("answered", "collective_hang", names(&["n1/4"]), Some(HALT - 1)));
}

#[test]
fn the_gpu_that_goes_on_while_all_others_wait_is_named() {
    let world = hang(2, 8, |n, g| (n, g) != (0, 6));
    assert_eq!(world.diagnose().verdict(), ("answered", "collective_hang", names(&["n0/6"]), Some(HALT - 1)));
}

#[test]
fn the_port_that_failed_first_goes_before_who_reports_a_failed_transfer() {
    let mut world = hang(3, 8, |_, _| true);
    world.ended = true;
    world.state = "failed";
    world.log(1, HALT, "NCCL WARN NET/IB : mlx5_0:1 Got async event : port error");
    world.log(2, HALT + 3, "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129");
    world.log(
        0,
        180,
        "[rank2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE) ran for 1800000 ms",
    );
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("answered", "network_link_fault", names(&["n1"]), Some(HALT)));
    assert_eq!(judged.supported(), vec!["network_link_fault", "collective_hang"]);
}

#[test]
fn the_rank_whose_watchdog_says_nothing_is_the_one_that_did_not_come() {
    let mut world = hang(1, 4, |_, _| true);
    for rank in [0, 1, 3] {
        let body =
            format!("[rank{rank}] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE) ran long");
        world.log(0, 165, &body);
    }
    assert_eq!(world.diagnose().verdict(), ("answered", "collective_hang", names(&["n0/2"]), Some(HALT - 1)));
    let mut counted = hang(1, 4, |_, _| true);
    for (rank, collective) in [(0, 91), (1, 90), (2, 91), (3, 91)] {
        let body = format!(
            "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={collective}, OpType=X)"
        );
        counted.log(0, 165, &body);
    }
    assert_eq!(counted.diagnose().verdict(), ("answered", "collective_hang", names(&["n0/1"]), Some(HALT - 1)));
}

#[test]
fn a_gpu_that_fell_off_the_bus_is_the_cause_and_the_hang_how_it_shows() {
    let mut world = hang(2, 8, |_, _| true);
    for signal in [Signal::GpuTemperature, Signal::SmClock, Signal::Power, Signal::Utilization] {
        world.bend(signal, |n, g, i, v| ((n, g) != (1, 2) || i < HALT).then_some(v));
    }
    world.log(1, HALT, "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
    world.log(0, 165, "[rank0] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE) ran long");
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("answered", "gpu_fell_off_bus", names(&["n1/2"]), Some(HALT)));
    assert!(judged.supported().contains(&"collective_hang"));
}

#[test]
fn a_job_that_stands_still_on_idle_gpus_waits_for_something_else() {
    let mut world = World::healthy(2, 8);
    world.bend(Signal::StepTime, |_, _, i, v| (i < HALT).then_some(v));
    world.bend(Signal::Utilization, |_, _, i, v| Some(if i >= HALT { 0.0 } else { v }));
    world.bend(Signal::Power, |_, _, i, v| Some(if i >= HALT { 80.0 } else { v }));
    assert_eq!(world.diagnose().status("collective_hang"), "ruled_out");
}

#[test]
fn a_pause_that_the_job_came_out_of_is_no_hang() {
    let mut world = hang(2, 8, |_, _| true);
    world.bend(Signal::StepTime, |_, _, _, v| Some(v));
    world.set(Signal::StepTime, |_, _, i| (!(HALT..HALT + 12).contains(&i)).then(|| 1.2 + 0.02 * noise(0, 0, i)));
    assert_eq!(world.diagnose().status("collective_hang"), "ruled_out");
    assert_eq!(World::healthy(2, 8).diagnose().status("collective_hang"), "ruled_out");
}

#[test]
fn a_job_that_was_preempted_says_so_by_its_event() {
    let mut world = World::healthy(2, 8);
    world.attempts = vec![(0, Some(100)), (140, None)];
    let away = |i: usize| (100..140).contains(&i);
    world.bend(Signal::StepTime, move |_, _, i, v| (!away(i)).then_some(v));
    world.bend(Signal::Utilization, move |_, _, i, v| Some(if away(i) { 0.0 } else { v }));
    assert_eq!(world.diagnose().verdict(), ("answered", "preemption", names(&["J123"]), Some(100)));
    assert!(world.diagnose().first().why.text.contains("not recorded"));
    world.events.push((100, "preemption".to_owned(), "J123 gave its nodes to J777".to_owned()));
    let judged = world.diagnose();
    assert_eq!(judged.verdict(), ("answered", "preemption", names(&["J123"]), Some(100)));
    assert!(judged.first().why.text.starts_with("The job was preempted"));
    let mut other = World::healthy(2, 8);
    other.events.push((100, "preemption".to_owned(), "J900 gave its nodes to J777".to_owned()));
    assert_eq!(other.diagnose().status("preemption"), "ruled_out");
}

/// The job becomes slower from minute 120 on, and its nodes wait for storage.
fn starved(nodes: usize) -> World {
    let mut world = World::healthy(nodes, 8);
    world.bend(Signal::StepTime, |_, _, i, v| Some(if i >= 120 { v * 1.4 } else { v }));
    world.set_increase(Signal::IoPressure, |n, g, i| Some(if i >= 120 { 25.0 } else { 1.0 } + 0.4 * noise(n, g, i)));
    world.set_increase(Signal::NetworkReceived, |n, g, i| Some(4.0e9 + 1e8 * noise(n, g, i)));
    world
}

#[test]
fn a_run_that_begins_when_what_is_shared_becomes_short_is_the_neighbour() {
    let mut world = starved(3);
    assert_eq!(world.diagnose().first().id, "storage_bottleneck");
    world.others.push(("J500", "etl", 117, None, "running", vec![]));
    world.others.push(("J501", "idle", 10, None, "running", vec![]));
    assert_eq!(world.diagnose().verdict(), ("answered", "noisy_neighbour", names(&["J500"]), Some(120)));
    world.set_increase(Signal::NetworkReceived, |_, _, i| Some(if i >= 120 { 9.0e9 } else { 4.0e9 }));
    assert_eq!(world.diagnose().status("noisy_neighbour"), "ruled_out");
}

#[test]
fn a_run_that_begins_beside_a_healthy_job_is_not_accused() {
    let mut world = World::healthy(2, 8);
    world.others.push(("J500", "etl", 117, None, "running", vec![0, 1]));
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("noisy_neighbour")), ("no_fault", "ruled_out"));
}
