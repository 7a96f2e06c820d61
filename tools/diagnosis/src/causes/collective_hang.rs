//! A collective that never ends: all ranks wait in it for one that did not come, and the job stands still.
//!
//! Speaks for it: the job's own progress stops while its GPUs show full utilisation at a power or an activity far below before; the
//! watchdog that ends it. Rules it out: the job went on, or its GPUs are idle while it stands still. Traps: utilisation is full while nothing
//! is computed; the rank with nothing to do is the culprit, not the victim; who reports a failed transfer is not who lost its
//! port; the fault begins when progress stops, not when the watchdog ends the job.

use jiff::Timestamp;
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::lines::{Line, LineKind};
use crate::observation::Placement;
use crate::sentence::{Sentence, peers, stat};
use crate::signal::Signal;
use crate::stall::Stall;
use crate::view::{View, just_after, shift};
use crate::xid::XidClass;

pub(crate) const CHECK: Check = Check { id: "collective_hang", assess };

/// GPUs that spin in a collective show a kernel running nearly all the time.
const SPINNING: f64 = 90.0;

/// What is left of tensor and SM activity and of power when GPUs wait instead of computing. A waiting kernel occupies a few SMs and
/// no tensor pipe; power falls towards idle, less so where memory was the bound.
const LEFT: [(Signal, f64); 3] = [(Signal::TensorActive, 0.3), (Signal::SmActive, 0.5), (Signal::Power, 0.8)];

/// Errors of hardware this long before the halt, or after it, may be why.
const BEFORE_MS: i64 = 600_000;

/// Most ranks wait; more culprits than this share are none.
const FEW: usize = 4;

fn assess(case: &Case<'_>) -> Finding {
    let watchdog = case.lines.iter().find(|l| l.kind == LineKind::Watchdog);
    let Some(stall) = &case.stall else { return without_stall(case, watchdog) };
    let spinning = spins(case, stall);
    if watchdog.is_none() && (stall.resumed || spinning != Some(true)) {
        return not_a_hang(case, stall, spinning);
    }
    let mut claims = vec![stall_claim(stall)];
    claims.extend(spin_claims(case, stall));
    let culprit = culprit(case, Some(stall), watchdog.is_some());
    claims.extend(culprit.claims);
    claims.extend(watchdog.map(Line::claim));
    let explained = hardware_explains(case, stall);
    let why = Sentence::new(
        "The job stands still in a collective: its GPUs show full utilisation but do not compute, and it made no progress after {last}.",
    )
    .instant("last", stall.last.evidence, stall.last.entity, stall.last.at);
    let waits = Sentence::new(
        "The job made no progress after {last}, and its watchdog ended a collective that did not return.",
    )
    .instant("last", stall.last.evidence, stall.last.entity, stall.last.at);
    let why = if spinning == Some(true) { why } else { waits };
    Finding::Supported(Box::new(Support {
        strength: match (explained, watchdog) {
            // The hang is then how the job noticed.
            (true, _) | (false, None) => Strength::Pattern,
            (false, Some(_)) => Strength::Proof,
        },
        coincides: (!explained).then_some(true),
        // Whatever broke goes before how it was noticed.
        magnitude: 0.0,
        components: culprit.components,
        onset: Some(stall.last.at),
        why: why.cite_all(&claims).claim(),
        claims,
        fault: true,
    }))
}

/// What the job's own numbers do not show, its watchdog may still say.
fn without_stall(case: &Case<'_>, watchdog: Option<&Line<'_>>) -> Finding {
    let Some(line) = watchdog else {
        let progress = [Signal::TrainingSteps, Signal::StepTime, Signal::Throughput];
        let Some(view) = progress.into_iter().find_map(|s| case.view(s)) else { return case.no_data(&progress) };
        let why = Sentence::new("Ruled out: the job made progress all the time that it held its GPUs.");
        return Finding::RuledOut(why.cite(&view.evidence.id).claim());
    };
    let culprit = culprit(case, None, true);
    let mut claims = vec![line.claim()];
    claims.extend(culprit.claims);
    let why = Sentence::new("The job's watchdog ended a collective that did not return.").cite_all(&claims);
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: case.coincides(Some(line.at), 0),
        magnitude: 0.0,
        components: culprit.components,
        onset: Some(line.at),
        why: why.claim(),
        claims,
        fault: true,
    }))
}

fn not_a_hang(case: &Case<'_>, stall: &Stall<'_>, spinning: Option<bool>) -> Finding {
    let text = match (spinning, stall.resumed) {
        (Some(true), _) => "Ruled out: the job stood still for a while after {last} and went on by itself.",
        (Some(false), _) => {
            "Ruled out: the job made no progress after {last}, but its GPUs do not spin in a collective."
        }
        (None, _) => return case.no_data(&[Signal::Utilization, Signal::Power]),
    };
    let sentence = Sentence::new(text).instant("last", stall.last.evidence, stall.last.entity, stall.last.at);
    Finding::RuledOut(sentence.claim())
}

