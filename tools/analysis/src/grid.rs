//! Series of several members brought onto one time grid, so that they can be compared at the same instant.

use jiff::Timestamp;

use crate::robust::median;
use crate::sample::Sample;

/// Equal time slots; each member's value in a slot is the mean of its samples there, `None` without any.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The start of the first slot, milliseconds since the epoch.
    from_ms: i64,
    /// The length of a slot, milliseconds.
    step_ms: i64,
    /// One row per member, each with one value per slot.
    pub rows: Vec<Vec<Option<f64>>>,
}

impl Grid {
    /// The grid that covers all samples of all members with slots of `step_ms`; `None` without samples or a step.
    pub fn new<S: AsRef<[Sample]>>(members: &[S], step_ms: i64) -> Option<Self> {
        let times = || members.iter().flat_map(|m| m.as_ref()).filter(|s| s.value.is_finite()).map(Sample::millis);
        let (first, last) = (times().min()?, times().max()?);
        if step_ms <= 0 {
            return None;
        }
        let from_ms = first.div_euclid(step_ms) * step_ms;
        let slots = usize::try_from((last - from_ms) / step_ms + 1).ok()?;
        let rows = members.iter().map(|member| row(member.as_ref(), from_ms, step_ms, slots)).collect();
        Some(Self { from_ms, step_ms, rows })
    }

    /// When a slot begins.
    pub fn time(&self, slot: usize) -> Timestamp {
        let offset = i64::try_from(slot).unwrap_or(i64::MAX).saturating_mul(self.step_ms);
        Timestamp::from_millisecond(self.from_ms.saturating_add(offset)).unwrap_or(Timestamp::MAX)
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The values of all members in one slot.
    pub fn column(&self, slot: usize) -> Vec<Option<f64>> {
        self.rows.iter().map(|row| row.get(slot).copied().flatten()).collect()
    }
}

fn row(member: &[Sample], from_ms: i64, step_ms: i64, slots: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); slots];
    for sample in member.iter().filter(|s| s.value.is_finite()) {
        let slot = usize::try_from((sample.millis() - from_ms) / step_ms).unwrap_or(usize::MAX);
        if let Some((sum, count)) = sums.get_mut(slot) {
            *sum += sample.value;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

/// Each member's series divided by the median of its peers in the same slot. What moves all members alike (load, day
/// and night, a job-wide cap) cancels out; slots without the member or without two peers are left out.
pub fn ratio_to_peers<S: AsRef<[Sample]>>(members: &[S], step_ms: i64) -> Vec<Vec<Sample>> {
    let Some(grid) = Grid::new(members, step_ms) else { return members.iter().map(|_| Vec::new()).collect() };
    let mut ratios: Vec<Vec<Sample>> = members.iter().map(|_| Vec::new()).collect();
    for slot in 0..grid.slots() {
        let column = grid.column(slot);
        let mut sorted: Vec<f64> = column.iter().copied().flatten().collect();
        sorted.sort_by(f64::total_cmp);
        for (value, ratio) in column.iter().zip(ratios.iter_mut()) {
            let Some(value) = *value else { continue };
            let Some(peers) = median_without(&sorted, value) else { continue };
            if peers != 0.0 {
                ratio.push(Sample { time: grid.time(slot), value: value / peers });
            }
        }
    }
    ratios
}

/// The median of sorted values with one occurrence of `value` taken out; `None` below two that remain.
fn median_without(sorted: &[f64], value: f64) -> Option<f64> {
    let remaining = sorted.len().checked_sub(1).filter(|n| *n >= 2)?;
    let removed = sorted.partition_point(|v| *v < value);
    let at = |i: usize| sorted.get(if i < removed { i } else { i + 1 }).copied();
    if remaining % 2 == 1 {
        return at(remaining / 2);
    }
    median(&[at(remaining / 2 - 1)?, at(remaining / 2)?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_hold_means_and_missing_slots_stay_missing() {
        let a = [Sample::at_second(0, 1.0), Sample::at_second(5, 3.0), Sample::at_second(25, 7.0)];
        let b = [Sample::at_second(12, 4.0), Sample::at_second(13, f64::NAN)];
        let grid = Grid::new(&[&a[..], &b[..]], 10_000).unwrap();
        assert_eq!(grid.rows, vec![vec![Some(2.0), None, Some(7.0)], vec![None, Some(4.0), None]]);
        assert_eq!(grid.time(2), Timestamp::from_second(20).unwrap());
    }

    #[test]
    fn what_moves_all_members_cancels_out_and_the_odd_one_stands_out() {
        let load = |i: i64| if i < 10 { 100.0 } else { 40.0 };
        let members: Vec<Vec<Sample>> = (0..4)
            .map(|m| (0..20).map(|i| Sample::at_second(i * 30, load(i) * if m == 2 { 0.5 } else { 1.0 })).collect())
            .collect();
        let ratios = ratio_to_peers(&members, 30_000);
        assert!(ratios[0].iter().all(|s| s.value == 1.0) && ratios[2].iter().all(|s| s.value == 0.5));
    }

    proptest! {
        #[test]
        fn leaving_one_out_equals_the_plain_median_of_the_others(
            values in prop::collection::vec(-9_i32..9, 3..12), pick in 0_usize..12
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let pick = pick % values.len();
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let mut others = values.clone();
            others.remove(pick);
            prop_assert_eq!(median_without(&sorted, values[pick]), median(&others));
        }
    }
}
