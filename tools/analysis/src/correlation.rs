//! Whether one series moves with another, and by how much later.

use crate::grid::Grid;
use crate::normal::two_sided_p;
use crate::robust::mean;
use crate::sample::Sample;

/// Below this many shared slots a correlation says nothing.
const MIN_SLOTS: usize = 8;

/// The strongest correlation between two series over a range of lags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaggedCorrelation {
    /// Spearman's rank correlation, -1 to 1.
    pub r: f64,
    /// How many steps the second series comes after the first; negative when it leads.
    pub lag_steps: i64,
    /// The two-sided p-value with the sample size reduced for serial correlation (Bartlett).
    pub p_value: f64,
    /// Slots that both series had.
    pub slots: usize,
}

/// The lag in `-max_lag..=max_lag` steps at which `second` correlates most with `first`; ties go to the shorter lag.
pub fn lagged_correlation(
    first: &[Sample],
    second: &[Sample],
    step_ms: i64,
    max_lag: usize,
) -> Option<LaggedCorrelation> {
    let grid = Grid::new(&[first, second], step_ms)?;
    let (a, b) = (grid.rows.first()?, grid.rows.last()?);
    let limit = i64::try_from(max_lag).ok()?;
    let mut lags: Vec<i64> = (-limit..=limit).collect();
    lags.sort_by_key(|lag| lag.abs());
    let mut best: Option<LaggedCorrelation> = None;
    for lag in lags {
        let pairs = shifted_pairs(a, b, lag);
        if pairs.len() < MIN_SLOTS {
            continue;
        }
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (x, y) = (ranks(&x), ranks(&y));
        let Some(r) = pearson(&x, &y) else { continue };
        if best.is_none_or(|b| r.abs() > b.r.abs() + 1e-9) {
            let memory = (lag_one(&x) * lag_one(&y)).clamp(0.0, 0.99);
            let effective = (x.len() as f64 * (1.0 - memory) / (1.0 + memory)).max(4.0);
            let z = r.clamp(-0.999_999, 0.999_999).atanh() * (effective - 3.0).sqrt();
            best = Some(LaggedCorrelation { r, lag_steps: lag, p_value: two_sided_p(z), slots: x.len() });
        }
    }
    best
}

fn shifted_pairs(a: &[Option<f64>], b: &[Option<f64>], lag: i64) -> Vec<(f64, f64)> {
    let skip = usize::try_from(lag.unsigned_abs()).unwrap_or(usize::MAX);
    let (skip_a, skip_b) = if lag >= 0 { (0, skip) } else { (skip, 0) };
    a.iter().skip(skip_a).zip(b.iter().skip(skip_b)).filter_map(|(x, y)| Some(((*x)?, (*y)?))).collect()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranked: Vec<(usize, f64)> = Vec::with_capacity(order.len());
    for tied in order.chunk_by(|a, b| a.1 == b.1) {
        let rank = ranked.len() as f64 + (tied.len() as f64 + 1.0) / 2.0;
        ranked.extend(tied.iter().map(|(index, _)| (*index, rank)));
    }
    ranked.sort_by_key(|(index, _)| *index);
    ranked.into_iter().map(|(_, rank)| rank).collect()
}

fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let (mx, my) = (mean(x)?, mean(y)?);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        xy += (a - mx) * (b - my);
        xx += (a - mx) * (a - mx);
        yy += (b - my) * (b - my);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

fn lag_one(values: &[f64]) -> f64 {
    let later: Vec<f64> = values.iter().skip(1).copied().collect();
    let earlier: Vec<f64> = values.iter().take(later.len()).copied().collect();
    pearson(&earlier, &later).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bump(i: i64) -> f64 {
        if (20..35).contains(&i) { 5.0 } else { (i * 7 % 5) as f64 * 0.1 }
    }

    #[test]
    fn the_lag_of_a_delayed_copy_is_found() {
        let first: Vec<Sample> = (0..80).map(|i| Sample::at_second(i * 10, bump(i))).collect();
        let second: Vec<Sample> = (0..80).map(|i| Sample::at_second(i * 10, -bump(i - 3))).collect();
        let found = lagged_correlation(&first, &second, 10_000, 6).unwrap();
        assert!(found.lag_steps == 3 && found.r < -0.99 && found.p_value < 1e-3, "{found:?}");
    }

    #[test]
    fn a_constant_series_and_a_short_one_correlate_with_nothing() {
        let first: Vec<Sample> = (0..40).map(|i| Sample::at_second(i * 10, bump(i))).collect();
        let constant: Vec<Sample> = (0..40).map(|i| Sample::at_second(i * 10, 3.0)).collect();
        assert_eq!(lagged_correlation(&first, &constant, 10_000, 2), None);
        assert_eq!(lagged_correlation(&first[..5], &first[..5], 10_000, 2), None);
    }
}
