//! A node that went down with all its GPUs.
//!
//! Speaks for it: all of the job's GPUs on the node stop together while other nodes go on, and the job stops or fails; a line of the
//! scheduler or an event that calls the node dead. Rules it out: every node reports to the end, or the job ended well. Traps: a dead exporter
//! looks the same, but then the job goes on; a job that was started again without the node did not go on.

use jiff::Timestamp;
use sightline_model::{Component, DraftClaim};

use crate::case::{Case, Stopped};
use crate::cause::{Check, Finding, Strength, Support};
use crate::lines::{Line, LineKind};
use crate::records::{Record, events};
use crate::sentence::Sentence;
use crate::signal::Signal;
use crate::view::shift;

pub(crate) const CHECK: Check = Check { id: "node_failure", assess };

/// Whether all of the job's GPUs on a node went silent; a node with one GPU of the job cannot tell the two apart.
pub(crate) fn whole_node(case: &Case<'_>, node: &str) -> bool {
    let silent = case.stopped.iter().filter(|s| s.placement.node == node).count();
    let here = case.gpus_on(node);
    here >= 2 && silent == here
}

/// Progress this long after a node's last sample was made without it: sources are up to a minute apart, and a step takes its time.
const LATER_MS: i64 = 120_000;

/// Whether the job went on after a node fell silent, in the attempt that held it: then the exporter died, not the node.
pub(crate) fn job_went_on(case: &Case<'_>, stopped: &Stopped<'_>) -> bool {
    let (end, was_last) = end_of_attempt(case, stopped);
    let state = case.observations.job.state.to_ascii_lowercase();
    // No job ends well without one of its nodes.
    if was_last && case.observations.job.end.is_some() && ENDED_WELL.iter().any(|word| state.contains(word)) {
        return true;
    }
    [Signal::StepTime, Signal::Throughput].into_iter().filter_map(|s| case.view(s)).any(|view| {
        let later = shift(stopped.last.at, LATER_MS.max(2 * view.step_ms));
        let halted = case.stall.as_ref().is_some_and(|s| s.last.at <= later && !s.resumed);
        !halted
            && view.members.iter().any(|m| {
                let after = m.points.iter().filter(|p| p.time > later && p.time < end).count();
                after >= 4
            })
    })
}

/// What schedulers call a job that did its work.
const ENDED_WELL: [&str; 4] = ["complete", "succe", "pass", "finished"];

/// When the attempt ended that held a silent node, and whether it was the job's last.
fn end_of_attempt(case: &Case<'_>, stopped: &Stopped<'_>) -> (Timestamp, bool) {
    let attempts = &case.observations.attempts;
    let held = |a: &crate::observation::Attempt| a.nodes.contains(&stopped.placement.node) && a.from <= stopped.last.at;
    let Some(index) = attempts.iter().rposition(held) else { return (Timestamp::MAX, true) };
    let next = attempts.get(index + 1).map(|next| next.from);
    let ended = attempts.get(index).and_then(|a| a.to);
    (ended.into_iter().chain(next).min().unwrap_or(Timestamp::MAX), next.is_none())
}

/// The lines and events that call a node of the job dead, with the node.
fn called_dead<'c, 'a>(case: &'c Case<'a>) -> Vec<(String, Timestamp, DraftClaim)> {
    let nodes = || case.observations.job.placements.iter().map(|p| p.node.as_str());
    let named = |body: &str, label: Option<&str>| {
        let in_text = body
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')))
            .find_map(|word| nodes().find(|n| *n == word.trim_matches('.')));
        in_text.or_else(|| nodes().find(|n| Some(*n) == label)).map(str::to_owned)
    };
    let lines = case.lines.iter().filter(|l| l.kind == LineKind::NodeDown).filter_map(|l| {
        let node = named(l.body(), l.node)?;
        Some((node, l.at, Line::claim(l)))
    });
    let said = events(case, &["alert", "fault", "node_down", "node_failure"]).into_iter().filter_map(|e| {
        let text = format!("{} {}", e.name("alertname").unwrap_or_default(), e.body()).to_ascii_lowercase();
        NODE_IS_DEAD.iter().any(|mark| text.contains(mark)).then_some(())?;
        let node = named(e.body(), e.name("node"))?;
        Some((node, e.at, Record::claim(&e)))
    });
    lines.chain(said).collect()
}

/// How alerts call a node that is gone.
const NODE_IS_DEAD: [&str; 8] =
    ["nodedown", "node down", "node_down", "no heartbeat", "not responding", "unreachable", "notready", "node failure"];

/// The first silent GPU of each silent node.
pub(crate) fn silent_nodes<'a, 'b>(case: &'b Case<'a>) -> Vec<&'b Stopped<'a>> {
    let mut nodes: Vec<&Stopped<'_>> = Vec::new();
    for stopped in &case.stopped {
        let node = &stopped.placement.node;
        if whole_node(case, node) && nodes.iter().all(|s| s.placement.node != *node) {
            nodes.push(stopped);
        }
    }
    nodes
}

fn assess(case: &Case<'_>) -> Finding {
    if case.view(Signal::GpuTemperature).is_none() && case.view(Signal::SmClock).is_none() {
        return case.no_data(&[Signal::GpuTemperature, Signal::SmClock]);
    }
    let down: Vec<&Stopped<'_>> = silent_nodes(case).into_iter().filter(|s| !job_went_on(case, s)).collect();
    let Some(first) = down.first() else {
        let view = case.view(Signal::GpuTemperature).or_else(|| case.view(Signal::SmClock));
        let mut why = Sentence::new("Ruled out: no node of the job went silent and took the job with it.");
        if let Some(view) = view {
            why = why.cite(&view.evidence.id);
        }
        return Finding::RuledOut(why.claim());
    };
    let mut claims: Vec<DraftClaim> =
        down.iter().filter_map(|s| super::gpu_fell_off_bus::silence_claim(case, s)).collect();
    let dead: Vec<DraftClaim> = called_dead(case)
        .into_iter()
        .filter(|(node, at, _)| down.iter().any(|s| s.placement.node == *node && *at >= shift(s.last.at, -LATER_MS)))
        .map(|(_, _, claim)| claim)
        .take(2)
        .collect();
    let told = !dead.is_empty();
    claims.extend(dead);
    let mut why = Sentence::new("All GPUs of {node} went silent together, and the job made no progress after that.");
    if let Some(view) = case.view(first.signal) {
        why = why.entity(view.evidence, &first.placement.component());
    }
    let components = down.iter().map(|s| Component::from([("node".to_owned(), s.placement.node.clone())])).collect();
    Finding::Supported(Box::new(Support {
        strength: if told { Strength::Proof } else { Strength::Pattern },
        coincides: super::gpu_fell_off_bus::halted(case, Some(first.last.at)),
        magnitude: 20.0,
        components,
        onset: Some(first.last.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}
