//! One worker that is slower than the rest, for a reason that the telemetry does not name.
//!
//! Speaks for it: a low clock that neither heat nor power explains; a rank whose own compute time is longer; a GPU that is
//! idle while all others wait at full utilisation. Rules it out: no worker stands out, or a named cause explains it. Trap: victims
//! wait, so the odd one by communication time is the one that waits least.

use jiff::Timestamp;
use sightline_analysis::{Direction, median, ratio_to_peers};
use sightline_model::{Component, DraftClaim, Entity, Evidence, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, OUTLIER_Z, Strength, Support};
use crate::causes::{driver_regression, hardware_degradation, pipeline_stage_imbalance, workload_imbalance};
use crate::clocks::{Basis, LowClock, Reason, Side, distance};
use crate::level::{excursion, may_leave, segments};
use crate::pace::Onset;
use crate::sentence::{Sentence, peers, stat, who};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "slow_worker", assess };

fn assess(case: &Case<'_>) -> Finding {
    let low = low_without_reason(case);
    let explained = case.clocks.iter().any(|c| c.reason != Reason::Idle);
    if let Some(worker) = unexplained(case)
        && hardware_degradation::reported(case).explains(case, &worker)
    {
        let named = case.about(
            &worker,
            "Ruled out as a cause of its own: GPU {gpu} on {node} is slow, and it reports errors that tell why.",
            "Ruled out as a cause of its own: the slow worker reports errors that tell why.",
        );
        return Finding::RuledOut(named.claim());
    }
    if let Some(text) = shared_by_more_than_one(case) {
        return Finding::RuledOut(Sentence::new(text).claim());
    }
    if let Some(worst) = low.first() {
        return by_clock(case, worst, &low);
    }
    if !explained {
        if let Some((view, odd, what)) = standing_out(case) {
            return by_rank(case, view, &odd, what, Strength::Pattern);
        }
        if let Some(found) = idle_while_others_wait(case) {
            return found;
        }
    }
    if case.view(Signal::SmClock).is_none() && case.view(Signal::ComputeTime).is_none() {
        return case.no_data(&[Signal::SmClock, Signal::ComputeTime]);
    }
    let why = match (explained, case.clocks.first(), case.view(Signal::SmClock)) {
        (true, Some(low), Some(view)) => {
            Sentence::new("Ruled out as a cause of its own: what makes GPU {gpu} on {node} slow has a name.")
                .entity(view.evidence, low.entity)
        }
        (_, _, Some(view)) => {
            Sentence::new("Ruled out: no worker of the job stands out from its peers.").cite(&view.evidence.id)
        }
        (_, _, None) => Sentence::new("Ruled out: no rank of the job computes longer than its peers."),
    };
    Finding::RuledOut(why.claim())
}

