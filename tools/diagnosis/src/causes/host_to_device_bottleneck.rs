//! Batches that are ready but cannot be moved to the GPUs fast enough.
//!
//! Needs the rate at which GPUs receive over PCIe. Speaks for it: most GPUs receive close to what their link carries, all the time or
//! during the part of each step in which they do not compute, or all links run at a low generation or width under load, while the SMs
//! have less to do. Rules it out: rates far below the link's, or SMs that
//! stay at work. Traps: the generation drops at idle by design; one link that is worse than the others is a degraded link.

use sightline_analysis::median;
use sightline_model::{DraftClaim, Entity, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "host_to_device_bottleneck", assess };

/// Bytes per second and lane that a link carries, by generation from 1 (PCI-SIG: 2.5, 5, 8, 16, 32, 64 GT/s with their coding).
const PER_LANE: [f64; 6] = [0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];

/// Packet headers and flow control leave about four fifths of the raw rate (PCI Express: 256 byte payloads); nine tenths of that is full.
const FULL: f64 = 0.72;

/// Copies must take at least a tenth of a step to be why it is long.
const LEAST_PART: f64 = 0.1;

/// Copies that came with the slowdown at least double the rate.
const TIMES_BEFORE: f64 = 2.0;

/// The slowest link under a data-centre GPU in use: generation 3 with 16 lanes. Without the link's own state its rate is taken.
const SLOWEST_USUAL: f64 = 16.0 * 0.985e9;

/// NVIDIA's DCGM guide: below an SM activity of 0.5 a GPU is likely used ineffectively.
const LITTLE_WORK: f64 = 0.5;

/// What the GPUs receive, against what their links carry.
struct Full<'v, 'a> {
    view: &'v View<'a>,
    /// Whether the link's own state says what it carries.
    proven: bool,
    claims: Vec<DraftClaim>,
}

/// Whether PCIe is the narrow place: links are full and the SMs wait.
pub(crate) fn holds(case: &Case<'_>) -> bool {
    full(case, case.focus()).is_some() && sms_wait(case).is_some()
}

