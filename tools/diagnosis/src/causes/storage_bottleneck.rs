//! Storage that keeps the job's nodes waiting.
//!
//! Speaks for it: I/O pressure on most nodes rose with the slowdown. Rules it out: it stayed still. Trap: the job feels it in
//! its data loader, whose timer rises too.

use sightline_model::{Component, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::clocks::Reason;
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "storage_bottleneck", assess };

/// Nodes must lose this share of time to I/O for storage to matter at all.
const MIN_PRESSURE: f64 = 0.1;

/// And at least twice as much as before the slowdown.
const TIMES_BEFORE: f64 = 2.0;

fn assess(case: &Case<'_>) -> Finding {
    let Some(view) = case.view(Signal::IoPressure) else { return case.no_data(&[Signal::IoPressure]) };
    let ruled_out = |text: &str| Finding::RuledOut(Sentence::new(text).cite(&view.evidence.id).claim());
    let Some(slowdown) = case.pace.slowdown() else {
        return ruled_out("Ruled out: the job's pace shows no slowdown that storage would have to explain.");
    };
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) {
        return ruled_out("Ruled out: a slow GPU explains the pace.");
    }
    // A counter of seconds per step of time becomes a share of time.
    let per_step = if view.is_increase() { view.step_ms as f64 / 1000.0 } else { 1.0 };
    let risen: Vec<_> = view
        .members
        .iter()
        .filter(|m| match (m.mean(slowdown.good), m.mean(slowdown.slow)) {
            (Some(before), Some(after)) => after / per_step >= MIN_PRESSURE && after >= TIMES_BEFORE * before,
            _ => false,
        })
        .collect();
    let Some(first) = risen.first().filter(|_| risen.len() * 2 > view.members.len()) else {
        return ruled_out("Ruled out: the nodes do not wait more for I/O than before the slowdown.");
    };
    let before = stat(view.evidence, first.entity, Stat::Mean, Some(slowdown.good));
    let after = stat(view.evidence, first.entity, Stat::Mean, Some(slowdown.slow));
    let text = format!(
        "The {} of {} rose from {{before}} to {{after}} per step of time, as on most nodes.",
        view.signal.words(),
        who(first.entity)
    );
    let claim = Sentence::new(&text)
        .entity(view.evidence, first.entity)
        .number("before", before.clone(), 2, view.unit())
        .number("after", after.clone(), 2, view.unit())
        .holds(after, Relation::Above, before)
        .claim();
    let why = Sentence::new("The nodes of the job wait for storage since it became slower.").cite(&view.evidence.id);
    Finding::Supported(Box::new(Support {
        // The loader's timer tells that input came late, the nodes' pressure tells why: the reason goes first.
        strength: Strength::Proof,
        coincides: slowdown.onset.is_some().then_some(true),
        magnitude: slowdown.factor,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset: slowdown.onset.map(|o| o.at),
        why: why.claim(),
        claims: vec![claim],
        fault: true,
    }))
}
