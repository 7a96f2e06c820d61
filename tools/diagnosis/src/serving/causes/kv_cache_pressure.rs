//! The KV cache is full: running requests are thrown out and start over, new ones are not let in.
//!
//! Needs KV cache usage. Speaks for it: usage near one, and preemptions that rise to a share of requests that is not healthy; or
//! usage near one while requests wait. Rules it out: room in the cache, or few preemptions and no wait. Traps: preemption inflates
//! inter-token latency while the time to first token may even fall (vLLM pull request 44594); a few preemptions are healthy
//! (7 % of requests once each, inference-sim 963); a queue with room in the cache is bound by prefill (vLLM pull request 37307).

use sightline_model::{DraftClaim, Quantity, Relation, Stat};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::{bounded, changed};
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "kv_cache_pressure", assess };

/// Usage from which the cache is as good as full: vLLM keeps a watermark of a hundredth or two free, and steps average.
const FULL: f64 = 0.9;

/// Usage that must be reached at times.
const PEAK: f64 = 0.95;

/// Preemptions per request above which work is done twice to an extent that users notice; 0.074 was measured on a healthy service.
const UNHEALTHY: f64 = 0.1;

/// More requests than this many times the usual explain a full cache by themselves.
const SURGE: f64 = 0.5;

fn assess(case: &Case<'_>) -> Finding {
    let (Some(track), Some(usage)) = (case.track(S::KvUsage), case.typical(S::KvUsage)) else {
        return case.no_data(&[S::KvUsage]);
    };
    let peak = track.max(case.focus()).unwrap_or(usage);
    let full = usage >= FULL || (peak >= PEAK && usage >= super::queue_saturation::KV_ROOM);
    if !full {
        return case.ruled_out("the KV cache has room", &[S::KvUsage]);
    }
    if case.complaint().is_none() {
        return case.ruled_out("the KV cache is well used, and nothing is slower than usual", &[S::KvUsage]);
    }
    let thrown_out = case.rise(S::Preemptions, MIN_CHANGE);
    let share = preempted_share(case);
    let waiting = case.rise(S::Waiting, MIN_CHANGE);
    let heavy = share.as_ref().is_none_or(|(share, _)| *share >= UNHEALTHY);
    let main = match (&thrown_out, &waiting) {
        (Some(change), _) if heavy => change,
        (_, Some(change)) => change,
        (_, None) => {
            return case.ruled_out(
                "the KV cache is nearly full, but few requests are thrown out and none has to wait for it",
                &[S::KvUsage, S::Preemptions, S::Waiting],
            );
        }
    };
    let proven = main.signal == S::Preemptions && case.rise(S::Served, SURGE).is_none();
    let mut found = Found::by(case, main, if proven { Strength::Proof } else { Strength::Pattern });
    found.claims.push(bounded(track, case.focus(), Relation::AtLeast, usage.min(FULL), "it is nearly full"));
    if let Some(rise) = case.rise(S::KvUsage, MIN_CHANGE) {
        found.claims.push(changed(&rise).claim());
    }
    found.claims.extend(share.filter(|_| heavy).map(|(_, claim)| claim));
    if let Some(slower) = case.rise(S::InterToken, MIN_CHANGE) {
        found.claims.push(changed(&slower).claim());
    }
    found.finding(case)
}

/// Preemptions per request in the stretch that is looked at, and the sentence that says so.
fn preempted_share(case: &Case<'_>) -> Option<(f64, DraftClaim)> {
    let (preempted, served) = (case.track(S::Preemptions)?, case.track(S::Served)?);
    let focus = case.focus();
    let share = preempted.median(focus)? / served.median(focus).filter(|rate| *rate > 0.0)?;
    let facts = [preempted, served].map(|t| t.fact(Stat::Median, focus));
    let [left, right] = facts;
    let claim = Sentence::new("Requests were thrown out of the batch {preempted}, while {served} were served.")
        .number("preempted", left.clone(), S::Preemptions.decimals(), preempted.evidence.unit)
        .number("served", right.clone(), S::Served.decimals(), served.evidence.unit)
        .holds(Quantity::Ratio(Box::new(left), Box::new(right)), Relation::AtLeast, Quantity::Constant(UNHEALTHY))
        .claim();
    Some((share, claim))
}
