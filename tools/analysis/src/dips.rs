//! Dips that all members share: what a starved or stalled job looks like from its GPUs.

use jiff::Timestamp;

use crate::grid::Grid;
use crate::robust::{median, quantile, robust_scale};
use crate::sample::Sample;

/// Dips in which most members fall together.
#[derive(Clone, Debug, PartialEq)]
pub struct Dips {
    /// The busy level: the 90th percentile over all slots of the members' median.
    pub busy: f64,
    /// The share of slots spent in a common dip.
    pub share: f64,
    /// When each dip begins.
    pub starts: Vec<Timestamp>,
    /// The median distance between starts, milliseconds; `None` below three dips.
    pub period_ms: Option<f64>,
    /// The scatter of that distance over the distance itself: near 0 for a clockwork, 1 and more for chance.
    pub period_scatter: Option<f64>,
    /// The share of all single-member dips that were common ones: near 1 when members always fall together.
    pub together: f64,
}

/// Finds slots in which at least `quorum` of the members that have a value lie below `depth` times their own busy level;
/// `None` when there is nothing to compare with.
pub fn common_dips<S: AsRef<[Sample]>>(members: &[S], step_ms: i64, depth: f64, quorum: f64) -> Option<Dips> {
    let grid = Grid::new(members, step_ms)?;
    let levels: Vec<Option<f64>> = grid
        .rows
        .iter()
        .map(|row| quantile(&row.iter().copied().flatten().collect::<Vec<_>>(), 0.9).filter(|busy| *busy > 0.0))
        .collect();
    let busy = median(&levels.iter().copied().flatten().collect::<Vec<_>>())?;
    let (mut slots, mut in_dip, mut single, mut shared) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut starts = Vec::new();
    let mut before = false;
    for slot in 0..grid.slots() {
        let column = grid.column(slot);
        let states = || column.iter().zip(&levels).filter_map(|(v, level)| Some((*v)? < depth * (*level)?));
        let (present, low) = (states().count(), states().filter(|low| *low).count());
        if present == 0 {
            before = false;
            continue;
        }
        slots += 1;
        let low = u32::try_from(low).unwrap_or(u32::MAX);
        let common = f64::from(low) >= quorum * present as f64 && low > 0;
        single += low;
        if common {
            in_dip += 1;
            shared += low;
            if !before {
                starts.push(grid.time(slot));
            }
        }
        before = common;
    }
    if slots == 0 {
        return None;
    }
    let distances: Vec<f64> = starts
        .windows(2)
        .filter_map(|w| Some((w.last()?.as_millisecond() - w.first()?.as_millisecond()) as f64))
        .collect();
    let period_ms = if distances.len() >= 2 { median(&distances) } else { None };
    let period_scatter = period_ms.and_then(|period| Some(robust_scale(&distances)? / period));
    let together = if single == 0 { 0.0 } else { f64::from(shared) / f64::from(single) };
    Some(Dips { busy, share: f64::from(in_dip) / f64::from(slots), starts, period_ms, period_scatter, together })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(dip: impl Fn(i64) -> bool) -> Vec<Sample> {
        (0..100).map(|i| Sample::at_second(i * 10, if dip(i) { 5.0 } else { 97.0 })).collect()
    }

    #[test]
    fn a_shared_sawtooth_has_its_period() {
        let members: Vec<_> = (0..4).map(|_| member(|i| i % 10 < 2)).collect();
        let dips = common_dips(&members, 10_000, 0.5, 0.8).unwrap();
        assert_eq!(
            (dips.busy, dips.share, dips.period_ms, dips.period_scatter),
            (97.0, 0.2, Some(100_000.0), Some(0.0))
        );
        assert_eq!((dips.starts.len(), dips.together), (10, 1.0));
    }

    #[test]
    fn one_member_dipping_alone_is_no_common_dip() {
        let members: Vec<_> = (0..4).map(|m| member(move |i| m == 1 && i % 10 < 2)).collect();
        let dips = common_dips(&members, 10_000, 0.5, 0.8).unwrap();
        assert_eq!((dips.share, dips.starts.len(), dips.together), (0.0, 0, 0.0));
    }
}
