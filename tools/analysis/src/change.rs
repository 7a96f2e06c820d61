//! Change points: where a series moved to another level and stayed there.
//!
//! PELT (Killick, Fearnhead and Eckley, 2012) with a squared-error cost. It finds the segmentation with the least
//! penalised cost exactly, so several changes in one series do not mask each other as they do in binary segmentation,
//! and it needs no prior on run lengths as Bayesian online detection does. Squared error is easily fooled by lone
//! spikes; a running median of three removes them first and keeps every edge where it was. The noise scale comes from
//! first differences, which a level shift leaves alone.

use jiff::Timestamp;

use crate::rank_test::mann_whitney;
use crate::robust::{median, robust_scale};
use crate::sample::{Sample, finite};

/// How a change point search is tuned. The defaults suit step times and per-GPU gauges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeOptions {
    /// A level must hold for this many samples.
    pub min_segment: usize,
    /// Changes smaller than this share of the level before are dropped.
    pub min_relative: f64,
    /// The penalty per change point in units of noise variance times ln n. 2 is the Bayesian information criterion for
    /// independent noise; telemetry is serially correlated (and so is a running median), so the default doubles it.
    pub penalty: f64,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self { min_segment: 4, min_relative: 0.05, penalty: 4.0 }
    }
}

/// Which way a level moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Up.
    Rise,
    /// Down.
    Fall,
}

/// One lasting change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index, among the finite samples, of the first sample at the new level.
    pub index: usize,
    /// When that sample was taken.
    pub at: Timestamp,
    /// The median before, back to the previous change point.
    pub before: f64,
    /// The median after, up to the next change point.
    pub after: f64,
    /// The step in units of the scatter within both segments; infinite for a clean step.
    pub effect: f64,
    /// The rank test between both segments. Serial correlation makes it optimistic: use it to rank, not as proof.
    pub p_value: f64,
}

impl ChangePoint {
    /// Which way the level moved.
    pub fn direction(&self) -> Direction {
        if self.after > self.before { Direction::Rise } else { Direction::Fall }
    }

    /// The new level over the old one; `None` from zero.
    pub fn ratio(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before)
    }
}

/// All change points of a series, in order of time.
pub fn change_points(series: &[Sample], options: &ChangeOptions) -> Vec<ChangePoint> {
    let samples = finite(series);
    let raw: Vec<f64> = samples.iter().map(|s| s.value).collect();
    let min_segment = options.min_segment.max(1);
    if raw.len() < 2 * min_segment {
        return Vec::new();
    }
    let smooth = median_of_three(&raw);
    let Some(noise) = noise_scale(&raw).filter(|s| *s > 0.0) else { return Vec::new() };
    let penalty = options.penalty * noise * noise * (raw.len() as f64).ln();
    let mut cuts = pelt(&smooth, penalty, min_segment);
    loop {
        let found = describe(&samples, &raw, &cuts);
        // Drop the weakest change that is too small to matter and describe again, for its neighbours' levels move.
        let weakest =
            found.iter().filter(|c| !matters(c, options)).min_by(|a, b| step(a).total_cmp(&step(b))).map(|c| c.index);
        match weakest {
            None => return found.into_iter().map(|c| settle(c, &samples)).collect(),
            Some(index) => cuts.retain(|cut| *cut != index),
        }
    }
}

/// The change that explains the level the series has at its end: the largest step in that direction whose level (or a
/// farther one) holds until the last sample.
pub fn lasting_change(series: &[Sample], direction: Direction, options: &ChangeOptions) -> Option<ChangePoint> {
    let found = change_points(series, options);
    let last = found.last()?.after;
    found
        .into_iter()
        .filter(|c| c.direction() == direction)
        .filter(|c| match direction {
            Direction::Rise => last > (c.before + c.after) / 2.0,
            Direction::Fall => last < (c.before + c.after) / 2.0,
        })
        .max_by(|a, b| step(a).total_cmp(&step(b)))
}

fn step(change: &ChangePoint) -> f64 {
    (change.after - change.before).abs()
}

