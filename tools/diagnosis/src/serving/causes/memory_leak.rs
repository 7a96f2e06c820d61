//! A replica's host memory grows without end, until it is killed for it.
//!
//! Needs the memory of the pods. Speaks for it: it grew steadily through hours, not only while caches filled; a restart that set it
//! back. Rules it out: a level that holds, or that flattens out. Trap: after the restart everything looks well, and the cause lies
//! before it; the other replicas that took the load over meanwhile are no culprits.

use jiff::Timestamp;
use sightline_model::{Quantity, Relation, Stat, TimeRange};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::Case;
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::signal::ServingSignal as S;
use crate::serving::track::Track;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "memory_leak", assess };

/// The least growth, from the first third of a stretch to the last, of what is held: an engine's own buffers wobble by a few percent.
const GROWTH: f64 = 0.1;

/// Growth of the second half of the way over that of the first: caches that fill grow ever slower.
const STEADY: f64 = 0.5;

/// A stretch must last an hour, in milliseconds, and have this many points.
const LEAST_MS: i64 = 3_600_000;
const LEAST_POINTS: usize = 18;

/// Memory that falls by this share from one point to the next was given back at a restart.
const RESET: f64 = 0.3;

/// A stretch of growth.
struct Growth<'c, 'a> {
    track: &'c Track<'a>,
    early: TimeRange,
    late: TimeRange,
    factor: f64,
    /// The first sample after the restart that ended it.
    ended: Option<Timestamp>,
}

fn assess(case: &Case<'_>) -> Finding {
    let parts = case.tracks.parts(S::Memory);
    let tracks: Vec<&Track<'_>> =
        if parts.is_empty() { case.tracks.whole(S::Memory).into_iter().collect() } else { parts.iter().collect() };
    let Some(first) = tracks.first() else { return case.no_data(&[S::Memory]) };
    let mut grown: Vec<Growth<'_, '_>> = tracks.iter().copied().filter_map(growth).collect();
    grown.sort_by(|a, b| b.ended.is_some().cmp(&a.ended.is_some()).then(b.factor.total_cmp(&a.factor)));
    let Some(worst) = grown.first() else {
        let why =
            Sentence::new("Ruled out: the host memory of the service does not keep growing.").cite(&first.evidence.id);
        return Finding::RuledOut(why.claim());
    };
    let track = worst.track;
    let (early, late) = (track.fact(Stat::Median, worst.early), track.fact(Stat::Median, worst.late));
    let on = if track.entity.contains_key("pod") { "of pod {pod} " } else { "" };
    let until = if worst.ended.is_some() { ", until a restart set it back" } else { "" };
    let why =
        Sentence::new(&format!("The host memory {on}grew steadily from {{early}} to {{late}}, by {{change}}{until}."))
            .entity(track.evidence, track.entity)
            .number("early", early.clone(), 0, track.evidence.unit)
            .number("late", late.clone(), 0, track.evidence.unit)
            .percent("change", early.clone(), late.clone())
            .holds(
                Quantity::Ratio(Box::new(late), Box::new(early)),
                Relation::AtLeast,
                Quantity::Constant(1.0 + GROWTH),
            )
            .claim();
    // All replicas that leak alike are one leak of the service.
    let alone = grown.len() < tracks.len() || tracks.len() == 1;
    let components = if alone && track.entity.contains_key("pod") && tracks.len() > 1 {
        grown
            .iter()
            .filter(|g| g.ended.is_some() == worst.ended.is_some())
            .map(|g| case.replica(g.track.entity))
            .collect()
    } else {
        vec![case.observations.service.clone()]
    };
    // Growth beside a slowdown that nothing ties to it is a finding, not its cause.
    let strength = match (worst.ended, case.complaint()) {
        (Some(_), _) => Strength::Proof,
        (None, None) => Strength::Pattern,
        (None, Some(_)) => Strength::Hint,
    };
    let magnitude = worst.factor - 1.0;
    let found = Found { strength, onset: None, magnitude, components, why, claims: Vec::new() }.finding(case);
    match found {
        // A leak has no moment at which it begins; the restart that ends it is what users notice.
        Finding::Supported(mut support) => {
            support.coincides = case.coincides(worst.ended).filter(|together| *together);
            Finding::Supported(support)
        }
        other @ (Finding::RuledOut(_) | Finding::NoData(_)) => other,
    }
}

/// The longest stretch between two restarts, if the memory grew through all of it.
fn growth<'c, 'a>(track: &'c Track<'a>) -> Option<Growth<'c, 'a>> {
    let mut stretches: Vec<&[sightline_model::Point]> =
        track.points.chunk_by(|a, b| b.value >= (1.0 - RESET) * a.value).collect();
    stretches.retain(|s| s.len() >= LEAST_POINTS);
    let longest = stretches.into_iter().max_by_key(|s| s.len())?;
    let (from, to) = (longest.first()?.time, longest.last()?.time);
    let ended = track.points.iter().map(|p| p.time).find(|time| *time > to);
    let third = (to.as_millisecond() - from.as_millisecond()) / 3;
    if 3 * third < LEAST_MS {
        return None;
    }
    let at = |thirds: i64| crate::view::shift(from, thirds * third);
    let (early, middle, late) =
        (TimeRange::new(at(0), at(1))?, TimeRange::new(at(1), at(2))?, TimeRange::new(at(2), to)?);
    let (a, b, c) = (track.median(early)?, track.median(middle)?, track.median(late)?);
    let grows = a > 0.0 && c >= (1.0 + GROWTH) * a && b > a && c - b >= STEADY * (b - a);
    grows.then(|| Growth { track, early, late, factor: c / a, ended })
}
