//! A change of the program, its image or its configuration that made it slower.
//!
//! Needs events, or earlier runs of the same name. Speaks for it: the job became slower right after a deploy or a change of
//! configuration that concerns it, or is slower than its own earlier runs on as many GPUs; all ranks alike, and no hardware reports
//! anything. Rules it out: no such change, or a worker that stands out. Trap: a change near a slowdown is no proof: what names a
//! mechanism goes first.

use jiff::Timestamp;
use sightline_analysis::median;
use sightline_model::{DraftClaim, Entity, Evidence, EvidenceRow, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::causes::{hardware_degradation, slow_worker};
use crate::observation::EarlierRun;
use crate::pace::Pace;
use crate::records::{Record, before_slowdown, events};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "software_regression", assess };

/// Kinds of events that change what runs.
const EVENT_KINDS: [&str; 5] = ["deploy", "config", "image", "release", "rollout"];

/// A run must be slower than its predecessors by a tenth: runs on other nodes and at other hours differ by some percent.
const SLOWER_RUN: f64 = 1.1;

/// Labels of a job that say what runs, in the order in which a change of them is told.
const SOFTWARE: [&str; 9] = [
    "image",
    "image_tag",
    "framework",
    "framework_version",
    "version",
    "commit",
    "torch_version",
    "cuda_version",
    "nccl_version",
];

/// What two runs must have in common to be compared, as far as it is recorded: whose they are and how large they are.
const SAME: [&str; 4] = ["user", "world_size", "batch_size", "model"];

/// A job that is slower than its earlier runs.
#[derive(Clone, Debug)]
pub(crate) struct Slower {
    /// When the last of them ended.
    pub(crate) ended: Timestamp,
    pub(crate) factor: f64,
    pub(crate) claim: DraftClaim,
    /// A claim about the label that says that other software runs now; none when nothing says so.
    pub(crate) changed: Option<DraftClaim>,
    /// Whether several earlier runs agree, so that the last one was no odd one.
    pub(crate) agreed: bool,
}

/// Whether no worker of the job stands out and no hardware reports anything, so that what slows it is common to all.
pub(crate) fn is_uniform(case: &Case<'_>) -> bool {
    !case.has_slow_clock()
        && case.stopped.is_empty()
        && slow_worker::standing_out(case).is_none()
        && !hardware_degradation::harmed(case)
}

fn assess(case: &Case<'_>) -> Finding {
    let changes = events(case, &EVENT_KINDS);
    if !is_uniform(case) {
        let why =
            Sentence::new("Ruled out: a worker of the job stands out, and a change of software would slow all alike.");
        return Finding::RuledOut(why.claim());
    }
    if let Some(change) = before_slowdown(case, &changes)
        && let Some(found) = after_change(case, &change)
    {
        return found;
    }
    // With nothing on record that changed, one faster run may be the odd one.
    if let Some(past) = slower_than_before(case).filter(|past| past.changed.is_some() || past.agreed) {
        return than_before(case, past);
    }
    if matches!(case.pace, Pace::Unknown) {
        return case.no_data(&[Signal::StepTime, Signal::Throughput]);
    }
    if case.observations.events.is_none() && case.observations.earlier.is_empty() {
        let text = "Not judged: neither events of deploys nor earlier runs of the job are known.";
        return Finding::NoData(Sentence::new(text).claim());
    }
    let text = match case.pace.slowdown() {
        Some(_) => "Ruled out as far as it is known: no deploy or change of configuration came with the slowdown.",
        None => "Ruled out: the job did not become slower, and no earlier run of it is known to be faster.",
    };
    let mut why = Sentence::new(text);
    for evidence in case.observations.earlier.last().map(|run| run.pace).into_iter().chain(case.observations.events) {
        why = why.cite(&evidence.id);
    }
    Finding::RuledOut(why.claim())
}

fn after_change(case: &Case<'_>, change: &Record<'_>) -> Option<Finding> {
    let slowdown = case.pace.slowdown()?;
    let mut claims = vec![change.claim()];
    claims.extend(case.pace.claim());
    let text = "The whole job became slower right after what runs was changed, all ranks alike, and no hardware reports anything.";
    Some(Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: Some(true),
        // What was changed at that time goes before what only has the same shape.
        magnitude: 10.0 + slowdown.factor,
        components: case.whole_job(),
        onset: slowdown.onset.map(|o| o.at),
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    })))
}

