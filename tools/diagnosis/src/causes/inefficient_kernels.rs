//! GPUs that are busy all the time with kernels that do not use what they have.
//!
//! Needs tensor activity and SM activity or power. Speaks for it: the SMs stay at work and nobody waits, but tensor activity fell
//! with the slowdown on all GPUs alike; activity moved to the single-precision pipe; or tensor cores were hardly used from the start.
//! Rules it out: tensor activity that kept its level; SMs or power that fell with it, which is waiting; a slow clock. Trap: whoever
//! waits in a collective shows high utilisation and low tensor activity too, but few SMs at work and little power.

use sightline_model::{DraftClaim, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, MIN_RELATIVE, Strength, Support};
use crate::pace::Slowdown;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::View;

pub(crate) const CHECK: Check = Check { id: "inefficient_kernels", assess };

/// Tensor activity must lose this share: a tenth of a step more in any other phase takes a tenth of it.
const MIN_LOSS: f64 = 0.15;

/// So many GPUs must have lost it together.
const QUORUM: f64 = 0.8;

/// Waiting GPUs lose SM activity and power; those at work keep this share of both.
const STILL_AT_WORK: f64 = 0.85;

/// DCGM's guide: SM activity of 0.5 and less is ineffective use, 0.8 is needed for effective use; between both a GPU is at work.
const AT_WORK: f64 = 0.65;

/// Tensor activity below a tenth on SMs that are at work: the math runs on other pipes. Training that uses tensor cores shows several
/// times as much.
const HARDLY_USED: f64 = 0.1;

/// Memory activity from which memory and not the choice of kernels is the limit (see `memory_bandwidth_bound`).
const MEMORY_BOUND: f64 = 0.6;

/// The single-precision pipe took over when its activity doubled.
const TIMES_BEFORE: f64 = 2.0;

/// Whether the kernels do not use what the GPUs have.
pub(crate) fn holds(case: &Case<'_>) -> bool {
    matches!(assess(case), Finding::Supported(_))
}

fn assess(case: &Case<'_>) -> Finding {
    let (Some(tensor), true) = (
        case.view(Signal::TensorActive).filter(|v| v.typical(case.window).is_some_and(|level| level > 0.0)),
        case.view(Signal::SmActive).is_some() || case.view(Signal::Power).is_some(),
    ) else {
        return case.no_data(&[Signal::TensorActive, Signal::SmActive]);
    };
    let ruled_out = |text: &str| Finding::RuledOut(Sentence::new(text).cite(&tensor.evidence.id).claim());
    if case.has_slow_clock() {
        return ruled_out(
            "Ruled out: a slow GPU explains the pace, and its peers compute less because they wait for it.",
        );
    }
    match case.pace.slowdown() {
        Some(slowdown) => since(case, tensor, slowdown),
        None => from_the_start(case, tensor),
    }
}

fn since(case: &Case<'_>, tensor: &View<'_>, slowdown: &Slowdown<'_>) -> Finding {
    let ruled_out = |text: &str| Finding::RuledOut(Sentence::new(text).cite(&tensor.evidence.id).claim());
    let lost = |m: &crate::view::Member<'_>| match (m.median(slowdown.good), m.median(slowdown.slow)) {
        (Some(before), Some(after)) => after < before * (1.0 - MIN_LOSS),
        _ => false,
    };
    let losers = tensor.members.iter().filter(|m| lost(m)).count();
    if (losers as f64) < QUORUM * tensor.members.len() as f64 {
        return ruled_out("Ruled out: the tensor activity of the job's GPUs did not fall with its pace.");
    }
    let Some(work) = at_work(case, slowdown) else {
        return ruled_out(
            "Ruled out: the GPUs compute less because they wait; their SM activity or power fell as well.",
        );
    };
    if waits_more(case, slowdown) {
        return ruled_out("Ruled out: time spent waiting makes up what the step gained.");
    }
    let all = Entity::new();
    let before = stat(tensor.evidence, &all, Stat::Median, Some(slowdown.good));
    let after = stat(tensor.evidence, &all, Stat::Median, Some(slowdown.slow));
    let mut claims = vec![
        Sentence::new("Tensor activity of all GPUs fell from {before} to {after}, by {change}.")
            .number("before", before.clone(), 2, tensor.unit())
            .number("after", after.clone(), 2, tensor.unit())
            .percent("change", before.clone(), after.clone())
            .holds(after, Relation::Below, before)
            .claim(),
        work,
    ];
    let other_pipe = other_pipe(case, slowdown);
    let strength = if other_pipe.is_some() { Strength::Proof } else { Strength::Pattern };
    claims.extend(other_pipe);
    let why = Sentence::new(
        "The GPUs are as busy as before and nobody waits, but their tensor cores do less: the kernels got worse, as after a change of precision or of an operator's implementation.",
    );
    Finding::Supported(Box::new(Support {
        strength,
        coincides: slowdown.onset.map(|_| true),
        magnitude: slowdown.factor,
        components: case.whole_job(),
        onset: slowdown.onset.map(|o| o.at),
        why: why.cite(&tensor.evidence.id).claim(),
        claims,
        fault: true,
    }))
}

