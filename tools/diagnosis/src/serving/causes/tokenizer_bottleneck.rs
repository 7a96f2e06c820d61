//! Requests are held up before they reach the engine: the front end checks and tokenizes them on a busy CPU.
//!
//! Needs the time to first token with queue and prefill, or the engine's own count of that time. Speaks for it: what the first
//! token takes beyond queue and prefill grows and makes up most of the delay. Rules it out: queue and prefill hold the delay.
//! Trap: queue and prefill are recorded when a request finishes, so a growing queue must be excluded by the number that waits.

use crate::cause::{Finding, Strength};
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::complaint::MIN_LATENCY;
use crate::serving::say::{changed, level};
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "tokenizer_bottleneck", assess };

/// The share of the delay that must lie outside queue and prefill.
const SHARE: f64 = 0.5;

/// Tokens that follow each other this much faster are a change of the engine: under a steady load they scatter by a few percent.
const TRADED: f64 = 0.1;

fn assess(case: &Case<'_>) -> Finding {
    if let Some(slower) = case.rise(S::TokenizeTime, MIN_LATENCY).filter(|_| case.complaint().is_some()) {
        return Found::by(case, &slower, Strength::Proof).finding(case);
    }
    let Some(late) = case.complaint_of(S::FirstToken).map(|c| &c.change) else {
        let by = [S::FirstToken, S::TokenizeTime];
        return if case.track(S::FirstToken).is_some() || case.track(S::TokenizeTime).is_some() {
            case.ruled_out("first tokens come as early as usual", &by)
        } else {
            case.no_data(&by)
        };
    };
    if case.track(S::FrontEnd).is_none() {
        return case.no_data(&[S::QueueTime, S::PrefillTime]);
    }
    let more = case.rise(S::FrontEnd, MIN_LATENCY);
    let most = more.filter(|c| c.after - c.before >= SHARE * (late.after - late.before));
    let Some(change) = most else {
        return case.ruled_out("the delay lies in queue or prefill", &[S::FrontEnd, S::QueueTime, S::PrefillTime]);
    };
    if case.rise(S::Waiting, MIN_CHANGE).is_some() && case.queue_holds(SHARE) {
        return case.ruled_out("a growing queue holds the delay; its requests have not finished yet", &[S::Waiting]);
    }
    // A release that trades the first token for the others (chunked prefill, vLLM issue 14845) leaves the same remainder; a front end
    // without CPU makes no token come faster.
    let faster = case.fall(S::InterToken, TRADED);
    let traded = faster.is_some() && super::release::is_recorded(case);
    let mut found = Found::by(case, &change, if traded { Strength::Hint } else { Strength::Pattern });
    found.claims.push(changed(late).claim());
    found.claims.extend(faster.filter(|_| traded).map(|c| changed(&c).claim()));
    for signal in [S::QueueTime, S::PrefillTime, S::Waiting] {
        if let Some(track) = case.track(signal).filter(|t| t.count(case.focus()) > 0) {
            found.claims.push(level(track, case.focus()).claim());
        }
    }
    found.finding(case)
}
