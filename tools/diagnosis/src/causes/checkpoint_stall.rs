//! Training that stands still while a checkpoint is written.
//!
//! Needs checkpoint times, or stalls that all GPUs share together with records of checkpoints or of writing. Speaks for it: the time a
//! checkpoint takes rose; all GPUs stall together when checkpoints are written; they stall like clockwork and disks or I/O are busy
//! with writing just then. Rules it out: checkpoints that take as long as ever, and stalls that do not meet them. Traps: a checkpoint now
//! and then is part of a healthy job; while one rank writes, the others may spin at full utilisation, so that only power falls; an epoch's
//! end stalls like clockwork too, but nothing is written then.

use jiff::Timestamp;
use sightline_analysis::{Dips, Direction, Sample, common_dips, mean};
use sightline_model::{DraftClaim, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::causes::data_loader_bottleneck::DIP_SHARE;
use crate::level::{best_level, excursion, segments};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "checkpoint_stall", assess };

/// A checkpoint that takes half as long again is slower than the scatter of a healthy file system.
const MIN_RISE: f64 = 0.5;

/// A dip belongs to a checkpoint that is logged within this time of it: sources are up to 40 s apart.
const NEAR_MS: i64 = 90_000;

/// What a stall looks like: utilisation to below half of the busy level, or, where a barrier keeps utilisation up, power.
/// Spinning in a barrier draws about a third of a training step's power (reference signature: high utilisation, low power).
const STALLS: [(Signal, f64); 2] = [(Signal::Utilization, 0.5), (Signal::Power, 0.6)];

/// A stall is common when four in five GPUs share it.
const QUORUM: f64 = 0.8;

/// Distances between stalls that scatter by less than this share are a clockwork.
const CLOCKWORK: f64 = 0.2;

/// Writing is busier in the stalls than outside by this factor.
const TIMES_OUTSIDE: f64 = 3.0;

/// Stalls that all GPUs share.
struct Stalls<'v, 'a> {
    view: &'v View<'a>,
    dips: Dips,
}

/// Whether checkpoints make the job stand still.
pub(crate) fn holds(case: &Case<'_>) -> bool {
    matches!(assess(case), Finding::Supported(_))
}

fn assess(case: &Case<'_>) -> Finding {
    if let Some(view) = case.view(Signal::CheckpointTime)
        && let Some(found) = longer(case, view)
    {
        return found;
    }
    let stalls = stalls(case);
    if let Some(stalls) = &stalls
        && let Some(found) = at_checkpoints(case, stalls).or_else(|| while_writing(case, stalls))
    {
        return found;
    }
    let recorded = case.view(Signal::CheckpointTime).is_some() || !checkpoint_times(case).is_empty();
    let watched = stalls.is_some() && writing(case).is_some();
    let can_tell = recorded || watched;
    if !can_tell {
        return case.no_data(&[Signal::CheckpointTime]);
    }
    let mut why = Sentence::new(
        "Ruled out: checkpoints take no longer than they did, and no common stall of the GPUs meets them.",
    );
    if let Some(view) = case.view(Signal::CheckpointTime) {
        why = why.cite(&view.evidence.id);
    }
    Finding::RuledOut(why.claim())
}

fn longer(case: &Case<'_>, view: &View<'_>) -> Option<Finding> {
    let member = view.members.iter().max_by_key(|m| m.points.len())?;
    let found = segments(&member.samples, MIN_RELATIVE);
    let usual = best_level(&found, Direction::Fall)?;
    let slow = excursion(&found, usual, Direction::Rise, MIN_RISE, case.window)?;
    let good = found.iter().find(|s| s.level == usual)?;
    let (good, slow_range) = (TimeRange::new(good.from, good.to)?, slow.range()?);
    let before = stat(view.evidence, member.entity, Stat::Median, Some(good));
    let after = stat(view.evidence, member.entity, Stat::Median, Some(slow_range));
    if member.median(slow_range)? <= member.median(good)? {
        return None;
    }
    let claim = Sentence::new("A checkpoint took {after}, against {before} at its best.")
        .number("before", before.clone(), 1, view.unit())
        .number("after", after.clone(), 1, view.unit())
        .holds(after, Relation::Above, before)
        .claim();
    let onset = slow.onset().and_then(|at| member.first_from(at)).map(|p| p.time);
    Some(supported(
        case,
        view,
        vec![claim],
        onset,
        Strength::Proof,
        slow.depth,
        "Checkpoints take longer than they did, and training stands still while they are written.",
    ))
}