fn than_before(case: &Case<'_>, past: Slower) -> Finding {
    let strength = if past.changed.is_some() { Strength::Proof } else { Strength::Hint };
    let text = match &past.changed {
        Some(_) => "The job is slower than its earlier runs, all ranks alike, and other software runs now.",
        None => {
            "The job is slower than its earlier runs, all ranks alike, and no hardware reports anything; what changed is not recorded."
        }
    };
    let mut claims = vec![past.claim];
    claims.extend(past.changed);
    Finding::Supported(Box::new(Support {
        strength,
        coincides: None,
        magnitude: past.factor,
        components: case.whole_job(),
        onset: None,
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    }))
}

/// Whether the job is slower than its earlier runs on as many GPUs, and what of its software changed.
pub(crate) fn slower_than_before(case: &Case<'_>) -> Option<Slower> {
    let history = case.observations.history?;
    let view = case.view(Signal::StepTime)?;
    let now = view.members.iter().max_by_key(|m| m.points.len())?;
    let level = now.median(case.window)?;
    let own = history.rows.iter().position(|row| job_of(row) == Some(case.observations.job.id.as_str()))?;
    let own_row = history.rows.get(own)?;
    let mut past: Vec<Past<'_>> =
        case.observations.earlier.iter().filter_map(|run| past_run(case, history, own_row, run)).collect();
    past.sort_by_key(|run| run.ended);
    let last = past.last()?;
    // Every earlier run must have been faster: a job whose runs differ by chance proves nothing.
    if past.iter().any(|run| level < SLOWER_RUN * run.level) {
        return None;
    }
    let changed = changed(history, own, last.row);
    let least = past.iter().map(|run| run.level).reduce(f64::min)?;
    let agreed = past.len() >= 2 && past.iter().all(|run| run.level <= least * (1.0 + MIN_RELATIVE));
    let before = stat(last.pace, last.entity, Stat::Median, None);
    let after = stat(view.evidence, now.entity, Stat::Median, Some(case.window));
    let claim =
        Sentence::new("The step time is {after} at the median, in the run before it was {before}: {change} more.")
            .number("after", after.clone(), 2, view.unit())
            .number("before", before.clone(), 2, view.unit())
            .percent("change", before.clone(), after.clone())
            .holds(after, Relation::Above, before)
            .claim();
    Some(Slower { ended: last.ended, factor: level / last.level, claim, changed, agreed })
}

/// An earlier run that may be compared with the job.
struct Past<'a> {
    row: usize,
    ended: Timestamp,
    level: f64,
    pace: &'a Evidence,
    entity: &'a Entity,
}

fn job_of(row: &EvidenceRow) -> Option<&str> {
    row.entity.get("job").or_else(|| row.fields.get("job_id")).map(String::as_str)
}

fn past_run<'a>(case: &Case<'_>, history: &Evidence, own: &EvidenceRow, run: &EarlierRun<'a>) -> Option<Past<'a>> {
    let row = history.rows.get(run.row)?;
    let differs = |key: &&str| match (own.fields.get(*key), row.fields.get(*key)) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    };
    if run.gpus != case.observations.job.placements.len() || SAME.iter().any(differs) {
        return None;
    }
    let ended = row.fields.get("end")?.parse().ok()?;
    let series = run.pace.series.first()?;
    let level = median(&series.points.iter().map(|p| p.value).collect::<Vec<_>>())?;
    Some(Past { row: run.row, ended, level, pace: run.pace, entity: &series.entity })
}

/// A claim about the first label that says that other software runs now.
fn changed(runs: &Evidence, own: usize, past: usize) -> Option<DraftClaim> {
    let (now, then) = (runs.rows.get(own)?, runs.rows.get(past)?);
    let key = SOFTWARE.into_iter().find(|key| match (now.fields.get(*key), then.fields.get(*key)) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    })?;
    let text = format!("Its {} is {{now}}, in the run before it was {{then}}.", key.replace('_', " "));
    Some(Sentence::new(&text).quote("now", runs, own, key).quote("then", runs, past, key).claim())
}
