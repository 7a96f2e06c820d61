//! What looks like a fault and is the measurement: counters that died, an exporter that repeats itself, an old error code that stays.
//!
//! Speaks for it: readings that contradict each other or cannot be (no activity at full power, sensors that do not move at all on a live
//! GPU), a code that was there before the window and in no log line, a node whose clock is off. Rules it out: none of them. Traps:
//! zero activity of dead counters looks like idle GPUs, a flat line like perfect health; a code that is new in the window is none.

use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Point, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::pace::Pace;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::{Member, View, just_after};

pub(crate) const CHECK: Check = Check { id: "telemetry_artifact", assess };

/// GPUs that show a kernel for more than half of the time are not idle.
const BUSY: f64 = 50.0;

/// A GPU at this share of the most power that was seen is not idle either: DCGM's own advice is half of the board's limit.
const POWERED: f64 = 0.5;

/// Counters that the profiling module samples; they die together.
const PROFILED: [Signal; 4] = [Signal::EngineActive, Signal::SmActive, Signal::TensorActive, Signal::DramActive];

/// Sensors of which at least these must stand still for an exporter to be dead: power moves with every step, temperature with the room.
const ALIVE: [Signal; 2] = [Signal::Power, Signal::GpuTemperature];

/// And for at least so many points.
const FLAT_POINTS: usize = 10;

/// A clock this far off, seconds, puts a node's samples on the wrong side of the minute within which nothing is ordered anyway.
const CLOCK_OFF: f64 = 30.0;

/// What a finding mistakes the measurement for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Profiling counters read zero, or stopped, on busy GPUs.
    DeadCounters,
    /// The exporter of a node repeats its last values.
    FlatLine,
    /// An old Xid that the gauge keeps.
    OldXid,
    /// A node's clock is off.
    Clock,
    /// A share of more than all.
    OverOne,
}

/// One such thing.
#[derive(Clone, Debug)]
pub(crate) struct Artifact {
    pub(crate) kind: Kind,
    components: Vec<Component>,
    claim: DraftClaim,
    /// Where it is told beside the causes.
    pub(crate) note: String,
}

/// Everything of that kind that the case shows.
pub(crate) fn artifacts(case: &Case<'_>) -> Vec<Artifact> {
    [dead_counters(case), stopped_counters(case), flat_line(case), old_xid(case), clock_off(case), over_one(case)]
        .into_iter()
        .flatten()
        .collect()
}

fn assess(case: &Case<'_>) -> Finding {
    let found = artifacts(case);
    let Some(first) = found.first() else {
        let seen = [Signal::Utilization, Signal::Power, Signal::GpuTemperature, Signal::LastXid];
        let Some(view) = seen.into_iter().find_map(|s| case.view(s)) else { return case.no_data(&seen) };
        let why =
            Sentence::new("Ruled out as far as it is collected: no readings contradict each other or stand still.");
        return Finding::RuledOut(why.cite(&view.evidence.id).claim());
    };
    let text = match first.kind {
        Kind::DeadCounters => {
            "Profiling counters show nothing on GPUs that are busy: the counters are broken, the GPUs are not idle."
        }
        Kind::FlatLine => "The exporter of a node repeats its last values: what it shows is not what the GPUs do.",
        Kind::OldXid => {
            "The Xid that is shown is an old one: the gauge keeps the last code until the driver or the exporter restarts."
        }
        Kind::Clock => "The clock of a node is off, so that its samples stand at the wrong times.",
        Kind::OverOne => {
            "A share above one is how activity is counted on a slice of a GPU, and no load that cannot be."
        }
    };
    // What only looks like a fault is the answer where the job is well; where it is not, it is a remark.
    let steady = !matches!(case.pace, Pace::Slower(_)) && case.stall.is_none();
    let misleads = first.kind != Kind::OverOne;
    let mut components: Vec<Component> = Vec::new();
    for component in found.iter().filter(|a| a.kind == first.kind).flat_map(|a| &a.components) {
        if !components.contains(component) {
            components.push(component.clone());
        }
    }
    let claims: Vec<DraftClaim> = found.into_iter().map(|a| a.claim).collect();
    let why = Sentence::new(text).cite_all(&claims);
    Finding::Supported(Box::new(Support {
        strength: if steady && misleads { Strength::Proof } else { Strength::Hint },
        coincides: None,
        magnitude: 1.0,
        components,
        onset: None,
        why: why.claim(),
        claims,
        fault: false,
    }))
}

