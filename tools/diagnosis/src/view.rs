//! One signal of the case: its members with their points, and the statistics that claims refer to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use sightline_analysis::{Sample, median, typical_step};
use sightline_model::{Component, Entity, Evidence, Point, TimeRange, Unit};

use crate::observation::{Observations, Placement};
use crate::signal::{Scope, Signal};

/// The step assumed for a signal with fewer than two points; the dcgm-exporter's default interval.
const DEFAULT_STEP_MS: i64 = 30_000;

/// Seconds in a unit of time; none for what is no time.
pub(crate) fn seconds_of(unit: Unit) -> Option<f64> {
    match unit {
        Unit::Seconds => Some(1.0),
        Unit::Milliseconds => Some(1e-3),
        Unit::Microseconds => Some(1e-6),
        _ => None,
    }
}

/// One series of a signal.
#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) points: &'a [Point],
    /// The points' values, for the numerics.
    pub(crate) samples: Vec<Sample>,
}

impl AsRef<[Sample]> for Member<'_> {
    fn as_ref(&self) -> &[Sample] {
        &self.samples
    }
}

impl Member<'_> {
    /// The points in a window.
    pub(crate) fn within(&self, range: TimeRange) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |p| range.contains(p.time))
    }

    /// The median of the points' values in a window: the same statistic a claim's `median` is recomputed as.
    pub(crate) fn median(&self, range: TimeRange) -> Option<f64> {
        median(&self.within(range).map(|p| p.value).collect::<Vec<_>>())
    }

    /// The mean in a window, weighted by samples as a claim's `mean` is.
    pub(crate) fn mean(&self, range: TimeRange) -> Option<f64> {
        let (sum, count) =
            self.within(range).fold((0.0, 0), |(sum, count), p| (sum + p.value * p.count as f64, count + p.count));
        (count > 0).then(|| sum / count as f64)
    }

    /// The sum of the points' values in a window; `None` without points.
    pub(crate) fn sum(&self, range: TimeRange) -> Option<f64> {
        let values: Vec<f64> = self.within(range).map(|p| p.value).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// The largest sample in a window.
    pub(crate) fn max(&self, range: TimeRange) -> Option<f64> {
        self.within(range).map(|p| p.max).reduce(f64::max)
    }

    /// The first point at or after an instant.
    pub(crate) fn first_from(&self, at: Timestamp) -> Option<&Point> {
        self.points.iter().find(|p| p.time >= at)
    }

    /// The entity reduced to what names a component.
    pub(crate) fn component(&self) -> Component {
        ["node", "gpu", "rank"]
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), self.entity.get(*key)?.clone())))
            .collect()
    }
}

/// One signal of the case, in one resolution.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) signal: Signal,
    pub(crate) evidence: &'a Evidence,
    pub(crate) members: Vec<Member<'a>>,
    pub(crate) step_ms: i64,
    /// Members by node and GPU: a job of hundreds of GPUs is looked up by name often.
    by_gpu: BTreeMap<(&'a str, &'a str), usize>,
}

/// The node and GPU that an entity names.
fn gpu_of(entity: &Entity) -> Option<(&str, &str)> {
    Some((entity.get("node")?.as_str(), entity.get("gpu")?.as_str()))
}

/// The job's own GPUs by name.
pub(crate) fn placed(observations: &Observations<'_>) -> BTreeSet<(String, String)> {
    observations.job.placements.iter().map(|p| (p.node.clone(), p.gpu.clone())).collect()
}

impl<'a> View<'a> {
    pub(crate) fn new(placed: &BTreeSet<(String, String)>, signal: Signal, evidence: &'a Evidence) -> Self {
        let belongs = |entity: &Entity| match signal.scope() {
            Scope::Gpu => gpu_of(entity).is_some_and(|(n, g)| placed.contains(&(n.to_owned(), g.to_owned()))),
            Scope::Node | Scope::Job => true,
        };
        let members: Vec<Member<'a>> = evidence
            .series
            .iter()
            .filter(|s| !s.points.is_empty() && belongs(&s.entity))
            .map(|s| Member {
                entity: &s.entity,
                points: &s.points,
                samples: s.points.iter().map(|p| Sample { time: p.time, value: p.value }).collect(),
            })
            .collect();
        let longest = members.iter().max_by_key(|m| m.points.len());
        let usual = longest.and_then(|m| typical_step(&m.samples));
        // A series may be sampled less often than the steps it was asked for in.
        let step_ms = match (evidence.step_seconds, usual) {
            (Some(seconds), Some(usual)) => usual.max((seconds * 1000.0) as i64),
            (Some(seconds), None) => (seconds * 1000.0) as i64,
            (None, Some(usual)) => usual,
            (None, None) => DEFAULT_STEP_MS,
        };
        let by_gpu = members.iter().enumerate().filter_map(|(i, m)| Some((gpu_of(m.entity)?, i))).collect();
        Self { signal, evidence, members, step_ms: step_ms.max(1), by_gpu }
    }

    /// Whether the points of this signal are amounts per step (the increase of a counter), to be summed up.
    pub(crate) fn is_increase(&self) -> bool {
        self.evidence.aggregation.as_deref().is_some_and(|a| a.starts_with("increase"))
    }

    /// The member of that GPU.
    pub(crate) fn of(&self, placement: &Placement) -> Option<&Member<'a>> {
        let index = self.by_gpu.get(&(placement.node.as_str(), placement.gpu.as_str()))?;
        self.members.get(*index)
    }

    /// The median over all other members of their median in a window: what a claim's `Peers` is recomputed as.
    pub(crate) fn peers(&self, exclude: &Entity, range: TimeRange) -> Option<f64> {
        let others: Vec<f64> =
            self.members.iter().filter(|m| m.entity != exclude).filter_map(|m| m.median(range)).collect();
        median(&others)
    }

    /// Each member's median in a window.
    pub(crate) fn medians(&self, range: TimeRange) -> Vec<Option<f64>> {
        self.members.iter().map(|m| m.median(range)).collect()
    }

    /// The median over members of their medians in a window.
    pub(crate) fn typical(&self, range: TimeRange) -> Option<f64> {
        median(&self.medians(range).into_iter().flatten().collect::<Vec<_>>())
    }

    /// The catalogue's name of the metric that carries it here.
    pub(crate) fn metric(&self) -> &str {
        let first = self.signal.metrics().first().copied().unwrap_or_default();
        self.evidence.canonical_metric.as_deref().unwrap_or(first)
    }

    /// How one of its numbers is printed.
    pub(crate) fn unit(&self) -> Unit {
        self.evidence.unit
    }

    /// Half-open from the first to just after the last point of all members.
    pub(crate) fn span(&self) -> Option<TimeRange> {
        let first = self.members.iter().filter_map(|m| m.points.first()).map(|p| p.time).min()?;
        let last = self.members.iter().filter_map(|m| m.points.last()).map(|p| p.time).max()?;
        TimeRange::new(first, just_after(last))
    }
}

/// Whether the entity is that GPU.
pub(crate) fn names(entity: &Entity, placement: &Placement) -> bool {
    entity.get("node") == Some(&placement.node) && entity.get("gpu") == Some(&placement.gpu)
}

/// The instant that closes a half-open range after a sample.
pub(crate) fn just_after(at: Timestamp) -> Timestamp {
    at.checked_add(SignedDuration::from_millis(1)).unwrap_or(at)
}

/// An instant moved by milliseconds; unchanged past the ends of time.
pub(crate) fn shift(at: Timestamp, millis: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_millis(millis)).unwrap_or(at)
}
