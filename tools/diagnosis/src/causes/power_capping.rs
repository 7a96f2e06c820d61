//! A GPU that is held below its peers by a power limit.
//!
//! Needs SM clock and power. Speaks for it: a low clock with less power than the peers draw, a lower enforced limit, the
//! power-brake bit, or the power-cap bit at a plateau below the peers'. Rules it out: no GPU below its peers. Trap: a power cap that
//! binds on every GPU alike is how full load looks and is no fault.

use sightline_model::{DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::clocks::{LowClock, Reason, bit_share, bits};
use crate::sentence::{Sentence, peers, stat};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "power_capping", assess };

fn assess(case: &Case<'_>) -> Finding {
    let Some(clock) = case.view(Signal::SmClock) else { return case.no_data(&[Signal::SmClock]) };
    let capped: Vec<&LowClock<'_>> = case.clocks.iter().filter(|c| c.reason == Reason::Power).collect();
    let Some(worst) = capped.first() else {
        if case.view(Signal::Power).is_none() && case.view(Signal::PowerLimit).is_none() {
            return case.no_data(&[Signal::Power, Signal::PowerLimit]);
        }
        return Finding::RuledOut(ruled_out(case).cite(&clock.evidence.id).claim());
    };
    let mut claims = super::slow_worker::clock_claims(case, worst);
    claims.extend(below_claim(case, worst, Signal::Power, "Meanwhile it drew {own}, its peers {peers}."));
    claims.extend(below_claim(
        case,
        worst,
        Signal::PowerLimit,
        "Its enforced power limit was {own}, its peers' {peers}.",
    ));
    claims.extend(super::slow_worker::not_hot_claim(case, worst));
    if case.view(Signal::PowerLimit).is_none() {
        claims.push(limit_not_collected());
    }
    claims.extend(worst.onset.as_ref().and_then(|o| case.coincidence(o, worst.step_ms)));
    let why =
        Sentence::new("GPU {gpu} on {node} is limited in power below its peers and lowers its clock to stay there.")
            .entity(clock.evidence, worst.entity);
    Finding::Supported(Box::new(Support {
        strength: if worst.proven { Strength::Proof } else { Strength::Pattern },
        coincides: case.coincides(worst.onset.map(|o| o.at), worst.step_ms),
        magnitude: worst.depth,
        components: capped.iter().map(|c| c.placement.component()).collect(),
        onset: worst.onset.map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}

fn limit_not_collected() -> DraftClaim {
    Sentence::new("The enforced power limit is not collected, so the limit itself is inferred from the plateau.")
        .claim()
}

fn below_claim(case: &Case<'_>, low: &LowClock<'_>, signal: Signal, text: &str) -> Option<DraftClaim> {
    let view = case.view(signal)?;
    let member = view.of(low.placement)?;
    let (value, others) = (member.median(low.range)?, view.peers(member.entity, low.range)?);
    let own = stat(view.evidence, member.entity, Stat::Median, Some(low.range));
    let peer = peers(view.evidence, member.entity, Stat::Median, Some(low.range));
    (value < others).then(|| {
        Sentence::new(text)
            .number("own", own.clone(), 0, view.unit())
            .number("peers", peer.clone(), 0, view.unit())
            .holds(own, Relation::Below, peer)
            .claim()
    })
}

fn ruled_out(case: &Case<'_>) -> Sentence {
    let cap_on_all = case.view(Signal::ClockReasons).is_some_and(|view| {
        let capped = view
            .members
            .iter()
            .filter(|m| bit_share(m, bits::SW_POWER_CAP, case.window).is_some_and(|share| share >= 0.5))
            .count();
        capped * 2 > view.members.len()
    });
    if cap_on_all {
        return Sentence::new(
            "Ruled out: the power cap binds on most GPUs of the job alike, which is normal at full load; none is held below the others.",
        );
    }
    Sentence::new("Ruled out: no GPU of the job is held below its peers by a power limit.")
}
