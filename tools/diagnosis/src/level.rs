//! Levels of a series and the stretch in which it left the level it should have.

use jiff::Timestamp;
use sightline_analysis::{ChangeOptions, Direction, Sample, change_points, median};
use sightline_model::TimeRange;

use crate::view::just_after;

/// A stretch at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) from: Timestamp,
    /// Exclusive.
    pub(crate) to: Timestamp,
    pub(crate) level: f64,
    pub(crate) samples: usize,
}

/// A stretch away from a reference level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Excursion {
    /// The first sample at which the changed level holds.
    pub(crate) from: Timestamp,
    /// Exclusive.
    pub(crate) to: Timestamp,
    /// Its median level.
    pub(crate) level: f64,
    /// How far it is off, as a share of the reference; positive.
    pub(crate) depth: f64,
    /// Whether the series begins in it, so that its onset was not seen.
    pub(crate) since_start: bool,
}

impl Excursion {
    pub(crate) fn range(&self) -> Option<TimeRange> {
        TimeRange::new(self.from, self.to)
    }

    /// Its onset, if it was seen.
    pub(crate) fn onset(&self) -> Option<Timestamp> {
        (!self.since_start).then_some(self.from)
    }
}

/// The segments between change points.
pub(crate) fn segments(samples: &[Sample], min_relative: f64) -> Vec<Segment> {
    let options = ChangeOptions { min_relative, ..ChangeOptions::default() };
    let samples: Vec<Sample> = samples.iter().filter(|s| s.value.is_finite()).copied().collect();
    let mut bounds = vec![0];
    bounds.extend(change_points(&samples, &options).iter().map(|c| c.index));
    bounds.push(samples.len());
    bounds.dedup();
    let mut found = Vec::new();
    for pair in bounds.windows(2) {
        let [from, to] = pair else { continue };
        let Some(part) = samples.get(*from..*to) else { continue };
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let values: Vec<f64> = part.iter().map(|s| s.value).collect();
        let Some(level) = median(&values) else { continue };
        let to = samples.get(*to).map_or(just_after(last.time), |next| next.time);
        found.push(Segment { from: first.time, to, level, samples: values.len() });
    }
    found
}

/// The best level a series has held for at least a twentieth of its samples: what it can do when nothing is in its way.
pub(crate) fn best_level(segments: &[Segment], better: Direction) -> Option<f64> {
    let total: usize = segments.iter().map(|s| s.samples).sum();
    let long_enough = segments.iter().filter(|s| s.samples * 20 >= total).map(|s| s.level);
    long_enough.reduce(|a, b| match better {
        Direction::Rise => a.max(b),
        Direction::Fall => a.min(b),
    })
}

/// Whether a series can hold an excursion of that depth at all: half of a level's samples lie beyond it, and a level holds for four
/// samples at least. Most series cannot, which is told without looking for changes in them.
pub(crate) fn may_leave(samples: &[Sample], reference: f64, direction: Direction, min_relative: f64) -> bool {
    let beyond = |s: &&Sample| match direction {
        Direction::Rise => s.value >= reference * (1.0 + min_relative),
        Direction::Fall => s.value <= reference * (1.0 - min_relative),
    };
    samples.iter().filter(beyond).nth(1).is_some()
}

/// The worst stretch that touches the window in which the level is off the reference by at least `min_relative` in the
/// given direction: the one with the largest depth times duration inside the window.
pub(crate) fn excursion(
    segments: &[Segment],
    reference: f64,
    direction: Direction,
    min_relative: f64,
    window: TimeRange,
) -> Option<Excursion> {
    if reference == 0.0 {
        return None;
    }
    let depth = |level: f64| match direction {
        Direction::Rise => (level - reference) / reference.abs(),
        Direction::Fall => (reference - level) / reference.abs(),
    };
    let mut worst: Option<(f64, Excursion)> = None;
    for run in segments.chunk_by(|a, b| (depth(a.level) >= min_relative) == (depth(b.level) >= min_relative)) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        if depth(first.level) < min_relative {
            continue;
        }
        let Some(inside) = TimeRange::new(first.from, last.to).and_then(|r| r.intersect(&window)) else { continue };
        let samples: usize = run.iter().map(|s| s.samples).sum();
        let level = run.iter().map(|s| s.level * s.samples as f64).sum::<f64>() / samples.max(1) as f64;
        let area = depth(level) * inside.seconds();
        let since_start = segments.first().is_some_and(|s| s.from == first.from);
        if worst.as_ref().is_none_or(|(a, _)| area > *a) {
            let found = Excursion { from: first.from, to: last.to, level, depth: depth(level), since_start };
            worst = Some((area, found));
        }
    }
    worst.map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = f64>) -> Vec<Sample> {
        values.into_iter().enumerate().map(|(i, v)| Sample::at_second(i as i64 * 60, v)).collect()
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    #[test]
    fn a_slow_stretch_is_found_against_the_best_level() {
        let data = series((0..100).map(|i| if (40..70).contains(&i) { 2.0 } else { 1.0 }));
        let segments = segments(&data, 0.05);
        let window = TimeRange::new(at(0), at(100)).unwrap();
        assert_eq!(best_level(&segments, Direction::Fall), Some(1.0));
        let expected = Excursion { from: at(40), to: at(70), level: 2.0, depth: 1.0, since_start: false };
        assert_eq!(excursion(&segments, 1.0, Direction::Rise, 0.05, window), Some(expected));
        let later = TimeRange::new(at(75), at(100)).unwrap();
        assert_eq!(excursion(&segments, 1.0, Direction::Rise, 0.05, later), None);
    }

    #[test]
    fn what_may_not_leave_its_level_has_no_excursion() {
        let window = TimeRange::new(at(0), at(100)).unwrap();
        for (depth, may) in [(0.9, true), (0.97, false)] {
            let data = series((0..100).map(|i| if (40..44).contains(&i) { depth } else { 1.0 }));
            assert_eq!(may_leave(&data, 1.0, Direction::Fall, 0.05), may);
            assert_eq!(excursion(&segments(&data, 0.05), 1.0, Direction::Fall, 0.05, window).is_some(), may);
        }
        assert!(!may_leave(&series([1.0, 0.5, 1.0, 1.0]), 1.0, Direction::Fall, 0.05));
    }

    #[test]
    fn a_level_held_from_the_first_sample_has_no_onset() {
        let segments = segments(&series((0..40).map(|_| 0.7)), 0.05);
        let window = TimeRange::new(at(0), at(100)).unwrap();
        let found = excursion(&segments, 1.0, Direction::Fall, 0.05, window).unwrap();
        assert_eq!((found.since_start, found.onset()), (true, None));
    }
}
