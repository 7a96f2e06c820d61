//! Slow drifts: the Theil-Sen slope with the Mann-Kendall test.

use crate::normal::two_sided_p;
use crate::robust::{median, quantile};
use crate::sample::{Sample, finite};

/// Pairs grow with the square of the samples; longer series are thinned to medians of this many blocks first.
const MAX_POINTS: usize = 120;

/// A straight line through a series, and whether it leans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The median slope over all pairs, per hour.
    pub per_hour: f64,
    /// The interval that holds the slope with 95 % confidence (Sen, 1968): order statistics of the pairwise slopes.
    pub per_hour_interval: (f64, f64),
    /// Kendall's tau with time: 1 always up, -1 always down.
    pub tau: f64,
    /// The Mann-Kendall p-value.
    pub p_value: f64,
    /// The line's value at the first sample.
    pub at_start: f64,
    /// The line's value at the last sample.
    pub at_end: f64,
}

/// When a trend reaches a limit, hours after the last sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// By the line itself.
    pub hours: f64,
    /// By the steeper end of the slope's interval.
    pub earliest_hours: f64,
    /// By the flatter end; `None` when that end never gets there.
    pub latest_hours: Option<f64>,
}

impl Trend {
    /// When the line gets to `limit` if it goes on; `None` when it already is there or leads away from it.
    pub fn reaches(&self, limit: f64) -> Option<Forecast> {
        let left = limit - self.at_end;
        let hours = |slope: f64| Some(left / slope).filter(|hours| hours.is_finite() && *hours > 0.0);
        let (low, high) = self.per_hour_interval;
        let (steeper, flatter) = if left > 0.0 { (high, low) } else { (low, high) };
        Some(Forecast { hours: hours(self.per_hour)?, earliest_hours: hours(steeper)?, latest_hours: hours(flatter) })
    }
}

/// The robust trend of a series; `None` below three finite samples at different times.
pub fn theil_sen(series: &[Sample]) -> Option<Trend> {
    let points = thin(&finite(series));
    let first = points.first()?.0;
    let last = points.last()?.0;
    if points.len() < 3 || last <= first {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    let mut concordance = 0.0;
    for (i, (t0, v0)) in points.iter().enumerate() {
        for (t1, v1) in points.iter().skip(i + 1) {
            if t1 > t0 {
                slopes.push((v1 - v0) / (t1 - t0));
                concordance += if v1 > v0 {
                    1.0
                } else if v1 < v0 {
                    -1.0
                } else {
                    0.0
                };
            }
        }
    }
    let per_hour = median(&slopes)?;
    let offsets: Vec<f64> = points.iter().map(|(t, v)| v - per_hour * (t - first)).collect();
    let at_start = median(&offsets)?;
    let n = points.len() as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let score: f64 = concordance;
    // Ranks, as shares of all pairs, between which the true slope lies.
    let reach = 1.959_964 * variance.sqrt() / slopes.len().max(1) as f64 / 2.0;
    let per_hour_interval = (quantile(&slopes, 0.5 - reach)?, quantile(&slopes, 0.5 + reach)?);
    let z = score.signum() * (score.abs() - 1.0).max(0.0) / variance.sqrt();
    Some(Trend {
        per_hour,
        per_hour_interval,
        tau: score / (n * (n - 1.0) / 2.0),
        p_value: two_sided_p(z),
        at_start,
        at_end: at_start + per_hour * (last - first),
    })
}

fn thin(samples: &[Sample]) -> Vec<(f64, f64)> {
    let block = samples.len().div_ceil(MAX_POINTS).max(1);
    samples
        .chunks(block)
        .filter_map(|chunk| {
            let hours: Vec<f64> = chunk.iter().map(|s| s.millis() as f64 / 3_600_000.0).collect();
            let values: Vec<f64> = chunk.iter().map(|s| s.value).collect();
            Some((median(&hours)?, median(&values)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_of_two_per_hour_is_measured_through_outliers() {
        let data: Vec<Sample> = (0..1000)
            .map(|i| Sample::at_second(i * 36, if i % 50 == 7 { 900.0 } else { 10.0 + 2.0 * i as f64 / 100.0 }))
            .collect();
        let trend = theil_sen(&data).unwrap();
        assert!((trend.per_hour - 2.0).abs() < 0.02 && trend.tau > 0.95 && trend.p_value < 1e-9, "{trend:?}");
        assert!((trend.at_start - 10.0).abs() < 0.2 && (trend.at_end - 30.0).abs() < 0.2, "{trend:?}");
    }

    #[test]
    fn a_leak_reaches_its_limit_when_the_line_says_and_not_before_its_interval() {
        let wobble = |i: i64| ((i * 37 % 11) - 5) as f64 * 0.1;
        let data: Vec<Sample> =
            (0..100).map(|i| Sample::at_second(i * 360, 10.0 + 0.2 * i as f64 + wobble(i))).collect();
        let trend = theil_sen(&data).unwrap();
        let (low, high) = trend.per_hour_interval;
        assert!(low < 2.0 && 2.0 < high && high - low < 0.1, "{trend:?}");
        let forecast = trend.reaches(50.0).unwrap();
        assert!((forecast.hours - 10.1).abs() < 0.3 && forecast.earliest_hours <= forecast.hours, "{forecast:?}");
        assert!(forecast.latest_hours.is_some_and(|latest| latest >= forecast.hours), "{forecast:?}");
        assert_eq!(trend.reaches(0.0), None);
    }

    #[test]
    fn a_flat_series_leans_nowhere_and_two_points_are_no_trend() {
        let flat: Vec<Sample> = (0..30).map(|i| Sample::at_second(i, 4.0)).collect();
        assert_eq!(theil_sen(&flat).map(|t| (t.per_hour, t.p_value)), Some((0.0, 1.0)));
        assert_eq!(theil_sen(&flat[..2]), None);
    }
}
