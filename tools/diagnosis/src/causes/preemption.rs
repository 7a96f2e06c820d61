//! A job that lost its GPUs to another and started again.
//!
//! Speaks for it: the scheduler says so in an event, a log line or the job's state; two attempts with a pause between them. Rules it out: one
//! attempt, and nobody says so. Trap: a pause between attempts alone may be a restart after a fault, so it only hints.

use jiff::Timestamp;
use sightline_model::{Component, DraftClaim, EvidenceRow};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::lines::{Line, LineKind};
use crate::sentence::Sentence;

pub(crate) const CHECK: Check = Check { id: "preemption", assess };

/// A pause must cost at least this share of the window to be why a job took long, where only the pause is known: the same as for any
/// change of pace.
const LEAST_LOST: f64 = crate::cause::MIN_RELATIVE;

fn assess(case: &Case<'_>) -> Finding {
    let said = said(case);
    let pauses = pauses(case);
    let lost: f64 = pauses.iter().map(|p| p.seconds).sum::<f64>() / case.window.seconds().max(1.0);
    let by_state = case.observations.job.state.to_ascii_lowercase().contains("preempt");
    let state = by_state.then(|| state_claim(case)).flatten();
    if said.is_none() && state.is_none() && (lost < LEAST_LOST || something_broke(case)) {
        return nothing(case, pauses.first());
    }
    let onset = match (&said, pauses.first()) {
        (Some(said), _) => Some(said.at),
        (None, Some(pause)) => Some(pause.from),
        (None, None) => case.observations.job.end.filter(|_| by_state),
    };
    let proven = said.is_some() || state.is_some();
    let mut claims: Vec<DraftClaim> = said.into_iter().map(|s| s.claim).chain(state).collect();
    claims.extend(pauses.iter().filter_map(|p| p.claim.clone()));
    let text = match proven {
        true => "The job was preempted: it lost its GPUs to another and the time until it had some again.",
        false => "The job lost its GPUs and started again later; whether it was preempted is not recorded.",
    };
    let mut why = Sentence::new(text).cite_all(&claims);
    if let Some(held) = case.observations.held {
        why = why.cite(&held.id);
    }
    Finding::Supported(Box::new(Support {
        strength: if proven { Strength::Proof } else { Strength::Hint },
        coincides: None,
        magnitude: 1.0 + lost,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset,
        why: why.claim(),
        claims,
        fault: true,
    }))
}

struct Said {
    at: Timestamp,
    claim: DraftClaim,
}

/// The first event or line in which somebody says that the job was preempted.
fn said(case: &Case<'_>) -> Option<Said> {
    let line = case.lines.iter().find(|l| l.kind == LineKind::Preempted && case.window.contains(l.at));
    let by_line = line.map(|l| Said { at: l.at, claim: Line::claim(l) });
    let by_event = case.observations.events.and_then(|evidence| {
        let mine = |row: &EvidenceRow| {
            let field = |key: &str| row.entity.get(key).or_else(|| row.fields.get(key));
            let kind = field("kind").is_some_and(|k| k.to_ascii_lowercase().contains("preempt"));
            let body = field("body");
            // An event that names no job concerns this one when its text does.
            let job = field("job").map_or_else(
                || body.is_none_or(|b| b.contains(&case.observations.job.id)),
                |job| *job == case.observations.job.id,
            );
            kind && job && row.time.is_some_and(|at| case.window.contains(at))
        };
        let (index, row) = evidence.rows.iter().enumerate().find(|(_, row)| mine(row))?;
        let mut sentence =
            Sentence::new("An event of {at} says that it was preempted.").row_time("at", evidence, index);
        if row.fields.contains_key("body") {
            sentence = Sentence::new("An event of {at} says: {body}.")
                .row_time("at", evidence, index)
                .quote("body", evidence, index, "body");
        }
        Some(Said { at: row.time?, claim: sentence.claim() })
    });
    by_event.or(by_line)
}

struct Pause {
    from: Timestamp,
    seconds: f64,
    claim: Option<DraftClaim>,
}

/// The time between attempts in which the job held no GPU, within the window.
fn pauses(case: &Case<'_>) -> Vec<Pause> {
    let attempts = &case.observations.attempts;
    let mut found = Vec::new();
    for (before, after) in attempts.iter().zip(attempts.iter().skip(1)) {
        let Some(to) = before.to.filter(|to| *to < after.from) else { continue };
        let inside = sightline_model::TimeRange::new(to, after.from).and_then(|r| r.intersect(&case.window));
        let Some(inside) = inside else { continue };
        let claim = case.observations.held.map(|held| {
            Sentence::new("A further attempt of the job got its GPUs at {again}, after a pause without any.")
                .row_time("again", held, after.row)
                .claim()
        });
        found.push(Pause { from: to, seconds: inside.seconds(), claim });
    }
    found
}

fn state_claim(case: &Case<'_>) -> Option<DraftClaim> {
    let jobs = case.observations.job.evidence.as_ref()?;
    Some(Sentence::new("The scheduler's state of the job says that it was preempted.").cite(jobs).claim())
}

/// Whether a fault of the hardware is known that would explain a restart.
fn something_broke(case: &Case<'_>) -> bool {
    !case.stopped.is_empty() || !case.xids.is_empty() || case.stall.is_some()
}

fn nothing(case: &Case<'_>, pause: Option<&Pause>) -> Finding {
    let text = match pause {
        Some(_) => "Ruled out as far as it is recorded: the job started again, but nothing says that it was preempted.",
        None => "Ruled out: the job kept its GPUs, and nothing says that it was preempted.",
    };
    match (case.observations.held, case.observations.events) {
        (Some(held), _) => Finding::RuledOut(Sentence::new(text).cite(&held.id).claim()),
        (None, Some(events)) => {
            Finding::RuledOut(Sentence::new("Ruled out: no event says that it was preempted.").cite(&events.id).claim())
        }
        (None, None) => Finding::NoData(
            Sentence::new("Not judged: neither the scheduler's books nor events were read for this job.").claim(),
        ),
    }
}