/// Whether most of the job's GPUs are busy and draw what busy GPUs draw.
fn at_work(case: &Case<'_>, range: TimeRange) -> Option<bool> {
    let busy = case.view(Signal::Utilization)?.typical(range)? > BUSY;
    let Some(power) = case.view(Signal::Power) else { return Some(busy) };
    let most = power.members.iter().filter_map(|m| m.max(power.span()?)).reduce(f64::max)?;
    Some(busy && power.typical(range)? >= POWERED * most)
}

/// Counters that read zero all the time while the GPUs are at work (dcgm-exporter issue 662).
fn dead_counters(case: &Case<'_>) -> Option<Artifact> {
    let at_work = at_work(case, case.window)?;
    let dead: Vec<&View<'_>> = PROFILED
        .into_iter()
        .filter_map(|s| case.view(s))
        .filter(|view| view.typical(case.window) == Some(0.0))
        .collect();
    let (first, true) = (dead.first()?, at_work) else { return None };
    let none = |m: &&Member<'_>| m.max(case.window) == Some(0.0);
    let members: Vec<Component> = first.members.iter().filter(none).map(Member::component).collect();
    let all = sightline_model::Entity::new();
    let most = stat(first.evidence, &all, Stat::Median, Some(case.window));
    let busy = case.view(Signal::Utilization)?;
    let share = stat(busy.evidence, &all, Stat::Median, Some(case.window));
    let names: Vec<&str> = dead.iter().map(|v| v.signal.words()).collect();
    let text =
        format!("The {} read {{most}} while GPU utilisation was {{share}} at the median.", crate::case::list(&names));
    let claim = Sentence::new(&text)
        .number("most", most.clone(), 2, first.unit())
        .number("share", share.clone(), 0, busy.unit())
        .holds(most, Relation::AtMost, Quantity::Constant(0.0))
        .holds(share, Relation::Above, Quantity::Constant(BUSY))
        .claim();
    let whole_job = members.len() == first.members.len();
    Some(Artifact {
        kind: Kind::DeadCounters,
        components: if whole_job { vec![job(case)] } else { members },
        claim,
        note: format!(
            "{} read zero while the GPUs are busy: profiling counters are broken, not idle",
            crate::case::list(&names)
        ),
    })
}

/// Counters that stopped while the other readings of the same GPU go on (DCGM issue 202: after a page fault).
fn stopped_counters(case: &Case<'_>) -> Option<Artifact> {
    let alive = case.view(Signal::Power).or_else(|| case.view(Signal::GpuTemperature))?;
    let view = PROFILED.into_iter().find_map(|s| case.view(s))?;
    let late = 4 * view.step_ms.max(alive.step_ms).max(60_000);
    let end = |m: &Member<'_>| m.points.last().map(|p| p.time.as_millisecond());
    let stopped: Vec<&Member<'_>> = view
        .members
        .iter()
        .filter(|m| {
            let other = alive.members.iter().find(|a| a.entity == m.entity).and_then(end);
            matches!((end(m), other), (Some(own), Some(other)) if other - own > late)
        })
        .collect();
    let first = stopped.first()?;
    let text = format!(
        "The {} of GPU {{gpu}} on {{node}} has no samples after {{last}}, while its {} goes on until {{until}}.",
        view.signal.words(),
        alive.signal.words()
    );
    let claim = Sentence::new(&text)
        .entity(view.evidence, first.entity)
        .last_seen("last", view.evidence, first.entity)
        .last_seen("until", alive.evidence, first.entity)
        .claim();
    Some(Artifact {
        kind: Kind::DeadCounters,
        components: stopped.iter().map(|m| m.component()).collect(),
        claim,
        note: format!(
            "{} stopped on {} GPUs that otherwise report: missing, not zero",
            view.signal.words(),
            stopped.len()
        ),
    })
}

