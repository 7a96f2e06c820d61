//! A pipeline stage that has more to do than the others, so that all of them run at its pace.
//!
//! Needs compute time per rank, else the time ranks wait. Speaks for it: the ranks of one stage take longer than all others, by the same
//! amount and since the start of what was seen; stages are told by their label, else they are equal blocks of consecutive ranks.
//! Rules it out: ranks alike; a difference that began in the middle of the job; a block that is just one node, which may be that node.
//! Trap: a stage is slow by its share of the model and not by its hardware: its clocks are its peers'.

use std::collections::BTreeMap;

use sightline_analysis::median;
use sightline_model::{Component, DraftClaim, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::ranks::{RankLevel, component_of, levels, step_length};
use crate::sentence::{Sentence, peers, stat, who};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "pipeline_stage_imbalance", assess };

/// A stage counts as heavier from a tenth on: stages are never exactly equal, for the first and the last hold other layers.
const HEAVIER: f64 = 0.1;

/// Labels that name a rank's stage.
const STAGE_LABELS: [&str; 2] = ["pp_rank", "pipeline_stage"];

/// The ranks of one stage that is heavier than the others.
struct Stage<'v, 'a> {
    view: &'v View<'a>,
    slow: Vec<RankLevel<'v, 'a>>,
    labelled: bool,
    excess: f64,
}

/// Whether a stage is heavier than the others.
pub(crate) fn holds(case: &Case<'_>) -> bool {
    !case.has_slow_clock() && heavier(case).is_some_and(|found| found.is_ok())
}

/// Who is the last: by longest compute time; without it, by shortest wait.
const BY: [(Signal, bool); 2] = [(Signal::ComputeTime, true), (Signal::CommunicationTime, false)];

fn heavier<'v, 'a>(case: &'v Case<'a>) -> Option<Result<Stage<'v, 'a>, &'v View<'a>>> {
    BY.into_iter().find_map(|(signal, high)| {
        let view = case.view(signal)?;
        let ranks = levels(case, view, case.focus());
        (ranks.len() >= 4).then(|| stage_of(case, view, ranks, high).ok_or(view))
    })
}

fn stage_of<'v, 'a>(
    case: &'v Case<'a>,
    view: &'v View<'a>,
    ranks: Vec<RankLevel<'v, 'a>>,
    high: bool,
) -> Option<Stage<'v, 'a>> {
    let length = step_length(case, case.focus())?;
    let named = |r: &RankLevel<'_, '_>| STAGE_LABELS.iter().find_map(|l| r.member.entity.get(*l)).cloned();
    let mut stages: BTreeMap<String, Vec<RankLevel<'v, 'a>>> = BTreeMap::new();
    if ranks.iter().all(|r| named(r).is_some()) {
        for rank in ranks {
            stages.entry(named(&rank).unwrap_or_default()).or_default().push(rank);
        }
        let groups: Vec<Vec<RankLevel<'v, 'a>>> = stages.into_values().collect();
        return slowest(case, groups, high, length).map(|(slow, excess)| Stage { view, slow, labelled: true, excess });
    }
    let total = ranks.len();
    // Few and large stages first: a stage of eight ranks is also two blocks of four.
    for stages in (2..=total / 2).filter(|n| total.is_multiple_of(*n)) {
        let groups: Vec<Vec<RankLevel<'v, 'a>>> = ranks.chunks(total / stages).map(<[_]>::to_vec).collect();
        if let Some((slow, excess)) = slowest(case, groups, high, length) {
            // A node is a block of ranks as well; memory tells stages apart, for they hold different activations.
            let one_node = is_one_node(case, &slow) && !memory_differs(case, &slow);
            return (!one_node).then_some(Stage { view, slow, labelled: false, excess });
        }
    }
    None
}

