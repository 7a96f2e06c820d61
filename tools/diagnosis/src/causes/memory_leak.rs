//! Memory that grows from step to step.
//!
//! Speaks for it: GPU memory in use, or host memory taken, rises steadily over the job, the last half included, or until the host
//! has none left. Rules it out: it is level. Traps: allocators fill up at the start and then stay there; a leak that has taken
//! everything is level too, at nothing.

use sightline_analysis::{Sample, Trend, median, quantile, theil_sen, values};
use sightline_model::{Component, DraftClaim, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::pace::Onset;
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View, just_after};

pub(crate) const CHECK: Check = Check { id: "memory_leak", assess };

/// Kendall's tau with time from which a drift is steady.
const STEADY_TAU: f64 = 0.8;

/// The drift must move the level by this share over what was seen.
const MIN_GROWTH: f64 = 0.1;

/// Host memory has run out when less than this share of it is available: where earlyoom begins to end processes by default
/// (its manual, option `-m`).
const RUN_OUT: f64 = 0.1;

/// A member whose memory drifts.
struct Leak<'v, 'a> {
    view: &'v View<'a>,
    member: &'v Member<'a>,
    trend: Trend,
    /// The first point at which there was none left.
    out: Option<Onset<'a>>,
}

/// Whether memory grows without a stop.
pub(crate) fn holds(case: &Case<'_>) -> bool {
    [(Signal::MemoryUsed, 1.0), (Signal::HostMemoryAvailable, -1.0)]
        .into_iter()
        .filter_map(|(signal, sign)| Some((case.view(signal)?, sign)))
        .any(|(view, sign)| view.members.iter().any(|m| drift(view, m, sign).is_some()))
}

fn assess(case: &Case<'_>) -> Finding {
    let views: Vec<(&View<'_>, f64)> = [(Signal::MemoryUsed, 1.0), (Signal::HostMemoryAvailable, -1.0)]
        .into_iter()
        .filter_map(|(s, sign)| Some((case.view(s)?, sign)))
        .collect();
    if views.is_empty() {
        return case.no_data(&[Signal::MemoryUsed, Signal::HostMemoryAvailable]);
    }
    let mut leaks: Vec<Leak<'_, '_>> = Vec::new();
    for (view, sign) in &views {
        leaks.extend(view.members.iter().filter_map(|m| drift(view, m, *sign)));
    }
    leaks.sort_by(|a, b| {
        b.out.is_some().cmp(&a.out.is_some()).then_with(|| growth(&b.trend).total_cmp(&growth(&a.trend)))
    });
    let Some(worst) = leaks.first() else {
        let mut why = Sentence::new("Ruled out: memory in use is level.");
        for (view, _) in &views {
            why = why.cite(&view.evidence.id);
        }
        return Finding::RuledOut(why.claim());
    };
    match &worst.out {
        Some(out) => ran_out(case, worst, out, &leaks),
        None => growing(case, worst, &leaks),
    }
}

/// The host has no memory left: what the job does from then on is paging.
fn ran_out<'a>(case: &Case<'a>, worst: &Leak<'_, 'a>, out: &Onset<'a>, leaks: &[Leak<'_, 'a>]) -> Finding {
    let (view, member) = (worst.view, worst.member);
    let Some(mut claims) = out_claim(view, member, out).map(|claim| vec![claim]) else {
        return case.no_data(&[view.signal]);
    };
    claims.extend(case.coincidence(out, view.step_ms));
    let text = format!(
        "Memory of {} was taken without a stop until none was left; what runs there has to page, and the others wait for it.",
        who(member.entity)
    );
    Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: case.coincides(Some(out.at), view.step_ms),
        magnitude: growth(&worst.trend),
        components: leaks.iter().filter(|l| l.out.is_some()).map(|l| l.member.component()).collect(),
        onset: Some(out.at),
        why: Sentence::new(&text).entity(view.evidence, member.entity).cite(&view.evidence.id).claim(),
        claims,
        fault: true,
    }))
}

/// From what was there at the beginning to what is left.
fn out_claim(view: &View<'_>, member: &Member<'_>, out: &Onset<'_>) -> Option<DraftClaim> {
    let (first, last) = (member.points.first()?, member.points.last()?);
    let (early, late) = (TimeRange::new(first.time, out.at)?, TimeRange::new(out.at, just_after(last.time))?);
    let before = stat(view.evidence, member.entity, Stat::Max, Some(early));
    let after = stat(view.evidence, member.entity, Stat::Median, Some(late));
    let text = format!(
        "The {} of {} fell steadily from {{before}}, was used up at {{out}}, and stayed at {{after}} since.",
        view.signal.words(),
        who(member.entity)
    );
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("before", before.clone(), 0, view.unit())
        .number("after", after.clone(), 0, view.unit())
        .instant("out", out.evidence, out.entity, out.at)
        .holds(after, Relation::Below, before);
    Some(sentence.claim())
}