/// Why the one that is last is no culprit of its own.
fn shared_by_more_than_one(case: &Case<'_>) -> Option<&'static str> {
    if driver_regression::cohort_is_slow(case) {
        return Some("Ruled out: all nodes with the newest driver are slow, not one worker.");
    }
    if pipeline_stage_imbalance::holds(case) {
        return Some("Ruled out: a whole block of ranks has been slower from the start, not one worker.");
    }
    workload_imbalance::holds(case)
        .then_some("Ruled out: the last rank is another one at every moment; a slow worker stays the last.")
}

fn low_without_reason<'c, 'a>(case: &'c Case<'a>) -> Vec<&'c LowClock<'a>> {
    case.clocks.iter().filter(|c| c.reason == Reason::Unexplained).collect()
}

/// The worker that stands out although neither heat nor power explains it.
pub(crate) fn unexplained(case: &Case<'_>) -> Option<Component> {
    if let Some(low) = low_without_reason(case).first() {
        return Some(low.placement.component());
    }
    let explained = case.clocks.iter().any(|c| c.reason != Reason::Idle);
    standing_out(case).filter(|_| !explained).map(|(_, odd, _)| odd.component)
}

/// A rank that all others wait for, by its place in a view.
#[derive(Clone, Debug)]
pub(crate) struct StandingOut {
    signal: Signal,
    member: usize,
    component: Component,
    range: TimeRange,
    onset: Option<Timestamp>,
    depth: f64,
    what: &'static str,
}

/// The rank that all others wait for, by the job's own timers, and what it does.
pub(crate) fn standing_out<'c, 'a>(case: &'c Case<'a>) -> Option<(&'c View<'a>, OddOne<'a>, &'static str)> {
    let found = case.found.standing_out.get_or_init(|| find_standing_out(case)).as_ref()?;
    let view = case.view(found.signal)?;
    let entity = view.members.get(found.member)?.entity;
    let (component, evidence) = (found.component.clone(), view.evidence);
    let odd = OddOne { entity, component, range: found.range, onset: found.onset, evidence, depth: found.depth };
    Some((view, odd, found.what))
}

fn find_standing_out(case: &Case<'_>) -> Option<StandingOut> {
    [
        (Signal::ComputeTime, Direction::Rise, "computes longer per step than its peers"),
        (Signal::CommunicationTime, Direction::Fall, "waits less for the others than they wait for it"),
    ]
    .into_iter()
    .find_map(|(signal, direction, what)| {
        let view = case.view(signal)?;
        // Most ranks never differ by what would matter: a half of it is looked for.
        let length = case.view(Signal::StepTime).and_then(|v| v.typical(case.window));
        let least = match (length, view.typical(case.window)) {
            (Some(step), Some(level)) if level > 0.0 => MIN_RELATIVE * step / level / 2.0,
            _ => 0.0,
        };
        let odd = odd_beyond(case, view, direction, least).filter(|odd| matters(case, view, odd))?;
        let member = view.members.iter().position(|m| m.entity == odd.entity)?;
        let OddOne { component, range, onset, depth, .. } = odd;
        Some(StandingOut { signal, member, component, range, onset, depth, what })
    })
}

/// A difference between ranks costs time only if it is a part of the step that counts.
fn matters(case: &Case<'_>, view: &View<'_>, odd: &OddOne<'_>) -> bool {
    let own = view.members.iter().find(|m| m.entity == odd.entity).and_then(|m| m.median(odd.range));
    let step = case.view(Signal::StepTime).and_then(|v| v.typical(odd.range));
    match (own, view.peers(odd.entity, odd.range), step) {
        (Some(own), Some(peers), Some(step)) => (own - peers).abs() >= MIN_RELATIVE * step,
        // Without a step time the rank's own excess has to do.
        _ => true,
    }
}

fn by_clock(case: &Case<'_>, worst: &LowClock<'_>, all: &[&LowClock<'_>]) -> Finding {
    let mut claims = clock_claims(case, worst);
    claims.extend(not_hot_claim(case, worst));
    claims.extend(worst.onset.as_ref().and_then(|o| case.coincidence(o, worst.step_ms)));
    let text = match (worst.proven, case.view(Signal::ClockReasons)) {
        (true, Some(_)) => {
            "GPU {gpu} on {node} runs at a low clock, and its clock event reasons name neither heat nor a power limit of its own."
        }
        _ => {
            "GPU {gpu} on {node} runs at a low clock; clock event reasons are not collected, so what holds it down cannot be told."
        }
    };
    let mut why = Sentence::new(text);
    if let Some(view) = case.view(Signal::SmClock) {
        why = why.entity(view.evidence, worst.entity);
    }
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: case.coincides(worst.onset.map(|o| o.at), worst.step_ms),
        magnitude: worst.depth,
        components: all.iter().map(|c| c.placement.component()).collect(),
        onset: worst.onset.map(|o| o.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}

/// The claims about a low clock that several causes share.
pub(crate) fn clock_claims(case: &Case<'_>, low: &LowClock<'_>) -> Vec<DraftClaim> {
    let Some(view) = case.view(Signal::SmClock) else { return Vec::new() };
    let own = stat(view.evidence, low.entity, Stat::Median, Some(low.range));
    let (reference, against) = match (low.basis, low.good) {
        (Basis::OwnPast, Some(good)) => {
            (stat(view.evidence, low.entity, Stat::Median, Some(good)), "against {reference} at its best")
        }
        (Basis::OwnPast, None) => return Vec::new(),
        (Basis::Peers, _) => {
            (peers(view.evidence, low.entity, Stat::Median, Some(low.range)), "while its peers ran at {reference}")
        }
    };
    let since = if low.onset.is_some() { " from {onset} on" } else { "" };
    let text = format!("GPU {{gpu}} on {{node}} ran at an SM clock of {{own}}{since}, {against}.");
    let mut sentence = Sentence::new(&text)
        .entity(view.evidence, low.entity)
        .number("own", own.clone(), 0, view.unit())
        .number("reference", reference.clone(), 0, view.unit())
        .holds(own, Relation::Below, reference);
    if let Some(onset) = &low.onset {
        sentence = sentence.instant("onset", onset.evidence, onset.entity, onset.at);
    }
    vec![sentence.claim()]
}

/// A claim that a slow GPU is no hotter than its peers; `None` when it is or when it is not known.
pub(crate) fn not_hot_claim(case: &Case<'_>, low: &LowClock<'_>) -> Option<DraftClaim> {
    let view = case.view(Signal::GpuTemperature).filter(|_| low.basis == Basis::Peers)?;
    let member = view.of(low.placement)?;
    let (value, others) = (member.median(low.range)?, view.peers(member.entity, low.range)?);
    let own = stat(view.evidence, member.entity, Stat::Median, Some(low.range));
    let peer = peers(view.evidence, member.entity, Stat::Median, Some(low.range));
    (value <= others).then(|| {
        Sentence::new("It was not hot: {own}, its peers {peers}.")
            .number("own", own.clone(), 0, view.unit())
            .number("peers", peer.clone(), 0, view.unit())
            .holds(own, Relation::AtMost, peer)
            .claim()
    })
}

/// A member that left its peers' level.
pub(crate) struct OddOne<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) component: Component,
    pub(crate) range: TimeRange,
    pub(crate) onset: Option<Timestamp>,
    pub(crate) evidence: &'a Evidence,
    pub(crate) depth: f64,
}

/// The one member of a signal that is off its peers in the given direction; `None` when none or several are.
pub(crate) fn odd_one<'a>(case: &Case<'a>, view: &View<'a>, direction: Direction) -> Option<OddOne<'a>> {
    odd_beyond(case, view, direction, MIN_RELATIVE)
}

/// The same, where members that never differ from their peers by `least`, as a share, need not be looked at.
fn odd_beyond<'a>(case: &Case<'a>, view: &View<'a>, direction: Direction, least: f64) -> Option<OddOne<'a>> {
    if view.members.len() < 3 {
        return None;
    }
    let ratios = ratio_to_peers(&view.members, view.step_ms);
    let mut found: Vec<OddOne<'a>> = Vec::new();
    for (member, ratio) in view.members.iter().zip(&ratios) {
        if !may_leave(ratio, 1.0, direction, least.max(MIN_RELATIVE)) {
            continue;
        }
        let Some(off) = excursion(&segments(ratio, MIN_RELATIVE), 1.0, direction, MIN_RELATIVE, case.window) else {
            continue;
        };
        let Some(range) = off.range() else { continue };
        let others: Vec<f64> =
            view.members.iter().filter(|m| m.entity != member.entity).filter_map(|m| m.median(range)).collect();
        let (Some(value), Some(peer)) = (member.median(range), median(&others)) else { continue };
        let side = match direction {
            Direction::Rise => Side::High,
            Direction::Fall => Side::Low,
        };
        if distance(&others, peer, value, side, MIN_RELATIVE / 2.0).is_some_and(|d| d >= OUTLIER_Z) {
            let onset = off.onset().and_then(|at| member.first_from(at)).map(|p| p.time);
            let component = component_of(case, member.entity);
            let (entity, evidence) = (member.entity, view.evidence);
            found.push(OddOne { entity, component, range, onset, evidence, depth: off.depth });
        }
    }
    found.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    // Where many are odd, the workers differ by design (pipeline stages), and no one of them is the culprit.
    (found.len() * 4 <= view.members.len().max(4)).then(|| found.into_iter().next()).flatten()
}

/// The component of an entity; a rank is turned into its GPU where the placement is known.
fn component_of(case: &Case<'_>, entity: &Entity) -> Component {
    let by_rank = entity.get("rank").and_then(|rank| {
        case.observations.job.placements.iter().find(|p| p.rank.as_ref() == Some(rank)).map(|p| p.component())
    });
    let own: Component =
        ["node", "gpu", "rank"].iter().filter_map(|key| Some(((*key).to_owned(), entity.get(*key)?.clone()))).collect();
    if own.contains_key("gpu") { own } else { by_rank.unwrap_or(own) }
}

fn by_rank(case: &Case<'_>, view: &View<'_>, odd: &OddOne<'_>, what: &str, strength: Strength) -> Finding {
    let own = stat(view.evidence, odd.entity, Stat::Median, Some(odd.range));
    let peer = peers(view.evidence, odd.entity, Stat::Median, Some(odd.range));
    let rises = view.members.iter().find(|m| m.entity == odd.entity).and_then(|m| m.median(odd.range))
        > view.peers(odd.entity, odd.range);
    let relation = if rises { Relation::Above } else { Relation::Below };
    let text = format!("The {} of {} was {{own}}, its peers' {{peers}}.", view.signal.words(), who(odd.entity));
    let mut claims = vec![
        Sentence::new(&text)
            .entity(view.evidence, odd.entity)
            .number("own", own.clone(), 3, view.unit())
            .number("peers", peer.clone(), 3, view.unit())
            .holds(own, relation, peer)
            .claim(),
    ];
    let onset = odd.onset.map(|at| Onset { at, evidence: odd.evidence, entity: odd.entity });
    claims.extend(onset.as_ref().and_then(|o| case.coincidence(o, view.step_ms)));
    let why = Sentence::new(&format!("{} {what}.", capital(who(odd.entity)))).entity(view.evidence, odd.entity);
    Finding::Supported(Box::new(Support {
        strength,
        coincides: case.coincides(odd.onset, view.step_ms),
        magnitude: odd.depth,
        components: vec![odd.component.clone()],
        onset: odd.onset,
        why: why.claim(),
        claims,
        fault: true,
    }))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// One GPU with little to do while its peers show full utilisation: they spin in a collective and wait for it.
fn idle_while_others_wait(case: &Case<'_>) -> Option<Finding> {
    let view = case.view(Signal::Utilization)?;
    let odd = odd_one(case, view, Direction::Fall)?;
    // A job that stands still is not slow: who did not come to its collective is another question.
    if case.stall.as_ref().is_some_and(|s| !s.resumed) {
        return None;
    }
    let value = view.members.iter().find(|m| m.entity == odd.entity)?.median(odd.range)?;
    let others = view.peers(odd.entity, odd.range)?;
    // Waiting in a collective shows as a utilisation near 100; a culprit at under half of that is doing something else.
    (others >= 90.0 && value < others / 2.0).then(|| {
        by_rank(case, view, &odd, "has little to do on the GPU while all others wait for it", Strength::Pattern)
    })
}
