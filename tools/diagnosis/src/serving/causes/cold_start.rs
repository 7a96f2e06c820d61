//! A replica that has just started: weights are loaded, graphs are captured, and its caches are empty.
//!
//! Needs the start of a replica and its time to first token (or request latency). Speaks for it: its first minutes are slower than
//! its peers, than its later level, or than the service before it. Rules it out: no replica started, or it is slow for good: then
//! what was started is at fault, not the start.

use jiff::Timestamp;
use sightline_model::{Entity, Quantity, Relation, Stat, TimeRange, Unit};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::Case;
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::complaint::MIN_LATENCY;
use crate::serving::signal::ServingSignal as S;
use crate::serving::track::Track;
use crate::view::{seconds_of, shift};

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "cold_start", assess };

/// A start is over after this: weights of hundreds of gigabytes load in minutes, graphs are captured in one or two.
const WARM_MS: i64 = 900_000;

/// How much before a start says what was usual.
const LOOK_BACK_MS: i64 = 2_700_000;

/// A start whose excess has not fallen below this share of it once it is over was none: what was started is slow for good.
const FOR_GOOD: f64 = 0.5;

/// A start before the window still shows in it.
const BEFORE_MS: i64 = 900_000;

/// A first token that takes this long and so many times what is usual is told although nobody would call the whole window slow.
const GROSS_SECONDS: f64 = 5.0;
const GROSS_FACTOR: f64 = 10.0;

/// The least number of points that tell a level.
const LEAST_POINTS: usize = 2;

fn assess(case: &Case<'_>) -> Finding {
    let Some(signal) = [S::FirstToken, S::RequestLatency].into_iter().find(|s| !case.tracks.parts(*s).is_empty())
    else {
        return case.no_data(&[S::FirstToken]);
    };
    let Some(starts) = case.observations.starts else {
        return Finding::NoData(Sentence::new("Not judged: it is not known when replicas started.").claim());
    };
    let from = shift(case.window.from(), -BEFORE_MS);
    let recent = starts.rows.iter().enumerate().filter_map(|(row, one)| Some((row, &one.entity, one.time?)));
    let recent: Vec<(usize, &Entity, Timestamp)> =
        recent.filter(|(_, _, at)| from <= *at && *at < case.window.to()).collect();
    if recent.is_empty() {
        let why = Sentence::new("Ruled out: no replica started shortly before or in the window.").cite(&starts.id);
        return Finding::RuledOut(why.claim());
    }
    // Minutes within hours are no lasting change; whoever waited for them remembers.
    let told_of = |slow: &Slow| case.complaint().is_some() || slow.is_gross();
    let slow: Vec<(usize, &Entity, Timestamp, Slow)> = recent
        .iter()
        .filter_map(|(row, entity, at)| Some((*row, *entity, *at, slow_start(case, signal, entity, *at)?)))
        .filter(|(_, _, _, slow)| told_of(slow))
        .collect();
    if slow.is_empty() && case.complaint().is_none() {
        return case.ruled_out("a replica started, but nothing is slower than usual", &[signal]);
    }
    let Some((row, entity, at, first)) = slow.first() else {
        return case.ruled_out("what started is as fast as the others, or slow for good", &[signal]);
    };
    let text = format!(
        "A replica started at {{start}}, and its {} was {{cold}} at first, against {{usual}} {}.",
        signal.words(),
        first.than
    );
    let (cold, usual) = (first.cold.clone(), first.usual.clone());
    let unit = first.unit;
    let why = Sentence::new(&text)
        .row_time("start", starts, *row)
        .number("cold", cold.clone(), signal.decimals(), unit)
        .number("usual", usual.clone(), signal.decimals(), unit)
        .holds(cold, Relation::Above, usual)
        .claim();
    let components = slow.iter().map(|(_, entity, _, _)| case.replica(entity)).collect();
    // Before it is over, a start that made the whole service slow may as well be slow for good.
    let is_over = shift(*at, WARM_MS + case.complaint().map_or(0, |c| 2 * c.change.step_ms)) < case.window.to();
    let told = is_over || case.subject().is_some();
    let found = Found {
        strength: if told { Strength::Proof } else { Strength::Hint },
        onset: Some(*at),
        magnitude: first.factor - 1.0,
        components,
        why,
        claims: hit_rate(case, entity, *at).into_iter().collect(),
    };
    found.finding(case)
}

