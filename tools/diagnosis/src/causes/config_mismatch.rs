//! Nodes whose software or settings do not fit together.
//!
//! Needs logs, driver versions or settings of the GPUs. Speaks for it: lines that say so (a fabric manager of another version than the
//! driver, CUDA error 802 on NVSwitch nodes, a library that does not fit the driver); different NCCL versions in one job; application
//! clocks or power limits that are set differently on whole nodes. Rules it out: one version and one setting everywhere. Trap:
//! different drivers in one job are worth knowing, but no fault while the nodes are equally fast.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_analysis::median;
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::drivers::{drivers, split};
use crate::records::{Record, contains, events, lines, lines_before_too};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "config_mismatch", assess };

/// Texts that name a mismatch by themselves. 802 is cudaErrorSystemNotReady: on NVSwitch nodes it means that no fabric manager of
/// the driver's version runs.
const NAMED: [&str; 8] = [
    "don't match with driver version",
    "doesn't match with driver version",
    "does not match driver version",
    "Driver/library version mismatch",
    "API mismatch: the client has the version",
    "CUDA driver version is insufficient",
    "system not yet initialized",
    "cudaErrorSystemNotReady",
];

/// What NCCL writes at the start of each process.
const NCCL_VERSION: &str = "NCCL version ";

fn assess(case: &Case<'_>) -> Finding {
    if let Some(found) = named(case) {
        return found;
    }
    if let Some(found) = mixed_nccl(case) {
        return found;
    }
    for signal in [Signal::AppClock, Signal::PowerLimit] {
        if let Some(found) = set_differently(case, signal) {
            return found;
        }
    }
    let versions = drivers(case);
    let looked = case.observations.logs.is_some()
        || !versions.is_empty()
        || [Signal::AppClock, Signal::PowerLimit].into_iter().any(|s| case.view(s).is_some());
    if !looked {
        let text = "Not judged: neither logs nor driver versions nor settings of the GPUs are known in this window.";
        return Finding::NoData(Sentence::new(text).claim());
    }
    let text = match split(&versions) {
        Some(_) => "Ruled out as a fault: nodes of the job have different drivers, but nothing complains of it.",
        None => {
            "Ruled out as far as it is collected: no line names a mismatch, and versions and settings are the same on all nodes."
        }
    };
    let mut why = Sentence::new(text);
    if let Some(driver) = versions.values().next() {
        why = why.cite(&driver.evidence.id);
    } else if let Some(logs) = case.observations.logs {
        why = why.cite(&logs.id);
    }
    Finding::RuledOut(why.claim())
}

fn named(case: &Case<'_>) -> Option<Finding> {
    let mut found = lines_before_too(case, &NAMED);
    let told = events(case, &["alert", "fault", "config"]);
    found.extend(told.into_iter().filter(|e| NAMED.iter().any(|text| contains(e.body(), text))));
    found.sort_by_key(|r| r.at);
    let first = found.first()?;
    let mut shown: Vec<&Record<'_>> = Vec::new();
    for record in &found {
        // Each kind of line once: a job of many ranks writes the same one many times.
        let kind = |r: &Record<'_>| NAMED.iter().position(|text| contains(r.body(), text));
        if shown.len() < 3 && shown.iter().all(|seen| kind(seen) != kind(record)) {
            shown.push(record);
        }
    }
    let mut claims: Vec<DraftClaim> = shown.iter().map(|r| r.claim()).collect();
    let nodes = found.iter().filter_map(|r| r.name("node"));
    let components = named_nodes(case, nodes);
    let versions = drivers(case);
    let accused = components.iter().filter_map(|c| c.get("node")).find_map(|n| versions.get_key_value(n.as_str()));
    claims.extend(accused.map(|(node, driver)| super::driver_regression::version_claim(node, driver)));
    Some(supported(
        case,
        Strength::Proof,
        100.0,
        components,
        Some(first.at),
        claims,
        "What is installed on the nodes does not fit together, and the logs say so.",
    ))
}

