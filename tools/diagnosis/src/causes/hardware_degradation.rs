//! GPU memory or other hardware that is failing.
//!
//! Speaks for it: rows remapped, a remap that failed, double-bit errors, Xids of the memory and hardware classes. Rules it
//! out: counters that were collected and did not move, and no such Xid. Trap: the sticky Xid gauge shows old codes; only a code that
//! is new in the window counts. What NVIDIA says to watch only, such as a row remapped after correctable errors, is a hint; it is
//! more when the GPU that reports it is the worker that all others wait for. Runs that fail on one host only are a hint too.

use jiff::Timestamp;
use sightline_analysis::increase;
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::pace::Pace;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::{Member, View};
use crate::xid::{XidAction, XidClass};

pub(crate) const CHECK: Check = Check { id: "hardware_degradation", assess };

const COUNTERS: [Signal; 3] = [Signal::RemappedUncorrectable, Signal::DoubleBitErrors, Signal::RemappedCorrectable];

/// What the hardware reports about itself.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    claims: Vec<DraftClaim>,
    components: Vec<Component>,
    onset: Option<Timestamp>,
    harmful: bool,
    /// The step of the slowest counter among them.
    step_ms: i64,
}

impl Reported {
    fn add(&mut self, component: Component, at: Option<Timestamp>, claim: DraftClaim, harms: bool) {
        self.harmful |= harms;
        if !self.components.contains(&component) {
            self.components.push(component);
        }
        self.onset = [self.onset, at].into_iter().flatten().min();
        self.claims.push(claim);
    }

    /// A line whose bus address no series tells is of some GPU of its node: where one of them counts errors itself, it is that one.
    fn name_gpus_only(&mut self) {
        let nodes: Vec<String> =
            self.components.iter().filter(|c| c.contains_key("gpu")).filter_map(|c| c.get("node").cloned()).collect();
        self.components.retain(|c| c.contains_key("gpu") || c.get("node").is_none_or(|node| !nodes.contains(node)));
    }

    /// Whether a slow worker is the GPU or the node that reports errors, and these are not known to be of another time.
    pub(crate) fn explains(&self, case: &Case<'_>, worker: &Component) -> bool {
        let same = |c: &Component| c.iter().all(|(key, value)| worker.get(key) == Some(value));
        self.components.iter().any(same) && case.coincides(self.onset, self.step_ms) != Some(false)
    }
}

/// Whether a GPU of the job reports harm.
pub(crate) fn harmed(case: &Case<'_>) -> bool {
    reported(case).harmful
}

/// Everything that the job's GPUs report.
pub(crate) fn reported(case: &Case<'_>) -> Reported {
    let mut all = Reported::default();
    for xid in &case.xids {
        let hardware =
            xid.info().is_some_and(|i| matches!(i.class, XidClass::Memory | XidClass::Hardware | XidClass::Firmware));
        if hardware && !xid.follows {
            let watched = xid.info().is_some_and(|i| matches!(i.action, XidAction::Watch | XidAction::Ignore));
            all.add(xid.component(), Some(xid.at), xid.claim(), !watched);
        }
    }
    for signal in COUNTERS {
        let Some(view) = case.view(signal) else { continue };
        for member in &view.members {
            if let Some((at, claim)) = growth(view, member) {
                all.add(member.component(), at, claim, signal != Signal::RemappedCorrectable);
                all.step_ms = all.step_ms.max(view.step_ms);
            }
        }
    }
    if let Some(view) = case.view(Signal::RemapFailed) {
        for member in &view.members {
            if member.max(case.window).is_some_and(|failed| failed >= 1.0) {
                all.add(member.component(), None, failed_claim(case, view, member), true);
            }
        }
    }
    all.name_gpus_only();
    all
}

fn assess(case: &Case<'_>) -> Finding {
    let all = reported(case);
    let Some(first) = all.components.first() else { return nothing(case) };
    let slow = super::slow_worker::unexplained(case).filter(|worker| all.explains(case, worker));
    let why = case.about(
        first,
        "GPU {gpu} on {node} reports memory or hardware errors that are new in this window.",
        "A GPU of the job reports memory or hardware errors that are new in this window.",
    );
    let why = why.cite_all(&all.claims);
    let strength = match (all.harmful, slow) {
        (true, _) => Strength::Proof,
        // It is the GPU that the others wait for, and nothing else explains why.
        (false, Some(_)) => Strength::Pattern,
        // What NVIDIA says to watch only (a remapped row, a corrected error) slows nothing down by itself.
        (false, None) => Strength::Hint,
    };
    // A row that was remapped is the memory's own repair, and a job that keeps its pace has no fault in it.
    let harmless = !all.harmful && !matches!(case.pace, Pace::Slower(_)) && case.stall.is_none();
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(all.onset, all.step_ms),
        magnitude: all.claims.len() as f64,
        components: all.components,
        onset: all.onset,
        why: why.claim(),
        claims: all.claims,
        fault: !harmless,
    }))
}

fn nothing(case: &Case<'_>) -> Finding {
    if let Some(finding) = crate::same_host::finding(case) {
        return finding;
    }
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
