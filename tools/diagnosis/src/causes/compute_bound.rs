//! A job that is as fast as its GPUs are: an explanation, not a fault.
//!
//! Speaks for it: a level pace, busy GPUs that do work and do not just spin, no GPU that stands out. Rules it out: the job became
//! slower, or a GPU stands out. Trap: utilisation alone proves nothing, a hung collective shows 100 too; power or SM activity must agree.

use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::telemetry_gap::{POOR_COVERAGE, mean_coverage};
use crate::clocks::Reason;
use crate::pace::Pace;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "compute_bound", assess };

/// Utilisation from which a GPU counts as busy all the time.
const BUSY: f64 = 90.0;

/// NVIDIA's DCGM guide: below an SM activity of 0.5 a GPU is likely used ineffectively; one that only spins in a collective
/// keeps a few SMs busy and stays far below.
const ACTIVE: f64 = 0.5;

/// Without SM activity: a GPU that spins in a collective draws far less than it has drawn at its best.
const POWER_SHARE: f64 = 0.7;

/// Whether the job keeps its pace on healthy, busy GPUs: the common ground of the explanations that are no faults.
pub(crate) fn healthy_and_busy(case: &Case<'_>) -> Option<bool> {
    let view = case.view(Signal::Utilization)?;
    let busy = view.typical(case.window)? >= BUSY;
    let level = !matches!(case.pace, Pace::Slower(_));
    let odd = case.clocks.iter().any(|c| c.reason != Reason::Idle) || !case.stopped.is_empty() || case.stall.is_some();
    // What was seen of half the window or less says nothing about the rest.
    let covered = mean_coverage(case, view)? >= POOR_COVERAGE;
    Some(busy && level && !odd && covered)
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
    if !healthy || !working {
        let mut why = Sentence::new(
            "Not the explanation: the job's pace changed, a GPU stands out, or the GPUs are not fully at work.",
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
