//! Whether a series left the level that it should have: that of the hours before, and of the same hour of the days before.

use jiff::{SignedDuration, Timestamp};
use sightline_analysis::{Direction, Sample, median};
use sightline_model::{Entity, Evidence, Quantity, Stat, TimeRange};

use crate::level::{Segment, excursion, segments};
use crate::pace::{Onset, first_holding};
use crate::serving::signal::ServingSignal;
use crate::serving::track::Track;
use crate::view::shift;

/// A level counts as usual when it was held for this share of what is looked at: two of the hours before a window of one.
const USUAL_SHARE: f64 = 0.1;

/// A change must hold for this many points in the window; fewer are a spike.
const LEAST_POINTS: usize = 3;

/// The days before that are asked what is usual at this hour.
const DAYS: i64 = 2;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A change that is over again must have held for this long; less is a spike.
const LEAST_HELD_MS: i64 = 180_000;

/// A stretch up to this long is a burst: requests come in clumps, and a burst like those of the hours before is no change.
const BURST_MS: i64 = 900_000;

/// A daily peak keeps its hour and not its minute. Only large changes are looked for so widely: small ones lie within chance of
/// the highest of many stretches.
const PEAK_SLACK_MS: i64 = 2_700_000;
const LARGE: f64 = 2.0;

/// The least stretch of an earlier day whose median says what is usual.
const LEAST_OF_A_DAY: SignedDuration = SignedDuration::from_mins(30);

/// A change of level.
#[derive(Clone, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) signal: ServingSignal,
    pub(crate) evidence: &'a Evidence,
    pub(crate) entity: &'a Entity,
    /// The first sample of the new level; none when it was there from the first sample on.
    pub(crate) onset: Option<Onset<'a>>,
    /// The stretch at the new level.
    pub(crate) range: TimeRange,
    /// The old and the new level, in the signal's unit.
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The same as references into the evidence.
    pub(crate) before_fact: Quantity,
    pub(crate) after_fact: Quantity,
    pub(crate) step_ms: i64,
}

impl Change<'_> {
    /// The level halfway between the old and the new one, as a factor: near saturation a little more load is a multiple of the wait.
    fn halfway(&self) -> f64 {
        let floor = self.signal.floor();
        ((self.before + floor).max(0.0) * (self.after + floor).max(0.0)).sqrt() - floor
    }

    /// The larger level over the smaller one, the signal's floor added to both; above 1.
    pub(crate) fn factor(&self) -> f64 {
        let floor = self.signal.floor();
        let (a, b) = (self.before + floor, self.after + floor);
        a.max(b) / a.min(b).max(f64::MIN_POSITIVE)
    }
}

/// What a series did.
#[derive(Clone, Debug)]
pub(crate) enum Level<'a> {
    /// It left its usual level.
    Changed(Change<'a>),
    /// It did too, but as on the days before.
    AsOnOtherDays(Change<'a>),
    /// It kept its level.
    Usual,
}

impl<'a> Level<'a> {
    /// The change that is none of every day.
    pub(crate) fn changed(self) -> Option<Change<'a>> {
        match self {
            Self::Changed(change) => Some(change),
            Self::AsOnOtherDays(_) | Self::Usual => None,
        }
    }
}

/// Judges the series in the window: `least` is the smallest relative change that counts.
pub(crate) fn level<'a>(
    near: &Track<'a>,
    past: Option<&Track<'a>>,
    close: &[Track<'a>],
    direction: Direction,
    least: f64,
    window: TimeRange,
) -> Level<'a> {
    match against_hours_before(near, close, direction, least, window) {
        Some(change) if past.is_some_and(|p| is_daily(p, &change, direction)) => Level::AsOnOtherDays(change),
        Some(change) => Level::Changed(change),
        None => past
            .and_then(|p| against_days_before(near, p, direction, least, window))
            .map_or(Level::Usual, Level::Changed),
    }
}

fn against_hours_before<'a>(
    near: &Track<'a>,
    close: &[Track<'a>],
    direction: Direction,
    least: f64,
    window: TimeRange,
) -> Option<Change<'a>> {
    let floor = near.signal.floor();
    let raised: Vec<Sample> = near.samples.iter().map(|s| Sample { value: s.value + floor, ..*s }).collect();
    let found = segments(&raised, least);
    let usual = usual_level(&found, direction)?;
    let away = excursion(&found, usual.level, direction, least, window)?;
    let range = away.range()?;
    let inside = range.intersect(&window)?;
    let is_over = inside.to() < window.to() && near.count(after(inside, window)?) > 0;
    if near.count(inside) < LEAST_POINTS || (is_over && inside.millis() < LEAST_HELD_MS) {
        return None;
    }
    let good = TimeRange::new(usual.from, usual.to)?;
    let (before, level) = (near.median(good)?, near.median(range)?);
    let onset = away.onset().map(|at| dated(near, close, at, before, level));
    let change = Change {
        signal: near.signal,
        evidence: near.evidence,
        entity: near.entity,
        onset,
        range,
        before,
        after: level,
        before_fact: near.fact(Stat::Median, good),
        after_fact: near.fact(Stat::Median, range),
        step_ms: near.step_ms,
    };
    (is_in(&change, direction, least) && !recurs(near, &change, direction)).then_some(change)
}

/// What of the window comes after a stretch.
fn after(inside: TimeRange, window: TimeRange) -> Option<TimeRange> {
    TimeRange::new(inside.to(), window.to())
}

