//! A driver that made things worse.
//!
//! Needs the nodes' drivers or an event of an upgrade. Speaks for it: within the job, the nodes with the newest driver are all slower
//! than all others; calls to the GPU's system processor time out on those nodes only; or the whole job became slower right after an
//! upgrade, or is slower than its last run and an upgrade lies between. Rules it out: one driver and no upgrade; nodes that are equally
//! fast with different drivers. Trap: one node that differs in its driver and in its speed may be slow for its own reason.

use jiff::Timestamp;
use sightline_analysis::median;
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::causes::software_regression;
use crate::clocks::Reason;
use crate::drivers::{Driver, drivers, split};
use crate::pace::Pace;
use crate::records::{Record, before_slowdown, events_before_too};
use crate::sentence::{Sentence, ratio, stat};
use crate::signal::Signal;
use crate::view::View;
use crate::xid::XidAction;

pub(crate) const CHECK: Check = Check { id: "driver_regression", assess };

/// Timeouts and errors of the GPU system processor, which drivers of some versions bring about (open-gpu-kernel-modules issue 446).
const GSP_XIDS: [u32; 2] = [119, 120];

const EVENT_KINDS: [&str; 1] = ["driver"];

/// Upgrades this close to each other are one round of maintenance.
const ROUND_MS: i64 = 1_800_000;

fn assess(case: &Case<'_>) -> Finding {
    let versions = drivers(case);
    let upgrades = events_before_too(case, &EVENT_KINDS);
    let sides = split(&versions);
    if let Some(found) = timeouts(case, &versions, sides.as_ref(), &upgrades) {
        return found;
    }
    if let Some((newer, others)) = &sides
        && let Some(found) = slower_cohort(case, &versions, newer, others, &upgrades)
    {
        return found;
    }
    if let Some(upgrade) = before_slowdown(case, &upgrades)
        && let Some(found) = after_upgrade(case, &upgrade, &upgrades)
    {
        return found;
    }
    if let Some(found) = between_runs(case, &upgrades) {
        return found;
    }
    if versions.is_empty() && (case.observations.events.is_none() || matches!(case.pace, Pace::Unknown)) {
        let text = "Not judged: the nodes' driver versions are not known, nor what an upgrade would have done to the job's pace.";
        return Finding::NoData(Sentence::new(text).claim());
    }
    ruled_out(&versions, sides.is_some(), case)
}

fn ruled_out(versions: &std::collections::BTreeMap<&str, Driver<'_>>, mixed: bool, case: &Case<'_>) -> Finding {
    let text = match (mixed, versions.is_empty()) {
        (true, _) => {
            "Ruled out: nodes of the job have different drivers, and those with the newest are not slower than the others."
        }
        (false, false) => "Ruled out: all nodes of the job run one driver, and no upgrade came with a slowdown.",
        (false, true) => "Ruled out as far as it is known: no driver upgrade came with a slowdown.",
    };
    let mut why = Sentence::new(text);
    if let Some(driver) = versions.values().next() {
        why = why.cite(&driver.evidence.id);
    } else if let Some(events) = case.observations.events {
        why = why.cite(&events.id);
    }
    Finding::RuledOut(why.claim())
}

fn components(nodes: &[&str]) -> Vec<Component> {
    nodes.iter().map(|n| Component::from([("node".to_owned(), (*n).to_owned())])).collect()
}

/// What driver a node runs, as a claim.
pub(crate) fn version_claim(node: &str, driver: &Driver<'_>) -> DraftClaim {
    let named = Entity::from([("node".to_owned(), node.to_owned())]);
    Sentence::new("{node} runs driver {version}.")
        .entity(driver.evidence, &named)
        .quote("version", driver.evidence, driver.row, "driver_version")
        .claim()
}

fn both_versions(versions: &std::collections::BTreeMap<&str, Driver<'_>>, sides: [&[&str]; 2]) -> Vec<DraftClaim> {
    let firsts = sides.into_iter().filter_map(|side| side.first());
    firsts.filter_map(|node| Some(version_claim(node, versions.get(node)?))).collect()
}

