//! Telemetry that is missing while the job went on.
//!
//! Speaks for it: a node's series stop or have a hole, and the job's own pace goes on. Rules it out: the series are whole.
//! Trap: a gap is no zero, and a dead exporter is no dead node.

use sightline_analysis::{Coverage, coverage};
use sightline_model::{Component, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::sentence::Sentence;
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "telemetry_gap", assess };

/// Below this coverage of the window nothing should be judged from a series.
pub(crate) const POOR_COVERAGE: f64 = 0.5;

fn assess(case: &Case<'_>) -> Finding {
    let signals = [Signal::GpuTemperature, Signal::SmClock, Signal::Power, Signal::Utilization];
    let Some(view) = signals.into_iter().find_map(|s| case.view(s)) else {
        return case.no_data(&signals);
    };
    let went_on: Vec<&str> = super::node_failure::silent_nodes(case)
        .into_iter()
        .filter(|s| super::node_failure::job_went_on(case, s))
        .map(|s| s.placement.node.as_str())
        .collect();
    let nodes: Vec<&str> = if went_on.is_empty() { poorly_covered_nodes(case, view) } else { went_on };
    let Some(first) = nodes.first() else {
        let why = Sentence::new("Ruled out: the GPU series cover the window.").cite(&view.evidence.id);
        return Finding::RuledOut(why.claim());
    };
    let why =
        Sentence::new("The telemetry of {node} has a hole in this window; what is missing is not known, and not zero.")
            .entity(view.evidence, &Component::from([("node".to_owned(), (*first).to_owned())]));
    Finding::Supported(Box::new(Support {
        // It explains nothing about the job; an explanation that holds goes first.
        strength: Strength::Hint,
        coincides: None,
        magnitude: 0.0,
        components: nodes.iter().map(|n| Component::from([("node".to_owned(), (*n).to_owned())])).collect(),
        onset: None,
        why: why.claim(),
        claims: Vec::new(),
        fault: false,
    }))
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