/// The group whose members all lag behind all others, by much the same amount and from the beginning; with its lag as a share of
/// a step.
fn slowest<'v, 'a>(
    case: &Case<'_>,
    groups: Vec<Vec<RankLevel<'v, 'a>>>,
    high: bool,
    length: f64,
) -> Option<(Vec<RankLevel<'v, 'a>>, f64)> {
    if groups.len() < 2 {
        return None;
    }
    let sign = if high { 1.0 } else { -1.0 };
    let level = |g: &[RankLevel<'_, '_>]| median(&g.iter().map(|r| sign * r.level).collect::<Vec<_>>());
    let (index, top) =
        groups.iter().enumerate().filter_map(|(i, g)| Some((i, level(g)?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others: Vec<f64> = groups
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != index)
        .flat_map(|(_, g)| g.iter().map(|r| sign * r.level))
        .collect();
    let middle = median(&others)?;
    let highest = others.iter().copied().reduce(f64::max)?;
    let excess = (top - middle) / length;
    let slow = groups.into_iter().nth(index)?;
    let own: Vec<f64> = slow.iter().map(|r| sign * r.level).collect();
    let (low, most) = (own.iter().copied().reduce(f64::min)?, own.iter().copied().reduce(f64::max)?);
    // No other rank comes near the stage, and its own ranks are closer together than to the others.
    let apart = low - highest >= (top - middle) / 2.0 && most - low <= (top - middle) / 2.0;
    (excess >= HEAVIER && apart && from_the_start(case, &slow, &others, sign, top - middle)).then_some((slow, excess))
}

/// Whether the stage lagged by at least half as much already in the first tenth of what was seen: a model is not cut anew while it runs.
fn from_the_start(case: &Case<'_>, slow: &[RankLevel<'_, '_>], others: &[f64], sign: f64, lag: f64) -> bool {
    let Some(first) = slow.iter().filter_map(|r| r.member.points.first()).map(|p| p.time).min() else { return false };
    let whole = case.window.to().as_millisecond() - first.as_millisecond();
    let Some(early) = TimeRange::new(first, crate::view::shift(first, whole / 10)) else { return false };
    let then: Vec<f64> = slow.iter().filter_map(|r| r.member.median(early)).map(|v| sign * v).collect();
    match (median(&then), median(others)) {
        (Some(then), Some(others)) => then - others >= lag / 2.0,
        _ => false,
    }
}

fn is_one_node(case: &Case<'_>, slow: &[RankLevel<'_, '_>]) -> bool {
    let mut nodes: Vec<&str> = slow.iter().filter_map(|r| r.placement).map(|p| p.node.as_str()).collect();
    nodes.dedup();
    match nodes.as_slice() {
        [node] => case.gpus_on(node) == slow.len(),
        _ => false,
    }
}

/// Whether the GPUs of a block hold more or less memory than the others.
fn memory_differs(case: &Case<'_>, slow: &[RankLevel<'_, '_>]) -> bool {
    let Some(view) = case.view(Signal::MemoryUsed) else { return false };
    let within =
        |m: &crate::view::Member<'_>| slow.iter().any(|r| r.placement.is_some_and(|p| crate::view::names(m.entity, p)));
    let level = |inside: bool| {
        let values: Vec<f64> =
            view.members.iter().filter(|m| within(m) == inside).filter_map(|m| m.median(case.focus())).collect();
        median(&values)
    };
    match (level(true), level(false)) {
        (Some(own), Some(rest)) => (own - rest).abs() > MIN_RELATIVE * rest,
        _ => false,
    }
}

fn assess(case: &Case<'_>) -> Finding {
    let stage = match heavier(case) {
        None => return case.no_data(&[Signal::ComputeTime, Signal::CommunicationTime]),
        Some(Err(view)) => {
            let text = format!(
                "Ruled out: by their {}, no block of ranks is slower than the others from the start.",
                view.signal.words()
            );
            return Finding::RuledOut(Sentence::new(&text).cite(&view.evidence.id).claim());
        }
        Some(Ok(stage)) => stage,
    };
    if case.has_slow_clock() {
        let why = Sentence::new("Ruled out: a slow clock, and not a share of the model, makes these ranks slow.");
        return Finding::RuledOut(why.cite(&stage.view.evidence.id).claim());
    }
    let ends = [stage.slow.first(), stage.slow.last()];
    let claims: Vec<DraftClaim> =
        ends.into_iter().flatten().filter_map(|rank| claim(stage.view, rank, case.focus())).collect();
    let components: Vec<Component> = stage.slow.iter().map(|r| component_of(case, r.member)).collect();
    let text = if stage.labelled {
        "All ranks of one pipeline stage take longer than those of the other stages, and did so from the start: the stage has too large a share of the model."
    } else {
        "A block of consecutive ranks takes longer than all others, by the same amount and from the start, with clocks like theirs: as a pipeline stage with too large a share of the model does."
    };
    Finding::Supported(Box::new(Support {
        strength: if stage.labelled { Strength::Proof } else { Strength::Pattern },
        coincides: None,
        magnitude: 1.0 + stage.excess,
        components,
        onset: None,
        why: Sentence::new(text).cite(&stage.view.evidence.id).claim(),
        claims,
        fault: true,
    }))
}

fn claim(view: &View<'_>, rank: &RankLevel<'_, '_>, range: TimeRange) -> Option<DraftClaim> {
    let entity = rank.member.entity;
    let own = stat(view.evidence, entity, Stat::Median, Some(range));
    let rest = peers(view.evidence, entity, Stat::Median, Some(range));
    let relation = if rank.level > view.peers(entity, range)? { Relation::Above } else { Relation::Below };
    let text =
        format!("The {} of {} was {{own}}, at the median of all others {{rest}}.", view.signal.words(), who(entity));
    let sentence = Sentence::new(&text)
        .entity(view.evidence, entity)
        .number("own", own.clone(), 3, view.unit())
        .number("rest", rest.clone(), 3, view.unit())
        .holds(own, relation, rest);
    Some(sentence.claim())
}
