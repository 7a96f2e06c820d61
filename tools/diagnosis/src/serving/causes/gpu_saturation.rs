//! The GPUs are fully at work: each step of the engine takes longer because more is in it.
//!
//! Needs prefill time or inter-token latency, better with SM activity. Speaks for it: steps became slower while the batch grew
//! and the SMs are busy. Rules it out: GPUs with room, or steps as fast as usual. Trap: utilisation of 100 % only says that some
//! kernel runs, so SM activity decides where it is collected.

use sightline_analysis::Direction;
use sightline_model::Relation;

use crate::cause::{Finding, Strength};
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::complaint::MIN_LATENCY;
use crate::serving::say::{bounded, changed, gone};
use crate::serving::signal::ServingSignal as S;
use crate::serving::track::Track;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "gpu_saturation", assess };

/// SM activity from which a GPU is well used (NVIDIA, DCGM user guide: 0.8 or greater is necessary, not sufficient).
const BUSY: f64 = 0.8;

/// Below this it is likely used ineffectively (same source).
const IDLE: f64 = 0.5;

fn assess(case: &Case<'_>) -> Finding {
    let phases = [S::PrefillTime, S::InterToken, S::DecodeTime];
    if phases.iter().all(|s| case.track(*s).is_none()) {
        return case.no_data(&phases);
    }
    let slower =
        phases.into_iter().filter_map(|s| case.rise(s, MIN_LATENCY)).max_by(|a, b| a.factor().total_cmp(&b.factor()));
    let Some(slower) = slower.filter(|_| case.complaint().is_some()) else {
        return case.ruled_out("prefill and decode are as fast as usual", &phases);
    };
    let activity = activity(case);
    let active = activity.and_then(|track| track.median(case.focus()));
    if active.is_some_and(|active| active < IDLE) {
        return case.ruled_out("the GPUs have room", &[S::SmActive]);
    }
    let grew = case.level(S::Running, Direction::Rise, MIN_CHANGE).changed();
    let busy = active.is_some_and(|active| active >= BUSY);
    if !busy && (active.is_some() || grew.is_none()) {
        let by = [S::SmActive, S::GpuUtilization, S::Running];
        return if active.is_none() && case.track(S::Running).is_none() {
            case.no_data(&[S::SmActive, S::Running])
        } else {
            case.ruled_out("neither are the GPUs seen to be fully busy nor did the batch grow", &by)
        };
    }
    let queues = case.rise(S::Waiting, MIN_CHANGE).is_some();
    let mut found = Found::by(case, &slower, if busy && !queues { Strength::Pattern } else { Strength::Hint });
    // Where the batch grew or the GPUs are busy for a reason that is known, that reason goes first.
    found.magnitude = 0.0;
    if let Some(track) = activity.filter(|_| busy) {
        found.claims.push(bounded(track, case.focus(), Relation::AtLeast, BUSY, "the GPUs are fully at work"));
    }
    found.claims.extend(grew.map(|c| changed(&c).claim()));
    found.claims.extend(gone(case));
    found.finding(case)
}

/// The SM activity that counts: the subject's; where replicas went away that of the least busy one that is left, since the idle GPUs
/// of the others stand in the mean.
fn activity<'c, 'a>(case: &'c Case<'a>) -> Option<&'c Track<'a>> {
    if case.subject().is_some() || case.gone().is_empty() {
        return case.track(S::SmActive);
    }
    let left = case.tracks.parts(S::SmActive).iter().filter(|t| case.is_alive(t.entity));
    let level = |t: &Track<'_>| t.median(case.focus()).unwrap_or(0.0);
    left.min_by(|a, b| level(a).total_cmp(&level(b))).or_else(|| case.track(S::SmActive))
}