/// Whether a burst is one of several: the hours before it have a stretch of its length that came at least half of the way.
fn recurs(near: &Track<'_>, change: &Change<'_>, direction: Direction) -> bool {
    let (Some(first), length) = (near.points.first(), change.range.millis()) else { return false };
    let earlier = TimeRange::new(first.time, change.range.from());
    length <= BURST_MS
        && earlier
            .and_then(|e| furthest(near, e, length, direction))
            .is_some_and(|level| reaches(level, change, direction))
}

/// The level of the stretch of this length, within a range, that lies furthest in a direction.
fn furthest(track: &Track<'_>, range: TimeRange, length_ms: i64, direction: Direction) -> Option<f64> {
    let values: Vec<f64> = track.points.iter().filter(|p| range.contains(p.time)).map(|p| p.value).collect();
    let points = usize::try_from(length_ms / track.step_ms).unwrap_or(usize::MAX).clamp(2, values.len().max(2));
    values.windows(points).filter_map(median).reduce(|a, b| match direction {
        Direction::Rise => a.max(b),
        Direction::Fall => a.min(b),
    })
}

/// Whether a level came at least half of the way of a change.
fn reaches(level: f64, change: &Change<'_>, direction: Direction) -> bool {
    match direction {
        Direction::Rise => level >= change.halfway(),
        Direction::Fall => level <= change.halfway(),
    }
}

/// A level that holds all through the hours before too is unusual only for those who look at other days.
fn against_days_before<'a>(
    near: &Track<'a>,
    past: &Track<'a>,
    direction: Direction,
    least: f64,
    window: TimeRange,
) -> Option<Change<'a>> {
    if near.count(window) < LEAST_POINTS {
        return None;
    }
    let after = near.median(window)?;
    // Every day there is must have been better: of several, the one nearest to today is compared with.
    let days: Vec<(TimeRange, f64)> =
        earlier_days(window).into_iter().filter_map(|day| Some((day, past.median(day)?))).collect();
    let worst = days.iter().copied().reduce(|a, b| match direction {
        Direction::Rise if b.1 > a.1 => b,
        Direction::Fall if b.1 < a.1 => b,
        Direction::Rise | Direction::Fall => a,
    });
    let (day, before) = worst?;
    let change = Change {
        signal: near.signal,
        evidence: near.evidence,
        entity: near.entity,
        onset: None,
        range: window,
        before,
        after,
        before_fact: past.fact(Stat::Median, day),
        after_fact: near.fact(Stat::Median, window),
        step_ms: near.step_ms,
    };
    is_in(&change, direction, least).then_some(change)
}

/// The level that is usual, among those that were held for long: the best one.
fn usual_level(segments: &[Segment], worse: Direction) -> Option<Segment> {
    let total: usize = segments.iter().map(|s| s.samples).sum();
    let held = segments.iter().filter(|s| s.samples as f64 >= USUAL_SHARE * total as f64);
    held.copied().reduce(|a, b| match worse {
        Direction::Rise if b.level < a.level => b,
        Direction::Fall if b.level > a.level => b,
        Direction::Rise | Direction::Fall => a,
    })
}

fn is_in(change: &Change<'_>, direction: Direction, least: f64) -> bool {
    let right_way = match direction {
        Direction::Rise => change.after > change.before,
        Direction::Fall => change.after < change.before,
    };
    let floor = change.signal.floor();
    let base = (change.before + floor).abs().max(f64::MIN_POSITIVE);
    right_way && (change.after - change.before).abs() / base >= least
}

/// Whether every earlier day that is known came at least half of the way at about the same hour.
fn is_daily(past: &Track<'_>, change: &Change<'_>, direction: Direction) -> bool {
    let slack = if change.factor() >= LARGE { PEAK_SLACK_MS } else { 0 };
    let level = |day: TimeRange| match TimeRange::new(shift(day.from(), -slack), shift(day.to(), slack)) {
        Some(wide) if slack > 0 => furthest(past, wide, change.range.millis(), direction),
        Some(_) | None => past.median(day),
    };
    let known: Vec<f64> = earlier_days(change.range).into_iter().filter_map(level).collect();
    !known.is_empty() && known.iter().all(|level| reaches(*level, change, direction))
}

fn earlier_days(range: TimeRange) -> Vec<TimeRange> {
    let short = LEAST_OF_A_DAY.as_millis() - i128::from(range.millis());
    let widen = i64::try_from(short / 2).unwrap_or(0).max(0);
    (1..=DAYS)
        .filter_map(|day| {
            let back = i64::try_from(DAY.as_millis()).ok()?.checked_mul(-day)?;
            TimeRange::new(shift(range.from(), back - widen), shift(range.to(), back + widen))
        })
        .collect()
}

/// The first sample of the new level, by the finest series there is.
fn dated<'a>(near: &Track<'a>, close: &[Track<'a>], at: Timestamp, before: f64, after: f64) -> Onset<'a> {
    let (from, to) = (shift(at, -2 * near.step_ms), shift(at, 2 * near.step_ms));
    for fine in close.iter().filter(|fine| fine.entity == near.entity && fine.step_ms < near.step_ms) {
        if let Some(at) = first_holding(&fine.samples, from, to, before, after) {
            return Onset { at, evidence: fine.evidence, entity: fine.entity };
        }
    }
    let at = first_holding(&near.samples, from, to, before, after)
        .or_else(|| near.points.iter().map(|p| p.time).find(|time| *time >= at))
        .unwrap_or(at);
    Onset { at, evidence: near.evidence, entity: near.entity }
}
