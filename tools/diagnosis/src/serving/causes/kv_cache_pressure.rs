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

/// What a full cache is called.
const FULL_WORDS: &str = "it is nearly full";

/// A replica that throws out this many times what its peers do has less cache than they have, whatever its past was like.
const TIMES_PEERS: f64 = 10.0;

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
            if let Some(found) = beside_its_peers(case).filter(|_| share.is_some() && heavy) {
                return full_from_the_start(
                    case,
                    found,
                    bounded(track, case.focus(), Relation::AtLeast, usage.min(FULL), FULL_WORDS),
                );
            }
            return case.ruled_out(
                "the KV cache is nearly full, but few requests are thrown out and none has to wait for it",
                &[S::KvUsage, S::Preemptions, S::Waiting],
            );
        }
    };
    let proven = main.signal == S::Preemptions && case.rise(S::Served, SURGE).is_none();
    let mut found = Found::by(case, main, if proven { Strength::Proof } else { Strength::Pattern });
    found.claims.push(bounded(track, case.focus(), Relation::AtLeast, usage.min(FULL), FULL_WORDS));
    if let Some(rise) = case.rise(S::KvUsage, MIN_CHANGE) {
        found.claims.push(changed(&rise).claim());
    }
    found.claims.extend(share.filter(|_| heavy).map(|(_, claim)| claim));
    if let Some(slower) = case.rise(S::InterToken, MIN_CHANGE) {
        found.claims.push(changed(&slower).claim());
    }
    found.finding(case)
}

/// The rate of preemptions of the replica that is complained about, where its peers hardly have any: nothing changed on it, it was started
/// so.
fn beside_its_peers(case: &Case<'_>) -> Option<DraftClaim> {
    let (track, focus) = (case.subject().and_then(|_| case.track(S::Preemptions))?, case.focus());
    let of_peers = case.tracks.parts(S::Preemptions).iter().filter(|t| t.entity != track.entity);
    let others: Vec<f64> = of_peers.filter_map(|t| t.median(focus)).collect();
    let (own, usual) = (track.median(focus)?, sightline_analysis::median(&others)?);
    let (left, right) = (
        track.fact(Stat::Median, focus),
        crate::sentence::peers(track.evidence, track.entity, Stat::Median, Some(focus)),
    );
    (own > 0.0 && own >= TIMES_PEERS * usual).then(|| {
        Sentence::new("Requests are thrown out of its batch {own}, and {usual} on the other replicas: it has less cache than they have.")
            .number("own", left.clone(), S::Preemptions.decimals(), track.evidence.unit)
            .number("usual", right.clone(), S::Preemptions.decimals(), track.evidence.unit)
            .holds(left, Relation::Above, right)
            .claim()
    })
}

fn full_from_the_start(case: &Case<'_>, why: DraftClaim, usage: DraftClaim) -> Finding {
    let components = case.components();
    let found = Found { strength: Strength::Proof, onset: None, magnitude: 1.0, components, why, claims: vec![usage] };
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
