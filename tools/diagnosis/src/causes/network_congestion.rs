//! A network that is full: every node waits, no link is broken.
//!
//! Speaks for it: transmit waits, congestion marks, pauses or retransmissions rise on most nodes with the slowdown; time
//! in communication rises on all ranks. Rules it out: those signals stayed still. Trap: one straggler makes all others wait in
//! communication too, so a worker that stands out, or a broken link, comes first.

use sightline_analysis::Direction;
use sightline_model::{Component, DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::clocks::Reason;
use crate::level::{excursion, segments};
use crate::pace::{Onset, Slowdown};
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View};

pub(crate) const CHECK: Check = Check { id: "network_congestion", assess };

const SIGNS: [Signal; 4] =
    [Signal::IbTransmitWait, Signal::CongestionMarks, Signal::PauseFrames, Signal::TcpRetransmissions];

/// A sign of congestion must at least double: such counters move with every change of traffic.
const TIMES_BEFORE: f64 = 2.0;

fn assess(case: &Case<'_>) -> Finding {
    let collected: Vec<&View<'_>> = SIGNS.into_iter().filter_map(|s| case.view(s)).collect();
    let communication = case.view(Signal::CommunicationTime);
    if collected.is_empty() && communication.is_none() {
        return case.no_data(&[Signal::IbTransmitWait, Signal::CommunicationTime]);
    }
    let Some(slowdown) = case.pace.slowdown() else {
        let mut why =
            Sentence::new("Ruled out: the job's pace shows no slowdown that congestion would have to explain.");
        if let Some(view) = collected.first().copied().or(communication) {
            why = why.cite(&view.evidence.id);
        }
        return Finding::RuledOut(why.claim());
    };
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) {
        return Finding::RuledOut(
            Sentence::new("Ruled out: the job waits for a slow GPU, not for the network.").claim(),
        );
    }
    if let Some((view, odd, what)) = super::slow_worker::standing_out(case) {
        let text = format!("Ruled out: {} {what}; the job waits for it and not for the network.", who(odd.entity));
        return Finding::RuledOut(
            Sentence::new(&text).entity(view.evidence, odd.entity).cite(&view.evidence.id).claim(),
        );
    }
    if super::workload_imbalance::holds(case) {
        let why = Sentence::new(
            "Ruled out: the ranks wait for a different one of them at every moment, not for the network.",
        );
        return Finding::RuledOut(communication.map_or(why.clone(), |view| why.cite(&view.evidence.id)).claim());
    }
    for view in collected {
        let risen: Vec<(&Member<'_>, f64)> = view
            .members
            .iter()
            .filter_map(|m| Some((m, ratio(m, slowdown)?)))
            .filter(|(_, r)| *r >= TIMES_BEFORE)
            .collect();
        if let Some((member, factor)) = risen.first().filter(|_| risen.len() * 2 > view.members.len()) {
            return supported(case, view, member, slowdown, *factor, Strength::Proof);
        }
    }
    if let Some(view) = communication {
        let step = slowdown.factor - 1.0;
        if let Some(awaited) = awaited(view, slowdown) {
            return Finding::RuledOut(awaited);
        }
        let risen = view.members.iter().filter(|m| ratio(m, slowdown).is_some_and(|r| r - 1.0 > step)).count();
        if let Some(member) = view.members.first().filter(|_| risen * 2 > view.members.len()) {
            return supported(case, view, member, slowdown, slowdown.factor, Strength::Pattern);
        }
    }
    let why = Sentence::new("Ruled out: no sign of congestion rose with the slowdown.");
    Finding::RuledOut(why.claim())
}

/// Congestion is felt at both ends of every exchange. Who waits no longer than before while most others do is the one that
/// they wait for.
fn awaited(view: &View<'_>, slowdown: &Slowdown<'_>) -> Option<DraftClaim> {
    let step = slowdown.factor - 1.0;
    let rises: Vec<(&Member<'_>, f64)> =
        view.members.iter().filter_map(|m| Some((m, ratio(m, slowdown)? - 1.0))).collect();
    let risen = rises.iter().filter(|(_, r)| *r > step).count();
    let (member, _) = rises.iter().find(|(_, r)| *r < step / 2.0)?;
    let text = format!(
        "Ruled out: {} communicates no longer than before while most others wait, so they wait for it and not for the network.",
        who(member.entity)
    );
    (risen * 2 > rises.len())
        .then(|| Sentence::new(&text).entity(view.evidence, member.entity).cite(&view.evidence.id).claim())
}

/// The level in the slow stretch over the one in the good stretch; what was zero before counts from a hundredth of now.
fn ratio(member: &Member<'_>, slowdown: &Slowdown<'_>) -> Option<f64> {
    let (before, after) = (member.mean(slowdown.good)?, member.mean(slowdown.slow)?);
    if after <= 0.0 {
        return None;
    }
    Some(after / before.max(after / 100.0))
}

fn supported(
    case: &Case<'_>,
    view: &View<'_>,
    member: &Member<'_>,
    slowdown: &Slowdown<'_>,
    factor: f64,
    strength: Strength,
) -> Finding {
    let before = stat(view.evidence, member.entity, Stat::Mean, Some(slowdown.good));
    let after = stat(view.evidence, member.entity, Stat::Mean, Some(slowdown.slow));
    let text = format!(
        "The {} of {} rose from {{before}} to {{after}} with the slowdown, as on most nodes.",
        view.signal.words(),
        who(member.entity)
    );
    let mut claims: Vec<DraftClaim> = vec![
        Sentence::new(&text)
            .entity(view.evidence, member.entity)
            .number("before", before.clone(), 2, view.unit())
            .number("after", after.clone(), 2, view.unit())
            .holds(after, Relation::Above, before)
            .claim(),
    ];
    let onset = excursion(
        &segments(&member.samples, MIN_RELATIVE),
        member.median(slowdown.good).unwrap_or(0.0),
        Direction::Rise,
        MIN_RELATIVE,
        case.window,
    )
    .and_then(|e| e.onset())
    .and_then(|at| member.first_from(at))
    .map(|p| Onset { at: p.time, evidence: view.evidence, entity: member.entity });
    claims.extend(onset.as_ref().and_then(|o| case.coincidence(o, view.step_ms)));
    let why = Sentence::new("The job's nodes wait for the network alike, and no link or GPU among them stands out.")
        .cite(&view.evidence.id);
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(onset.map(|o| o.at), view.step_ms),
        magnitude: factor,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset: onset.map(|o| o.at).or(slowdown.onset.map(|o| o.at)),
        why: why.claim(),
        claims,
        fault: true,
    }))
}