/// Whether most GPUs show a kernel running without work being done.
fn spins(case: &Case<'_>, stall: &Stall<'_>) -> Option<bool> {
    let range = stall.inner()?;
    let busy = case.view(Signal::Utilization)?.typical(range)? >= SPINNING;
    let before = before(case, stall)?;
    let left: Vec<bool> = LEFT
        .into_iter()
        .filter_map(|(signal, share)| {
            let view = case.view(signal)?;
            let (now, then) = (view.typical(range)?, view.typical(before).filter(|v| *v > 0.0)?);
            Some(now < share * then)
        })
        .collect();
    (!left.is_empty()).then(|| busy && left.iter().any(|l| *l))
}

/// The job's time before it came to a halt.
fn before(case: &Case<'_>, stall: &Stall<'_>) -> Option<TimeRange> {
    TimeRange::new(case.observations.job.start, stall.last.at)
}

fn stall_claim(stall: &Stall<'_>) -> DraftClaim {
    let text = format!("The job's {} shows no progress after {{last}}.", stall.signal.words());
    Sentence::new(&text).instant("last", stall.last.evidence, stall.last.entity, stall.last.at).claim()
}

fn spin_claims(case: &Case<'_>, stall: &Stall<'_>) -> Vec<DraftClaim> {
    let (Some(range), Some(before)) = (stall.inner(), before(case, stall)) else { return Vec::new() };
    let all = Entity::new();
    let mut claims = Vec::new();
    for (signal, share) in LEFT {
        let Some(view) = case.view(signal) else { continue };
        let (Some(now), Some(then)) = (view.typical(range), view.typical(before)) else { continue };
        if now >= share * then {
            continue;
        }
        let decimals = if signal == Signal::Power { 0 } else { 2 };
        let then = stat(view.evidence, &all, Stat::Median, Some(before));
        let now = stat(view.evidence, &all, Stat::Median, Some(range));
        let text =
            format!("Since then {} was {{now}} at the median over all GPUs, against {{then}} before.", signal.words());
        claims.push(
            Sentence::new(&text)
                .number("now", now.clone(), decimals, view.unit())
                .number("then", then.clone(), decimals, view.unit())
                .holds(now, Relation::Below, then)
                .claim(),
        );
    }
    if let Some(view) = case.view(Signal::Utilization) {
        let busy = stat(view.evidence, &all, Stat::Median, Some(range));
        let text = "Meanwhile GPU utilisation was {busy}: it counts a waiting kernel as busy.";
        let bound = Quantity::Constant(SPINNING);
        claims.push(
            Sentence::new(text)
                .number("busy", busy.clone(), 0, view.unit())
                .holds(busy, Relation::AtLeast, bound)
                .claim(),
        );
    }
    claims
}

/// Who the others wait for.
#[derive(Default)]
struct Culprit {
    components: Vec<Component>,
    claims: Vec<DraftClaim>,
}

fn culprit(case: &Case<'_>, stall: Option<&Stall<'_>>, watchdog: bool) -> Culprit {
    let by_port = stall.and_then(|stall| first_port_error(case, stall));
    let by_idle = || stall.and_then(|stall| idle_ones(case, stall));
    let by_load = || stall.and_then(|stall| busy_ones(case, stall));
    let by_rank = || watchdog.then(|| missing_rank(case)).flatten();
    by_port.or_else(by_idle).or_else(by_rank).or_else(by_load).unwrap_or_else(|| Culprit {
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        claims: Vec::new(),
    })
}

/// The node whose port failed first: those that report failed transfers follow from it.
fn first_port_error(case: &Case<'_>, stall: &Stall<'_>) -> Option<Culprit> {
    let from = shift(stall.last.at, -BEFORE_MS);
    let first = case.lines.iter().find(|l| l.kind == LineKind::PortError && from <= l.at && l.at < stall.until)?;
    Some(Culprit { components: vec![first.node_component()?], claims: vec![first.claim()] })
}

/// GPUs with little to do while all others spin: their ranks never entered the collective.
fn idle_ones(case: &Case<'_>, stall: &Stall<'_>) -> Option<Culprit> {
    let (view, range) = (case.view(Signal::Utilization)?, stall.inner()?);
    let typical = view.typical(range).filter(|t| *t >= SPINNING)?;
    let holds = |m: &&crate::view::Member<'_>| held_then(case, stall, m.entity);
    let idle = |m: &&crate::view::Member<'_>| m.median(range).is_some_and(|own| own < typical / 2.0);
    let odd: Vec<_> = view.members.iter().filter(holds).filter(idle).collect();
    let text = "GPU {gpu} on {node} had little to do meanwhile ({own}), while its peers ({peers}) waited for it.";
    named(view, range, odd.iter().map(|m| m.entity).collect(), text, Relation::Below)
}

