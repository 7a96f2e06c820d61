//! Whether two sets of values differ in level, by ranks.

use crate::normal::two_sided_p;

/// The Mann-Whitney test in its normal approximation, corrected for ties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// How often a value of the second set exceeds one of the first, ties counting half: 0.5 means no difference.
    pub superiority: f64,
    /// The normal score; positive when the second set is higher.
    pub z: f64,
    /// The two-sided p-value.
    pub p_value: f64,
}

/// Compares `second` with `first`; `None` when either has no finite value.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    let mut all: Vec<(f64, bool)> = first
        .iter()
        .map(|v| (*v, false))
        .chain(second.iter().map(|v| (*v, true)))
        .filter(|(v, _)| v.is_finite())
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n2 = all.iter().filter(|(_, second)| *second).count() as f64;
    let n1 = all.len() as f64 - n2;
    if n1 == 0.0 || n2 == 0.0 {
        return None;
    }
    let mut rank_sum = 0.0;
    let mut tie_term = 0.0;
    let mut seen = 0.0;
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let size = tied.len() as f64;
        let rank = seen + (size + 1.0) / 2.0;
        rank_sum += rank * tied.iter().filter(|(_, second)| *second).count() as f64;
        tie_term += size * size * size - size;
        seen += size;
    }
    let total = n1 + n2;
    let u = rank_sum - n2 * (n2 + 1.0) / 2.0;
    let variance = n1 * n2 / 12.0 * (total + 1.0 - tie_term / (total * (total - 1.0)).max(1.0));
    let shift = u - n1 * n2 / 2.0;
    // Half a rank towards the mean: the sum moves in steps, the normal curve does not.
    let corrected = shift.signum() * (shift.abs() - 0.5).max(0.0);
    let z = if variance > 0.0 { corrected / variance.sqrt() } else { 0.0 };
    Some(RankTest { superiority: u / (n1 * n2), z, p_value: two_sided_p(z) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_sets_are_told_apart_and_equal_ones_are_not() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let high = low.map(|v| v + 10.0);
        let apart = mann_whitney(&low, &high).unwrap();
        // U = 64, mean 32, sd = sqrt(8·8·17/12) = 9.522; z = 31.5 / 9.522.
        assert!((apart.z - 3.308).abs() < 1e-3 && apart.superiority == 1.0 && apart.p_value < 0.001, "{apart:?}");
        let same = mann_whitney(&low, &low).unwrap();
        assert_eq!((same.superiority, same.z, same.p_value), (0.5, 0.0, 1.0));
    }

    #[test]
    fn all_values_tied_is_no_difference_and_an_empty_side_is_no_answer() {
        assert_eq!(mann_whitney(&[2.0; 5], &[2.0; 5]).map(|t| t.p_value), Some(1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }
}