/// A claim that the SMs stayed at work; `None` when they did not. SM activity tells, else power does.
fn at_work(case: &Case<'_>, slowdown: &Slowdown<'_>) -> Option<DraftClaim> {
    let active = case.view(Signal::SmActive).filter(|v| v.typical(case.window).is_some_and(|level| level > 0.0));
    let view = active.or_else(|| case.view(Signal::Power))?;
    let (before, after) = (view.typical(slowdown.good)?, view.typical(slowdown.slow)?);
    let enough = view.signal != Signal::SmActive || after >= AT_WORK;
    let power_kept = case.view(Signal::Power).is_none_or(|power| {
        match (power.typical(slowdown.good), power.typical(slowdown.slow)) {
            (Some(before), Some(after)) => after >= before * 0.7,
            _ => true,
        }
    });
    let all = Entity::new();
    let text = format!("Meanwhile their {} was {{after}}, against {{before}} before.", view.signal.words());
    (enough && power_kept && after >= STILL_AT_WORK * before).then(|| {
        Sentence::new(&text)
            .number("after", stat(view.evidence, &all, Stat::Median, Some(slowdown.slow)), 2, view.unit())
            .number("before", stat(view.evidence, &all, Stat::Median, Some(slowdown.good)), 2, view.unit())
            .claim()
    })
}

/// Whether waiting for input or for others makes up more than half of what the step gained.
pub(crate) fn waits_more(case: &Case<'_>, slowdown: &Slowdown<'_>) -> bool {
    let Some(gained) = case.view(Signal::StepTime).and_then(|v| {
        let (before, after) = (v.typical(slowdown.good)?, v.typical(slowdown.slow)?);
        (after > before).then_some(after - before)
    }) else {
        return false;
    };
    [Signal::CommunicationTime, Signal::DataLoading].into_iter().filter_map(|s| case.view(s)).any(|view| {
        let risen = |m: &crate::view::Member<'_>| Some(m.mean(slowdown.slow)? - m.mean(slowdown.good)?);
        let rises: Vec<f64> = view.members.iter().filter_map(risen).collect();
        sightline_analysis::median(&rises).is_some_and(|rise| rise > gained / 2.0)
    })
}

fn other_pipe(case: &Case<'_>, slowdown: &Slowdown<'_>) -> Option<DraftClaim> {
    let view = case.view(Signal::Fp32Active)?;
    let (before, after) = (view.typical(slowdown.good)?, view.typical(slowdown.slow)?);
    // Below a twentieth the pipe is idle, whatever the ratio.
    if after < TIMES_BEFORE * before || after < MIN_RELATIVE {
        return None;
    }
    let all = Entity::new();
    let then = stat(view.evidence, &all, Stat::Median, Some(slowdown.good));
    let since = stat(view.evidence, &all, Stat::Median, Some(slowdown.slow));
    Some(
        Sentence::new("The work moved to another pipe: single-precision activity rose from {before} to {after}.")
            .number("before", then.clone(), 2, view.unit())
            .number("after", since.clone(), 2, view.unit())
            .holds(since, Relation::Above, then)
            .claim(),
    )
}

fn from_the_start(case: &Case<'_>, tensor: &View<'_>) -> Finding {
    let all = Entity::new();
    let math = stat(tensor.evidence, &all, Stat::Mean, Some(case.window));
    let kept = Finding::RuledOut(
        Sentence::new("Ruled out: the job kept its pace with a tensor activity of {math} at the mean.")
            .number("math", math.clone(), 2, tensor.unit())
            .claim(),
    );
    let (Some(active), Some(memory)) = (case.view(Signal::SmActive), case.view(Signal::DramActive)) else {
        return kept;
    };
    let level = |view: &View<'_>| view.typical(case.window).unwrap_or(0.0);
    let busy = level(active) >= AT_WORK;
    if !busy || level(tensor) >= HARDLY_USED || level(memory) >= MEMORY_BOUND || level(memory) == 0.0 {
        return kept;
    }
    let claim =
        Sentence::new("SM activity was {active}, tensor activity {math} and memory activity {memory} at the mean.")
            .number("active", stat(active.evidence, &all, Stat::Mean, Some(case.window)), 2, active.unit())
            .number("math", math, 2, tensor.unit())
            .number("memory", stat(memory.evidence, &all, Stat::Mean, Some(case.window)), 2, memory.unit())
            .claim();
    let why = Sentence::new(
        "The SMs are at work all the time, yet neither their tensor cores nor memory are: the kernels do not use what the GPU has.",
    );
    Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: None,
        magnitude: level(active),
        components: case.whole_job(),
        onset: None,
        why: why.cite(&tensor.evidence.id).claim(),
        claims: vec![claim],
        fault: true,
    }))
}
