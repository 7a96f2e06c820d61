//! Prompts that used to be found in the prefix cache have to be computed.
//!
//! Needs the hit rate of the prefix cache. Speaks for it: the hit rate falls when first tokens come later. Rules it out: the hit
//! rate holds. Trap: other traffic has other prefixes, so a fall along with longer prompts is a hint only.

use crate::cause::{Finding, Strength};
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::changed;
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "prefix_cache_loss", assess };

/// A hit rate below this saves too little for its loss to be felt.
const WORTH: f64 = 0.1;

fn assess(case: &Case<'_>) -> Finding {
    let signal = if case.track(S::HitRate).is_some() { S::HitRate } else { S::HitRateGauge };
    if case.track(signal).is_none() {
        return case.no_data(&[S::HitRate]);
    }
    let Some(fall) = case.fall(signal, MIN_CHANGE).filter(|c| c.before >= WORTH) else {
        return case.ruled_out("the hit rate of the prefix cache is as usual", &[signal]);
    };
    if case.complaint().is_none() {
        return case.ruled_out("the hit rate of the prefix cache fell, but nothing is slower than usual", &[signal]);
    }
    let other_traffic = case.rise(S::PromptLength, MIN_CHANGE);
    let strength = if other_traffic.is_some() { Strength::Hint } else { Strength::Proof };
    let mut found = Found::by(case, &fall, strength);
    for signal in [S::PrefillTime, S::FirstToken] {
        found.claims.extend(case.rise(signal, MIN_CHANGE).map(|c| changed(&c).claim()));
    }
    found.finding(case)
}
