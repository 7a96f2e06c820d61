//! More requests than usual.
//!
//! Needs the rate of requests. Speaks for it: it rises when the service becomes slower, beyond what the same hour of other days
//! shows. Rules it out: the rate is as usual. Trap: a saturated engine serves no more than it can, so its rate rises less than
//! what is asked of it.

use crate::cause::{Finding, Strength};
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::changed;
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "traffic_surge", assess };

fn assess(case: &Case<'_>) -> Finding {
    let signal = if case.track(S::Arrivals).is_some() { S::Arrivals } else { S::Served };
    if case.track(signal).is_none() {
        return case.no_data(&[S::Served]);
    }
    // The service's rate, not a replica's: where replicas went away the others get more of the same.
    let Some(more) = case.rise_of_service(signal, MIN_CHANGE) else {
        return case.ruled_out("the service gets no more requests than usual", &[signal]);
    };
    if case.complaint().is_none() {
        return case.ruled_out("there were more requests, but nothing is slower than usual", &[signal]);
    }
    let mut found = Found::by(case, &more, Strength::Pattern);
    // That requests came is seen by what got a first token; that they are real load, by what was finished.
    for signal in [S::Finished, S::Waiting, S::Running] {
        found.claims.extend(case.rise(signal, MIN_CHANGE).map(|c| changed(&c).claim()));
    }
    found.finding(case)
}