/// The longest stretch of a series, within the window or reaching into it, of points that repeat one value exactly, their smallest and
/// largest samples too; of equally long ones the last.
fn flat_run<'m>(case: &Case<'_>, member: &'m Member<'_>) -> &'m [Point] {
    // Of samples, and not of means: the mean of equal numbers is off by a last digit.
    let same = |a: &Point, b: &Point| a.min == a.max && b.min == b.max && a.min == b.min;
    let reaches = |run: &&[Point]| run.iter().any(|p| case.window.contains(p.time));
    member.points.chunk_by(same).filter(reaches).max_by_key(|run| run.len()).unwrap_or(&[])
}

/// Whether a stretch is long enough to tell that a sensor stands still: where it moved again afterwards it must be twice as long, since
/// a load that does not change for some minutes comes and goes too.
fn stands_still(case: &Case<'_>, member: &Member<'_>) -> bool {
    let run = flat_run(case, member);
    let goes_on = run.last().map(|p| p.time) == member.points.last().map(|p| p.time);
    run.len() >= if goes_on { FLAT_POINTS } else { 2 * FLAT_POINTS }
}

/// A node all of whose GPUs' sensors stand still while those of other nodes, or its own before, move (gpu-monitoring-tools issue 188).
fn flat_line(case: &Case<'_>) -> Option<Artifact> {
    let views: Vec<&View<'_>> = ALIVE.into_iter().filter_map(|s| case.view(s)).collect();
    let power = views.iter().find(|v| v.signal == Signal::Power)?;
    if views.len() < ALIVE.len() {
        return None;
    }
    let mut nodes: Vec<&str> = Vec::new();
    for placement in &case.observations.job.placements {
        let node = placement.node.as_str();
        if nodes.contains(&node) {
            continue;
        }
        let of_node = |m: &&Member<'_>| m.entity.get("node").is_some_and(|n| n == node);
        let flat = views.iter().all(|view| {
            let mut here = view.members.iter().filter(of_node).peekable();
            here.peek().is_some() && here.all(|m| stands_still(case, m))
        });
        if flat {
            nodes.push(node);
        }
    }
    let first = *nodes.first()?;
    let member = power.members.iter().find(|m| m.entity.get("node").is_some_and(|n| n == first))?;
    let moves = |m: &Member<'_>| flat_run(case, m).len() < m.points.len().min(FLAT_POINTS);
    let run = flat_run(case, member);
    let moved_before_or_after = run.len() < member.points.len();
    // Where all stand still and always did, the sensors may be of a kind that does not move.
    if !moved_before_or_after && !power.members.iter().any(moves) {
        return None;
    }
    let (from, to) = (run.first()?.time, run.last()?.time);
    let range = TimeRange::new(from, just_after(to))?;
    let least = stat(power.evidence, member.entity, Stat::Min, Some(range));
    let most = stat(power.evidence, member.entity, Stat::Max, Some(range));
    // What else stands still is held to it as well.
    let also: Vec<(Quantity, Quantity)> = views
        .iter()
        .filter(|view| view.signal != Signal::Power)
        .filter_map(|view| {
            let same = view.members.iter().find(|m| m.entity == member.entity)?;
            let run = flat_run(case, same);
            let range = TimeRange::new(run.first()?.time, just_after(run.last()?.time))?;
            let of = |which: Stat| stat(view.evidence, same.entity, which, Some(range));
            Some((of(Stat::Max), of(Stat::Min)))
        })
        .collect();
    let goes_on = member.points.last().is_some_and(|p| p.time == to);
    let sentence = Sentence::new(if goes_on {
        "From {from} on the power draw of GPU {gpu} on {node} is {least} in every sample, and its temperature does not move either."
    } else {
        "From {from} until {to} the power draw of GPU {gpu} on {node} is {least} in every sample, and its temperature does not move either."
    });
    let sentence = if goes_on { sentence } else { sentence.instant("to", power.evidence, member.entity, to) };
    let claim = also
        .into_iter()
        .fold(sentence, |sentence, (most, least)| sentence.holds(most, Relation::AtMost, least))
        .entity(power.evidence, member.entity)
        .instant("from", power.evidence, member.entity, from)
        .number("least", least.clone(), 0, power.unit())
        .holds(most, Relation::AtMost, least)
        .claim();
    let advice = if goes_on { "restart it" } else { "it moved again by itself" };
    Some(Artifact {
        kind: Kind::FlatLine,
        components: nodes.iter().map(|n| Component::from([("node".to_owned(), (*n).to_owned())])).collect(),
        claim,
        note: format!("the exporter of {} repeated its last values from {from} on: {advice}", nodes.join(", ")),
    })
}

