//! GPUs that starve for input.
//!
//! Speaks for it: time spent loading data explains the slowdown, or is a large part of the step; without that timer, the
//! utilisation of all GPUs falls together, or saws, while clocks are fine. Rules it out: the timer did not move, or the GPUs
//! stayed busy. Trap: GPUs that wait in a collective show full utilisation, GPUs that wait for input do not.

use sightline_analysis::{Dips, Direction, common_dips, median};
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::causes::{host_to_device_bottleneck, workload_imbalance};
use crate::clocks::Reason;
use crate::level::{excursion, segments};
use crate::observation::Placement;
use crate::pace::Onset;
use crate::ranks::{Lag, lag, placement_of, step_length};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "data_loader_bottleneck", assess };

/// Loading that hides behind computation takes about a hundredth of a step (0.001 of 0.154 s in pytorch/examples issue 164
/// between its stalls); a fifth is input that nobody prefetched in time.
const LARGE_SHARE: f64 = 0.2;

/// A member is in a dip below half of its busy level, and a dip is common when four in five share it.
const DIP_DEPTH: f64 = 0.5;
const DIP_QUORUM: f64 = 0.8;

/// Dips over a tenth of the window are more than evaluations and checkpoints of a healthy job take.
pub(crate) const DIP_SHARE: f64 = 0.1;

/// A rank that waits twice as long as the middle one is late by itself.
const TIMES_OTHERS: f64 = 2.0;

/// Dips that last five minutes are longer than those pauses, and then matter from the smallest change on that counts: an epoch's end
/// at which the dataset starts anew took ten minutes (mosaicml/streaming issue 643).
const LONG_DIP_S: f64 = 300.0;

fn assess(case: &Case<'_>) -> Finding {
    let timed = case.view(Signal::DataLoading).is_some() && case.view(Signal::StepTime).is_some();
    if !timed && host_to_device_bottleneck::holds(case) {
        let why = Sentence::new(
            "Ruled out: batches are on their way to the GPUs over links that are full, so input is there.",
        );
        let links = case.view(Signal::PcieReceive).map(|view| view.evidence.id.clone());
        return Finding::RuledOut(links.iter().fold(why, |why, id| why.cite(id)).claim());
    }
    judge(case)
}

/// Whether the job waits for its input, whatever makes it wait.
pub(crate) fn judge(case: &Case<'_>) -> Finding {
    if let (Some(loading), Some(step)) = (case.view(Signal::DataLoading), case.view(Signal::StepTime)) {
        return by_timer(case, loading, step);
    }
    let Some(busy) = case.view(Signal::Utilization) else {
        return case.no_data(&[Signal::DataLoading, Signal::Utilization]);
    };
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) {
        let why = Sentence::new("Ruled out: a slow GPU explains the pace, and input would starve all GPUs alike.");
        return Finding::RuledOut(why.cite(&busy.evidence.id).claim());
    }
    by_utilization(case, busy)
}