fn growing(case: &Case<'_>, worst: &Leak<'_, '_>, leaks: &[Leak<'_, '_>]) -> Finding {
    let (view, member, trend) = (worst.view, worst.member, &worst.trend);
    let Some(claim) = drift_claim(view, member) else { return case.no_data(&[view.signal]) };
    let why =
        Sentence::new("Memory grows without a stop: the job slows down when it runs short and dies when it runs out.")
            .cite(&view.evidence.id);
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: None,
        magnitude: growth(trend),
        components: components(case, worst, leaks),
        onset: None,
        why: why.claim(),
        claims: vec![claim],
        fault: true,
    }))
}

/// The level in the first and in the last third of what was seen.
fn drift_claim(view: &View<'_>, member: &Member<'_>) -> Option<DraftClaim> {
    let third = member.points.len() / 3;
    let (first, last) = (member.points.first()?, member.points.last()?);
    let early = TimeRange::new(first.time, member.points.get(third)?.time)?;
    let late = TimeRange::new(member.points.get(member.points.len().checked_sub(third)?)?.time, just_after(last.time))?;
    let (from, to) = (member.median(early)?, member.median(late)?);
    let before = stat(view.evidence, member.entity, Stat::Median, Some(early));
    let after = stat(view.evidence, member.entity, Stat::Median, Some(late));
    let (verb, relation) = if to > from { ("rose", Relation::Above) } else { ("fell", Relation::Below) };
    let text = format!(
        "The {} of {} {verb} steadily, from {{before}} in the first third of the time to {{after}} in the last.",
        view.signal.words(),
        who(member.entity)
    );
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("before", before.clone(), 0, view.unit())
        .number("after", after.clone(), 0, view.unit())
        .holds(after, relation, before);
    Some(sentence.claim())
}

/// Nodes by name; GPUs by name unless most of them grow, which is the program's doing and no GPU's.
fn components(case: &Case<'_>, worst: &Leak<'_, '_>, leaks: &[Leak<'_, '_>]) -> Vec<Component> {
    let alike: Vec<&Leak<'_, '_>> = leaks.iter().filter(|l| l.view.signal == worst.view.signal).collect();
    if worst.view.signal == Signal::MemoryUsed && alike.len() * 2 > case.observations.job.placements.len() {
        return vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])];
    }
    alike.iter().map(|l| l.member.component()).collect()
}

fn growth(trend: &Trend) -> f64 {
    let (start, end) = (trend.at_start, trend.at_end);
    if start.abs() > 0.0 { ((end - start) / start).abs() } else { 0.0 }
}

fn drift<'v, 'a>(view: &'v View<'a>, member: &'v Member<'a>, sign: f64) -> Option<Leak<'v, 'a>> {
    if view.signal == Signal::HostMemoryAvailable
        && let Some(index) = run_out(&member.samples)
    {
        // What is left once nothing is left does not fall any more: the way down is what tells a leak.
        let trend = steady_drift(member.samples.get(..index)?, sign)?;
        let at = member.points.get(index)?.time;
        let out = Some(Onset { at, evidence: view.evidence, entity: member.entity });
        return Some(Leak { view, member, trend, out });
    }
    let trend = steady_drift(&member.samples, sign)?;
    Some(Leak { view, member, trend, out: None })
}

/// The sample at which memory had run out, for good: the first one at the level where what is left stays.
fn run_out(samples: &[Sample]) -> Option<usize> {
    let most = quantile(&values(samples), 0.95)?;
    let scarce = |s: &Sample| s.value < RUN_OUT * most;
    let from = samples.iter().rposition(|s| !scarce(s))? + 1;
    let tail = samples.get(from..)?;
    let left = median(&values(tail.get(tail.len() / 2..)?))?;
    let at = tail.iter().position(|s| s.value <= left + most * RUN_OUT / 10.0)?;
    Some(from + at)
}

fn steady_drift(samples: &[Sample], sign: f64) -> Option<Trend> {
    // Pairs are many: most members are level, which their ends show at a glance.
    let third = samples.len() / 3;
    let (early, late) = (samples.get(..third)?, samples.get(samples.len() - third..)?);
    let (early, late) = (median(&values(early))?, median(&values(late))?);
    if (late - early) * sign < MIN_GROWTH / 2.0 * early.abs() {
        return None;
    }
    let trend = theil_sen(samples)?;
    let half: &[Sample] = samples.get(samples.len() / 2..)?;
    let later = theil_sen(half)?;
    let steady = |t: &Trend| t.tau * sign >= STEADY_TAU && t.p_value < 0.01;
    (steady(&trend) && steady(&later) && growth(&trend) >= MIN_GROWTH).then_some(trend)
}
