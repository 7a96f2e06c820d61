//! A network link that drops or corrupts packets.
//!
//! Speaks for it: error counters of one node's ports grow far more than its peers', a link went down, a port runs at a lower
//! rate. Rules it out: counters that were collected and are alike on all nodes. Trap: fast links always have a few symbol errors; what
//! counts is the velocity against the peers and against the same port before.

use sightline_analysis::{Direction, median};
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Entity, Evidence, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::level::{best_level, excursion, segments};
use crate::lines::{Line, LineKind};
use crate::pace::Onset;
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View};

pub(crate) const CHECK: Check = Check { id: "network_link_fault", assess };

/// One event of these is a fault (NVSentinel's NIC monitor: a link that went down).
const EVENTS: [Signal; 3] = [Signal::IbLinkDowned, Signal::IbLinkRecovery, Signal::NicCarrierChanges];

/// These are a fault by velocity only.
const ERRORS: [Signal; 4] =
    [Signal::IbSymbolErrors, Signal::IbReceiveErrors, Signal::NicReceiveErrors, Signal::NicTransmitErrors];

/// Symbol errors an hour that a healthy link may have: what a bit error rate of one in a million million, the bound of the InfiniBand
/// specification, makes of a link in use. Links with several bits a symbol always have some.
const SYMBOL_ERRORS_PER_HOUR: f64 = 120.0;

/// A port must collect this many times its peers' errors, and of its own before, to stand out.
const TIMES_PEERS: f64 = 10.0;

/// Errors come in single events; fewer than this many are noise whatever the ratio.
const MIN_ERRORS: f64 = 10.0;

struct Found<'a> {
    evidence: &'a Evidence,
    entity: &'a Entity,
    claim: DraftClaim,
    onset: Option<Onset<'a>>,
    magnitude: f64,
    step_ms: i64,
}

fn assess(case: &Case<'_>) -> Finding {
    let mut found: Vec<Found<'_>> = Vec::new();
    for signal in EVENTS.into_iter().chain(ERRORS) {
        if let Some(view) = case.view(signal) {
            found.extend(view.members.iter().filter_map(|m| noisy(case, view, m)));
        }
    }
    if let Some(view) = case.view(Signal::IbPortRate) {
        found.extend(view.members.iter().filter_map(|m| slow_port(case, view, m)));
    }
    found.sort_by(|a, b| b.magnitude.total_cmp(&a.magnitude));
    if let Some(said) = by_log(case, &found) {
        return said;
    }
    let Some(worst) = found.first() else {
        let all = EVENTS.into_iter().chain(ERRORS).chain([Signal::IbPortRate]);
        if all.clone().all(|s| case.view(s).is_none()) {
            return case.no_data(&[Signal::IbSymbolErrors, Signal::IbReceiveErrors, Signal::NicReceiveErrors]);
        }
        let mut why = Sentence::new(
            "Ruled out: no port of the job's nodes collects more errors than its peers, and none lost its link.",
        );
        for view in all.filter_map(|s| case.view(s)) {
            why = why.cite(&view.evidence.id);
        }
        return Finding::RuledOut(why.claim());
    };
    let node = worst.entity.get("node");
    let mut claims: Vec<DraftClaim> =
        found.iter().filter(|f| f.entity.get("node") == node).map(|f| f.claim.clone()).take(3).collect();
    let onset = worst.onset;
    claims.extend(onset.as_ref().and_then(|o| case.coincidence(o, worst.step_ms)));
    let why = Sentence::new(
        "A network link of {node} reports errors that its peers do not have; collectives run at the speed of the worst link.",
    )
    .entity(worst.evidence, worst.entity);
    let why = why.cite_all(&claims);
    Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: case.coincides(onset.map(|o| o.at), worst.step_ms),
        magnitude: worst.magnitude,
        components: vec![node_component(worst.entity)],
        onset: onset.map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}

/// Port errors in the log of the nodes. The node whose port failed first, and most often, has the fault: those that then report failed
/// transfers wait for it.
fn by_log(case: &Case<'_>, counted: &[Found<'_>]) -> Option<Finding> {
    let errors: Vec<&Line<'_>> =
        case.lines.iter().filter(|l| l.kind == LineKind::PortError && case.window.contains(l.at)).collect();
    let first = errors.iter().find(|l| l.node.is_some())?;
    let (count, node) = (|node: Option<&str>| errors.iter().filter(|l| l.node == node).count(), first.node);
    let others = errors.iter().map(|l| l.node).filter(|n| *n != node).map(count).max().unwrap_or(0);
    // Where ports fail on many nodes alike it is the fabric, and no one of them.
    if others > count(node) {
        return None;
    }
    let mut claims: Vec<DraftClaim> = vec![first.claim()];
    claims.extend(errors.iter().skip(1).find(|l| l.node == node).map(|l| l.claim()));
    let failed = case.lines.iter().find(|l| l.kind == LineKind::TransferFailed && l.at >= first.at);
    claims.extend(failed.map(|l| l.claim()));
    let same = |f: &&Found<'_>| f.entity.get("node").map(String::as_str) == node;
    claims.extend(counted.iter().filter(same).map(|f| f.claim.clone()).take(2));
    let onset = counted.iter().filter(same).filter_map(|f| Some(f.onset?.at)).chain([first.at]).min();
    let why = Sentence::new(
        "A network port of one node failed, by the log of that node; whoever then reports failed transfers waits for it.",
    );
    Some(Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: case.coincides(onset, 0),
        magnitude: 1.0 + errors.len() as f64,
        components: vec![first.node_component()?],
        onset,
        why: why.cite_all(&claims).claim(),
        claims,
        fault: true,
    })))
}

