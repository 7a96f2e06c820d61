//! Work that is shared out unevenly: at every moment another rank has most of it, and the others wait.
//!
//! Needs compute or communication time per rank; without both, tensor activity per GPU. Speaks for it: at most moments one rank computes
//! clearly longer than the rest, or is waited for, and which one it is changes; or several scattered ranks take longer from the
//! start; all with equal clocks. Rules it out: ranks that take alike; one or two ranks that stay the last, which are slow workers;
//! blocks of ranks that stay the last, which are pipeline stages. Trap: over the whole window ranks that take turns look alike, and
//! the last interval's slowest rank is no culprit.

use sightline_analysis::median;
use sightline_model::{DraftClaim, Entity, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::{data_loader_bottleneck, pipeline_stage_imbalance};
use crate::ranks::{Lag, lag, placement_of, step_length};
use crate::sentence::{Sentence, peers, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View, shift};

pub(crate) const CHECK: Check = Check { id: "workload_imbalance", assess };

/// A step that waits a tenth of its length for its last rank is slow because of it (ByteDance, OSDI 2025, counts jobs as straggling
/// from a tenth on).
const MIN_LAG: f64 = 0.1;

/// And the ranks must have lain closer together before the slowdown, by this factor.
const TIMES_BEFORE: f64 = 2.0;

/// One rank that is last more often than this stays the last.
const STAYS: f64 = 0.5;

/// Fewer different last ranks than this may be two slow workers.
const MIN_DISTINCT: usize = 3;

/// Ranks that take turns at being last.
struct Uneven<'v, 'a> {
    view: &'v View<'a>,
    lag: Lag,
    share: f64,
    /// Ranks that have more work all the time; none when they take turns.
    standing: Vec<&'v Member<'a>>,
}

/// Whether ranks take turns at being last.
pub(crate) fn holds(case: &Case<'_>) -> bool {
    *case.found.takes_turns.get_or_init(|| matches!(uneven(case), Some(Ok(_))))
}

/// The signals that tell who is last, and whether the last one has the highest value.
const BY: [(Signal, bool); 3] =
    [(Signal::ComputeTime, true), (Signal::CommunicationTime, false), (Signal::TensorActive, true)];

/// `None` without a signal that tells, `Err` with the view that was looked at when ranks do not take turns.
fn uneven<'v, 'a>(case: &'v Case<'a>) -> Option<Result<Uneven<'v, 'a>, &'v View<'a>>> {
    let range = case.focus();
    let mut looked: Option<&'v View<'a>> = None;
    for (signal, last_is_high) in BY {
        let Some(view) = case.view(signal) else { continue };
        // What the GPUs do tells who has most to do only where no timer does, and only against its own past.
        if signal == Signal::TensorActive && (looked.is_some() || case.pace.slowdown().is_none()) {
            continue;
        }
        let Some(found) = lag(view, range, last_is_high) else { continue };
        looked = looked.or(Some(view));
        let length = match signal {
            Signal::TensorActive => view.typical(range).filter(|level| *level > 0.0),
            _ => step_length(case, range),
        };
        let Some(length) = length else { continue };
        let share = found.typical / length;
        let before = case.pace.slowdown().and_then(|s| lag(view, s.good, last_is_high)).map(|l| l.typical / length);
        let grew = before.is_none_or(|before| share >= TIMES_BEFORE * before);
        let turns =
            found.most_frequent <= STAYS && found.distinct >= MIN_DISTINCT && found.standing < found.typical / 2.0;
        if share >= MIN_LAG && grew && turns {
            return Some(Ok(Uneven { view, lag: found, share, standing: Vec::new() }));
        }
        if let Some(standing) = standing_shares(case, view, last_is_high, length) {
            return Some(Ok(Uneven { view, lag: found, share, standing }));
        }
    }
    looked.map(Err)
}

/// Several ranks, scattered over the nodes, that have had more to do than the rest from the start: shares of the work that do not
/// change, as of experts. Blocks of ranks are stages, whole nodes may be slow, and one or two ranks may be slow workers.
fn standing_shares<'v, 'a>(
    case: &Case<'_>,
    view: &'v View<'a>,
    last_is_high: bool,
    length: f64,
) -> Option<Vec<&'v Member<'a>>> {
    if view.signal == Signal::TensorActive || case.pace.slowdown().is_some() || pipeline_stage_imbalance::holds(case) {
        return None;
    }
    let range = case.focus();
    let middle = view.typical(range)?;
    let lag = |m: &Member<'_>| m.median(range).map(|level| if last_is_high { level - middle } else { middle - level });
    let more: Vec<&Member<'a>> =
        view.members.iter().filter(|m| lag(m).is_some_and(|by| by >= MIN_LAG * length)).collect();
    let placed: Vec<_> = more.iter().filter_map(|m| placement_of(case, m)).collect();
    let mut nodes: Vec<&str> = placed.iter().map(|p| p.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let whole = |node: &&str| placed.iter().filter(|p| p.node == **node).count() == case.gpus_on(node);
    (more.len() >= MIN_DISTINCT && nodes.len() >= 2 && !nodes.iter().any(whole)).then_some(more)
}

fn assess(case: &Case<'_>) -> Finding {
    let found = match uneven(case) {
        None => return case.no_data(&[Signal::ComputeTime, Signal::CommunicationTime]),
        Some(Err(view)) => {
            let text = format!(
                "Ruled out: by their {}, no different ranks take turns at being the last.",
                view.signal.words()
            );
            return Finding::RuledOut(Sentence::new(&text).cite(&view.evidence.id).claim());
        }
        Some(Ok(found)) => found,
    };
    if case.has_slow_clock() {
        let why = Sentence::new("Ruled out: a GPU with a slow clock explains who is waited for.");
        return Finding::RuledOut(why.cite(&found.view.evidence.id).claim());
    }
    if found.standing.is_empty() && data_loader_bottleneck::turns(case).is_some() {
        let why = Sentence::new("Ruled out: the ranks that take turns at being the last wait for their input then.");
        return Finding::RuledOut(why.cite(&found.view.evidence.id).claim());
    }
    let mut claims: Vec<DraftClaim> = match found.standing.as_slice() {
        [] => found.lag.examples.iter().filter_map(|(i, at)| example(found.view, *i, *at)).collect(),
        more => more.iter().take(2).filter_map(|m| share_claim(found.view, m, case.focus())).collect(),
    };
    claims.extend(spread(found.view, case.focus()));
    let slowdown = case.pace.slowdown();
    let why = Sentence::new(match found.standing.as_slice() {
        [] => {
            "The ranks' shares of the work differ, and at every moment another one is the last: the work is uneven, as with sequences or experts of unequal size, and no GPU is slow."
        }
        _ => {
            "Several ranks on different nodes have had more to do than the others from the start, with clocks like theirs: the work is shared out unevenly, as among experts of unequal load."
        }
    });
    Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: slowdown.and_then(|s| s.onset).map(|_| true),
        magnitude: 1.0 + found.share,
        components: case.whole_job(),
        onset: slowdown.and_then(|s| s.onset).map(|o| o.at),
        why: why.cite(&found.view.evidence.id).claim(),
        claims,
        fault: true,
    }))
}

