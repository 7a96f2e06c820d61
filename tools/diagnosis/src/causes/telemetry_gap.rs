//! Telemetry that is missing while the job went on.
//!
//! Speaks for it: a node's series stop or have a hole, and the job's own pace goes on. Rules it out: the series are whole.
//! Trap: a gap is no zero, and a dead exporter is no dead node.

use jiff::Timestamp;
use sightline_analysis::{Coverage, coverage};
use sightline_model::{Component, DraftClaim, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::sentence::{Sentence, who};
use crate::signal::Signal;
use crate::view::{Member, View, shift};

pub(crate) const CHECK: Check = Check { id: "telemetry_gap", assess };

/// Below this coverage of the window nothing should be judged from a series.
pub(crate) const POOR_COVERAGE: f64 = 0.5;

fn assess(case: &Case<'_>) -> Finding {
    let signals = [Signal::GpuTemperature, Signal::SmClock, Signal::Power, Signal::Utilization];
    let Some(view) = signals.into_iter().find_map(|s| case.view(s)) else {
        return case.no_data(&signals);
    };
    let silent: Vec<_> = super::node_failure::silent_nodes(case)
        .into_iter()
        .filter(|s| super::node_failure::job_went_on(case, s))
        .collect();
    let went_on: Vec<&str> = silent.iter().map(|s| s.placement.node.as_str()).collect();
    let nodes: Vec<&str> = if went_on.is_empty() { poorly_covered_nodes(case, view) } else { went_on };
    let Some(first) = nodes.first() else {
        let why = Sentence::new("Ruled out: the GPU series cover the window.").cite(&view.evidence.id);
        return Finding::RuledOut(why.claim());
    };
    let why =
        Sentence::new("The telemetry of {node} has a hole in this window; what is missing is not known, and not zero.")
            .entity(view.evidence, &Component::from([("node".to_owned(), (*first).to_owned())]));
    // A hole is one of everything that the node's exporter reads, and rests on all of it.
    let why = signals.into_iter().filter_map(|s| case.view(s)).fold(why, |why, seen| why.cite(&seen.evidence.id));
    let hole = hole(case, view, first);
    let onset = silent.first().map(|s| s.last.at).or(hole.map(|(_, last)| shift(last, view.step_ms)));
    Finding::Supported(Box::new(Support {
        // It explains nothing about the job; an explanation that holds goes first.
        strength: Strength::Hint,
        coincides: None,
        magnitude: 0.0,
        components: nodes.iter().map(|n| Component::from([("node".to_owned(), (*n).to_owned())])).collect(),
        onset,
        why: why.claim(),
        claims: hole.map(|(member, last)| last_before(view, member, last)).into_iter().collect(),
        fault: false,
    }))
}

/// A GPU of the node, and its last sample before the longest stretch of the window without one.
fn hole<'v, 'a>(case: &Case<'_>, view: &'v View<'a>, node: &str) -> Option<(&'v Member<'a>, Timestamp)> {
    let member = view.members.iter().find(|m| m.entity.get("node").is_some_and(|own| own == node))?;
    let (from, to) = (case.window.from(), case.window.to());
    let times: Vec<Timestamp> = member.points.iter().map(|p| p.time).filter(|time| *time < to).collect();
    let next = times.iter().skip(1).copied().chain([to]);
    let stretches = times.iter().copied().zip(next).filter(|(_, next)| *next > from);
    let longest = stretches.max_by_key(|(last, next)| next.as_millisecond() - last.as_millisecond())?;
    Some((member, longest.0))
}

fn last_before(view: &View<'_>, member: &Member<'_>, last: Timestamp) -> DraftClaim {
    let text = format!("The last {} of {} before the hole is of {{last}}.", view.signal.words(), who(member.entity));
    Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .instant("last", view.evidence, member.entity, last)
        .claim()
}

/// The mean coverage of the window by a signal's series; `None` without the signal.
pub(crate) fn mean_coverage(case: &Case<'_>, view: &View<'_>) -> Option<f64> {
    let range = case.window;
    let shares: Vec<f64> = case
        .observations
        .job
        .placements
        .iter()
        .map(|p| view.of(p).map_or(0.0, |m| cover(view, &m.samples, range).ratio()))
        .collect();
    sightline_analysis::mean(&shares)
}

/// How much of a window a series covers.
pub(crate) fn cover(view: &View<'_>, samples: &[sightline_analysis::Sample], range: TimeRange) -> Coverage {
    coverage(samples, range.from(), range.to(), view.step_ms)
}

fn poorly_covered_nodes<'a>(case: &Case<'a>, view: &View<'_>) -> Vec<&'a str> {
    let range = case.window;
    let mut nodes: Vec<&str> = Vec::new();
    for placement in &case.observations.job.placements {
        let node = placement.node.as_str();
        if nodes.contains(&node) || !all_poor(case, view, node, range) {
            continue;
        }
        nodes.push(node);
    }
    nodes
}

fn all_poor(case: &Case<'_>, view: &View<'_>, node: &str, range: TimeRange) -> bool {
    // A node that fell silent for good is judged by the checks for silence.
    let silent = case.stopped.iter().any(|s| s.placement.node == node);
    let placements = case.observations.job.placements.iter().filter(|p| p.node == node);
    !silent
        && placements
            .map(|p| view.of(p).map_or(0.0, |m| cover(view, &m.samples, range).ratio()))
            .all(|ratio| ratio < POOR_COVERAGE)
}
