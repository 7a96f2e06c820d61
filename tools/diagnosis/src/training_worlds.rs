//! Worlds of slow training without broken hardware, one for each cause.

use crate::signal::Signal;
use crate::worlds::{World, noise};

pub(crate) type Verdict = (&'static str, &'static str, Vec<String>, Option<usize>);

pub(crate) fn verdict(outcome: &'static str, cause: &'static str, who: &[&str], onset: Option<usize>) -> Verdict {
    (outcome, cause, who.iter().map(|w| (*w).to_owned()).collect(), onset)
}

/// All ranks compute alike and wait little; hosts have CPUs to spare and links are quiet.
pub(crate) fn watched(nodes: usize, gpus: usize) -> World {
    let mut world = World::healthy(nodes, gpus);
    world.set(Signal::ComputeTime, |n, g, i| Some(1.1 + 0.01 * noise(n, g + 7, i)));
    world.set(Signal::CommunicationTime, |n, g, i| Some(0.08 + 0.01 * noise(n, g + 8, i)));
    world.set(Signal::DataLoading, |_, _, i| Some(0.01 + 0.002 * noise(0, 4, i)));
    // Sixty-four CPUs for a minute, mostly idle.
    world
        .set_increase(Signal::CpuTime, |n, mode, i| Some([3000.0, 700.0, 120.0, 20.0][mode] + 9.0 * noise(n, mode, i)));
    world.set_increase(Signal::IoPressure, |n, _, i| Some(0.5 + 0.2 * noise(n, 0, i)));
    world.set(Signal::PcieReceive, |n, g, i| Some(9e8 + 2e7 * noise(n, g + 6, i)));
    world.set(Signal::PcieWidth, |_, _, _| Some(16.0));
    world.set(Signal::PcieGeneration, |_, _, _| Some(4.0));
    world.set(Signal::MemoryFree, |n, g, i| Some(11_000.0 + 20.0 * noise(n, g + 41, i)));
    world.drivers = vec!["535.104.05"; nodes];
    world.read_logs();
    world
}

/// The whole job takes this much longer from a minute on.
pub(crate) fn slower(world: &mut World, from: usize, by: f64) {
    world.bend(Signal::StepTime, move |_, _, i, v| Some(if i >= from { v + by } else { v }));
}

pub(crate) fn late_input(world: &mut World, from: usize) {
    slower(world, from, 0.9);
    world.bend(Signal::DataLoading, move |_, _, i, v| Some(if i >= from { v + 0.9 } else { v }));
    for (signal, share) in
        [(Signal::Utilization, 0.6), (Signal::Power, 0.6), (Signal::SmActive, 0.57), (Signal::TensorActive, 0.57)]
    {
        world.bend(signal, move |_, _, i, v| Some(if i >= from { v * share } else { v }));
    }
}

pub(crate) fn cpu_preprocessing() -> World {
    let mut world = watched(3, 8);
    late_input(&mut world, 110);
    world.bend(Signal::CpuTime, |_, mode, i, v| {
        Some(if i < 110 { v } else { [90.0, 3500.0, 240.0, 8.0][mode] + 0.01 * v })
    });
    world
}

pub(crate) fn storage() -> World {
    let mut world = watched(3, 8);
    late_input(&mut world, 110);
    world.bend(Signal::IoPressure, |_, _, i, v| Some(if i >= 110 { v + 31.0 } else { v }));
    world.bend(Signal::CpuTime, |_, mode, i, v| Some(if i >= 110 && mode == 3 { v + 400.0 } else { v }));
    world
}

pub(crate) fn host_to_device() -> World {
    let mut world = watched(2, 8);
    slower(&mut world, 100, 0.8);
    world.bend(Signal::PcieReceive, |n, g, i, v| Some(if i >= 100 { 2.55e10 + 2e8 * noise(n, g, i) } else { v }));
    for signal in [Signal::SmActive, Signal::TensorActive, Signal::Utilization, Signal::Power] {
        world.bend(signal, |_, _, i, v| Some(if i >= 100 { v * 0.6 } else { v }));
    }
    world
}

pub(crate) fn gpu_oom() -> World {
    let mut world = watched(2, 8);
    world.bend(Signal::MemoryUsed, |n, g, i, v| Some(if (n, g) == (1, 3) && i >= 200 { 80_900.0 } else { v }));
    world.bend(Signal::MemoryFree, |n, g, i, v| Some(if (n, g) == (1, 3) && i >= 200 { 120.0 } else { v }));
    world.log(1, 239, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB");
    (world.state, world.ended) = ("failed", true);
    world
}

pub(crate) fn host_oom() -> World {
    let mut world = watched(2, 8);
    world.log(0, 180, "Out of memory: Killed process 41218 (python3) total-vm:912345678kB, anon-rss:498123456kB");
    (world.state, world.ended) = ("failed", true);
    world
}

pub(crate) fn kernels() -> World {
    let mut world = watched(2, 8);
    slower(&mut world, 90, 0.7);
    world.bend(Signal::ComputeTime, |_, _, i, v| Some(if i >= 90 { v + 0.7 } else { v }));
    world.bend(Signal::TensorActive, |_, _, i, v| Some(if i >= 90 { v * 0.3 } else { v }));
    world
}

/// Every four minutes another rank computes longest, and the others wait for it.
pub(crate) fn uneven() -> World {
    let mut world = watched(2, 8);
    let last = |n: usize, g: usize, i: usize| (i / 3 * 7 + i / 31) % 16 == n * 8 + g;
    slower(&mut world, 80, 0.5);
    world.bend(Signal::ComputeTime, move |n, g, i, v| Some(if i >= 80 && last(n, g, i) { v + 0.5 } else { v }));
    world.bend(Signal::CommunicationTime, move |n, g, i, v| Some(if i >= 80 && !last(n, g, i) { v + 0.5 } else { v }));
    world
}

/// The second of four stages of four ranks takes a third longer all the time.
pub(crate) fn stages() -> World {
    let mut world = watched(2, 8);
    world.bend(Signal::ComputeTime, |n, g, _, v| Some(if (n, g / 4) == (0, 1) { v + 0.35 } else { v }));
    world.bend(Signal::CommunicationTime, |n, g, _, v| Some(if (n, g / 4) == (0, 1) { v } else { v + 0.35 }));
    world.bend(Signal::StepTime, |_, _, _, v| Some(v + 0.35));
    world
}

pub(crate) fn newer_driver() -> World {
    let mut world = watched(4, 4);
    world.drivers = vec!["535.104.05", "550.54.14", "535.104.05", "550.54.14"];
    world.bend(Signal::ComputeTime, |n, _, _, v| Some(if n % 2 == 1 { v * 1.2 } else { v }));
    world.bend(Signal::CommunicationTime, |n, _, _, v| Some(if n % 2 == 1 { v } else { v + 0.22 }));
    world
}

pub(crate) fn deploy() -> World {
    let mut world = watched(2, 8);
    slower(&mut world, 130, 0.3);
    world.bend(Signal::ComputeTime, |_, _, i, v| Some(if i >= 130 { v + 0.3 } else { v }));
    world.events.push((127, "deploy".to_owned(), "image trainer:2026.05 rolled out".to_owned()));
    world
}

pub(crate) fn fabric_manager() -> World {
    let mut world = watched(2, 8);
    world.log(1, 2, "nvidia-fabricmanager: fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03.");
    world.log(1, 4, "RuntimeError: CUDA error 802: system not yet initialized");
    world.state = "failed";
    world
}
