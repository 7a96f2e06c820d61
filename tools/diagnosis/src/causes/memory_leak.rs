//! Memory that grows from step to step.
//!
//! Speaks for it: GPU memory in use, or host memory taken, rises steadily over the job, the last half included. Rules it out: it
//! is level. Trap: allocators fill up at the start and then stay there.

use sightline_analysis::{Sample, Trend, median, theil_sen, values};
use sightline_model::{Component, DraftClaim, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View, just_after};

pub(crate) const CHECK: Check = Check { id: "memory_leak", assess };

/// Kendall's tau with time from which a drift is steady.
const STEADY_TAU: f64 = 0.8;

/// The drift must move the level by this share over what was seen.
const MIN_GROWTH: f64 = 0.1;

fn assess(case: &Case<'_>) -> Finding {
    let views: Vec<(&View<'_>, f64)> = [(Signal::MemoryUsed, 1.0), (Signal::HostMemoryAvailable, -1.0)]
        .into_iter()
        .filter_map(|(s, sign)| Some((case.view(s)?, sign)))
        .collect();
    if views.is_empty() {
        return case.no_data(&[Signal::MemoryUsed, Signal::HostMemoryAvailable]);
    }
    let mut leaks: Vec<(&View<'_>, &Member<'_>, Trend)> = Vec::new();
    for (view, sign) in &views {
        leaks.extend(view.members.iter().filter_map(|m| Some((*view, m, leak(m, *sign)?))));
    }
    leaks.sort_by(|a, b| growth(&b.2).total_cmp(&growth(&a.2)));
    let Some((view, member, trend)) = leaks.first() else {
        let mut why = Sentence::new("Ruled out: memory in use is level.");
        for (view, _) in &views {
            why = why.cite(&view.evidence.id);
        }
        return Finding::RuledOut(why.claim());
    };
    let Some(claim) = drift_claim(view, member) else { return case.no_data(&[view.signal]) };
    let why =
        Sentence::new("Memory grows without a stop: the job slows down when it runs short and dies when it runs out.")
            .cite(&view.evidence.id);
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: None,
        magnitude: growth(trend),
        components: components(case, &leaks),
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

fn components(case: &Case<'_>, leaks: &[(&View<'_>, &Member<'_>, Trend)]) -> Vec<Component> {
    let gpus = case.observations.job.placements.len();
    if leaks.len() * 2 > gpus {
        return vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])];
    }
    leaks.iter().map(|(_, m, _)| m.component()).collect()
}

fn growth(trend: &Trend) -> f64 {
    let (start, end) = (trend.at_start, trend.at_end);
    if start.abs() > 0.0 { ((end - start) / start).abs() } else { 0.0 }
}

fn leak(member: &Member<'_>, sign: f64) -> Option<Trend> {
    // Pairs are many: most members are level, which their ends show at a glance.
    let third = member.samples.len() / 3;
    let (early, late) = (member.samples.get(..third)?, member.samples.get(member.samples.len() - third..)?);
    let (early, late) = (median(&values(early))?, median(&values(late))?);
    if (late - early) * sign < MIN_GROWTH / 2.0 * early.abs() {
        return None;
    }
    let trend = theil_sen(&member.samples)?;
    let middle = member.samples.len() / 2;
    let half: &[Sample] = member.samples.get(middle..)?;
    let later = theil_sen(half)?;
    let steady = |t: &Trend| t.tau * sign >= STEADY_TAU && t.p_value < 0.01;
    (steady(&trend) && steady(&later) && growth(&trend) >= MIN_GROWTH).then_some(trend)
}
