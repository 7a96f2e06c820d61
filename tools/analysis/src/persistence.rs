//! Whether it is always the same member that is worst: a slow board stays slow, an unlucky share of the work wanders.

use crate::grid::Grid;
use crate::normal::two_sided_p;
use crate::peers::Better;
use crate::sample::Sample;

/// Below this many blocks nothing can be said about staying or wandering.
const MIN_BLOCKS: usize = 6;

/// Who is worst how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Persistence {
    /// The member that is worst most often, by its position in the input.
    pub worst: usize,
    /// The share of blocks in which it is.
    pub share: f64,
    /// How many members are worst in at least one block.
    pub distinct: usize,
    /// Blocks that were compared.
    pub blocks: usize,
    /// How likely one of the members is worst that often by chance, if all are alike: a binomial tail by its normal
    /// approximation, times the number of members (Bonferroni).
    pub p_value: f64,
}

/// Compares members block by block; a block is `slots` steps long, so that single slots' noise cancels out. `None` with fewer than
/// three members or [`MIN_BLOCKS`] blocks that at least three members have data in.
pub fn persistence<S: AsRef<[Sample]>>(
    members: &[S],
    step_ms: i64,
    slots: usize,
    better: Better,
) -> Option<Persistence> {
    if members.len() < 3 {
        return None;
    }
    let grid = Grid::new(members, step_ms)?;
    let slots = slots.max(1);
    let mut times_worst = vec![0_usize; members.len()];
    let mut blocks = 0;
    for start in (0..grid.slots()).step_by(slots) {
        let levels: Vec<(usize, f64)> = grid
            .rows
            .iter()
            .enumerate()
            .filter_map(|(index, row)| {
                let there: Vec<f64> = row.iter().skip(start).take(slots).copied().flatten().collect();
                crate::robust::mean(&there).map(|level| (index, level))
            })
            .collect();
        if levels.len() < 3 {
            continue;
        }
        let worst = levels.iter().max_by(|a, b| match better {
            Better::Lower => a.1.total_cmp(&b.1),
            Better::Higher => b.1.total_cmp(&a.1),
        });
        // Where all are equal nobody is worst, and the block says nothing.
        let all_equal = levels.iter().all(|(_, level)| Some(*level) == levels.first().map(|(_, first)| *first));
        if let Some(count) = worst.filter(|_| !all_equal).and_then(|(index, _)| times_worst.get_mut(*index)) {
            *count += 1;
            blocks += 1;
        }
    }
    if blocks < MIN_BLOCKS {
        return None;
    }
    let (worst, most) = times_worst.iter().copied().enumerate().max_by_key(|(index, n)| (*n, usize::MAX - index))?;
    let chance = 1.0 / members.len() as f64;
    let expected = blocks as f64 * chance;
    let z = (most as f64 - 0.5 - expected) / (expected * (1.0 - chance)).sqrt();
    let one_sided = if z > 0.0 { two_sided_p(z) / 2.0 } else { 1.0 };
    Some(Persistence {
        worst,
        share: most as f64 / blocks as f64,
        distinct: times_worst.iter().filter(|n| **n > 0).count(),
        blocks,
        p_value: (one_sided * members.len() as f64).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    fn ranks(slow: impl Fn(i64) -> usize) -> Vec<Vec<Sample>> {
        let mut generator = Generator::new(2);
        let mut member = |m: usize| -> Vec<Sample> {
            let mut level = |i: i64| 1.0 + if slow(i) == m { 0.4 } else { 0.0 } + 0.05 * generator.normal();
            (0..120).map(|i| Sample::at_second(i * 10, level(i))).collect()
        };
        (0..8).map(&mut member).collect()
    }

    #[test]
    fn a_slow_board_stays_and_an_imbalance_wanders() {
        let stays = persistence(&ranks(|_| 3), 10_000, 5, Better::Lower).unwrap();
        assert_eq!((stays.worst, stays.share, stays.distinct, stays.blocks), (3, 1.0, 1, 24));
        assert!(stays.p_value < 1e-6);
        let wanders = persistence(&ranks(|i| (i / 5 % 8) as usize), 10_000, 5, Better::Lower).unwrap();
        assert!(wanders.share < 0.2 && wanders.distinct == 8 && wanders.p_value > 0.5, "{wanders:?}");
    }

    #[test]
    fn equal_members_and_short_series_say_nothing() {
        let equal = vec![vec![Sample::at_second(0, 1.0), Sample::at_second(600, 1.0)]; 4];
        assert_eq!(persistence(&equal, 10_000, 5, Better::Lower), None);
        let short: Vec<Vec<Sample>> = ranks(|_| 3).iter().map(|m| m[..20].to_vec()).collect();
        assert_eq!(persistence(&short, 10_000, 5, Better::Lower), None);
    }
}