/// A code that stands in the gauge all the time, and in no line of the log (DCGM issue 277).
fn old_xid(case: &Case<'_>) -> Option<Artifact> {
    let view = case.view(Signal::LastXid)?;
    let range = view.span()?;
    let old: Vec<&Member<'_>> = view
        .members
        .iter()
        .filter(|m| {
            let (Some(first), Some(last)) = (m.points.first(), m.points.last()) else { return false };
            let same = first.value > 0.0 && m.points.iter().all(|p| p.value == first.value);
            let logged =
                case.xids.iter().any(|x| m.entity.get("node") == Some(&x.node) && f64::from(x.code) == last.value);
            same && m.points.len() > 1 && !logged
        })
        .collect();
    let first = old.first()?;
    let least = stat(view.evidence, first.entity, Stat::Min, Some(range));
    let most = stat(view.evidence, first.entity, Stat::Max, Some(range));
    let claim = Sentence::new(
        "The last Xid of GPU {gpu} on {node} was {least} from the first sample on and did not change: nothing shows that it came again.",
    )
    .entity(view.evidence, first.entity)
    .number("least", least.clone(), 0, view.unit())
    .holds(most, Relation::AtMost, least)
    .claim();
    Some(Artifact {
        kind: Kind::OldXid,
        components: old.iter().map(|m| m.component()).collect(),
        claim,
        note: "the gauge of the last Xid shows codes from before this window; it keeps the last one until a restart"
            .to_owned(),
    })
}

/// A node whose clock is off by its own measure.
fn clock_off(case: &Case<'_>) -> Option<Artifact> {
    let view = case.view(Signal::ClockOffset)?;
    let off: Vec<&Member<'_>> =
        view.members.iter().filter(|m| m.median(case.window).is_some_and(|o| o.abs() >= CLOCK_OFF)).collect();
    let first = off.first()?;
    let own = stat(view.evidence, first.entity, Stat::Median, Some(case.window));
    let claim = Sentence::new("The clock of {node} is off by {own} at the median.")
        .entity(view.evidence, first.entity)
        .number("own", own, 0, view.unit())
        .claim();
    let nodes: Vec<Component> = off.iter().map(|m| m.component()).collect();
    let names: Vec<&str> = off.iter().filter_map(|m| m.entity.get("node")).map(String::as_str).collect();
    let note = format!("the clock of {} is off: its samples are not ordered against other nodes'", names.join(", "));
    Some(Artifact { kind: Kind::Clock, components: nodes, claim, note })
}

/// Activity above one: a slice of a GPU is counted against a part of the whole (DCGM issue 152).
fn over_one(case: &Case<'_>) -> Option<Artifact> {
    let view = PROFILED.into_iter().filter_map(|s| case.view(s)).find(|view| {
        let most = view.members.iter().filter_map(|m| m.max(case.window)).reduce(f64::max);
        // A rounding beyond one is none.
        most.is_some_and(|most| most > 1.0 + crate::cause::MIN_RELATIVE)
    })?;
    let over = |m: &&Member<'_>| m.max(case.window).is_some_and(|most| most > 1.0 + crate::cause::MIN_RELATIVE);
    let first = view.members.iter().find(over)?;
    let text = format!("The {} of GPU {{gpu}} on {{node}} goes beyond one.", view.signal.words());
    let most = stat(view.evidence, first.entity, Stat::Max, Some(case.window));
    let claim = Sentence::new(&text)
        .entity(view.evidence, first.entity)
        .holds(most, Relation::Above, Quantity::Constant(1.0))
        .cite(&view.evidence.id)
        .claim();
    Some(Artifact {
        kind: Kind::OverOne,
        components: view.members.iter().filter(over).map(Member::component).collect(),
        claim,
        note: format!("{} above one: a slice of a GPU is counted against a part of the whole", view.signal.words()),
    })
}

fn job(case: &Case<'_>) -> Component {
    Component::from([("job".to_owned(), case.observations.job.id.clone())])
}
