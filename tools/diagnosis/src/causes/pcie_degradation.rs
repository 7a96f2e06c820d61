//! A PCIe link that lost lanes or repeats packets.
//!
//! Speaks for it: a link width below the peers' or the GPU's own past under load; replays faster than a healthy link makes
//! them, on one GPU. Rules it out: equal widths. Trap: the link generation drops when idle, by design; width does not.

use sightline_analysis::median;
use sightline_model::{Component, DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::pace::Onset;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::{Member, View};

pub(crate) const CHECK: Check = Check { id: "pcie_degradation", assess };

/// Replays per minute that a healthy link of the fifth generation with 16 lanes may show (DCGM, DcgmGPUHardwareLimits.h:
/// ceil(16 x 1.92)); older generations show fewer.
const REPLAYS_PER_MINUTE: f64 = 31.0;

fn assess(case: &Case<'_>) -> Finding {
    if let Some(found) = case.view(Signal::PcieWidth).and_then(|view| narrow(case, view)) {
        return found;
    }
    if let Some(found) = case.view(Signal::PcieReplays).and_then(|view| replaying(case, view)) {
        return found;
    }
    let views: Vec<&View<'_>> =
        [Signal::PcieWidth, Signal::PcieReplays].into_iter().filter_map(|s| case.view(s)).collect();
    if views.is_empty() {
        return case.no_data(&[Signal::PcieWidth, Signal::PcieReplays]);
    }
    let mut why = Sentence::new(
        "Ruled out as far as it is collected: all GPUs of the job have equal PCIe links without unusual replays.",
    );
    for view in views {
        why = why.cite(&view.evidence.id);
    }
    Finding::RuledOut(why.claim())
}

fn narrow<'a>(case: &Case<'a>, view: &View<'a>) -> Option<Finding> {
    let widest = view.members.iter().filter_map(|m| m.max(view.span()?)).reduce(f64::max)?;
    let (member, width) = view
        .members
        .iter()
        .filter_map(|m| Some((m, m.median(case.focus())?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, width)| *width < widest)?;
    let own = stat(view.evidence, member.entity, Stat::Median, Some(case.focus()));
    let all = stat(view.evidence, &sightline_model::Entity::new(), Stat::Max, None);
    let claim = Sentence::new("The PCIe link of GPU {gpu} on {node} has {own}, while {all} were seen in this job.")
        .entity(view.evidence, member.entity)
        .number("own", own.clone(), 0, view.unit())
        .number("all", all.clone(), 0, view.unit())
        .holds(own, Relation::Below, all)
        .claim();
    // The first sample after one with all lanes.
    let fell = member.points.windows(2).find_map(|w| match w {
        [before, after] if before.value > width && after.value <= width => Some(after.time),
        _ => None,
    });
    let onset = fell.map(|at| Onset { at, evidence: view.evidence, entity: member.entity });
    Some(supported(case, view, member, claim, onset, 1.0 - width / widest))
}

fn replaying<'a>(case: &Case<'a>, view: &View<'a>) -> Option<Finding> {
    if !view.is_increase() {
        return None;
    }
    let minutes = case.window.seconds() / 60.0;
    let rate = |m: &Member<'_>| m.sum(case.window).map(|sum| sum / minutes);
    let peers = median(&view.members.iter().filter_map(rate).collect::<Vec<_>>())?;
    let worst = view
        .members
        .iter()
        .filter_map(|m| Some((m, rate(m)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, worst)| *worst > REPLAYS_PER_MINUTE && *worst > 10.0 * peers);
    let (member, rate) = worst?;
    let own = stat(view.evidence, member.entity, Stat::Sum, Some(case.window));
    let claim = Sentence::new(
        "The PCIe link of GPU {gpu} on {node} repeated {own} packets in the window, far more than its peers'.",
    )
    .entity(view.evidence, member.entity)
    .number("own", own, 0, view.unit())
    .claim();
    let first = member.points.iter().find(|p| p.value > 0.0);
    let onset = first.map(|p| Onset { at: p.time, evidence: view.evidence, entity: member.entity });
    Some(supported(case, view, member, claim, onset, rate / REPLAYS_PER_MINUTE))
}

fn supported<'a>(
    case: &Case<'a>,
    view: &View<'a>,
    member: &Member<'a>,
    claim: DraftClaim,
    onset: Option<Onset<'a>>,
    magnitude: f64,
) -> Finding {
    let mut claims = vec![claim];
    claims.extend(onset.as_ref().and_then(|o| case.coincidence(o, view.step_ms)));
    let component: Component = member.component();
    let why = Sentence::new(
        "The PCIe link of GPU {gpu} on {node} is degraded, which slows every transfer to and from the host.",
    )
    .entity(view.evidence, member.entity);
    Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: case.coincides(onset.map(|o| o.at), view.step_ms),
        magnitude,
        components: vec![component],
        onset: onset.map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}