fn matters(change: &ChangePoint, options: &ChangeOptions) -> bool {
    // A step smaller than the scatter around it is not a level.
    step(change) >= options.min_relative * change.before.abs() && change.effect >= 1.0
}

/// Moves the index to the first sample from which the new level holds: past samples that are still nearer to the old.
fn settle(change: ChangePoint, samples: &[Sample]) -> ChangePoint {
    let half = (change.before + change.after) / 2.0;
    let changed = |value: f64| (value > half) == (change.after > change.before);
    let forward = samples.iter().enumerate().skip(change.index).find(|(_, s)| changed(s.value)).map(|(i, _)| i);
    let mut index = forward.unwrap_or(change.index);
    while let Some(previous) = index.checked_sub(1).filter(|p| samples.get(*p).is_some_and(|s| changed(s.value))) {
        index = previous;
    }
    match samples.get(index) {
        Some(sample) => ChangePoint { index, at: sample.time, ..change },
        None => change,
    }
}

fn describe(samples: &[Sample], raw: &[f64], cuts: &[usize]) -> Vec<ChangePoint> {
    let mut found = Vec::with_capacity(cuts.len());
    for (position, cut) in cuts.iter().enumerate() {
        let from = position.checked_sub(1).and_then(|p| cuts.get(p)).copied().unwrap_or(0);
        let to = cuts.get(position + 1).copied().unwrap_or(raw.len());
        let (Some(left), Some(right), Some(sample)) = (raw.get(from..*cut), raw.get(*cut..to), samples.get(*cut))
        else {
            continue;
        };
        let (Some(before), Some(after)) = (median(left), median(right)) else { continue };
        let scatter = robust_scale(left).unwrap_or(0.0).max(robust_scale(right).unwrap_or(0.0));
        let effect = if scatter > 0.0 { (after - before).abs() / scatter } else { f64::INFINITY };
        let p_value = mann_whitney(left, right).map_or(1.0, |t| t.p_value);
        found.push(ChangePoint { index: *cut, at: sample.time, before, after, effect, p_value });
    }
    found
}

fn median_of_three(values: &[f64]) -> Vec<f64> {
    let mut smooth = values.to_vec();
    for (target, window) in smooth.iter_mut().skip(1).zip(values.windows(3)) {
        if let [a, b, c] = window {
            *target = a.max(*b).min(a.min(*b).max(*c));
        }
    }
    smooth
}

fn noise_scale(values: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = values.windows(2).filter_map(|w| Some(w.last()? - w.first()?)).collect();
    let white = robust_scale(&differences)? / std::f64::consts::SQRT_2;
    // A slow wander has tiny differences and would be cut into stairs; a fifth of the whole scatter keeps it in one
    // piece and still lets through a step that stands out of that scatter.
    Some(white.max(0.2 * robust_scale(values)?))
}

#[expect(clippy::indexing_slicing, reason = "every index is below the length of the tables filled just above")]
fn pelt(values: &[f64], penalty: f64, min_segment: usize) -> Vec<usize> {
    let n = values.len();
    let centre = median(values).unwrap_or(0.0);
    let mut sums = vec![0.0; n + 1];
    let mut squares = vec![0.0; n + 1];
    for (i, value) in values.iter().enumerate() {
        let v = value - centre;
        sums[i + 1] = sums[i] + v;
        squares[i + 1] = squares[i] + v * v;
    }
    let cost = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
    };
    let mut best = vec![f64::INFINITY; n + 1];
    let mut last_cut = vec![0_usize; n + 1];
    best[0] = -penalty;
    let mut candidates = vec![0_usize];
    for to in min_segment..=n {
        for from in &candidates {
            let total = best[*from] + cost(*from, to) + penalty;
            if total < best[to] {
                best[to] = total;
                last_cut[to] = *from;
            }
        }
        candidates.retain(|from| best[*from] + cost(*from, to) <= best[to]);
        let next = to + 1 - min_segment;
        if next >= min_segment {
            candidates.push(next);
        }
    }
    let mut cuts = Vec::new();
    let mut at = n;
    while last_cut[at] > 0 {
        at = last_cut[at];
        cuts.push(at);
    }
    cuts.reverse();
    cuts
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod change_tests;