/// Timeouts of the GPU system processor on nodes with the newest driver only, or on several nodes from an upgrade on.
fn timeouts(
    case: &Case<'_>,
    versions: &std::collections::BTreeMap<&str, Driver<'_>>,
    sides: Option<&(Vec<&str>, Vec<&str>)>,
    upgrades: &[Record<'_>],
) -> Option<Finding> {
    let seen: Vec<_> = case.xids.iter().filter(|x| GSP_XIDS.contains(&x.code)).collect();
    let first = seen.first()?;
    let mut nodes: Vec<&str> = Vec::new();
    for xid in &seen {
        if !nodes.contains(&xid.node.as_str()) {
            nodes.push(&xid.node);
        }
    }
    let upgraded = upgrades.iter().rfind(|u| u.at <= first.at);
    // A node that got its driver for this job, and whose GPU reports no harm but the timeout, had nothing else changed.
    let own = nodes.len() == 1 && upgraded.is_some_and(|u| u.name("node") == nodes.first().copied());
    let first_job = own && !other_harm(case) && case.stopped.is_empty();
    let only_newer = sides.is_some_and(|(newer, others)| {
        nodes.iter().all(|n| newer.contains(n)) && !others.is_empty() && (nodes.len() >= 2 || upgraded.is_some())
    });
    if !(only_newer || first_job || upgraded.is_some() && nodes.len() >= 2) {
        return None;
    }
    let mut claims = vec![first.claim()];
    claims.extend(upgraded.map(Record::claim));
    if let Some((newer, others)) = sides {
        claims.extend(both_versions(versions, [newer.as_slice(), others.as_slice()]));
    }
    let text = match (only_newer, nodes.len()) {
        (true, _) => {
            "The GPU system processor times out on nodes with the newest driver, and on no other node of the job."
        }
        (false, 1) => {
            "The GPU system processor timed out on a node whose driver was upgraded shortly before, and the GPU reports no harm to its hardware."
        }
        (false, _) => "Since a driver upgrade the GPU system processor times out, on several nodes of the job.",
    };
    // A driver that slows the job down does so from its first step on; the timeouts come when they come.
    let slower = before_slowdown(case, upgrades).and_then(|_| case.pace.slowdown()?.onset);
    let onset = slower.map_or(first.at, |slower| slower.at.min(first.at));
    Some(Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: case.coincides(Some(onset), 0).or(Some(true)),
        // One driver on several nodes explains more than as many failing GPUs do.
        magnitude: 1000.0,
        components: components(&nodes),
        onset: Some(onset),
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    })))
}

/// Whether a GPU of the job reports anything of its hardware besides timeouts of the system processor.
fn other_harm(case: &Case<'_>) -> bool {
    let counters = [Signal::RemappedUncorrectable, Signal::RemappedCorrectable, Signal::DoubleBitErrors];
    let counted = counters
        .into_iter()
        .filter_map(|s| case.view(s))
        .any(|view| view.members.iter().any(|m| crate::causes::hardware_degradation::growth(view, m).is_some()));
    let follows = |x: &crate::xid_events::XidEvent<'_>| {
        x.follows || x.info().is_some_and(|i| matches!(i.action, XidAction::FollowOther | XidAction::Ignore))
    };
    counted || case.xids.iter().any(|x| !GSP_XIDS.contains(&x.code) && !follows(x))
}

/// What tells that a node is slower, and whether the slower one has the higher value.
const SPEED: [(Signal, bool); 3] =
    [(Signal::ComputeTime, true), (Signal::CommunicationTime, false), (Signal::SmClock, false)];

/// A node's level: the median over its ranks or GPUs.
fn node_level(case: &Case<'_>, view: &View<'_>, node: &str) -> Option<f64> {
    let here = |m: &&crate::view::Member<'_>| match m.entity.get("node") {
        Some(own) => own == node,
        None => crate::ranks::placement_of(case, m).is_some_and(|p| p.node == node),
    };
    let levels: Vec<f64> = view.members.iter().filter(here).filter_map(|m| m.median(case.focus())).collect();
    median(&levels)
}

/// The signal by which all nodes of one side are slower than all of the other, with the difference as a share.
fn all_slower<'v, 'a>(case: &'v Case<'a>, newer: &[&str], others: &[&str]) -> Option<(&'v View<'a>, f64)> {
    SPEED.into_iter().find_map(|(signal, high)| {
        let view = case.view(signal)?;
        // Heat and power limits lower a clock whatever the driver.
        let named = case.clocks.iter().any(|c| matches!(c.reason, Reason::Thermal | Reason::Power));
        if signal == Signal::SmClock && named {
            return None;
        }
        let levels = |side: &[&str]| side.iter().filter_map(|n| node_level(case, view, n)).collect::<Vec<f64>>();
        let (own, rest) = (levels(newer), levels(others));
        let (own_level, rest_level) = (median(&own)?, median(&rest)?);
        let least = |v: &[f64]| v.iter().copied().reduce(f64::min);
        let most = |v: &[f64]| v.iter().copied().reduce(f64::max);
        let apart = if high { least(&own)? > most(&rest)? } else { most(&own)? < least(&rest)? };
        let base = match signal {
            Signal::SmClock => rest_level,
            _ => crate::ranks::step_length(case, case.focus())?,
        };
        let by = (own_level - rest_level).abs() / base;
        (apart && by >= MIN_RELATIVE).then_some((view, by))
    })
}

