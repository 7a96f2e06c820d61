//! A GPU that lowers its clock because it is hot.
//!
//! Needs SM clock and temperature. Speaks for it: a clock below the peers' (or the GPU's own past) under load while the
//! GPU is hotter than they are, thermal reason bits, time counted under thermal limits. Rules it out: no low clock, or a low
//! clock on a GPU that is no hotter. Trap: utilisation stays at 100, and the waiting peers show low tensor activity.

use sightline_model::claim::Quantity;
use sightline_model::{DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::clocks::{Basis, LowClock, Reason, bit_share, bits};
use crate::sentence::{Sentence, peers, stat};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "thermal_throttling", assess };

fn assess(case: &Case<'_>) -> Finding {
    let Some(clock) = case.view(Signal::SmClock) else { return case.no_data(&[Signal::SmClock]) };
    let hot: Vec<&LowClock<'_>> = case.clocks.iter().filter(|c| c.reason == Reason::Thermal).collect();
    let Some(worst) = hot.first() else {
        if case.view(Signal::GpuTemperature).is_none() && case.view(Signal::ClockReasons).is_none() {
            return case.no_data(&[Signal::GpuTemperature, Signal::ClockReasons]);
        }
        let why = match case.clocks.first() {
            Some(low) => Sentence::new("Ruled out: GPU {gpu} on {node} runs at a low clock but is not hot.")
                .entity(clock.evidence, low.entity),
            None => {
                Sentence::new("Ruled out: no GPU of the job ran below its peers' SM clock.").cite(&clock.evidence.id)
            }
        };
        return Finding::RuledOut(why.claim());
    };
    let mut claims = super::slow_worker::clock_claims(case, worst);
    claims.extend(temperature_claim(case, worst));
    claims.extend(reason_claim(case, worst));
    claims.extend(worst.onset.as_ref().and_then(|o| case.coincidence(o, worst.step_ms)));
    let why = Sentence::new(
        "GPU {gpu} on {node} lowered its clock while it was hot; the other ranks wait for it at every step.",
    )
    .entity(clock.evidence, worst.entity);
    Finding::Supported(Box::new(Support {
        strength: if worst.proven { Strength::Proof } else { Strength::Pattern },
        coincides: case.coincides(worst.onset.map(|o| o.at), worst.step_ms),
        magnitude: worst.depth,
        components: hot.iter().map(|c| c.placement.component()).collect(),
        onset: worst.onset.map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}

fn temperature_claim(case: &Case<'_>, low: &LowClock<'_>) -> Option<DraftClaim> {
    let view = case.view(Signal::GpuTemperature)?;
    let member = view.of(low.placement)?;
    let value = member.median(low.range)?;
    let own = stat(view.evidence, member.entity, Stat::Median, Some(low.range));
    match low.basis {
        Basis::Peers => {
            let others = view.peers(member.entity, low.range)?;
            let peer = peers(view.evidence, member.entity, Stat::Median, Some(low.range));
            (value > others).then(|| {
                Sentence::new("Meanwhile its temperature was {own}, its peers' {peers}.")
                    .number("own", own.clone(), 0, view.unit())
                    .number("peers", peer.clone(), 0, view.unit())
                    .holds(own, Relation::Above, peer)
                    .claim()
            })
        }
        Basis::OwnPast => {
            let good = low.good?;
            let past = stat(view.evidence, member.entity, Stat::Median, Some(good));
            (value > member.median(good)?).then(|| {
                Sentence::new("Meanwhile its temperature was {own}, against {past} before.")
                    .number("own", own.clone(), 0, view.unit())
                    .number("past", past.clone(), 0, view.unit())
                    .holds(own, Relation::Above, past)
                    .claim()
            })
        }
    }
}

fn reason_claim(case: &Case<'_>, low: &LowClock<'_>) -> Option<DraftClaim> {
    let view = case.view(Signal::ClockReasons)?;
    let member = view.of(low.placement)?;
    let share = bit_share(member, bits::SW_THERMAL | bits::HW_THERMAL, low.range)?;
    // The mask as a number is at least 0x20 whenever a thermal bit is set, which is what can be recomputed.
    let bound = Quantity::Constant(bits::SW_THERMAL as f64);
    (share > 0.0).then(|| {
        Sentence::new("Its clock event reasons name thermal slowdown.")
            .holds(stat(view.evidence, member.entity, Stat::Max, Some(low.range)), Relation::AtLeast, bound)
            .cite(&view.evidence.id)
            .claim()
    })
}
