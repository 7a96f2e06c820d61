//! Whether two cohorts differ, by how much, and how sure that is.
//!
//! Points of a series resemble their neighbours, so a hundred of them say less than a hundred independent ones would. The rank
//! test is therefore scaled down by the serial correlation, and the interval comes from resampling whole blocks.

use crate::normal::two_sided_p;
use crate::random::Generator;
use crate::rank_test::mann_whitney;
use crate::robust::{mean, median, quantile};

/// Fewer finite values than this on a side decide nothing: with four against four the rank test cannot reach p = 0.01.
pub const MIN_COHORT: usize = 5;

/// Resamples: the 2.5 % tails then rest on 25 values each.
const RESAMPLES: usize = 1000;

/// How the second cohort compares with the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CohortTest {
    /// Values of the first.
    pub first: usize,
    /// Values of the second.
    pub second: usize,
    /// Median of the second minus median of the first, in the values' unit.
    pub shift: f64,
    /// The interval that holds the shift with 95 % confidence: percentiles of a moving-block bootstrap (Künsch, 1989) of the
    /// difference of medians.
    pub interval: (f64, f64),
    /// Cliff's delta, -1 to 1: how much more often the second exceeds the first than the other way round. Below 0.147 it is called
    /// negligible, below 0.33 small, below 0.474 medium (Romano and others, 2006).
    pub delta: f64,
    /// The two-sided p-value of the Mann-Whitney test, with the sample size reduced for serial correlation.
    pub p_value: f64,
}

/// Compares `second` with `first`, both in order of time; `None` when either has fewer than [`MIN_COHORT`] finite values.
pub fn cohort_test(first: &[f64], second: &[f64]) -> Option<CohortTest> {
    let finite = |values: &[f64]| -> Vec<f64> { values.iter().copied().filter(|v| v.is_finite()).collect() };
    let (first, second) = (finite(first), finite(second));
    if first.len().min(second.len()) < MIN_COHORT {
        return None;
    }
    let ranks = mann_whitney(&first, &second)?;
    let shift = median(&second)? - median(&first)?;
    // Bartlett's factor for the variance of a mean under an autoregression of order one.
    let memory = ((lag_one(&first) + lag_one(&second)) / 2.0).clamp(0.0, 0.95);
    let z = ranks.z * ((1.0 - memory) / (1.0 + memory)).sqrt();
    Some(CohortTest {
        first: first.len(),
        second: second.len(),
        shift,
        interval: interval(&first, &second)?,
        delta: 2.0 * ranks.superiority - 1.0,
        p_value: two_sided_p(z),
    })
}

fn interval(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    let mut generator = Generator::new((first.len() as u64) << 32 | second.len() as u64);
    let mut shifts = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (a, b) = (resampled(first, &mut generator), resampled(second, &mut generator));
        shifts.push(median(&b)? - median(&a)?);
    }
    Some((quantile(&shifts, 0.025)?, quantile(&shifts, 0.975)?))
}

/// As many values as there are, in blocks of neighbours. A block is as long as the cube root of the series, the order that
/// balances bias and variance (Hall, Horowitz and Jing, 1995), and longer where neighbours resemble each other for longer.
fn resampled(values: &[f64], generator: &mut Generator) -> Vec<f64> {
    let cube_root = (values.len() as f64).cbrt().ceil();
    let memory = lag_one(values).clamp(0.0, 0.95);
    let block = (cube_root * (1.0 + memory) / (1.0 - memory)).min(values.len() as f64 / 4.0).max(1.0) as usize;
    let starts = values.len() - block + 1;
    let mut drawn = Vec::with_capacity(values.len() + block);
    while drawn.len() < values.len() {
        let start = generator.below(starts);
        drawn.extend(values.iter().skip(start).take(block));
    }
    drawn.truncate(values.len());
    drawn
}

/// The correlation of each value with the next; 0 for a constant series.
pub(crate) fn lag_one(values: &[f64]) -> f64 {
    let Some(centre) = mean(values) else { return 0.0 };
    let spread: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    let pairs = values.iter().zip(values.iter().skip(1));
    let shared: f64 = pairs.map(|(a, b)| (a - centre) * (b - centre)).sum();
    if spread > 0.0 { shared / spread } else { 0.0 }
}

/// P-values corrected for as many comparisons as there are, in the order given: Holm's step-down procedure (1979), which bounds
/// the chance of a single false alarm among all of them.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (place, (index, p)) in order.iter().enumerate() {
        largest = largest.max(p * (p_values.len() - place) as f64).min(1.0);
        if let Some(slot) = adjusted.get_mut(*index) {
            *slot = largest;
        }
    }
    adjusted
}

/// P-values adjusted so that those below a level hold at most that share of false discoveries: Benjamini and Hochberg (1995).
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let mut adjusted = vec![1.0; p_values.len()];
    let mut smallest: f64 = 1.0;
    for (place, (index, p)) in order.iter().enumerate().rev() {
        smallest = smallest.min(p * p_values.len() as f64 / (place + 1) as f64);
        if let Some(slot) = adjusted.get_mut(*index) {
            *slot = smallest;
        }
    }
    adjusted
}

fn ascending(p_values: &[f64]) -> Vec<(usize, f64)> {
    let mut order: Vec<(usize, f64)> = p_values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    order
}

#[cfg(test)]
#[path = "cohort_tests.rs"]
mod tests;