/// Whether the nodes with the newest driver, and they alone, are slow: what a slow worker among them is no culprit for.
pub(crate) fn cohort_is_slow(case: &Case<'_>) -> bool {
    let versions = drivers(case);
    split(&versions).is_some_and(|(newer, others)| newer.len() >= 2 && all_slower(case, &newer, &others).is_some())
}

fn slower_cohort(
    case: &Case<'_>,
    versions: &std::collections::BTreeMap<&str, Driver<'_>>,
    newer: &[&str],
    others: &[&str],
    upgrades: &[Record<'_>],
) -> Option<Finding> {
    let (view, by) = all_slower(case, newer, others)?;
    let upgrade = upgrades.iter().rfind(|u| u.name("node").is_none_or(|node| newer.contains(&node)));
    // One node among several may be slow for a reason of its own.
    let strength = match (newer.len(), upgrade) {
        (1, None) if others.len() > 1 => Strength::Hint,
        (1, None) => Strength::Pattern,
        (_, _) => Strength::Proof,
    };
    let mut claims = both_versions(versions, [newer, others]);
    claims.extend(side_claim(view, newer.first()?, others.first()?, case));
    claims.extend(upgrade.map(Record::claim));
    let onset: Option<Timestamp> = case.pace.slowdown().and_then(|s| s.onset).map(|o| o.at);
    let text = "Every node of the job with the newest driver is slower than every node without it.";
    Some(Finding::Supported(Box::new(Support {
        strength,
        coincides: None,
        magnitude: 1.0 + by,
        components: components(newer),
        onset,
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    })))
}

/// A node of each side beside the other.
fn side_claim(view: &View<'_>, newer: &str, other: &str, case: &Case<'_>) -> Option<DraftClaim> {
    let of = |node: &str| view.members.iter().find(|m| m.entity.get("node").is_some_and(|n| n == node));
    let (own, rest) = (of(newer)?, of(other)?);
    let range = case.focus();
    let (slow, fast) = (
        stat(view.evidence, own.entity, Stat::Median, Some(range)),
        stat(view.evidence, rest.entity, Stat::Median, Some(range)),
    );
    let relation = if own.median(range)? > rest.median(range)? { Relation::Above } else { Relation::Below };
    let text = format!("There the {} was {{slow}}, without it {{fast}}, a ratio of {{times}}.", view.signal.words());
    let sentence = Sentence::new(&text)
        .number("slow", slow.clone(), 3, view.unit())
        .number("fast", fast.clone(), 3, view.unit())
        .number("times", ratio(slow.clone(), fast.clone()), 2, sightline_model::Unit::Ratio)
        .holds(slow, relation, fast);
    Some(sentence.claim())
}

/// The whole job became slower right after an upgrade, and no worker of it stands out.
fn after_upgrade(case: &Case<'_>, upgrade: &Record<'_>, all: &[Record<'_>]) -> Option<Finding> {
    let slowdown = case.pace.slowdown()?;
    if !software_regression::is_uniform(case) {
        return None;
    }
    let mut claims = vec![upgrade.claim()];
    claims.extend(case.pace.claim());
    // Nodes are upgraded one after the other: those of the same round are meant together.
    let round = all.iter().filter(|u| (u.at.as_millisecond() - upgrade.at.as_millisecond()).abs() <= ROUND_MS);
    let mut nodes: Vec<&str> = Vec::new();
    for node in round.filter_map(|u| u.name("node")) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    let text = "The whole job became slower right after a driver upgrade, and no GPU of it stands out.";
    Some(Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: Some(true),
        // What was changed at that time goes before what only has the same shape.
        magnitude: 10.0 + slowdown.factor,
        components: if nodes.is_empty() { case.whole_job() } else { components(&nodes) },
        onset: slowdown.onset.map(|o| o.at),
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    })))
}

/// The job is slower than its last run, and an upgrade lies between both.
fn between_runs(case: &Case<'_>, upgrades: &[Record<'_>]) -> Option<Finding> {
    let past = software_regression::slower_than_before(case)?;
    let upgrade = upgrades.iter().rfind(|u| past.ended <= u.at && u.at <= case.observations.job.start)?;
    if !software_regression::is_uniform(case) {
        return None;
    }
    let claims = vec![past.claim.clone(), upgrade.claim()];
    let text = "The job is slower than its last run, all ranks alike, and the driver was upgraded between both.";
    Some(Finding::Supported(Box::new(Support {
        // One earlier run may be the odd one, and a changed image may be the reason: then the upgrade only fits.
        strength: if past.changed.is_none() && past.agreed { Strength::Proof } else { Strength::Pattern },
        coincides: None,
        magnitude: past.factor,
        components: case.whole_job(),
        onset: None,
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    })))
}
