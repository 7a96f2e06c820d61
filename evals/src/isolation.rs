//! Whether the time of an answer tells a job of another tenant from one that does not exist.

use std::fmt::Write as _;

use crate::bench::median;

/// How often the times are drawn anew for the interval.
const DRAWS: usize = 2_000;

/// The report: both medians, their difference, and the interval in which that difference lies by chance 95 times of 100.
pub fn report(foreign: &[f64], unknown: &[f64]) -> Option<String> {
    let (of_foreign, of_unknown) = (median(foreign.to_vec())?, median(unknown.to_vec())?);
    let difference = of_foreign - of_unknown;
    let (low, high) = interval(foreign, unknown)?;
    let mut text = String::new();
    let _ = writeln!(text, "job of another tenant   {:4} asks, median {of_foreign:8.2} ms", foreign.len());
    let _ = writeln!(text, "job that does not exist {:4} asks, median {of_unknown:8.2} ms", unknown.len());
    let _ = writeln!(text, "difference {difference:+.2} ms, 95 % interval {low:+.2} to {high:+.2} ms");
    let verdict = if low <= 0.0 && 0.0 <= high {
        "no difference can be told: the interval holds zero"
    } else {
        "the two can be told apart by time: the interval does not hold zero"
    };
    let _ = writeln!(text, "{verdict}");
    Some(text)
}

/// The 95 % bootstrap interval of the difference of the medians.
fn interval(foreign: &[f64], unknown: &[f64]) -> Option<(f64, f64)> {
    let mut random = Random(0x5eed);
    let mut draw = |times: &[f64]| {
        let drawn = (0..times.len()).filter_map(|_| times.get(random.below(times.len())).copied());
        median(drawn.collect())
    };
    let mut differences = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        differences.push(draw(foreign)? - draw(unknown)?);
    }
    differences.sort_by(f64::total_cmp);
    let at = |share: usize| differences.get((DRAWS * share / 1000).min(DRAWS - 1)).copied();
    Some((at(25)?, at(975)?))
}

/// SplitMix64: the same draws in every run, so that a report can be made again from the same times.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let wide = u128::from(z ^ (z >> 31)) * limit as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{interval, report};

    fn around(middle: f64) -> Vec<f64> {
        (0..200).map(|n| middle + f64::from(n * 37 % 200) / 100.0).collect()
    }

    #[test]
    fn times_from_one_hat_cannot_be_told_apart_and_times_apart_can() {
        let (low, high) = interval(&around(10.0), &around(10.0)).unwrap();
        assert!(low < 0.0 && 0.0 < high, "{low} {high}");
        let (low, high) = interval(&around(12.0), &around(10.0)).unwrap();
        assert!(1.5 < low && low < 2.0 && 2.0 < high && high < 2.5, "{low} {high}");
        assert!(report(&around(10.0), &around(10.0)).unwrap().contains("no difference can be told"));
        assert!(report(&around(12.0), &around(10.0)).unwrap().contains("can be told apart"));
        assert_eq!(report(&[], &[1.0]), None);
    }
}