/// The nodes, each once, or the job when none is named.
fn named_nodes<'n>(case: &Case<'_>, nodes: impl Iterator<Item = &'n str>) -> Vec<Component> {
    let mut components: Vec<Component> = Vec::new();
    for node in nodes {
        let component = Component::from([("node".to_owned(), node.to_owned())]);
        if !components.contains(&component) {
            components.push(component);
        }
    }
    if components.is_empty() { case.whole_job() } else { components }
}

/// Different NCCL versions on different nodes of one job.
fn mixed_nccl(case: &Case<'_>) -> Option<Finding> {
    let mut by_version: BTreeMap<String, Vec<Record<'_>>> = BTreeMap::new();
    for record in lines(case, &[NCCL_VERSION]) {
        let version = record.body().split(NCCL_VERSION).nth(1).and_then(|rest| rest.split_whitespace().next());
        if let (Some(version), Some(_)) = (version, record.name("node")) {
            by_version.entry(version.to_owned()).or_default().push(record);
        }
    }
    if by_version.len() < 2 {
        return None;
    }
    // The version of fewest nodes is the one that differs.
    let count = |records: &Vec<Record<'_>>| {
        records.iter().filter_map(|r| r.name("node")).collect::<std::collections::BTreeSet<_>>().len()
    };
    let odd = by_version.values().min_by_key(|records| count(records))?;
    let usual = by_version.values().max_by_key(|records| count(records))?;
    let claims: Vec<DraftClaim> = [odd.first(), usual.first()].into_iter().flatten().map(Record::claim).collect();
    let components = named_nodes(case, odd.iter().filter_map(|r| r.name("node")));
    let at = odd.first().map(|r| r.at);
    Some(supported(
        case,
        Strength::Proof,
        1.0,
        components,
        at,
        claims,
        "The ranks of one job run different versions of NCCL.",
    ))
}

/// A setting that whole nodes of the job have lower than the rest, from the start.
fn set_differently(case: &Case<'_>, signal: Signal) -> Option<Finding> {
    let view = case.view(signal)?;
    let range = view.span()?;
    let levels: Vec<(&crate::view::Member<'_>, f64)> =
        view.members.iter().filter_map(|m| Some((m, m.median(range)?))).collect();
    let usual = median(&levels.iter().map(|(_, v)| *v).collect::<Vec<_>>())?;
    let lower = |v: f64| v < usual * (1.0 - MIN_RELATIVE);
    let mut nodes: Vec<&str> = Vec::new();
    for (member, value) in &levels {
        let Some(node) = member.entity.get("node").map(String::as_str) else { continue };
        let all =
            levels.iter().filter(|(m, _)| m.entity.get("node").is_some_and(|n| n == node)).all(|(_, v)| lower(*v));
        if lower(*value) && all && !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    let (member, _) =
        levels.iter().find(|(m, _)| m.entity.get("node").map(String::as_str) == nodes.first().copied())?;
    if nodes.is_empty() {
        return None;
    }
    let own = stat(view.evidence, member.entity, Stat::Median, Some(range));
    let all = stat(view.evidence, &Entity::new(), Stat::Median, Some(range));
    let text = format!("The {} of the GPUs of {{node}} is {{own}}, at the median of the job {{all}}.", signal.words());
    let claim = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("own", own.clone(), 0, view.unit())
        .number("all", all.clone(), 0, view.unit())
        .holds(own, Relation::Below, all)
        .claim();
    // A power limit is told of by the check for power limits; here it counts for what was set, so it ranks behind.
    let strength = if signal == Signal::AppClock { Strength::Proof } else { Strength::Hint };
    let components = named_nodes(case, nodes.iter().copied());
    let text = "A setting of the GPUs is lower on whole nodes of the job than on the others.";
    Some(supported(case, strength, 1.0, components, None, vec![claim], text))
}

fn supported(
    case: &Case<'_>,
    strength: Strength,
    magnitude: f64,
    components: Vec<Component>,
    onset: Option<Timestamp>,
    claims: Vec<DraftClaim>,
    why: &str,
) -> Finding {
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(onset, 0).filter(|near| *near),
        magnitude,
        components,
        onset,
        why: Sentence::new(why).cite_all(&claims).claim(),
        claims,
        fault: true,
    }))
}
