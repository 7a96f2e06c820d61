//! Whether a series repeats itself, and how often: checkpoints, data loader rounds, cron jobs.
//!
//! The Lomb-Scargle periodogram (Lomb, 1976; Scargle, 1982) fits a sine at each frequency by least squares. Samples need not be
//! evenly spaced, so scrapes that fail bend nothing, where an autocorrelation would need them filled in.

use std::f64::consts::TAU;

use crate::robust::mean;
use crate::sample::{Sample, finite};

/// Fewer samples than this show no period.
const MIN_SAMPLES: usize = 16;

/// Longer series are thinned to means of this many blocks first: the work grows with samples times frequencies.
const MAX_SAMPLES: usize = 600;

/// Frequencies are taken this finely against the resolution of the window: a peak between two of them loses little.
const OVERSAMPLING: f64 = 4.0;

/// A period must repeat this often in the window to be one.
const MIN_REPEATS: f64 = 3.0;

/// The strongest period of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Its length, milliseconds.
    pub millis: f64,
    /// The share of the series' variance that a sine of this period explains, 0 to 1.
    pub explained: f64,
    /// How likely noise without memory has a peak as high anywhere (Horne and Baliunas, 1986).
    pub p_value: f64,
}

/// The strongest period of at least two samples and at most a third of the window; `None` for a series that is short or constant.
pub fn period(series: &[Sample]) -> Option<Period> {
    let points = thin(&finite(series));
    let (first, last) = (points.first()?.0, points.last()?.0);
    let span = last - first;
    if points.len() < MIN_SAMPLES || span <= 0.0 {
        return None;
    }
    let centre = mean(&points.iter().map(|(_, v)| *v).collect::<Vec<_>>())?;
    let points: Vec<(f64, f64)> = points.iter().map(|(t, v)| (t - first, v - centre)).collect();
    let variance = points.iter().map(|(_, v)| v * v).sum::<f64>() / (points.len() - 1) as f64;
    if variance <= 0.0 {
        return None;
    }
    let highest = points.len() as f64 / (2.0 * span);
    let lowest = MIN_REPEATS / span;
    let step = 1.0 / (OVERSAMPLING * span);
    let count = ((highest - lowest) / step).floor().max(0.0) as usize;
    let best = (0..=count)
        .map(|k| lowest + k as f64 * step)
        .map(|frequency| (frequency, power(&points, frequency) / variance))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Finely spaced frequencies find more peaks than half the samples would; Horne and Baliunas count about one a sample.
    let independent = points.len() as f64;
    let p_value = 1.0 - (1.0 - (-best.1).exp()).powf(independent);
    // The normalised power of a pure sine is (n - 1) / 2.
    let explained = (2.0 * best.1 / (points.len() - 1) as f64).min(1.0);
    Some(Period { millis: 1.0 / best.0, explained, p_value: p_value.clamp(0.0, 1.0) })
}

/// Scargle's power at one frequency (per millisecond), in the values' unit squared.
fn power(points: &[(f64, f64)], frequency: f64) -> f64 {
    let omega = TAU * frequency;
    let (sin2, cos2) =
        points.iter().map(|(t, _)| (2.0 * omega * t).sin_cos()).fold((0.0, 0.0), |(a, b), (s, c)| (a + s, b + c));
    // The phase that makes sine and cosine orthogonal over these instants.
    let tau = sin2.atan2(cos2) / (2.0 * omega);
    let (mut vc, mut vs, mut cc, mut ss) = (0.0, 0.0, 0.0, 0.0);
    for (t, v) in points {
        let (s, c) = (omega * (t - tau)).sin_cos();
        vc += v * c;
        vs += v * s;
        cc += c * c;
        ss += s * s;
    }
    let part = |sum: f64, norm: f64| if norm > 0.0 { sum * sum / norm } else { 0.0 };
    (part(vc, cc) + part(vs, ss)) / 2.0
}

fn thin(samples: &[Sample]) -> Vec<(f64, f64)> {
    let block = samples.len().div_ceil(MAX_SAMPLES).max(1);
    samples
        .chunks(block)
        .filter_map(|chunk| {
            let times: Vec<f64> = chunk.iter().map(|s| s.millis() as f64).collect();
            let values: Vec<f64> = chunk.iter().map(|s| s.value).collect();
            Some((mean(&times)?, mean(&values)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn a_stall_every_half_hour_is_found_through_noise_and_failed_scrapes() {
        let mut generator = Generator::new(4);
        let series: Vec<Sample> = (0..480)
            .filter(|i| i % 13 != 5)
            .map(|i| Sample::at_second(i * 60, 90.0 + generator.normal() - if i % 30 < 6 { 40.0 } else { 0.0 }))
            .collect();
        let found = period(&series).unwrap();
        assert!((found.millis / 1_800_000.0 - 1.0).abs() < 0.03 && found.p_value < 1e-6, "{found:?}");
        assert!(found.explained > 0.4, "{found:?}");
    }

    #[test]
    fn noise_is_called_periodic_about_as_rarely_as_the_p_value_says() {
        let mut generator = Generator::new(9);
        let alarms = (0..300)
            .filter(|_| {
                let series: Vec<Sample> = (0..120).map(|i| Sample::at_second(i * 30, generator.normal())).collect();
                period(&series).unwrap().p_value < 0.05
            })
            .count();
        assert!(alarms <= 30, "{alarms} of 300");
    }

    #[test]
    fn constant_and_short_series_have_no_period() {
        let constant: Vec<Sample> = (0..100).map(|i| Sample::at_second(i, 4.0)).collect();
        assert_eq!((period(&constant), period(&constant[..9])), (None, None));
    }
}