/// GPUs that go on as before while all others wait.
fn busy_ones(case: &Case<'_>, stall: &Stall<'_>) -> Option<Culprit> {
    let (range, before) = (stall.inner()?, before(case, stall)?);
    [Signal::Power, Signal::SmActive].into_iter().find_map(|signal| {
        let view = case.view(signal)?;
        let typical = view.typical(range)? / view.typical(before).filter(|v| *v > 0.0)?;
        let goes_on = |m: &&crate::view::Member<'_>| match (m.median(range), m.median(before)) {
            (Some(now), Some(then)) if then > 0.0 => now / then >= 0.9,
            _ => false,
        };
        let holds = |m: &&crate::view::Member<'_>| held_then(case, stall, m.entity);
        let odd: Vec<&Entity> = view.members.iter().filter(holds).filter(goes_on).map(|m| m.entity).collect();
        let text = format!(
            "GPU {{gpu}} on {{node}} went on with {} of {{own}} meanwhile, while its peers waited at {{peers}}.",
            signal.words()
        );
        (typical < 0.8).then(|| named(view, range, odd, &text, Relation::Above)).flatten()
    })
}

/// Whether the attempt that came to a halt ran on that node: a GPU that only a later one got was idle for no fault of its own.
fn held_then(case: &Case<'_>, stall: &Stall<'_>, entity: &Entity) -> bool {
    let attempts = &case.observations.attempts;
    let halted = attempts.iter().rfind(|a| a.from <= stall.last.at);
    halted.is_none_or(|a| a.nodes.is_empty() || entity.get("node").is_none_or(|node| a.nodes.contains(node)))
}

fn named(view: &View<'_>, range: TimeRange, odd: Vec<&Entity>, text: &str, relation: Relation) -> Option<Culprit> {
    if odd.is_empty() || odd.len() * FEW > view.members.len().max(FEW) {
        return None;
    }
    let mut found = Culprit::default();
    for entity in odd {
        let member = view.members.iter().find(|m| m.entity == entity)?;
        let own = stat(view.evidence, entity, Stat::Median, Some(range));
        let others = peers(view.evidence, entity, Stat::Median, Some(range));
        found.components.push(member.component());
        found.claims.push(
            Sentence::new(text)
                .entity(view.evidence, entity)
                .number("own", own.clone(), 0, view.unit())
                .number("peers", others.clone(), 0, view.unit())
                .holds(own, relation, others)
                .claim(),
        );
    }
    Some(found)
}

/// The rank whose watchdog says nothing while most others' do, or that is behind the others by its count of collectives.
fn missing_rank(case: &Case<'_>) -> Option<Culprit> {
    let said: Vec<&Line<'_>> = case.lines.iter().filter(|l| l.kind == LineKind::Watchdog).collect();
    let counts: Vec<u64> = said.iter().filter_map(|l| l.collective).collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    let behind: Vec<&&Line<'_>> =
        said.iter().filter(|l| least < most && l.collective.is_some() && l.collective.as_ref() == least).collect();
    if let [only] = behind.as_slice() {
        let place = placement(case, only.rank.as_ref()?)?;
        return Some(Culprit { components: vec![place.component()], claims: vec![only.claim()] });
    }
    let placed = &case.observations.job.placements;
    let silent: Vec<&Placement> =
        placed.iter().filter(|p| p.rank.is_some() && said.iter().all(|l| l.rank != p.rank)).collect();
    let enough = said.len() * FEW >= placed.len() * (FEW - 1) && !silent.is_empty();
    (enough && silent.len() * FEW <= placed.len())
        .then(|| Culprit { components: silent.iter().map(|p| p.component()).collect(), claims: Vec::new() })
}

fn placement<'a>(case: &Case<'a>, rank: &String) -> Option<&'a Placement> {
    case.observations.job.placements.iter().find(|p| p.rank.as_ref() == Some(rank))
}

/// Whether hardware failed about when the job came to a halt: it is then the cause, and the hang how it shows.
fn hardware_explains(case: &Case<'_>, stall: &Stall<'_>) -> bool {
    let near = |at: Timestamp| shift(stall.last.at, -BEFORE_MS) <= at && at < just_after(stall.until);
    let class = |c: XidClass| {
        matches!(c, XidClass::Memory | XidClass::Nvlink | XidClass::Bus | XidClass::Firmware | XidClass::Hardware)
    };
    case.stopped.iter().any(|s| near(s.last.at))
        || case.xids.iter().any(|x| near(x.at) && x.info().is_some_and(|i| class(i.class)))
}
