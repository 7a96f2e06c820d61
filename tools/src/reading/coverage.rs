//! How much of what should be there was there, judged by each series' own usual interval.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_analysis::median;
use sightline_model::{Coverage, Entity, Gap, Point, Series, TimeRange};

/// A stretch of more than this many usual intervals is a gap; scrapes that come a little late are not.
const GAP_INTERVALS: f64 = 2.5;
/// How many gaps are listed.
const MAX_GAPS: usize = 5;

/// How a series usually comes: how far apart its points are, milliseconds, and how many samples each holds.
#[derive(Clone, Copy)]
struct Pace {
    distance: f64,
    samples: f64,
}

/// The coverage of a window by series whose points are `step_ms` long; 0 for samples as they were stored.
pub fn coverage(series: &[Series], range: TimeRange, step_ms: u64) -> Coverage {
    let step = step_ms as f64;
    let paces: Vec<Option<Pace>> = series.iter().map(|s| usual_pace(&s.points, step)).collect();
    let typical = typical(&paces);
    let mut expected = None;
    let mut gaps: BTreeMap<(Timestamp, Timestamp), Vec<&Entity>> = BTreeMap::new();
    for (series, pace) in series.iter().zip(&paces) {
        let Some(pace) = pace.or(typical) else { continue };
        let samples = (range.millis() as f64 / pace.distance * pace.samples).round().max(1.0) as u64;
        expected = Some(expected.unwrap_or(0) + samples);
        for (from, to) in holes(&series.points, range, step_ms, pace.distance) {
            gaps.entry((from, to)).or_default().push(&series.entity);
        }
    }
    let points = || series.iter().flat_map(|s| &s.points);
    Coverage {
        expected,
        seen: points().map(|p| p.count).sum(),
        first: points().map(|p| p.time.max(range.from())).min(),
        last: points().map(|p| p.time).max(),
        gaps: longest(gaps, series.len()),
    }
}

/// The usual pace of a series. A point may hold many samples, of a step or of several stored series, and still come seldom.
fn usual_pace(points: &[Point], step: f64) -> Option<Pace> {
    let counts: Vec<f64> = points.iter().map(|p| p.count as f64).collect();
    let samples = median(&counts)?.max(1.0);
    let distances: Vec<f64> =
        points.windows(2).filter_map(|w| Some(millis_between(w.first()?.time, w.last()?.time))).collect();
    // Of a single point only its step can tell, and only if it holds more than one sample.
    let alone = (step > 0.0 && samples > 1.0).then_some(step);
    let distance = median(&distances).map(|distance| distance.max(step)).or(alone).filter(|d| *d > 0.0)?;
    Some(Pace { distance, samples })
}

/// The pace of those that have one, for those that do not.
fn typical(paces: &[Option<Pace>]) -> Option<Pace> {
    let known = || paces.iter().flatten();
    let distance = median(&known().map(|pace| pace.distance).collect::<Vec<f64>>())?;
    let samples = median(&known().map(|pace| pace.samples).collect::<Vec<f64>>())?;
    Some(Pace { distance, samples })
}

fn millis_between(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_millisecond() - from.as_millisecond()) as f64
}

fn holes(points: &[Point], range: TimeRange, step_ms: u64, usual: f64) -> Vec<(Timestamp, Timestamp)> {
    let step = i64::try_from(step_ms).unwrap_or(0);
    let end_of = |p: &Point| Timestamp::from_millisecond(p.time.as_millisecond() + step).unwrap_or(p.time);
    let mut holes = Vec::new();
    let mut covered_until = range.from();
    // Before the first point nothing was sampled yet, so the whole stretch counts; after a point its own step does not.
    for (index, point) in points.iter().enumerate() {
        let start = if index == 0 { range.from() } else { covered_until };
        let missing = millis_between(start, point.time) + if index == 0 { 0.0 } else { step as f64 };
        if missing > GAP_INTERVALS * usual {
            holes.push((start, point.time));
        }
        covered_until = end_of(point);
    }
    if !points.is_empty() && millis_between(covered_until, range.to()) + step as f64 > GAP_INTERVALS * usual {
        holes.push((covered_until, range.to()));
    }
    holes
}

/// The longest gaps; one that all of several series share is named once, without an entity.
fn longest(gaps: BTreeMap<(Timestamp, Timestamp), Vec<&Entity>>, series: usize) -> Vec<Gap> {
    let mut list: Vec<Gap> = Vec::new();
    for ((from, to), whose) in gaps {
        if series > 1 && whose.len() == series {
            list.push(Gap { entity: Entity::new(), from, to });
        } else {
            list.extend(whose.into_iter().map(|entity| Gap { entity: entity.clone(), from, to }));
        }
    }
    list.sort_by_key(|g| std::cmp::Reverse(g.to.as_millisecond() - g.from.as_millisecond()));
    list.truncate(MAX_GAPS);
    list
}
