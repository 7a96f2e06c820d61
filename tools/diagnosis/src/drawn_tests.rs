//! Worlds drawn from a seed: size, noise, gaps, ramps and what is collected vary; cause and culprit must not.

use crate::signal::Signal;
use crate::worlds::{World, noise};

/// Draws in 0..1 from a seed and a name, the same on every run.
fn draw(seed: u64, name: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(name.wrapping_mul(0xD1B5_4A32_D192_ED03)) | 1;
    for _ in 0..3 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 32;
    }
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

fn between(seed: u64, name: u64, low: f64, high: f64) -> f64 {
    low + (high - low) * draw(seed, name)
}

/// A world with drawn size, noise, gaps, collection and culprit, in which one GPU becomes slow over a drawn ramp.
fn drawn(seed: u64, kind: &str) -> (World, (usize, usize)) {
    let nodes = 1 + (draw(seed, 1) * 4.0) as usize;
    let mut world = World::healthy(nodes, 8);
    let culprit = ((draw(seed, 2) * nodes as f64) as usize, (draw(seed, 3) * 8.0) as usize);
    let onset = between(seed, 4, 40.0, 180.0);
    let ramp = between(seed, 5, 0.5, 15.0);
    let depth = between(seed, 6, 0.12, 0.5);
    let shaky = between(seed, 7, 1.0, 6.0);
    let heat = between(seed, 8, 9.0, 24.0);
    let share = move |i: usize| ((i as f64 - onset) / ramp).clamp(0.0, 1.0);
    let kind_is = |k: &str| kind == k;
    let (thermal, power, plain, input) = (
        kind_is("thermal_throttling"),
        kind_is("power_capping"),
        kind_is("slow_worker"),
        kind_is("data_loader_bottleneck"),
    );
    let one = thermal || power || plain;
    world.bend(Signal::SmClock, move |n, g, i, v| {
        let slow = if one && (n, g) == culprit { depth * share(i) } else { 0.0 };
        let hunt = if power && (n, g) == culprit { share(i) * 12.0 * noise(n, g + 3, i) } else { 0.0 };
        Some(v * (1.0 - slow) + hunt + shaky * noise(n, g + 1, i))
    });
    world.bend(Signal::GpuTemperature, move |n, g, i, v| {
        let more = if (n, g) != culprit {
            0.0
        } else if thermal {
            heat
        } else if power || plain {
            -6.0
        } else {
            0.0
        };
        Some(v + more * share(i) + 0.3 * shaky * noise(n, g + 2, i))
    });
    world.bend(Signal::Power, move |n, g, i, v| {
        let less = match (one, (n, g) == culprit) {
            (true, true) => depth * if power { 1.5 } else { 1.1 },
            (true, false) => depth * 0.6,
            (false, _) => {
                if input {
                    0.35
                } else {
                    0.0
                }
            }
        };
        let still = power && (n, g) == culprit && share(i) >= 1.0;
        let level = v * (1.0 - less * share(i));
        Some(if still { 640.0 * (1.0 - less) + 0.4 * noise(n, g, i) } else { level + shaky * noise(n, g + 5, i) })
    });
    world.bend(Signal::Utilization, move |_, _, i, v| Some(if input { v * (1.0 - 0.4 * share(i)) } else { v }));
    world.bend(Signal::StepTime, move |_, _, i, v| {
        let longer = if one {
            1.0 / (1.0 - depth) - 1.0
        } else if input {
            0.8
        } else {
            0.0
        };
        Some(v * (1.0 + longer * share(i)))
    });
    world.bend(Signal::ClockReasons, move |n, g, i, v| {
        let bad = (n, g) == culprit && share(i) > 0.3;
        Some(if bad && thermal {
            0x48 as f64
        } else if bad && plain {
            0.0
        } else {
            v
        })
    });
    if draw(seed, 9) < 0.4 && !plain {
        world.without(&[Signal::ClockReasons]);
    }
    if draw(seed, 10) < 0.3 {
        world.without(&[Signal::StepTime]);
    }
    let holes = between(seed, 11, 0.0, 0.08);
    for signal in [Signal::SmClock, Signal::GpuTemperature, Signal::Power] {
        world.bend(signal, move |n, g, i, v| {
            (draw(seed, 1000 + (n * 8 + g) as u64 * 300 + i as u64) >= holes).then_some(v)
        });
    }
    (world, culprit)
}

#[test]
fn drawn_worlds_keep_their_cause_and_culprit() {
    let mut wrong = Vec::new();
    let mut all = 0;
    for kind in ["thermal_throttling", "power_capping", "slow_worker", "data_loader_bottleneck", "compute_bound"] {
        for seed in 0..12 {
            all += 1;
            let (world, (node, gpu)) = drawn(seed * 7 + kind.len() as u64, kind);
            let judged = world.diagnose();
            let (outcome, cause, who, _) = judged.verdict();
            let expected = match kind {
                "data_loader_bottleneck" | "compute_bound" => "J123".to_owned(),
                _ => format!("n{node}/{gpu}"),
            };
            let blind = world.lacks(Signal::StepTime) && kind == "data_loader_bottleneck";
            if !blind && (cause != kind || who != vec![expected.clone()]) {
                wrong.push(format!(
                    "{kind} {seed}: {outcome} {cause} {who:?} for {expected}, lacks {:?}",
                    world.lacking()
                ));
            }
        }
    }
    assert!(wrong.len() * 20 <= all, "{} of {all} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
