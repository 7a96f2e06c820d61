//! Clocks that disagree: a member whose series comes earlier or later than all others' although they measure one thing.

use crate::correlation::lagged_correlation;
use crate::grid::Grid;
use crate::robust::median;
use crate::sample::Sample;

/// A lag is believed from this rank correlation on: what one job does to all its GPUs correlates nearly fully, noise does not.
const MIN_CORRELATION: f64 = 0.7;

/// How far one member's clock is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    /// Its position in the input.
    pub index: usize,
    /// How much later its samples say things happen than the others' median, milliseconds; negative when earlier. A multiple of the
    /// step, so that less than one step cannot be told.
    pub lag_ms: i64,
    /// The rank correlation at that lag.
    pub r: f64,
    /// The rank correlation without a lag; `None` when it cannot be computed.
    pub r_unshifted: Option<f64>,
}

/// The members that follow the others' median better when they are moved by up to `max_lag` steps, by at least one step. Fewer than
/// three members have no majority whose clock could be right.
pub fn clock_skews<S: AsRef<[Sample]>>(members: &[S], step_ms: i64, max_lag: usize) -> Vec<Skew> {
    if members.len() < 3 {
        return Vec::new();
    }
    let Some(grid) = Grid::new(members, step_ms) else { return Vec::new() };
    (0..members.len())
        .filter_map(|index| {
            let own = member(&grid, index);
            let others = others(&grid, index);
            let best = lagged_correlation(&others, &own, step_ms, max_lag)?;
            let unshifted = lagged_correlation(&others, &own, step_ms, 0).map(|c| c.r);
            let clearly = best.r >= MIN_CORRELATION && unshifted.is_none_or(|r| best.r > r + 0.1);
            (best.lag_steps != 0 && clearly).then_some(Skew {
                index,
                lag_ms: best.lag_steps.saturating_mul(step_ms),
                r: best.r,
                r_unshifted: unshifted,
            })
        })
        .collect()
}

fn member(grid: &Grid, index: usize) -> Vec<Sample> {
    let row = grid.rows.get(index).into_iter().flatten().enumerate();
    row.filter_map(|(slot, value)| value.map(|value| Sample { time: grid.time(slot), value })).collect()
}

fn others(grid: &Grid, index: usize) -> Vec<Sample> {
    (0..grid.slots())
        .filter_map(|slot| {
            let column = grid.column(slot);
            let rest: Vec<f64> =
                column.iter().enumerate().filter(|(i, _)| *i != index).filter_map(|(_, v)| *v).collect();
            median(&rest).map(|value| Sample { time: grid.time(slot), value })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn a_node_whose_clock_is_two_minutes_late_is_found_and_its_peers_are_not() {
        let mut generator = Generator::new(8);
        let mut load = vec![50.0];
        for _ in 1..260 {
            let next: f64 = load.last().unwrap() * 0.8 + 10.0 + 6.0 * generator.normal();
            load.push(next);
        }
        let members: Vec<Vec<Sample>> = (0..5)
            .map(|m| {
                let late: i64 = if m == 3 { 4 } else { 0 };
                (10..250)
                    .map(|i| {
                        let at = usize::try_from(i).unwrap();
                        Sample::at_second((i + late) * 30, load[at] + generator.normal())
                    })
                    .collect()
            })
            .collect();
        let found = clock_skews(&members, 30_000, 8);
        assert_eq!(found.iter().map(|s| (s.index, s.lag_ms)).collect::<Vec<_>>(), vec![(3, 120_000)], "{found:?}");
        assert_eq!(clock_skews(&members[..2], 30_000, 8), vec![]);
    }
}
