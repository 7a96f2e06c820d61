//! A node that went down with all its GPUs.
//!
//! Speaks for it: all of the job's GPUs on the node stop together while other nodes go on, and the job stops or fails; a fault
//! event names the node. Rules it out: every node reports to the end. Trap: a dead exporter looks the same, but then the job goes on.

use sightline_model::Component;

use crate::case::{Case, Stopped};
use crate::cause::{Check, Finding, Strength, Support};
use crate::sentence::Sentence;
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "node_failure", assess };

/// Whether all of the job's GPUs on a node went silent; a node with one GPU of the job cannot tell the two apart.
pub(crate) fn whole_node(case: &Case<'_>, node: &str) -> bool {
    let silent = case.stopped.iter().filter(|s| s.placement.node == node).count();
    let here = case.gpus_on(node);
    here >= 2 && silent == here
}

/// Whether the job went on after a node fell silent: then the exporter died, not the node.
pub(crate) fn job_went_on(case: &Case<'_>, stopped: &Stopped<'_>) -> bool {
    [Signal::StepTime, Signal::Throughput].into_iter().filter_map(|s| case.view(s)).any(|view| {
        view.members.iter().any(|m| {
            let later = m.points.iter().filter(|p| p.time > stopped.last.at).count();
            later >= 4
        })
    })
}

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
    let claims = down.iter().filter_map(|s| super::gpu_fell_off_bus::silence_claim(case, s)).collect();
    let mut why = Sentence::new("All GPUs of {node} went silent together, and the job made no progress after that.");
    if let Some(view) = case.view(first.signal) {
        why = why.entity(view.evidence, &first.placement.component());
    }
    let components = down.iter().map(|s| Component::from([("node".to_owned(), s.placement.node.clone())])).collect();
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: super::gpu_fell_off_bus::halted(case, Some(first.last.at)),
        magnitude: 20.0,
        components,
        onset: Some(first.last.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}
