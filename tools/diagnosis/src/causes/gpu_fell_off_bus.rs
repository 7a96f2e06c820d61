//! A GPU that the host lost.
//!
//! Speaks for it: its series stop while other GPUs of the same node go on; Xid 79. Rules it out: all GPUs of the job report
//! to the end. Trap: a ranking by average leaves the missing GPU out.

use sightline_model::Entity;

use crate::case::{Case, Stopped};
use crate::cause::{Check, Finding, Strength, Support};
use crate::sentence::Sentence;
use crate::signal::Signal;
use crate::xid_events::XidEvent;

pub(crate) const CHECK: Check = Check { id: "gpu_fell_off_bus", assess };

/// "GPU has fallen off the bus" in NVIDIA's Xid catalogue.
const FALLEN_OFF_BUS: u32 = 79;

fn assess(case: &Case<'_>) -> Finding {
    let lone: Vec<&Stopped<'_>> =
        case.stopped.iter().filter(|s| !super::node_failure::whole_node(case, &s.placement.node)).collect();
    let xid = case.xids.iter().find(|x| x.code == FALLEN_OFF_BUS);
    match (xid, lone.first()) {
        (Some(xid), _) => supported(case, Some(xid), &matching(&lone, xid)),
        (None, Some(_)) => supported(case, None, &lone),
        (None, None) => {
            let Some(view) = case.view(Signal::GpuTemperature).or_else(|| case.view(Signal::SmClock)) else {
                return case.no_data(&[Signal::GpuTemperature, Signal::SmClock]);
            };
            let why = Sentence::new("Ruled out: no GPU of the job went silent while its node's other GPUs went on.");
            Finding::RuledOut(why.cite(&view.evidence.id).claim())
        }
    }
}

/// The silent GPUs that the Xid speaks of; on the same node when it names no GPU.
fn matching<'a, 'b>(lone: &[&'b Stopped<'a>], xid: &XidEvent<'_>) -> Vec<&'b Stopped<'a>> {
    lone.iter()
        .filter(|s| s.placement.node == xid.node && xid.gpu.as_ref().is_none_or(|gpu| *gpu == s.placement.gpu))
        .copied()
        .collect()
}

fn supported(case: &Case<'_>, xid: Option<&XidEvent<'_>>, silent: &[&Stopped<'_>]) -> Finding {
    let mut claims: Vec<_> = silent.iter().filter_map(|s| silence_claim(case, s)).collect();
    claims.extend(xid.map(XidEvent::claim));
    let mut components: Vec<_> = silent.iter().map(|s| s.placement.component()).collect();
    if let Some(xid) = xid
        && components.is_empty()
    {
        components.push(xid.component());
    }
    let first = silent.first();
    let onset = xid.map(|x| x.at).or_else(|| first.map(|s| s.last.at));
    let why = match (xid, first) {
        (Some(_), Some(s)) => {
            about(case, s, "GPU {gpu} on {node} fell off the bus: the driver says so and its series stop.")
        }
        (Some(xid), None) => case.about(
            &xid.component(),
            "The driver reports that GPU {gpu} on {node} has fallen off the bus.",
            "The driver reports that a GPU of the job has fallen off the bus.",
        ),
        (None, Some(s)) => about(
            case,
            s,
            "GPU {gpu} on {node} went silent while the other GPUs of its node went on; no kernel log line confirms that it fell off the bus.",
        ),
        (None, None) => Sentence::new("A GPU went silent."),
    };
    Finding::Supported(Box::new(Support {
        strength: if xid.is_some() { Strength::Proof } else { Strength::Pattern },
        coincides: halted(case, onset),
        magnitude: 10.0,
        components,
        onset,
        why: why.claim(),
        claims,
        fault: true,
    }))
}

/// Whether the job came to a halt at this point, for which its own pace stops rather than changes. That it went on is known only
/// where it was watched.
pub(crate) fn halted(case: &Case<'_>, onset: Option<jiff::Timestamp>) -> Option<bool> {
    case.stall.as_ref()?;
    case.coincides(onset, 0)
}

fn about(case: &Case<'_>, stopped: &Stopped<'_>, text: &str) -> Sentence {
    let sentence = Sentence::new(text);
    match case.view(stopped.signal) {
        Some(view) => sentence.entity(view.evidence, &entity(stopped)),
        None => sentence,
    }
}

fn entity(stopped: &Stopped<'_>) -> Entity {
    stopped.placement.component()
}

/// "Its last sample is from …": not zero, but gone.
pub(crate) fn silence_claim(case: &Case<'_>, stopped: &Stopped<'_>) -> Option<sightline_model::DraftClaim> {
    let view = case.view(stopped.signal)?;
    let member = view.of(stopped.placement)?;
    let going_on =
        view.members.iter().filter(|m| m.entity != member.entity).max_by_key(|m| m.points.last().map(|p| p.time))?;
    let text = format!(
        "GPU {{gpu}} on {{node}} has no {} after {{last}}, while samples of its peers go on until {{peers}}.",
        view.signal.words()
    );
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .last_seen("last", stopped.last.evidence, stopped.last.entity)
        .last_seen("peers", view.evidence, going_on.entity);
    Some(sentence.claim())
}
