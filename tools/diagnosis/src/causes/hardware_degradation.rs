//! GPU memory or other hardware that is failing.
//!
//! Speaks for it: rows remapped, a remap that failed, double-bit errors, Xids of the memory and hardware classes. Rules it
//! out: counters that were collected and did not move, and no such Xid. Trap: the sticky Xid gauge shows old codes; only a code that
//! is new in the window counts.

use jiff::Timestamp;
use sightline_analysis::increase;
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::{Member, View};
use crate::xid::{XidAction, XidClass};

pub(crate) const CHECK: Check = Check { id: "hardware_degradation", assess };

const COUNTERS: [Signal; 3] = [Signal::RemappedUncorrectable, Signal::DoubleBitErrors, Signal::RemappedCorrectable];

fn assess(case: &Case<'_>) -> Finding {
    let mut claims: Vec<DraftClaim> = Vec::new();
    let mut components: Vec<Component> = Vec::new();
    let mut onset: Option<Timestamp> = None;
    let mut harmful = false;
    let mut add = |component: Component, at: Option<Timestamp>, claim: DraftClaim, harms: bool| {
        harmful |= harms;
        if !components.contains(&component) {
            components.push(component);
        }
        onset = [onset, at].into_iter().flatten().min();
        claims.push(claim);
    };
    for xid in &case.xids {
        let hardware =
            xid.info().is_some_and(|i| matches!(i.class, XidClass::Memory | XidClass::Hardware | XidClass::Firmware));
        if hardware && !xid.follows {
            let watched = xid.info().is_some_and(|i| matches!(i.action, XidAction::Watch | XidAction::Ignore));
            add(xid.component(), Some(xid.at), xid.claim(), !watched);
        }
    }
    for signal in COUNTERS {
        let Some(view) = case.view(signal) else { continue };
        for member in &view.members {
            if let Some((at, claim)) = growth(view, member) {
                add(member.component(), at, claim, signal != Signal::RemappedCorrectable);
            }
        }
    }
    if let Some(view) = case.view(Signal::RemapFailed) {
        for member in &view.members {
            if member.max(case.window).is_some_and(|failed| failed >= 1.0) {
                add(member.component(), None, failed_claim(case, view, member), true);
            }
        }
    }
    let magnitude = claims.len() as f64;
    let Some(first) = components.first() else { return nothing(case) };
    let coincides = case.coincides(onset, 0);
    let why = case.about(
        first,
        "GPU {gpu} on {node} reports memory or hardware errors that are new in this window.",
        "A GPU of the job reports memory or hardware errors that are new in this window.",
    );
    let why = why.cite_all(&claims);
    Finding::Supported(Box::new(Support {
        // What NVIDIA says to watch only (a remapped row, a corrected error) slows nothing down by itself.
        strength: if harmful { Strength::Proof } else { Strength::Hint },
        coincides,
        magnitude,
        components,
        onset,
        why: why.claim(),
        claims,
        fault: true,
    }))
}

fn nothing(case: &Case<'_>) -> Finding {
    let watched: Vec<Signal> = COUNTERS
        .into_iter()
        .chain([Signal::RemapFailed, Signal::LastXid])
        .filter(|s| case.view(*s).is_some())
        .collect();
    if watched.is_empty() && case.observations.logs.is_none() {
        return case.no_data(&[Signal::RemappedUncorrectable, Signal::DoubleBitErrors, Signal::LastXid]);
    }
    let mut why =
        Sentence::new("Ruled out as far as it is collected: no new Xid of the hardware, no error counter that moved.");
    for signal in watched {
        if let Some(view) = case.view(signal) {
            why = why.cite(&view.evidence.id);
        }
    }
    Finding::RuledOut(why.claim())
}

/// Growth of an error counter over what was fetched: when it began, and the claim.
pub(crate) fn growth(view: &View<'_>, member: &Member<'_>) -> Option<(Option<Timestamp>, DraftClaim)> {
    let whole = view.span();
    let (gain, at, quantity) = if view.is_increase() {
        let first = member.points.iter().find(|p| p.value > 0.0).map(|p| p.time);
        (member.sum(whole?)?, first, stat(view.evidence, member.entity, Stat::Sum, None))
    } else {
        let found = increase(&member.samples)?;
        let (last, first) = (
            stat(view.evidence, member.entity, Stat::Last, None),
            stat(view.evidence, member.entity, Stat::First, None),
        );
        // A counter that was reset in between cannot be told by its ends.
        if found.resets > 0 {
            return None;
        }
        (found.total, found.first_gain, Quantity::Difference(Box::new(last), Box::new(first)))
    };
    let at = at?;
    if gain <= 0.0 {
        return None;
    }
    let text = format!(
        "The {} of {} grew by {{gain}}, beginning at {{at}}.",
        view.signal.words(),
        crate::sentence::who(member.entity)
    );
    let claim = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("gain", quantity.clone(), 0, view.unit())
        .instant("at", view.evidence, member.entity, at)
        .holds(quantity, Relation::Above, Quantity::Constant(0.0))
        .claim();
    Some((Some(at), claim))
}

fn failed_claim(case: &Case<'_>, view: &View<'_>, member: &Member<'_>) -> DraftClaim {
    let flag = stat(view.evidence, member.entity, Stat::Max, Some(case.window));
    Sentence::new("GPU {gpu} on {node} reports that a row could not be remapped.")
        .entity(view.evidence, member.entity)
        .holds(flag, Relation::AtLeast, Quantity::Constant(1.0))
        .claim()
}
