//! How much of a window a series covers, and where the holes are.

use jiff::Timestamp;

use crate::robust::median;
use crate::sample::{Sample, finite};

/// A step longer than this many usual steps is a hole; scrapes that come a little late are not.
const GAP_STEPS: f64 = 2.5;

/// A hole in a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last sample before it, or the window's start.
    pub from: Timestamp,
    /// The first sample after it, or the window's end.
    pub to: Timestamp,
}

/// What was seen of what could be expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// Samples that a series with this step has in the window.
    pub expected: u64,
    /// Samples at distinct instants that were there.
    pub seen: u64,
    /// Further samples at an instant already seen.
    pub duplicates: u64,
    /// Holes, in order.
    pub gaps: Vec<Gap>,
}

impl Coverage {
    /// Seen over expected, at most 1.
    pub fn ratio(&self) -> f64 {
        if self.expected == 0 { 0.0 } else { (self.seen as f64 / self.expected as f64).min(1.0) }
    }
}

/// The usual distance between neighbouring samples in milliseconds: the median, which holes do not move.
pub fn typical_step(series: &[Sample]) -> Option<i64> {
    let times = distinct_times(series);
    let steps: Vec<f64> = times.windows(2).filter_map(|w| Some((w.last()? - w.first()?) as f64)).collect();
    median(&steps).map(|s| s.round() as i64).filter(|s| *s > 0)
}

/// The coverage of `[from, to)` by a series that is expected every `step_ms`.
pub fn coverage(series: &[Sample], from: Timestamp, to: Timestamp, step_ms: i64) -> Coverage {
    let step_ms = step_ms.max(1);
    let (start, end) = (from.as_millisecond(), to.as_millisecond());
    let inside: Vec<Sample> = finite(series).into_iter().filter(|s| from <= s.time && s.time < to).collect();
    let times = distinct_times(&inside);
    let expected = u64::try_from((end - start) / step_ms).unwrap_or(0).max(u64::from(end > start));
    let seen = times.len() as u64;
    let mut edges = vec![start];
    edges.extend(&times);
    edges.push(end);
    let instant = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or(from);
    let gaps = edges
        .windows(2)
        .filter_map(|w| Some((*w.first()?, *w.last()?)))
        .filter(|(a, b)| (b - a) as f64 > GAP_STEPS * step_ms as f64)
        .map(|(a, b)| Gap { from: instant(a), to: instant(b) })
        .collect();
    Coverage { expected, seen, duplicates: inside.len() as u64 - seen, gaps }
}

fn distinct_times(series: &[Sample]) -> Vec<i64> {
    let mut times: Vec<i64> = series.iter().filter(|s| s.value.is_finite()).map(Sample::millis).collect();
    times.sort_unstable();
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn holes_inside_and_at_the_edges_are_listed() {
        let seconds = [0, 30, 61, 91, 300, 330, 330];
        let data: Vec<Sample> = seconds.iter().map(|s| Sample::at_second(*s, 1.0)).collect();
        let expected = Coverage {
            expected: 20,
            seen: 6,
            duplicates: 1,
            gaps: vec![Gap { from: at(91), to: at(300) }, Gap { from: at(330), to: at(600) }],
        };
        assert_eq!(coverage(&data, at(0), at(600), 30_000), expected);
        assert_eq!(typical_step(&data), Some(30_000));
    }

    #[test]
    fn no_samples_means_one_hole_and_no_step() {
        let nothing = coverage(&[], at(0), at(120), 30_000);
        assert_eq!((nothing.seen, nothing.gaps.len(), nothing.ratio()), (0, 1, 0.0));
        assert_eq!(typical_step(&[Sample::at_second(3, 1.0)]), None);
    }
}