/// How a replica's first minutes compare.
struct Slow {
    unit: Unit,
    /// The level of the first minutes, in the signal's unit.
    level: f64,
    cold: Quantity,
    usual: Quantity,
    than: &'static str,
    factor: f64,
}

impl Slow {
    /// Whether requests waited for a load of weights, and not for a cache: seconds at least, and many times what is usual.
    fn is_gross(&self) -> bool {
        let seconds = seconds_of(self.unit).map(|unit| self.level * unit);
        seconds.is_some_and(|seconds| seconds >= GROSS_SECONDS) && self.factor >= GROSS_FACTOR
    }
}

fn slow_start(case: &Case<'_>, signal: S, entity: &Entity, at: Timestamp) -> Option<Slow> {
    let track = case.tracks.part(signal, entity)?;
    let first = TimeRange::new(at, shift(at, WARM_MS))?;
    let later = TimeRange::new(shift(at, WARM_MS), case.window.to());
    let before = TimeRange::new(shift(at, -LOOK_BACK_MS), at)?;
    let cold = track.median(first).filter(|_| track.count(first) >= LEAST_POINTS)?;
    let whole = case.tracks.whole(signal);
    let told = |t: &Track<'_>, range: TimeRange| (t.count(range) >= LEAST_POINTS).then(|| t.median(range)).flatten();
    // The service before the start is the plainest measure; a start of the only replica may have its own later level alone.
    let mut usual: Vec<(f64, Quantity, &'static str)> = Vec::new();
    if let Some(whole) = whole
        && let Some(level) = told(whole, before)
    {
        usual.push((level, whole.fact(Stat::Median, before), "in the service before"));
    }
    if let Some(later) = later
        && let Some(level) = told(track, later)
    {
        usual.push((level, track.fact(Stat::Median, later), "later"));
    }
    let enough = |level: f64| (cold + signal.floor()) >= (1.0 + MIN_LATENCY) * (level + signal.floor());
    let for_good = later.and_then(|later| told(track, later)).zip(whole.and_then(|w| told(w, before)));
    let is_slow = |after: f64, before: f64| {
        after + signal.floor() >= (1.0 + MIN_LATENCY) * (before + signal.floor())
            && after - before >= FOR_GOOD * (cold - before)
    };
    if for_good.is_some_and(|(after, before)| is_slow(after, before)) {
        return None;
    }
    let (level, usual, than) = usual.into_iter().find(|(level, _, _)| enough(*level))?;
    let factor = (cold + signal.floor()) / (level + signal.floor());
    Some(Slow { unit: track.evidence.unit, level: cold, cold: track.fact(Stat::Median, first), usual, than, factor })
}

fn hit_rate(case: &Case<'_>, entity: &Entity, at: Timestamp) -> Option<sightline_model::DraftClaim> {
    let track = case.tracks.part(S::HitRate, entity)?;
    let first = TimeRange::new(at, shift(at, WARM_MS))?;
    let later = TimeRange::new(shift(at, WARM_MS), case.window.to())?;
    let (cold, warm) = (track.median(first)?, track.median(later)?);
    let (early, late) = (track.fact(Stat::Median, first), track.fact(Stat::Median, later));
    (cold < warm).then(|| {
        Sentence::new("Its prefix cache hit rate was {early} at first and {late} later.")
            .number("early", early.clone(), S::HitRate.decimals(), track.evidence.unit)
            .number("late", late.clone(), S::HitRate.decimals(), track.evidence.unit)
            .holds(early, Relation::Below, late)
            .claim()
    })
}
