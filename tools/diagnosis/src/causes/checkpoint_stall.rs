//! Training that stands still while a checkpoint is written.
//!
//! Speaks for it: the time a checkpoint takes rose, or all GPUs dip together when checkpoints are written. Rules it out:
//! checkpoints take as long as ever, and dips do not meet them. Trap: a checkpoint now and then is part of a healthy job.

use sightline_analysis::{Direction, common_dips};
use sightline_model::{Component, DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::causes::data_loader_bottleneck::DIP_SHARE;
use crate::clocks::Reason;
use crate::level::{best_level, excursion, segments};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "checkpoint_stall", assess };

/// A checkpoint that takes half as long again is slower than the scatter of a healthy file system.
const MIN_RISE: f64 = 0.5;

/// A dip belongs to a checkpoint that is logged within this time of it: sources are up to 40 s apart.
const NEAR_MS: i64 = 90_000;

fn assess(case: &Case<'_>) -> Finding {
    if let Some(view) = case.view(Signal::CheckpointTime)
        && let Some(found) = longer(case, view)
    {
        return found;
    }
    if let Some(found) = dips_at_checkpoints(case) {
        return found;
    }
    if case.view(Signal::CheckpointTime).is_none() && checkpoint_times(case).is_empty() {
        return case.no_data(&[Signal::CheckpointTime]);
    }
    let mut why =
        Sentence::new("Ruled out: checkpoints take no longer than they did, and no common dip of the GPUs meets them.");
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
    let (good, slow_range) = (sightline_model::TimeRange::new(good.from, good.to)?, slow.range()?);
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
        claim,
        onset,
        Strength::Proof,
        slow.depth,
        "Checkpoints take longer than they did, and training stands still while they are written.",
    ))
}

fn checkpoint_times(case: &Case<'_>) -> Vec<jiff::Timestamp> {
    let rows = case.observations.events.iter().chain(case.observations.logs.iter()).flat_map(|e| &e.rows);
    rows.filter(|row| {
        let kind = row.fields.get("kind").is_some_and(|k| k.contains("checkpoint"));
        let body = row.fields.get("body").is_some_and(|b| b.to_ascii_lowercase().contains("checkpoint"));
        kind || body
    })
    .filter_map(|row| row.time)
    .collect()
}

fn dips_at_checkpoints(case: &Case<'_>) -> Option<Finding> {
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) {
        return None;
    }
    let view = case.views.fine(Signal::Utilization).first().or_else(|| case.view(Signal::Utilization))?;
    let range = case.focus();
    let members: Vec<Vec<sightline_analysis::Sample>> =
        view.members.iter().map(|m| m.samples.iter().filter(|s| range.contains(s.time)).copied().collect()).collect();
    let dips = common_dips(&members, view.step_ms, 0.5, 0.8).filter(|d| d.share >= DIP_SHARE && d.starts.len() >= 3)?;
    let written = checkpoint_times(case);
    let near = NEAR_MS.max(view.step_ms);
    let met = dips
        .starts
        .iter()
        .filter(|start| written.iter().any(|w| (w.as_millisecond() - start.as_millisecond()).abs() <= near))
        .count();
    if met * 2 < dips.starts.len() {
        return None;
    }
    let all = sightline_model::Entity::new();
    let low = stat(view.evidence, &all, Stat::Min, Some(range));
    let high = stat(view.evidence, &all, Stat::P95, Some(range));
    let claim =
        Sentence::new("All GPUs dip together when checkpoints are written: utilisation goes between {low} and {high}.")
            .number("low", low.clone(), 0, view.unit())
            .number("high", high.clone(), 0, view.unit())
            .holds(low, Relation::Below, high)
            .claim();
    Some(supported(
        case,
        view,
        claim,
        None,
        Strength::Pattern,
        dips.share,
        "Training stands still whenever a checkpoint is written.",
    ))
}

fn supported(
    case: &Case<'_>,
    view: &View<'_>,
    claim: DraftClaim,
    onset: Option<jiff::Timestamp>,
    strength: Strength,
    magnitude: f64,
    why: &str,
) -> Finding {
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(onset, view.step_ms),
        magnitude,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset,
        why: Sentence::new(why).cite(&view.evidence.id).claim(),
        claims: vec![claim],
        fault: true,
    }))
}
