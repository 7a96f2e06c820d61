//! The ranks of a job beside each other: who sits where, and who is the last of each moment.

use sightline_analysis::{Grid, Sample, median};
use sightline_model::{Component, TimeRange};

use crate::case::Case;
use crate::observation::Placement;
use crate::signal::Signal;
use crate::view::{Member, View, names};

/// One rank with its level in a window.
#[derive(Clone, Debug)]
pub(crate) struct RankLevel<'v, 'a> {
    pub(crate) member: &'v Member<'a>,
    pub(crate) placement: Option<&'a Placement>,
    pub(crate) rank: usize,
    pub(crate) level: f64,
}

/// Where a member of a per-rank or per-GPU signal runs.
pub(crate) fn placement_of<'a>(case: &Case<'a>, member: &Member<'_>) -> Option<&'a Placement> {
    let placements = &case.observations.job.placements;
    let by_rank = member.entity.get("rank").and_then(|r| placements.iter().find(|p| p.rank.as_ref() == Some(r)));
    by_rank.or_else(|| placements.iter().find(|p| names(member.entity, p)))
}

/// The component of a member: its GPU where that is known.
pub(crate) fn component_of(case: &Case<'_>, member: &Member<'_>) -> Component {
    placement_of(case, member).map_or_else(|| member.component(), Placement::component)
}

/// All members whose rank is known, in the order of ranks, with their medians in a window.
pub(crate) fn levels<'v, 'a>(case: &Case<'a>, view: &'v View<'a>, range: TimeRange) -> Vec<RankLevel<'v, 'a>> {
    let mut found: Vec<RankLevel<'v, 'a>> = view
        .members
        .iter()
        .filter_map(|member| {
            let placement = placement_of(case, member);
            let name = member.entity.get("rank").or_else(|| placement?.rank.as_ref())?;
            Some(RankLevel { member, placement, rank: name.parse().ok()?, level: member.median(range)? })
        })
        .collect();
    found.sort_by_key(|r| r.rank);
    found
}

/// How the last of each moment lags behind the others.
#[derive(Clone, Debug)]
pub(crate) struct Lag {
    /// The median over moments of the last one's distance to the median of all, in the signal's own unit.
    pub(crate) typical: f64,
    /// The share of moments in which the most frequent last one is last.
    pub(crate) most_frequent: f64,
    /// How many different members are last in at least one moment in which it matters.
    pub(crate) distinct: usize,
    /// How far the member with the most extreme median over the window lies from the median of all: near `typical` when one or some
    /// stay the last, near nothing when they take turns.
    pub(crate) standing: f64,
    /// The moments of the largest lag of the two members that lag most: (index of the member, start of the moment).
    pub(crate) examples: Vec<(usize, jiff::Timestamp)>,
}

/// Which members work longest at each moment of a window. `last_is_high`: whether the last one has the highest value, as in
/// compute time, or the lowest, as in the time spent waiting for others. `None` with fewer than four members or moments.
pub(crate) fn lag(view: &View<'_>, range: TimeRange, last_is_high: bool) -> Option<Lag> {
    let members: Vec<Vec<Sample>> =
        view.members.iter().map(|m| m.samples.iter().filter(|s| range.contains(s.time)).copied().collect()).collect();
    if members.len() < 4 {
        return None;
    }
    let grid = Grid::new(&members, view.step_ms)?;
    let mut last: Vec<(usize, f64, jiff::Timestamp)> = Vec::new();
    for slot in 0..grid.slots() {
        let column = grid.column(slot);
        let values: Vec<f64> = column.iter().copied().flatten().collect();
        let Some(middle) = median(&values).filter(|_| values.len() * 2 > members.len()) else { continue };
        let off = |v: f64| if last_is_high { v - middle } else { middle - v };
        let present = column.iter().enumerate().filter_map(|(i, v)| Some((i, off((*v)?))));
        if let Some((index, by)) = present.max_by(|a, b| a.1.total_cmp(&b.1)) {
            last.push((index, by, grid.time(slot)));
        }
    }
    if last.len() < 4 {
        return None;
    }
    let typical = median(&last.iter().map(|(_, by, _)| *by).collect::<Vec<_>>())?;
    let mut times = vec![0_usize; members.len()];
    for (index, by, _) in &last {
        if *by >= typical / 2.0
            && let Some(count) = times.get_mut(*index)
        {
            *count += 1;
        }
    }
    let counted: usize = times.iter().sum();
    let most_frequent = times.iter().copied().max()? as f64 / counted.max(1) as f64;
    let levels: Vec<f64> = view.members.iter().filter_map(|m| m.median(range)).collect();
    let middle = median(&levels)?;
    let off = |level: &f64| if last_is_high { level - middle } else { middle - level };
    let standing = levels.iter().map(off).reduce(f64::max)?;
    last.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut examples: Vec<(usize, jiff::Timestamp)> = Vec::new();
    for (index, _, at) in &last {
        if examples.len() < 2 && examples.iter().all(|(seen, _)| seen != index) {
            examples.push((*index, *at));
        }
    }
    let distinct = times.iter().filter(|n| **n > 0).count();
    Some(Lag { typical, most_frequent, distinct, standing, examples })
}

/// The length of a step, for what a lag is compared with: the step time, else the compute time; seconds as recorded.
pub(crate) fn step_length(case: &Case<'_>, range: TimeRange) -> Option<f64> {
    [Signal::StepTime, Signal::ComputeTime].into_iter().find_map(|s| case.view(s)?.typical(range)).filter(|s| *s > 0.0)
}