fn assess(case: &Case<'_>) -> Finding {
    let Some(view) = case.view(Signal::PcieReceive) else { return case.no_data(&[Signal::PcieReceive]) };
    let range = case.focus();
    let now = stat(view.evidence, &Entity::new(), Stat::Median, Some(range));
    let Some(full) = full(case, range) else {
        let why = Sentence::new(
            "Ruled out: the GPUs receive {now} over PCIe at the median, too little to fill a link while they wait.",
        )
        .number("now", now, 0, view.unit());
        return Finding::RuledOut(why.claim());
    };
    let Some(waiting) = sms_wait(case) else {
        if [Signal::SmActive, Signal::TensorActive, Signal::Utilization].into_iter().all(|s| case.view(s).is_none()) {
            return case.no_data(&[Signal::SmActive, Signal::Utilization]);
        }
        let why = Sentence::new("Ruled out: the PCIe links are busy, but the GPUs stay at work meanwhile.");
        return Finding::RuledOut(why.cite(&view.evidence.id).claim());
    };
    let slowdown = case.pace.slowdown();
    let mut claims = full.claims;
    claims.push(waiting);
    let why = Sentence::new("The GPUs wait for data to come over PCIe: their links are full, on all of them alike.")
        .cite(&full.view.evidence.id);
    Finding::Supported(Box::new(Support {
        strength: if full.proven { Strength::Proof } else { Strength::Pattern },
        coincides: slowdown.and_then(|s| s.onset).map(|_| true),
        magnitude: 1.0 + slowdown.map_or(0.0, |s| s.factor),
        components: case.whole_job(),
        onset: slowdown.and_then(|s| s.onset).map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}

/// What one GPU's link carries, from its state under load; `None` when it is not collected.
fn carries(case: &Case<'_>, entity: &Entity, range: TimeRange) -> Option<f64> {
    let state = |signal: Signal| case.view(signal)?.members.iter().find(|m| m.entity == entity)?.median(range);
    let width = state(Signal::PcieWidth);
    let generation = state(Signal::PcieGeneration);
    let lane = |generation: f64| PER_LANE.get((generation as usize).checked_sub(1)?).copied();
    match (width, generation) {
        (Some(width), Some(generation)) => Some(width * lane(generation)?),
        (None, Some(generation)) => Some(16.0 * lane(generation)?),
        (Some(_) | None, None) => None,
    }
}

/// The part of a step in which the GPUs do not compute: what the step gained, or, from the start on, the time without a kernel. `None`
/// when nothing tells, or when it is too small to hold copies that matter.
fn waiting_part(case: &Case<'_>, range: TimeRange) -> Option<f64> {
    let part = match case.pace.slowdown() {
        Some(slowdown) => 1.0 - 1.0 / slowdown.factor,
        None => 1.0 - case.view(Signal::Utilization)?.typical(range)? / 100.0,
    };
    (part >= LEAST_PART).then_some(part)
}

fn full<'v, 'a>(case: &'v Case<'a>, range: TimeRange) -> Option<Full<'v, 'a>> {
    let view = case.view(Signal::PcieReceive)?;
    let rates: Vec<(&crate::view::Member<'_>, f64)> =
        view.members.iter().filter_map(|m| Some((m, m.median(range)?))).collect();
    let known = rates.iter().filter(|(m, _)| carries(case, m.entity, range).is_some()).count();
    let limit = |m: &crate::view::Member<'_>| carries(case, m.entity, range).unwrap_or(SLOWEST_USUAL);
    // A link that is full for a part of each step has a mean rate of only that part.
    let part = waiting_part(case, range).unwrap_or(1.0);
    let copied_more = |m: &crate::view::Member<'_>, rate: f64| {
        case.pace.slowdown().is_none_or(|s| m.median(s.good).is_some_and(|before| rate >= TIMES_BEFORE * before))
    };
    let is_full = |m: &crate::view::Member<'_>, rate: f64| {
        rate >= FULL * limit(m) || (rate >= FULL * limit(m) * part && copied_more(m, rate))
    };
    let at_limit = rates.iter().filter(|(m, rate)| is_full(m, *rate)).count();
    if at_limit * 2 <= rates.len() {
        return None;
    }
    // A link that is worse than its peers' is a fault of that link.
    let limits: Vec<f64> = rates.iter().map(|(m, _)| limit(m)).collect();
    let usual = median(&limits)?;
    if limits.iter().any(|l| (l - usual).abs() > MIN_RELATIVE * usual) {
        return None;
    }
    let (first, _) = rates.first()?;
    let all = Entity::new();
    let now = stat(view.evidence, &all, Stat::Median, Some(range));
    let mut claims = vec![
        Sentence::new("The GPUs of the job received {now} over PCIe at the median.")
            .number("now", now, 0, view.unit())
            .claim(),
    ];
    for signal in [Signal::PcieGeneration, Signal::PcieWidth] {
        let Some(link) = case.view(signal) else { continue };
        let level = stat(link.evidence, first.entity, Stat::Median, Some(range));
        let text = format!("The {} under load is {{level}}.", link.signal.words());
        if link.members.iter().any(|m| m.entity == first.entity) {
            claims.push(Sentence::new(&text).number("level", level, 0, link.unit()).claim());
        }
    }
    Some(Full { view, proven: known == rates.len(), claims })
}

/// A claim that the GPUs have less to do than they could; `None` when they are at work or nothing tells.
fn sms_wait(case: &Case<'_>) -> Option<DraftClaim> {
    let view = [Signal::SmActive, Signal::TensorActive, Signal::Utilization]
        .into_iter()
        .filter_map(|s| case.view(s))
        .find(|v| v.typical(case.window).is_some_and(|level| level > 0.0))?;
    let all = Entity::new();
    let now = stat(view.evidence, &all, Stat::Mean, Some(case.focus()));
    if let Some(slowdown) = case.pace.slowdown() {
        let (before, after) = (view.typical(slowdown.good)?, view.typical(slowdown.slow)?);
        if after < before * (1.0 - MIN_RELATIVE) {
            let then = stat(view.evidence, &all, Stat::Median, Some(slowdown.good));
            let since = stat(view.evidence, &all, Stat::Median, Some(slowdown.slow));
            let text = format!("Meanwhile the {} fell from {{before}} to {{after}}.", view.signal.words());
            return Some(
                Sentence::new(&text)
                    .number("before", then.clone(), 2, view.unit())
                    .number("after", since.clone(), 2, view.unit())
                    .holds(since, Relation::Below, then)
                    .claim(),
            );
        }
        return None;
    }
    let little = match view.signal {
        Signal::Utilization => 100.0 * LITTLE_WORK,
        // Tensor activity is far below one in healthy training: from one level alone nothing follows.
        Signal::TensorActive => return None,
        _ => LITTLE_WORK,
    };
    let text = format!("Meanwhile the {} was {{now}} at the mean.", view.signal.words());
    (view.typical(case.focus())? < little).then(|| Sentence::new(&text).number("now", now, 2, view.unit()).claim())
}
