//! One series of a signal, with the statistics that claims refer to.

use sightline_analysis::{Sample, coverage, median, typical_step};
use sightline_model::{Entity, Evidence, Point, Quantity, Stat, TimeRange};

use crate::sentence::stat;
use crate::serving::signal::ServingSignal;
use crate::view::shift;

/// The step assumed for a series with fewer than two points: the survey's shortest.
const DEFAULT_STEP_MS: i64 = 60_000;

/// One series.
#[derive(Clone, Debug)]
pub(crate) struct Track<'a> {
    pub(crate) signal: ServingSignal,
    pub(crate) evidence: &'a Evidence,
    pub(crate) entity: &'a Entity,
    pub(crate) points: &'a [Point],
    pub(crate) samples: Vec<Sample>,
    pub(crate) step_ms: i64,
}

impl<'a> Track<'a> {
    /// Every series with points of a piece of evidence.
    pub(crate) fn all(signal: ServingSignal, evidence: &'a Evidence) -> Vec<Self> {
        evidence
            .series
            .iter()
            .filter(|s| !s.points.is_empty())
            .map(|s| {
                let samples: Vec<Sample> = s.points.iter().map(|p| Sample { time: p.time, value: p.value }).collect();
                let step = evidence.step_seconds.map(|seconds| (seconds * 1000.0) as i64);
                let step_ms = match (step, typical_step(&samples)) {
                    (Some(asked), Some(usual)) => asked.max(usual),
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => DEFAULT_STEP_MS,
                };
                Self { signal, evidence, entity: &s.entity, points: &s.points, samples, step_ms: step_ms.max(1) }
            })
            .collect()
    }

    fn within(&self, range: TimeRange) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |p| range.contains(p.time))
    }

    /// Whether it still has points late in a window.
    pub(crate) fn is_alive(&self, range: TimeRange) -> bool {
        let late = shift(range.to(), -(range.millis() / 3).max(2 * self.step_ms));
        TimeRange::new(late, range.to()).is_some_and(|late| self.count(late) > 0)
    }

    /// The number of points in a window.
    pub(crate) fn count(&self, range: TimeRange) -> usize {
        self.within(range).count()
    }

    /// The median of the points in a window; what a claim's `median` is recomputed as.
    pub(crate) fn median(&self, range: TimeRange) -> Option<f64> {
        median(&self.within(range).map(|p| p.value).collect::<Vec<_>>())
    }

    /// The largest sample in a window.
    pub(crate) fn max(&self, range: TimeRange) -> Option<f64> {
        self.within(range).map(|p| p.max).reduce(f64::max)
    }

    /// A reference to a statistic of the series in a window.
    pub(crate) fn fact(&self, which: Stat, range: TimeRange) -> Quantity {
        stat(self.evidence, self.entity, which, Some(range))
    }

    /// The share of a window's steps that have a point, 0 to 1.
    pub(crate) fn covered(&self, range: TimeRange) -> f64 {
        coverage(&self.samples, range.from(), range.to(), self.step_ms).ratio()
    }
}
