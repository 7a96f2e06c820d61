//! The engine runs fewer requests at once than it could while others wait.
//!
//! Needs the numbers of running and waiting requests. Speaks for it: the batch shrank or its largest size did, requests wait, the KV
//! cache has room, and no more tokens are computed than before. Rules it out: the batch is as large as usual, nothing waits, or the cache is full.
//! Trap: long prompts also leave a small batch, a queue and an empty cache, but then prefill is busy (vLLM pull request 37307).

use sightline_model::{DraftClaim, Relation, Stat, TimeRange};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::queue_saturation::KV_ROOM;
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::{bounded, changed};
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "batching_inefficiency", assess };

/// So many must wait for a small batch to be a fault.
const WAITS: f64 = 1.0;

/// The share of the delay that what waits must hold for the batch to be why.
const HELD: f64 = 0.25;

/// The largest batch while requests wait, as a share of the largest before, that speaks of a lower limit.
const CAPPED: f64 = 0.75;

/// So few points tell no largest batch.
const LEAST_POINTS: usize = 5;

fn assess(case: &Case<'_>) -> Finding {
    if case.track(S::Running).is_none() || case.track(S::Waiting).is_none() {
        return case.no_data(&[S::Running, S::Waiting]);
    }
    let smaller = case.fall(S::Running, MIN_CHANGE);
    let waits = case.typical(S::Waiting).unwrap_or(0.0) >= WAITS;
    let capped = if waits { capped(case) } else { None };
    if !waits || (smaller.is_none() && capped.is_none()) {
        return case.ruled_out("no smaller batch than usual while requests wait", &[S::Running, S::Waiting]);
    }
    if case.complaint().is_none() {
        return case.ruled_out("nothing is slower than usual", &[S::Running, S::Waiting]);
    }
    if !case.queue_holds(HELD) {
        return case.ruled_out("the few requests that wait do not hold the delay", &[S::Waiting]);
    }
    if !case.gone().is_empty() {
        return case.ruled_out("fewer requests run because there are fewer replicas", &[S::Running]);
    }
    let usage = case.typical(S::KvUsage);
    if usage.is_some_and(|usage| usage >= KV_ROOM) {
        return case.ruled_out("the batch is small because the KV cache is full", &[S::KvUsage]);
    }
    let busy_with_prompts = [S::PromptTokens, S::PromptLength, S::PrefillTime]
        .into_iter()
        .filter(|s| case.rise(*s, MIN_CHANGE).is_some())
        .collect::<Vec<_>>();
    if !busy_with_prompts.is_empty() {
        return case.ruled_out("the batch is small because prefill takes the engine's time", &busy_with_prompts);
    }
    let waiting = case.rise(S::Waiting, MIN_CHANGE);
    let mut found = match (&smaller, &waiting, &capped) {
        (_, Some(queue), Some(capped)) => Found { why: capped.clone(), ..Found::by(case, queue, Strength::Pattern) },
        (Some(smaller), _, _) => Found::by(case, smaller, Strength::Pattern),
        (None, _, _) => return case.ruled_out("requests wait no longer than usual", &[S::Running, S::Waiting]),
    };
    found.claims.extend(smaller.as_ref().filter(|_| capped.is_some()).map(|c| changed(c).claim()));
    found.claims.extend(waiting.map(|c| changed(&c).claim()));
    for signal in [S::GenerationTokens, S::StepTokens] {
        found.claims.extend(case.fall(signal, MIN_CHANGE).map(|c| changed(&c).claim()));
    }
    if let (Some(track), Some(_)) = (case.track(S::KvUsage), usage) {
        let meaning = "the cache has room for more requests";
        found.claims.push(bounded(track, case.focus(), Relation::Below, KV_ROOM, meaning));
    }
    found.finding(case)
}

/// "At most … ran at once": while requests wait an engine runs as many as it may, so that a largest batch below what it ran before is
/// a limit that was lowered.
fn capped(case: &Case<'_>) -> Option<DraftClaim> {
    let track = case.track(S::Running)?;
    let focus = case.focus();
    let before = TimeRange::new(track.points.first()?.time, focus.from())?;
    let (now, then) = (track.max(focus)?, track.max(before)?);
    let enough = track.count(focus) >= LEAST_POINTS && track.count(before) >= LEAST_POINTS;
    (enough && now <= CAPPED * then).then(|| {
        let (now, then) = (track.fact(Stat::Max, focus), track.fact(Stat::Max, before));
        Sentence::new("While requests wait, at most {now} run at once; before, up to {then} did.")
            .number("now", now.clone(), S::Running.decimals(), track.evidence.unit)
            .number("then", then.clone(), S::Running.decimals(), track.evidence.unit)
            .holds(now, Relation::Below, then)
            .claim()
    })
}