/// One moment at which a rank was the last.
pub(crate) fn example(view: &View<'_>, index: usize, at: jiff::Timestamp) -> Option<DraftClaim> {
    let member = view.members.get(index)?;
    let moment = TimeRange::new(at, shift(at, view.step_ms))?;
    let (value, others) = (member.median(moment)?, view.peers(member.entity, moment)?);
    let first = member.within(moment).next()?.time;
    let own = stat(view.evidence, member.entity, Stat::Median, Some(moment));
    let rest = peers(view.evidence, member.entity, Stat::Median, Some(moment));
    let relation = if value > others { Relation::Above } else { Relation::Below };
    let text =
        format!("At {{at}} the {} of {} was {{own}}, its peers' {{rest}}.", view.signal.words(), who(member.entity));
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .instant("at", view.evidence, member.entity, first)
        .number("own", own.clone(), 3, view.unit())
        .number("rest", rest.clone(), 3, view.unit())
        .holds(own, relation, rest);
    Some(sentence.claim())
}

/// What one rank takes beside the others, over the whole stretch.
fn share_claim(view: &View<'_>, member: &Member<'_>, range: TimeRange) -> Option<DraftClaim> {
    let relation =
        if member.median(range)? > view.peers(member.entity, range)? { Relation::Above } else { Relation::Below };
    let own = stat(view.evidence, member.entity, Stat::Median, Some(range));
    let rest = peers(view.evidence, member.entity, Stat::Median, Some(range));
    let text = format!("The {} of {} was {{own}}, its peers' {{rest}}.", view.signal.words(), who(member.entity));
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("own", own.clone(), 3, view.unit())
        .number("rest", rest.clone(), 3, view.unit())
        .holds(own, relation, rest);
    Some(sentence.claim())
}

/// How far apart the ranks lie over the whole stretch: the lowest and the highest of their medians.
fn spread(view: &View<'_>, range: TimeRange) -> Option<DraftClaim> {
    let mut levels: Vec<(f64, &Entity)> =
        view.members.iter().filter_map(|m| Some((m.median(range)?, m.entity))).collect();
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (levels.first()?, levels.last()?);
    let middle = median(&levels.iter().map(|(v, _)| *v).collect::<Vec<_>>())?;
    let text = format!(
        "Over the whole stretch the ranks' medians of {} lie between {{least}} and {{most}}.",
        view.signal.words()
    );
    (middle > 0.0).then(|| {
        Sentence::new(&text)
            .number("least", stat(view.evidence, least.1, Stat::Median, Some(range)), 3, view.unit())
            .number("most", stat(view.evidence, most.1, Stat::Median, Some(range)), 3, view.unit())
            .claim()
    })
}
