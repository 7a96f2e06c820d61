//! Counters: what was added between samples, across resets.

use jiff::Timestamp;

use crate::sample::{Sample, finite};

/// What a counter gained over a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Increase {
    /// The sum of all gains. After a reset the new value counts as the gain, as Prometheus has it; nothing is
    /// extrapolated to the edges.
    pub total: f64,
    /// How often the counter fell, which a counter does only when it starts anew.
    pub resets: u32,
    /// The first sample with a gain.
    pub first_gain: Option<Timestamp>,
}

/// The reset-aware increase; `None` below two finite samples, for one sample says nothing about growth.
pub fn increase(series: &[Sample]) -> Option<Increase> {
    let samples = finite(series);
    if samples.len() < 2 {
        return None;
    }
    let mut result = Increase { total: 0.0, resets: 0, first_gain: None };
    for pair in samples.windows(2) {
        let [before, after] = pair else { continue };
        let reset = after.value < before.value;
        let gain = if reset { after.value } else { after.value - before.value };
        result.resets += u32::from(reset);
        result.total += gain;
        if gain > 0.0 && result.first_gain.is_none() {
            result.first_gain = Some(after.time);
        }
    }
    Some(result)
}

/// The per-second rate in each interval, dated by its later sample.
pub fn rates(series: &[Sample]) -> Vec<Sample> {
    let samples = finite(series);
    let mut rates = Vec::with_capacity(samples.len());
    for pair in samples.windows(2) {
        let [before, after] = pair else { continue };
        let seconds = (after.millis() - before.millis()) as f64 / 1000.0;
        if seconds > 0.0 {
            let gain = if after.value < before.value { after.value } else { after.value - before.value };
            rates.push(Sample { time: after.time, value: gain / seconds });
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(values: &[f64]) -> Vec<Sample> {
        values.iter().enumerate().map(|(i, v)| Sample::at_second(i as i64 * 10, *v)).collect()
    }

    #[test]
    fn gains_are_summed_across_a_reset() {
        let data = series(&[100.0, 100.0, 130.0, 5.0, 15.0]);
        let expected = Increase { total: 45.0, resets: 1, first_gain: Some(data[2].time) };
        assert_eq!(increase(&data), Some(expected));
        assert_eq!(rates(&data).iter().map(|s| s.value).collect::<Vec<_>>(), vec![0.0, 3.0, 0.5, 1.0]);
    }

    #[test]
    fn one_sample_is_not_an_increase_of_zero() {
        assert_eq!((increase(&series(&[7.0])), increase(&series(&[0.0, 0.0])).map(|i| i.total)), (None, Some(0.0)));
    }

    proptest! {
        #[test]
        fn the_increase_is_never_negative_and_survives_any_reset_position(
            gains in prop::collection::vec(0.0_f64..100.0, 2..30), cut in 1_usize..30
        ) {
            let cut = cut % gains.len();
            let mut total = 0.0;
            let values: Vec<f64> = std::iter::once(0.0)
                .chain(gains.iter().enumerate().map(|(i, g)| { if i == cut { total = 0.0; } total += g; total }))
                .collect();
            let expected: f64 = gains.iter().sum();
            let got = increase(&series(&values)).unwrap();
            // A reset is visible only when the value falls; when it does not, some of the gain is lost, never invented.
            prop_assert!(got.total >= 0.0 && got.total <= expected + 1e-6);
            if got.resets == 1 { prop_assert!((got.total - expected).abs() < 1e-6); }
        }
    }
}
