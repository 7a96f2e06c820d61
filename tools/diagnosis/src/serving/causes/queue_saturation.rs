//! Requests wait for the engine longer than they should.
//!
//! Needs the number of waiting requests or the queue time. Speaks for it: either rises when the service becomes slower. Rules it
//! out: neither does, or the queue holds but a small part of what the time to first token gained. Trap: queue time is recorded
//! when a request finishes, so it lags behind the number that waits. A queue is mostly how another cause shows: it comes first
//! only where nothing explains why it grew.

use sightline_model::Relation;

use crate::cause::{Finding, Strength};
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::change::Change;
use crate::serving::complaint::MIN_LATENCY;
use crate::serving::say::{bounded, changed, gone};
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "queue_saturation", assess };

/// A queue that holds less than this share of what the first token takes longer is not what makes it late.
const SHARE: f64 = 0.25;

/// The KV cache is not full below this share: an engine admits requests until hardly a block is free.
pub(crate) const KV_ROOM: f64 = 0.8;

fn assess(case: &Case<'_>) -> Finding {
    if case.track(S::Waiting).is_none() && case.track(S::QueueTime).is_none() {
        return case.no_data(&[S::Waiting, S::QueueTime]);
    }
    let waiting = case.rise(S::Waiting, MIN_CHANGE).filter(|_| case.queue_holds(SHARE));
    let queue = case.rise(S::QueueTime, MIN_LATENCY);
    // Where the whole request is what is worst, its delay is the measure: a few hundredths in the queue do not make an answer late.
    let is_of_answers = case.complaint().is_some_and(|c| matches!(c.change.signal, S::InterToken | S::RequestLatency));
    let measures = [Some(S::FirstToken), is_of_answers.then_some(S::RequestLatency)];
    let holds_part = |queue: &Change<'_>, of: S| {
        case.complaint_of(of).is_none_or(|late| {
            let (more, later) = (queue.after - queue.before, late.change.after - late.change.before);
            later <= 0.0 || more >= SHARE * later
        })
    };
    let part = queue.as_ref().is_some_and(|queue| measures.into_iter().flatten().all(|of| holds_part(queue, of)));
    let Some(main) = waiting.as_ref().or(queue.as_ref().filter(|_| part)) else {
        return case.ruled_out("requests do not wait longer than usual", &[S::Waiting, S::QueueTime]);
    };
    if case.complaint().is_none() {
        return case.ruled_out("nothing is slower than usual", &[S::Waiting, S::QueueTime]);
    }
    // A mechanism more often than a reason, so that whatever explains it goes first.
    let gone = gone(case);
    let mut found = Found::by(case, main, if gone.is_empty() { Strength::Hint } else { Strength::Pattern });
    found.magnitude = 1.0;
    found.claims.extend(gone);
    if let Some(queue) = queue.as_ref().filter(|q| q.signal != main.signal) {
        found.claims.push(changed(queue).claim());
    }
    if let (Some(track), Some(usage)) = (case.track(S::KvUsage), case.typical(S::KvUsage))
        && usage < KV_ROOM
    {
        let meaning = "requests do not wait for KV cache";
        found.claims.push(bounded(track, case.focus(), Relation::Below, KV_ROOM, meaning));
    }
    found.finding(case)
}
