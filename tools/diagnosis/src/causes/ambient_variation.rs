//! All GPUs a little warmer and a little slower with the time of day: no fault, and nobody's.
//!
//! Speaks for it: temperatures of all GPUs move together, clocks follow by a percent or two, nobody stands out. Rules it out: a
//! GPU that stands out, or temperatures that do not move.

use sightline_analysis::{Grid, Sample, median, quantile};
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::clocks::Reason;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "ambient_variation", assess };

/// Temperatures must move by this share between their warm and cool tenths to speak of ambient heat.
const WARMER: f64 = 0.03;

/// Llama 3 405B (Meta, 2024) lost 1 to 2 % of throughput to the heat of midday; half a percent of clock is the least to count.
const SLOWER: f64 = 0.005;

fn assess(case: &Case<'_>) -> Finding {
    let (Some(heat), Some(clock)) = (case.view(Signal::GpuTemperature), case.view(Signal::SmClock)) else {
        return case.no_data(&[Signal::GpuTemperature, Signal::SmClock]);
    };
    let ruled_out =
        |text: &str| Finding::RuledOut(Sentence::new(text).cite(&heat.evidence.id).cite(&clock.evidence.id).claim());
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) {
        return ruled_out("Not the explanation: one GPU stands out, and ambient heat would slow all alike.");
    }
    let (Some(warm), Some(slow)) = (swing(heat), swing(clock)) else {
        return ruled_out("Not the explanation: the series are too short to show the course of a day.");
    };
    let follows = sightline_analysis::lagged_correlation(&typical(heat), &typical(clock), heat.step_ms, 2)
        .is_some_and(|c| c.r <= -0.5 && c.p_value < 0.01);
    if warm < WARMER || !(SLOWER..MIN_RELATIVE).contains(&slow) || !follows {
        return ruled_out("Not the explanation: clocks do not follow a common course of temperature.");
    }
    let all = Entity::new();
    let (low, high) = (stat(heat.evidence, &all, Stat::Median, None), stat(heat.evidence, &all, Stat::P95, None));
    let claim = Sentence::new(
        "GPU temperatures of the whole job move together between {low} at the median and {high} at the warmest.",
    )
    .number("low", low.clone(), 0, heat.unit())
    .number("high", high.clone(), 0, heat.unit())
    .holds(high, Relation::AtLeast, low)
    .claim();
    let why = Sentence::new("All GPUs are a little slower when all are a little warmer, and none stands out.")
        .cite(&clock.evidence.id);
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: None,
        magnitude: slow,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset: None,
        why: why.claim(),
        claims: std::iter::once(claim).chain(throughput(case)).collect(),
        fault: false,
    }))
}

/// How much of the job's throughput it takes.
fn throughput(case: &Case<'_>) -> Option<DraftClaim> {
    let view = case.view(Signal::Throughput)?;
    let member = view.members.first()?;
    let of = |which: Stat| stat(view.evidence, member.entity, which, None);
    let sentence =
        Sentence::new("The throughput of the job was {usual} at the median meanwhile, and {best} at its best hours.")
            .entity(view.evidence, member.entity)
            .number("usual", of(Stat::Median), 0, view.unit())
            .number("best", of(Stat::P95), 0, view.unit())
            .holds(of(Stat::P95), Relation::AtLeast, of(Stat::Median));
    Some(sentence.claim())
}

/// The median over all GPUs at each step.
fn typical(view: &View<'_>) -> Vec<Sample> {
    let Some(grid) = Grid::new(&view.members, view.step_ms) else { return Vec::new() };
    (0..grid.slots())
        .filter_map(|slot| {
            let values: Vec<f64> = grid.column(slot).into_iter().flatten().collect();
            Some(Sample { time: grid.time(slot), value: median(&values)? })
        })
        .collect()
}

/// The distance between the upper and the lower tenth of the typical course, as a share of its median.
fn swing(view: &View<'_>) -> Option<f64> {
    let course: Vec<f64> = typical(view).iter().map(|s| s.value).collect();
    if course.len() < 24 {
        return None;
    }
    let (low, high, middle) = (quantile(&course, 0.1)?, quantile(&course, 0.9)?, median(&course)?);
    (middle > 0.0).then(|| (high - low) / middle)
}