fn by_timer(case: &Case<'_>, loading: &View<'_>, step: &View<'_>) -> Finding {
    let range = case.focus();
    let Some(pace) = step.members.iter().max_by_key(|m| m.points.len()) else {
        return case.no_data(&[Signal::StepTime]);
    };
    // In a synchronous step all ranks wait for the one that loads longest.
    let slowest = loading.members.iter().filter_map(|m| Some((m, m.mean(range)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some((member, load)), Some(whole)) = (slowest, pace.mean(range)) else {
        return case.no_data(&[Signal::DataLoading]);
    };
    let load_now = stat(loading.evidence, member.entity, Stat::Mean, Some(range));
    let step_now = stat(step.evidence, pace.entity, Stat::Mean, Some(range));
    let share = Quantity::Ratio(Box::new(load_now.clone()), Box::new(step_now.clone()));
    let explains = case.pace.slowdown().and_then(|s| {
        let (before, after) = (member.mean(s.good)?, member.mean(s.slow)?);
        let (step_before, step_after) = (pace.mean(s.good)?, pace.mean(s.slow)?);
        // More than half of what the step gained is loading time.
        Some((s.good, s.slow, after - before > (step_after - step_before) / 2.0 && step_after > step_before))
    });
    let grown = explains.is_some_and(|(_, _, yes)| yes);
    let large = load >= LARGE_SHARE * whole && explains.is_none();
    if !grown
        && !large
        && let Some(found) = in_turns(case, loading)
    {
        return found;
    }
    if !grown && !large {
        let why = Sentence::new("Ruled out: ranks waited {load} for data in steps of {step}.")
            .number("load", load_now, 3, loading.unit())
            .number("step", step_now, 2, step.unit());
        return Finding::RuledOut(why.claim());
    }
    let mut claims = Vec::new();
    if let Some((good, slow, true)) = explains {
        claims.push(rise(loading, member.entity, good, slow));
    }
    claims.push(
        Sentence::new("Ranks waited {load} for data in steps of {step}, at the mean.")
            .number("load", load_now, 2, loading.unit())
            .number("step", step_now, 2, step.unit())
            .holds(share, Relation::Above, Quantity::Constant(0.0))
            .claim(),
    );
    let onset = onset_of_rise(case, loading, member);
    claims.extend(onset.as_ref().and_then(|o| case.coincidence(o, loading.step_ms)));
    let why = Sentence::new("The job waits for its input: time spent loading data makes up the difference.")
        .cite(&loading.evidence.id);
    let mut found = supported(case, loading, why, claims, onset, Strength::Proof, load / whole);
    let late = late_places(case);
    if let Finding::Supported(support) = &mut found
        && !late.is_empty()
    {
        support.components = late;
    }
    found
}

/// Whose input is late: a node all of whose ranks wait (its disk, its processors), else the ranks themselves.
fn late_places(case: &Case<'_>) -> Vec<Component> {
    let (late, timed) = (late_ranks(case), timed_ranks(case));
    let mut places: Vec<Component> = Vec::new();
    for place in &late {
        let waits = |p: &&&Placement| late.contains(*p);
        let here: Vec<&&Placement> = timed.iter().filter(|p| p.node == place.node).collect();
        let component = if here.iter().copied().filter(waits).count() == here.len() {
            Component::from([("node".to_owned(), place.node.clone())])
        } else {
            place.component()
        };
        if !places.contains(&component) {
            places.push(component);
        }
    }
    places
}

/// The ranks whose time for input is known.
fn timed_ranks<'a>(case: &Case<'a>) -> Vec<&'a Placement> {
    let members = case.view(Signal::DataLoading).map(|view| view.members.iter()).into_iter().flatten();
    members.filter_map(|m| placement_of(case, m)).collect()
}

/// The nodes whose ranks wait for input while most ranks do not, and so hold up all others; none when ranks wait alike or nothing tells
/// them apart.
pub(crate) fn late_nodes<'a>(case: &Case<'a>) -> Vec<&'a str> {
    let mut nodes: Vec<&'a str> = Vec::new();
    for placement in late_ranks(case) {
        if !nodes.contains(&placement.node.as_str()) {
            nodes.push(&placement.node);
        }
    }
    nodes
}

/// The ranks themselves.
fn late_ranks<'a>(case: &Case<'a>) -> Vec<&'a Placement> {
    let Some(loading) = case.view(Signal::DataLoading) else { return Vec::new() };
    let range = case.focus();
    let levels: Vec<_> = loading.members.iter().filter_map(|m| Some((m, m.mean(range)?))).collect();
    let values: Vec<f64> = levels.iter().map(|(_, v)| *v).collect();
    let (Some(middle), Some(most)) = (median(&values), values.iter().copied().reduce(f64::max)) else {
        return Vec::new();
    };
    let late = levels.iter().filter(|(_, level)| *level >= most / 2.0 && *level >= TIMES_OTHERS * middle);
    let ranks: Vec<&'a Placement> = late.filter_map(|(m, _)| placement_of(case, m)).collect();
    let mut nodes: Vec<&str> = ranks.iter().map(|rank| rank.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let all = crate::host::nodes(case).len();
    if nodes.len() * 2 <= all { ranks } else { Vec::new() }
}

/// Whether ranks take turns at waiting for their input, so that at every moment the others wait for one of them: over the whole window
/// none of them waits long, and yet each step does. A slow disk or loader process of one epoch's shard moves on with the shard.
pub(crate) fn turns(case: &Case<'_>) -> Option<Lag> {
    let loading = case.view(Signal::DataLoading)?;
    let range = case.focus();
    let length = step_length(case, range)?;
    let found = lag(loading, range, true)?;
    let before = case.pace.slowdown().and_then(|s| lag(loading, s.good, true));
    // With a slowdown, the waits must have come with it.
    let grew = before.is_none_or(|before| found.typical >= 2.0 * before.typical);
    let several = found.distinct >= 3 && found.most_frequent <= 0.5;
    (grew && several && found.typical >= LARGE_SHARE * length).then_some(found)
}

fn in_turns(case: &Case<'_>, loading: &View<'_>) -> Option<Finding> {
    let found = turns(case)?;
    let claims: Vec<DraftClaim> =
        found.examples.iter().filter_map(|(i, at)| workload_imbalance::example(loading, *i, *at)).collect();
    let why = Sentence::new(
        "At every moment the job waits for the input of one of its ranks, and which rank it is changes: input is late, and no GPU or network is slow.",
    );
    let slowdown = case.pace.slowdown();
    let onset = slowdown.and_then(|s| s.onset);
    let share = found.typical / step_length(case, case.focus())?;
    Some(supported(case, loading, why.cite(&loading.evidence.id), claims, onset, Strength::Proof, 1.0 + share))
}

