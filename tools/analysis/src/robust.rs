//! Location and scale that a few wild values cannot move.

/// The factor that makes the median absolute deviation estimate a normal standard deviation: 1 / Φ⁻¹(3/4).
const MAD_TO_SIGMA: f64 = 1.4826;

/// The factor for the mean absolute deviation, √(π/2); used when more than half of the values are equal, as with
/// clocks and temperatures in whole units, where the median deviation is zero (Iglewicz and Hoaglin, 1993).
const MEAN_DEVIATION_TO_SIGMA: f64 = 1.2533;

/// What a set of values looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many finite values there were.
    pub count: usize,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The robust scale around the median.
    pub scale: f64,
}

impl Summary {
    /// The summary of the finite values, or `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        let median = quantile_sorted(&sorted, 0.5)?;
        Some(Self {
            count: sorted.len(),
            min: *sorted.first()?,
            max: *sorted.last()?,
            mean: mean(&sorted)?,
            median,
            scale: robust_scale(&sorted)?,
        })
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = *sorted.get(position.floor() as usize)?;
    let above = *sorted.get(position.ceil() as usize)?;
    Some(below + (above - below) * position.fract())
}

/// The quantile `q` of 0..=1, interpolated linearly between order statistics; `None` without finite values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_sorted(&sorted(values), q)
}

/// The median; `None` without finite values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The arithmetic mean of the finite values; `None` without any.
pub fn mean(values: &[f64]) -> Option<f64> {
    let (sum, count) =
        values.iter().filter(|v| v.is_finite()).fold((0.0, 0_usize), |(sum, count), v| (sum + v, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The median absolute deviation from the median, unscaled.
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().filter(|v| v.is_finite()).map(|v| (v - centre).abs()).collect();
    median(&deviations)
}

/// A robust stand-in for the standard deviation: from the median deviation, or, when most values are equal, from the
/// mean deviation. Zero only when all values are equal.
pub fn robust_scale(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let from_median = mad(values)? * MAD_TO_SIGMA;
    if from_median > 0.0 {
        return Some(from_median);
    }
    let deviations: Vec<f64> = values.iter().filter(|v| v.is_finite()).map(|v| (v - centre).abs()).collect();
    Some(mean(&deviations)? * MEAN_DEVIATION_TO_SIGMA)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.9, 1.0].map(|q| quantile(&values, q)),
            [Some(1.0), Some(1.75), Some(2.5), Some(3.7), Some(4.0)]
        );
    }

    #[test]
    fn nothing_measured_has_no_median_and_is_not_zero() {
        assert_eq!((median(&[]), median(&[f64::NAN]), mean(&[]), Summary::of(&[])), (None, None, None, None));
    }

    #[test]
    fn one_wild_value_moves_neither_location_nor_scale_much() {
        let values = [10.0, 11.0, 9.0, 10.0, 10.5, 9.5, 1e9];
        assert_eq!((median(&values), mad(&values)), (Some(10.0), Some(0.5)));
    }

    #[test]
    fn scale_of_mostly_equal_values_is_not_zero() {
        let scale = robust_scale(&[5.0, 5.0, 5.0, 5.0, 9.0]).unwrap();
        assert!((scale - 0.8 * 1.2533).abs() < 1e-12, "{scale}");
        assert_eq!(robust_scale(&[5.0, 5.0]), Some(0.0));
    }

    proptest! {
        #[test]
        fn quantiles_never_decrease_and_stay_within_the_values(
            values in prop::collection::vec(-1e6_f64..1e6, 1..40), a in 0.0_f64..=1.0, b in 0.0_f64..=1.0
        ) {
            let (low, high) = (a.min(b), a.max(b));
            let (x, y) = (quantile(&values, low).unwrap(), quantile(&values, high).unwrap());
            let summary = Summary::of(&values).unwrap();
            prop_assert!(x <= y && summary.min <= x && y <= summary.max);
        }
    }
}
