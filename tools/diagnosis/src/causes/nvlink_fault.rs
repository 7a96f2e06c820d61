//! A faulty NVLink.
//!
//! Speaks for it: replay or recovery errors on one GPU's links, CRC errors at a rate that matters, Xids of the NVLink
//! class. Rules it out: counters that were collected and stayed still. Trap: in a burst the most frequent Xid is a victim's; the
//! first one that follows from no other names the culprit.

use sightline_model::{Component, DraftClaim};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::hardware_degradation::growth;
use crate::sentence::Sentence;
use crate::signal::Signal;
use crate::xid::XidClass;
use crate::xid_events::XidEvent;

pub(crate) const CHECK: Check = Check { id: "nvlink_fault", assess };

/// Any of these is a fault (DCGM, modules/health/DcgmHealthWatch.cpp).
const FAULTS: [Signal; 2] = [Signal::NvlinkReplay, Signal::NvlinkRecovery];

/// These are a fault from this rate per second on (DCGM, common/DcgmGPUHardwareLimits.h); below it links correct them.
const CRC_PER_SECOND: f64 = 100.0;
const CRC: [Signal; 2] = [Signal::NvlinkCrcFlit, Signal::NvlinkCrcData];

fn assess(case: &Case<'_>) -> Finding {
    let mut found: Vec<(Component, Option<jiff::Timestamp>, DraftClaim)> = Vec::new();
    let first_xid = case.xids.iter().find(|x| !x.follows && x.info().is_some_and(|i| i.class == XidClass::Nvlink));
    found.extend(first_xid.map(|x| (x.component(), Some(x.at), x.claim())));
    for signal in FAULTS.into_iter().chain(CRC) {
        let Some(view) = case.view(signal) else { continue };
        for member in &view.members {
            let Some((at, claim)) = growth(view, member) else { continue };
            let per_step = CRC_PER_SECOND * view.step_ms as f64 / 1000.0;
            let matters =
                FAULTS.contains(&signal) || view.is_increase() && member.points.iter().any(|p| p.value >= per_step);
            if matters {
                found.push((member.component(), at, claim));
            }
        }
    }
    // Both ends of a link count its errors; the earliest is taken, and the others are named after it.
    found.sort_by_key(|(_, at, _)| at.unwrap_or(jiff::Timestamp::MAX));
    let Some((component, onset, _)) = found.first().cloned() else {
        if FAULTS.into_iter().chain(CRC).all(|s| case.view(s).is_none()) && case.observations.logs.is_none() {
            return case.no_data(&[Signal::NvlinkReplay, Signal::NvlinkRecovery]);
        }
        let why = Sentence::new(
            "Ruled out as far as it is collected: no NVLink error counter moved and no Xid names a link.",
        );
        return Finding::RuledOut(why.claim());
    };
    let fabric = first_xid.and_then(|first| of_the_fabric(case, first));
    let claims: Vec<DraftClaim> = found.iter().take(4).map(|(_, _, claim)| claim.clone()).collect();
    let why = match &fabric {
        Some(_) => case.about(
            &component,
            "Most GPUs of {node} report broken NVLink connections at the same moment: it is what they share, and not one GPU.",
            "Most GPUs of a node report broken NVLink connections at the same moment: it is what they share, and not one GPU.",
        ),
        None => case.about(
            &component,
            "NVLink connections of GPU {gpu} on {node} report errors that are new in this window.",
            "An NVLink connection of the job reports errors that are new in this window.",
        ),
    };
    let why = why.cite_all(&claims);
    let component = fabric.unwrap_or(component);
    Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: case.coincides(onset, 0),
        magnitude: found.len() as f64,
        components: vec![component],
        onset,
        why: why.claim(),
        claims,
        fault: true,
    }))
}

/// GPUs that lose their links within this time lose them at once.
const AT_ONCE_MS: i64 = 2_000;

/// The node, where most of its GPUs report a broken link at once and none of them is told apart as the origin.
fn of_the_fabric(case: &Case<'_>, first: &XidEvent<'_>) -> Option<Component> {
    let mut gpus: Vec<&String> = case
        .xids
        .iter()
        .filter(|x| x.node == first.node && x.code == first.code && !x.follows)
        .filter(|x| (x.at.as_millisecond() - first.at.as_millisecond()).abs() <= AT_ONCE_MS)
        .filter_map(|x| x.gpu.as_ref())
        .collect();
    gpus.sort();
    gpus.dedup();
    let most = gpus.len() >= 3 && gpus.len() * 2 > case.gpus_on(&first.node);
    most.then(|| Component::from([("node".to_owned(), first.node.clone())]))
}