fn rise(view: &View<'_>, entity: &sightline_model::Entity, good: TimeRange, slow: TimeRange) -> DraftClaim {
    let before = stat(view.evidence, entity, Stat::Mean, Some(good));
    let after = stat(view.evidence, entity, Stat::Mean, Some(slow));
    let text = format!("The {} rose from {{before}} to {{after}}.", view.signal.words());
    Sentence::new(&text)
        .number("before", before.clone(), 3, view.unit())
        .number("after", after.clone(), 3, view.unit())
        .holds(after, Relation::Above, before)
        .claim()
}

fn onset_of_rise<'a>(case: &Case<'a>, view: &View<'a>, member: &crate::view::Member<'a>) -> Option<Onset<'a>> {
    let slowdown = case.pace.slowdown()?;
    let (before, after) = (member.median(slowdown.good)?, member.median(slowdown.slow)?);
    let found = segments(&member.samples, MIN_RELATIVE);
    let at = excursion(&found, before, Direction::Rise, MIN_RELATIVE, case.window)?.onset()?;
    Some(case.views.refine(view, member, at, before, after))
}

fn by_utilization(case: &Case<'_>, view: &View<'_>) -> Finding {
    let range = case.focus();
    let all = sightline_model::Entity::new();
    if let Some(slowdown) = case.pace.slowdown() {
        let fell = view
            .members
            .iter()
            .filter(|m| match (m.mean(slowdown.good), m.mean(slowdown.slow)) {
                (Some(before), Some(after)) => after < before * (1.0 - MIN_RELATIVE),
                _ => false,
            })
            .count();
        if fell as f64 >= DIP_QUORUM * view.members.len() as f64 && fell > 0 {
            let before = stat(view.evidence, &all, Stat::Mean, Some(slowdown.good));
            let after = stat(view.evidence, &all, Stat::Mean, Some(slowdown.slow));
            let claim =
                Sentence::new("The utilisation of all GPUs fell together, from {before} to {after} at the mean.")
                    .number("before", before.clone(), 0, view.unit())
                    .number("after", after.clone(), 0, view.unit())
                    .holds(after, Relation::Below, before)
                    .claim();
            let why = Sentence::new(
                "All GPUs have less to do since the job became slower, and none of them stands out: they wait for input.",
            );
            let onset = slowdown.onset;
            return supported(
                case,
                view,
                why.cite(&view.evidence.id),
                vec![claim],
                onset,
                Strength::Pattern,
                slowdown.factor,
            );
        }
    }
    let best = case.views.fine(Signal::Utilization).first().unwrap_or(view);
    let within: Vec<Vec<sightline_analysis::Sample>> =
        best.members.iter().map(|m| m.samples.iter().filter(|s| range.contains(s.time)).copied().collect()).collect();
    let dips = common_dips(&within, best.step_ms, DIP_DEPTH, DIP_QUORUM);
    let counts = |d: &Dips| d.share >= DIP_SHARE || (d.share >= MIN_RELATIVE && mean_length(d, range) >= LONG_DIP_S);
    if let Some(dips) = dips.filter(|d| counts(d) && d.starts.len() >= 3) {
        let low = stat(best.evidence, &all, Stat::Min, Some(range));
        let high = stat(best.evidence, &all, Stat::P95, Some(range));
        let claim = Sentence::new("All GPUs dip together again and again: utilisation goes between {low} and {high}.")
            .number("low", low.clone(), 0, best.unit())
            .number("high", high.clone(), 0, best.unit())
            .holds(low, Relation::Below, high)
            .claim();
        let why = Sentence::new("All GPUs run out of work at the same moments, as they do when batches come late.");
        return supported(case, best, why.cite(&best.evidence.id), vec![claim], None, Strength::Hint, dips.share);
    }
    let why = Sentence::new("Ruled out: the GPUs of the job stayed busy, at {busy} utilisation.").number(
        "busy",
        stat(view.evidence, &all, Stat::Mean, Some(range)),
        0,
        view.unit(),
    );
    Finding::RuledOut(why.claim())
}

/// How long a dip lasts, seconds, at the mean.
fn mean_length(dips: &Dips, range: TimeRange) -> f64 {
    dips.share * range.seconds() / dips.starts.len().max(1) as f64
}

fn supported<'a>(
    case: &Case<'a>,
    view: &View<'a>,
    why: Sentence,
    claims: Vec<DraftClaim>,
    onset: Option<Onset<'a>>,
    strength: Strength,
    magnitude: f64,
) -> Finding {
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(onset.map(|o| o.at), view.step_ms),
        magnitude,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset: onset.map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}
