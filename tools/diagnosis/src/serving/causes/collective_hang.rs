//! The engine stands still while its GPUs look busy: requests are in the batch, no token leaves it.
//!
//! Needs the rate of generated tokens and the number of running requests. Speaks for it: tokens stop while requests stay in the batch and
//! others wait, and GPU utilisation is full, as a waiting kernel counts as busy. Rules it out: tokens flow, the batch is empty,
//! or the GPUs are idle. Trap: latencies are recorded when a request finishes, so that in a halt they look as fine as before.

use sightline_model::{Quantity, Relation, Stat, TimeRange};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::{bounded, changed};
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "collective_hang", assess };

/// What is left of the rate of tokens in a halt: a step of time may hold the last of what flowed.
const LEFT: f64 = 0.05;

/// GPUs that spin in a collective show a kernel running nearly all the time.
const SPINNING: f64 = 90.0;

/// SM activity of a spinning kernel stays below this share of what it was: it holds a few SMs only.
const ACTIVE_LEFT: f64 = 0.5;

fn assess(case: &Case<'_>) -> Finding {
    let (Some(tokens), Some(running)) = (case.track(S::GenerationTokens), case.track(S::Running)) else {
        return case.no_data(&[S::GenerationTokens, S::Running]);
    };
    let focus = case.focus();
    let before = tokens.points.first().and_then(|first| TimeRange::new(first.time, focus.from()));
    let levels = before.and_then(|before| Some((before, tokens.median(before)?, tokens.median(focus)?)));
    let Some((before, _, _)) = levels.filter(|(_, then, now)| *then > 0.0 && *now <= LEFT * then) else {
        return case.ruled_out("tokens leave the engine", &[S::GenerationTokens]);
    };
    let Some(waiting) = case.rise(S::Waiting, MIN_CHANGE).filter(|_| running.median(focus).is_some_and(|r| r >= 1.0))
    else {
        return case.ruled_out("no tokens leave the engine because nothing is in it", &[S::Running, S::Waiting]);
    };
    let Some(busy) = case.track(S::GpuUtilization) else { return case.no_data(&[S::GpuUtilization]) };
    let works = case.track(S::SmActive).is_some_and(|track| match (track.median(focus), track.median(before)) {
        (Some(now), Some(then)) => now >= ACTIVE_LEFT * then,
        _ => false,
    });
    if works || busy.median(focus).is_none_or(|share| share < SPINNING) {
        return case.ruled_out("the GPUs do not spin in a collective", &[S::GpuUtilization]);
    }
    let (old, new) = (tokens.fact(Stat::Median, before), tokens.fact(Stat::Median, focus));
    let left = Quantity::Ratio(Box::new(new.clone()), Box::new(old.clone()));
    let mut found = Found::by(case, &waiting, Strength::Proof);
    found.why = Sentence::new(
        "No tokens leave the engine any more ({new} after {old}) while requests stay in its batch: it waits in a collective that does not return.",
    )
    .entity(tokens.evidence, tokens.entity)
    .number("new", new, S::GenerationTokens.decimals(), tokens.evidence.unit)
    .number("old", old, S::GenerationTokens.decimals(), tokens.evidence.unit)
    .holds(left, Relation::AtMost, Quantity::Constant(LEFT))
    .claim();
    found.claims.push(changed(&waiting).claim());
    found.claims.push(bounded(running, focus, Relation::AtLeast, 1.0, "they are in the batch and get nowhere"));
    let meaning = "it counts a waiting kernel as busy";
    found.claims.push(bounded(busy, focus, Relation::AtLeast, SPINNING, meaning));
    found.finding(case)
}
