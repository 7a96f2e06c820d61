//! A job that holds its GPUs and gets nowhere: from when to when, by its own counts and timers.
//!
//! Progress is what the trainer itself writes: a step counter that grows, a throughput above nothing, a step time that is new. A trainer that
//! hangs stops writing, writes zeros, or its exporter repeats the last value; all three are read alike.

use jiff::Timestamp;
use sightline_analysis::{median, quantile};
use sightline_model::{Entity, Evidence, Point, TimeRange};

use crate::case::Views;
use crate::observation::Observations;
use crate::pace::Onset;
use crate::signal::Signal;
use crate::view::{View, shift};

/// A stall is at least this long: longer than the pauses that evaluation, a checkpoint or a late scrape make.
const LEAST_MS: i64 = 300_000;

/// And at least this many times the usual time between two signs of progress.
const TIMES_USUAL: i64 = 5;

/// A throughput below this share of its best is none.
const NOTHING: f64 = 0.02;

/// The longest stretch without progress.
#[derive(Clone, Debug)]
pub(crate) struct Stall<'a> {
    pub(crate) signal: Signal,
    /// The last sign of progress.
    pub(crate) last: Onset<'a>,
    /// The next one, or until when the job was watched; exclusive.
    pub(crate) until: Timestamp,
    /// Whether the job went on by itself, in the same attempt.
    pub(crate) resumed: bool,
    pub(crate) step_ms: i64,
}

impl Stall<'_> {
    /// The stretch itself, without the steps at its ends that may hold some of the work before and after.
    pub(crate) fn inner(&self) -> Option<TimeRange> {
        let to = if self.resumed { shift(self.until, -self.step_ms) } else { self.until };
        TimeRange::new(shift(self.last.at, 2 * self.step_ms), to)
    }
}

/// One sign of progress, and the series that shows it.
struct Sign<'a> {
    at: Timestamp,
    entity: &'a Entity,
    evidence: &'a Evidence,
}

/// The longest stall that touches the window; `None` when the job went on, or nothing tells.
pub(crate) fn stall<'a>(views: &Views<'a>, observations: &Observations<'a>) -> Option<Stall<'a>> {
    [Signal::TrainingSteps, Signal::StepTime, Signal::Throughput].into_iter().find_map(|signal| {
        let view = views.coarse(signal)?;
        let signs = signs(view)?;
        Some(longest(views, view, &signs, observations))
    })?
}

fn longest<'a>(
    views: &Views<'a>,
    view: &View<'a>,
    signs: &[Sign<'a>],
    observations: &Observations<'a>,
) -> Option<Stall<'a>> {
    let gaps: Vec<f64> = signs
        .windows(2)
        .filter_map(|w| match w {
            [a, b] => Some((b.at.as_millisecond() - a.at.as_millisecond()) as f64),
            _ => None,
        })
        .filter(|gap| *gap > 0.0)
        .collect();
    let usual = median(&gaps).unwrap_or(0.0) as i64;
    // Pauses that come again and again are how this job works.
    let regular = quantile(&gaps, 0.95).unwrap_or(0.0) as i64;
    let least = LEAST_MS.max(TIMES_USUAL * usual.max(view.step_ms)).max(2 * regular);
    let watched = watched_until(views, observations);
    let mut found: Option<Stall<'a>> = None;
    for (from, to) in attempts(observations) {
        let end = to.unwrap_or(watched).min(watched);
        let inside: Vec<&Sign<'a>> = signs.iter().filter(|s| from <= s.at && s.at < end).collect();
        for (index, sign) in inside.iter().enumerate() {
            let next = inside.get(index + 1).map(|s| s.at);
            let until = next.unwrap_or(end);
            let length = until.as_millisecond() - sign.at.as_millisecond();
            let longer = found.as_ref().is_none_or(|f| {
                let known = f.until.as_millisecond() - f.last.at.as_millisecond();
                // What the job did not come out of is what it is asked about.
                (next.is_none(), length) > (!f.resumed, known)
            });
            let touches = TimeRange::new(sign.at, until).is_some_and(|r| r.intersect(&observations.window).is_some());
            if length >= least && touches && longer {
                let last = closer(views, view, sign, until);
                found =
                    Some(Stall { signal: view.signal, last, until, resumed: next.is_some(), step_ms: view.step_ms });
            }
        }
    }
    found
}

/// The last sign of progress in the finest resolution there is.
fn closer<'a>(views: &Views<'a>, view: &View<'a>, sign: &Sign<'a>, until: Timestamp) -> Onset<'a> {
    let coarse = Onset { at: sign.at, evidence: sign.evidence, entity: sign.entity };
    let end = shift(sign.at, 2 * view.step_ms).min(until);
    let fine = views.fine(view.signal).iter().filter_map(signs);
    let inside = fine.flatten().filter(|s| sign.at <= s.at && s.at < end);
    inside.max_by_key(|s| s.at).map_or(coarse, |s| Onset { at: s.at, evidence: s.evidence, entity: s.entity })
}

/// The job's attempts; its whole life where they are not known.
fn attempts(observations: &Observations<'_>) -> Vec<(Timestamp, Option<Timestamp>)> {
    match observations.attempts.is_empty() {
        true => vec![(observations.job.start, observations.job.end)],
        false => observations.attempts.iter().map(|a| (a.from, a.to.or(observations.job.end))).collect(),
    }
}

/// Until when the job was watched: as long as its GPUs report, and not past the window or its own end.
fn watched_until(views: &Views<'_>, observations: &Observations<'_>) -> Timestamp {
    let end = observations.job.end.unwrap_or(Timestamp::MAX).min(observations.window.to());
    let reported = [Signal::Utilization, Signal::Power, Signal::GpuTemperature, Signal::SmClock]
        .into_iter()
        .filter_map(|s| views.coarse(s)?.span())
        .map(|span| span.to())
        .max();
    reported.map_or(end, |reported| reported.min(end))
}

/// The signs of progress of a signal, in order of time; `None` where it cannot tell.
fn signs<'a>(view: &View<'a>) -> Option<Vec<Sign<'a>>> {
    let mut all: Vec<Sign<'a>> = Vec::new();
    for member in &view.members {
        let sign = |p: &Point| Sign { at: p.time, entity: member.entity, evidence: view.evidence };
        match view.signal {
            Signal::TrainingSteps if view.is_increase() => {
                all.extend(member.points.iter().filter(|p| p.value > 0.0).map(sign));
            }
            // A counter as it was stored: what is larger than before.
            Signal::TrainingSteps => {
                all.extend(pairs(member.points).filter(|(a, b)| b.value > a.value).map(|(_, b)| sign(b)))
            }
            Signal::Throughput => {
                let best = quantile(&member.points.iter().map(|p| p.value).collect::<Vec<_>>(), 0.9)?;
                all.extend(member.points.iter().filter(|p| p.value > NOTHING * best).map(sign));
            }
            _ => {
                let new = |(a, b): &(&Point, &Point)| (a.min, a.max) != (b.min, b.max);
                let moving = pairs(member.points).filter(new).count();
                // A timer that is rounded repeats itself in good health; then only its absence tells.
                let repeats_tell = moving * 4 >= member.points.len();
                all.extend(member.points.first().map(sign));
                all.extend(pairs(member.points).filter(|pair| !repeats_tell || new(pair)).map(|(_, b)| sign(b)));
            }
        }
    }
    all.sort_by_key(|s| s.at);
    (!all.is_empty()).then_some(all)
}

fn pairs(points: &[Point]) -> impl Iterator<Item = (&Point, &Point)> {
    points.iter().zip(points.iter().skip(1))
}
