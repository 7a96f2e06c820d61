//! A job that is as fast as its GPUs are: an explanation, not a fault.
//!
//! Speaks for it: a level pace, busy GPUs that do work and do not just spin, no GPU that stands out. Rules it out: the job became
//! slower or failed, its memory runs out, its GPUs do less than they did or not what they could, or a GPU stands out. Trap: utilisation alone proves nothing, a hung collective shows 100 too; power or SM activity must agree.

use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::causes::inefficient_kernels;
use crate::causes::memory_leak;
use crate::causes::telemetry_gap::{POOR_COVERAGE, mean_coverage};
use crate::clocks::Reason;
use crate::pace::Pace;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::shift;

pub(crate) const CHECK: Check = Check { id: "compute_bound", assess };

/// Utilisation from which a GPU counts as busy all the time.
const BUSY: f64 = 90.0;

/// NVIDIA's DCGM guide: below an SM activity of 0.5 a GPU is likely used ineffectively; one that only spins in a collective
/// keeps a few SMs busy and stays far below.
const ACTIVE: f64 = 0.5;

/// Without SM activity: a GPU that spins in a collective draws far less than it has drawn at its best.
const POWER_SHARE: f64 = 0.7;

/// Activity scatters by some percent between stretches of a healthy job; three times the smallest change that counts is a fall.
const FELL: f64 = 3.0 * MIN_RELATIVE;

/// Whether the job keeps its pace on healthy, busy GPUs: the common ground of the explanations that are no faults.
pub(crate) fn healthy_and_busy(case: &Case<'_>) -> Option<bool> {
    let view = case.view(Signal::Utilization)?;
    let busy = view.typical(case.window)? >= BUSY;
    let level = !matches!(case.pace, Pace::Slower(_));
    let odd = case.clocks.iter().any(|c| c.reason != Reason::Idle) || !case.stopped.is_empty() || case.stall.is_some();
    // What was seen of half the window or less says nothing about the rest.
    let covered = mean_coverage(case, view)? >= POOR_COVERAGE;
    // Being busy explains no death, and no memory that runs out.
    let ends_badly = case.failed() || case.just_started() || memory_leak::holds(case);
    Some(busy && level && !odd && covered && !ends_badly && !does_less(case))
}

/// Whether the GPUs do less in the last third of the window than in the first, and the job's own timers, which would tell whether its
/// pace fell with that, are missing.
pub(crate) fn does_less(case: &Case<'_>) -> bool {
    if !matches!(case.pace, Pace::Unknown) {
        return false;
    }
    let (from, to) = (case.window.from(), case.window.to());
    let third = case.window.millis() / 3;
    let thirds = (TimeRange::new(from, shift(from, third)), TimeRange::new(shift(to, -third), to));
    let (Some(early), Some(late)) = thirds else { return false };
    [Signal::TensorActive, Signal::SmActive].into_iter().filter_map(|s| case.view(s)).any(|view| {
        matches!((view.typical(early), view.typical(late)), (Some(then), Some(now)) if now < then * (1.0 - FELL))
    })
}

fn works(case: &Case<'_>) -> Option<(bool, DraftClaim)> {
    let all = Entity::new();
    if let Some(view) = case.view(Signal::SmActive).filter(|v| v.typical(case.window).is_some_and(|a| a > 0.0)) {
        let active = stat(view.evidence, &all, Stat::Mean, Some(case.window));
        let claim = Sentence::new("SM activity was {active} at the mean: the GPUs compute and do not only wait.")
            .number("active", active, 2, view.unit())
            .claim();
        return Some((view.typical(case.window)? >= ACTIVE, claim));
    }
    let view = case.view(Signal::Power)?;
    let most = view.members.iter().filter_map(|m| m.max(view.span()?)).reduce(f64::max)?;
    let (mean, peak) =
        (stat(view.evidence, &all, Stat::Mean, Some(case.window)), stat(view.evidence, &all, Stat::Max, None));
    let claim = Sentence::new(
        "The GPUs drew {mean} at the mean, close to the most that was seen, {peak}: they compute and do not only wait.",
    )
    .number("mean", mean.clone(), 0, view.unit())
    .number("peak", peak.clone(), 0, view.unit())
    .holds(mean, Relation::AtMost, peak)
    .claim();
    Some((view.typical(case.window)? >= POWER_SHARE * most, claim))
}

fn assess(case: &Case<'_>) -> Finding {
    let (Some(healthy), Some((working, work))) = (healthy_and_busy(case), works(case)) else {
        return case.no_data(&[Signal::Utilization, Signal::Power]);
    };
    if !healthy || !working || inefficient_kernels::holds(case) {
        let mut why = Sentence::new(
            "Not the explanation: the job's pace changed, it failed, its memory grows, a GPU stands out, or the GPUs are not fully at work.",
        );
        if let Some(view) = case.view(Signal::Utilization) {
            why = why.cite(&view.evidence.id);
        }
        return Finding::RuledOut(why.claim());
    }
    let mut claims = vec![work];
    if let Some(view) = case.view(Signal::Utilization) {
        let busy = stat(view.evidence, &Entity::new(), Stat::Mean, Some(case.window));
        claims.push(
            Sentence::new("GPU utilisation was {busy} at the mean over all GPUs of the job.")
                .number("busy", busy.clone(), 0, view.unit())
                .holds(busy, Relation::Above, Quantity::Constant(0.0))
                .claim(),
        );
    }
    claims.extend(case.pace.claim());
    let why = Sentence::new("The job runs at a level pace on busy GPUs, and none of them stands out: it takes as long as its computation takes.")
        .cite_all(&claims);
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: None,
        magnitude: 0.0,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset: None,
        why: why.claim(),
        claims,
        fault: false,
    }))
}