/// When checkpoints were recorded: a line that speaks of several moments of one checkpoint counts at each.
fn checkpoint_times(case: &Case<'_>) -> Vec<Timestamp> {
    let rows = case.observations.events.iter().chain(case.observations.logs.iter()).flat_map(|e| &e.rows);
    rows.filter(|row| {
        let kind = row.fields.get("kind").is_some_and(|k| k.contains("checkpoint"));
        let body = row.fields.get("body").is_some_and(|b| b.to_ascii_lowercase().contains("checkpoint"));
        kind || body
    })
    .filter_map(|row| row.time)
    .collect()
}

/// Stalls over a tenth of the window or more, three or more of them.
fn stalls<'v, 'a>(case: &'v Case<'a>) -> Option<Stalls<'v, 'a>> {
    if case.has_slow_clock() {
        return None;
    }
    let range = case.focus();
    STALLS.into_iter().find_map(|(signal, depth)| {
        let view = case.views.fine(signal).first().or_else(|| case.view(signal))?;
        let members: Vec<Vec<Sample>> = view
            .members
            .iter()
            .map(|m| m.samples.iter().filter(|s| range.contains(s.time)).copied().collect())
            .collect();
        let dips = common_dips(&members, view.step_ms, depth, QUORUM)?;
        (dips.share >= DIP_SHARE && dips.starts.len() >= 3).then_some(Stalls { view, dips })
    })
}

fn at_checkpoints(case: &Case<'_>, stalls: &Stalls<'_, '_>) -> Option<Finding> {
    let written = checkpoint_times(case);
    let near = NEAR_MS.max(stalls.view.step_ms);
    let starts = &stalls.dips.starts;
    let met = starts
        .iter()
        .filter(|start| written.iter().any(|w| (w.as_millisecond() - start.as_millisecond()).abs() <= near))
        .count();
    (met * 2 >= starts.len()).then(|| {
        supported(
            case,
            stalls.view,
            vec![stall_claim(case, stalls, "when checkpoints are written")],
            None,
            Strength::Pattern,
            stalls.dips.share,
            "Training stands still whenever a checkpoint is written.",
        )
    })
}

/// What tells that something is written.
fn writing<'v, 'a>(case: &'v Case<'a>) -> Option<&'v View<'a>> {
    [Signal::DiskWritten, Signal::IoPressure].into_iter().find_map(|s| case.view(s))
}

/// Without records of checkpoints: stalls like clockwork in which something is written that is not written otherwise.
fn while_writing(case: &Case<'_>, stalls: &Stalls<'_, '_>) -> Option<Finding> {
    if stalls.dips.period_scatter.is_none_or(|scatter| scatter > CLOCKWORK) {
        return None;
    }
    let view = writing(case)?;
    let step = view.step_ms.max(stalls.view.step_ms);
    let in_stall = |at: Timestamp| {
        stalls.dips.starts.iter().any(|s| {
            let after = at.as_millisecond() - s.as_millisecond();
            -step < after && after <= step
        })
    };
    let range = case.focus();
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for point in view.members.iter().flat_map(|m| m.within(range)) {
        if in_stall(point.time) { inside.push(point.value) } else { outside.push(point.value) }
    }
    let (inside, outside) = (mean(&inside)?, mean(&outside)?);
    (inside > 0.0 && inside >= TIMES_OUTSIDE * outside).then(|| {
        supported(
            case,
            stalls.view,
            vec![stall_claim(case, stalls, "at equal distances, and the nodes write just then")],
            None,
            Strength::Pattern,
            stalls.dips.share,
            "Training stands still at equal distances while something is written, as a checkpoint is.",
        )
    })
}

fn stall_claim(case: &Case<'_>, stalls: &Stalls<'_, '_>, when: &str) -> DraftClaim {
    let view = stalls.view;
    let all = sightline_model::Entity::new();
    let low = stat(view.evidence, &all, Stat::Min, Some(case.focus()));
    let high = stat(view.evidence, &all, Stat::P95, Some(case.focus()));
    let text = format!("All GPUs stall together {when}: {} goes between {{low}} and {{high}}.", view.signal.words());
    Sentence::new(&text)
        .number("low", low.clone(), 0, view.unit())
        .number("high", high.clone(), 0, view.unit())
        .holds(low, Relation::Below, high)
        .claim()
}

fn supported(
    case: &Case<'_>,
    view: &View<'_>,
    claims: Vec<DraftClaim>,
    onset: Option<Timestamp>,
    strength: Strength,
    magnitude: f64,
    why: &str,
) -> Finding {
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(onset, view.step_ms),
        magnitude,
        components: case.whole_job(),
        onset,
        why: Sentence::new(why).cite(&view.evidence.id).claim(),
        claims,
        fault: true,
    }))
}