fn node_component(entity: &Entity) -> Component {
    entity.iter().filter(|(key, _)| key.as_str() == "node").map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// What a counter gained in a window.
fn gained(view: &View<'_>, member: &Member<'_>, range: TimeRange) -> Option<f64> {
    if view.is_increase() {
        return member.sum(range);
    }
    let samples: Vec<_> = member.samples.iter().filter(|s| range.contains(s.time)).copied().collect();
    sightline_analysis::increase(&samples).map(|i| i.total)
}

fn noisy<'a>(case: &Case<'a>, view: &View<'a>, member: &Member<'a>) -> Option<Found<'a>> {
    let own = gained(view, member, case.window)?;
    let node = member.entity.get("node");
    let others: Vec<f64> = view
        .members
        .iter()
        .filter(|m| m.entity.get("node") != node)
        .filter_map(|m| gained(view, m, case.window))
        .collect();
    let event = EVENTS.contains(&view.signal);
    let least = match view.signal {
        Signal::IbSymbolErrors => MIN_ERRORS.max(SYMBOL_ERRORS_PER_HOUR * hours(member, case.window)),
        _ => MIN_ERRORS,
    };
    let enough = if event { own >= 1.0 } else { own >= least };
    let stands_out = match median(&others) {
        Some(peers) => own >= TIMES_PEERS * peers,
        None => own >= TIMES_PEERS * gained(view, member, case.before()?)?,
    };
    if !enough || !stands_out {
        return None;
    }
    // Errors trickle in: the onset is the first step with at least half of the typical gain of the steps that have one.
    let gains: Vec<f64> = member.points.iter().map(|p| p.value).filter(|v| *v > 0.0).collect();
    let typical = median(&gains)?;
    let onset = view
        .is_increase()
        .then(|| member.points.iter().find(|p| p.value >= typical / 2.0))
        .flatten()
        .map(|p| Onset { at: p.time, evidence: view.evidence, entity: member.entity });
    let quantity = if view.is_increase() {
        stat(view.evidence, member.entity, Stat::Sum, Some(case.window))
    } else {
        let (last, first) = (
            stat(view.evidence, member.entity, Stat::Last, Some(case.window)),
            stat(view.evidence, member.entity, Stat::First, Some(case.window)),
        );
        Quantity::Difference(Box::new(last), Box::new(first))
    };
    let text = format!(
        "{} of {} grew by {{gain}} in the window, far more than its peers'.",
        view.signal.words(),
        who(member.entity)
    );
    let claim = Sentence::new(&format!("The {text}"))
        .entity(view.evidence, member.entity)
        .number("gain", quantity.clone(), 0, view.unit())
        .holds(quantity, Relation::Above, Quantity::Constant(0.0))
        .claim();
    Some(Found {
        evidence: view.evidence,
        entity: member.entity,
        claim,
        onset,
        magnitude: own.ln_1p(),
        step_ms: view.step_ms,
    })
}

/// For how long a member was seen in a window.
fn hours(member: &Member<'_>, range: TimeRange) -> f64 {
    let times = || member.within(range).map(|p| p.time.as_millisecond());
    let (first, last) = (times().min(), times().max());
    first.zip(last).map_or(0.0, |(first, last)| (last - first) as f64 / 3_600_000.0)
}

fn slow_port<'a>(case: &Case<'a>, view: &View<'a>, member: &Member<'a>) -> Option<Found<'a>> {
    let levels = segments(&member.samples, MIN_RELATIVE);
    let fastest = view
        .members
        .iter()
        .filter_map(|m| best_level(&segments(&m.samples, MIN_RELATIVE), Direction::Rise))
        .reduce(f64::max)?;
    let low = excursion(&levels, fastest, Direction::Fall, MIN_RELATIVE, case.window)?;
    let range = low.range()?;
    let own = stat(view.evidence, member.entity, Stat::Median, Some(range));
    let text = format!("A port of {} runs at {{own}}, below the fastest port of the job.", who(member.entity));
    let claim = Sentence::new(&text).entity(view.evidence, member.entity).number("own", own, 0, view.unit()).claim();
    let onset = low.onset().and_then(|at| member.first_from(at)).map(|p| Onset {
        at: p.time,
        evidence: view.evidence,
        entity: member.entity,
    });
    Some(Found {
        evidence: view.evidence,
        entity: member.entity,
        claim,
        onset,
        magnitude: 10.0 * low.depth,
        step_ms: view.step_ms,
    })
}
