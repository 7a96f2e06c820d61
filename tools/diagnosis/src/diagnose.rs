//! From observations to a diagnosis: every check runs, supported causes are ranked, the outcome follows.

use jiff::Timestamp;
use sightline_model::claim::DraftCause;
use sightline_model::{DraftClaim, Outcome, TimeRange};

use crate::case::{Case, list};
use crate::cause::{Finding, Support};
use crate::causes::{CHECKS, compute_bound, telemetry_artifact, telemetry_gap};
use crate::clocks::Reason;
use crate::knowledge::cause_info;
use crate::observation::{Observations, Placement};
use crate::pace::{Pace, Steady};
use crate::ranking::Ranking;
use crate::sentence::Sentence;
use crate::signal::Signal;
use crate::view::shift;

/// What is the matter with the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// How the question ends.
    pub outcome: Outcome,
    /// The sentence to lead with.
    pub headline: DraftClaim,
    /// What the job's own pace shows.
    pub claims: Vec<DraftClaim>,
    /// Every cause that was checked: supported ones first, by rank.
    pub causes: Vec<DraftCause>,
    /// What to do, for the first supported cause.
    pub next_steps: Vec<String>,
    /// Its runbook.
    pub runbooks: Vec<String>,
    /// What is missing or suspicious about the data.
    pub data_health: Vec<String>,
}

/// Series worth a closer look, with steps as fine as they are sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Focus {
    /// Which signal.
    pub signal: Signal,
    /// By which of its metrics.
    pub metric: String,
    /// Whose; none for the job's own series.
    pub placements: Vec<Placement>,
    /// Over which window.
    pub range: TimeRange,
}

/// Judges the case.
pub fn diagnose(observations: &Observations<'_>) -> Diagnosis {
    let case = Case::new(observations);
    let ranking = Ranking::of(CHECKS.iter().map(|c| (c.id, resting(&case, (c.assess)(&case)))));
    let supported = &ranking.supported;
    let outcome = outcome(&case, supported);
    let headline = headline(&case, outcome, supported);
    let (next_steps, runbooks) = ranking.advice();
    let causes = ranking.into_causes();
    let claims = case.pace.claim().into_iter().collect();
    Diagnosis { outcome, headline, claims, causes, next_steps, runbooks, data_health: data_health(&case) }
}

/// A finding whose sentence names no evidence rests on the job's own row: a sentence that cites nothing is not said.
fn resting(case: &Case<'_>, finding: Finding) -> Finding {
    let Some(job) = case.observations.job.evidence.as_ref() else { return finding };
    let rest = |mut claim: DraftClaim| {
        if claim.slots.is_empty() && claim.citations.is_empty() {
            claim.citations.push(job.clone());
        }
        claim
    };
    match finding {
        Finding::Supported(mut support) => {
            support.why = rest(support.why);
            support.claims = support.claims.into_iter().map(rest).collect();
            Finding::Supported(support)
        }
        Finding::RuledOut(why) => Finding::RuledOut(rest(why)),
        Finding::NoData(why) => Finding::NoData(rest(why)),
    }
}

/// The signals without which nothing can be said about the GPUs.
const VITAL: [Signal; 4] = [Signal::SmClock, Signal::GpuTemperature, Signal::Power, Signal::Utilization];

fn outcome(case: &Case<'_>, supported: &[(&'static str, Support)]) -> Outcome {
    if supported.iter().any(|(_, s)| s.fault) {
        return Outcome::Answered;
    }
    let gpus_seen = VITAL.into_iter().any(|s| case.view(s).is_some());
    let gap = supported.iter().any(|(id, _)| *id == telemetry_gap::CHECK.id);
    let covered =
        VITAL.into_iter().find_map(|s| case.view(s)).and_then(|view| telemetry_gap::mean_coverage(case, view));
    match (&case.pace, gpus_seen) {
        // Nothing about the GPUs, or a hole where the cause may hide.
        (_, false) => Outcome::InsufficientData,
        // The job's own timer has no hole: it kept its pace whatever its GPUs' telemetry did.
        (Pace::Steady(steady), true) if gap && kept_pace(case, steady) && !case.failed() && !case.just_started() => {
            Outcome::NoFault
        }
        (_, true) if gap && covered.is_some_and(|share| share < telemetry_gap::POOR_COVERAGE) => {
            Outcome::InsufficientData
        }
        (Pace::Slower(_) | Pace::Unknown, true) if gap => Outcome::InsufficientData,
        // It became slower, and nothing that is collected explains it.
        (Pace::Slower(_), true) => Outcome::InsufficientData,
        // It died, and nothing says of what; or it is too young to be judged.
        (Pace::Steady(_) | Pace::Unknown, true) if case.failed() || case.just_started() => Outcome::InsufficientData,
        // Its GPUs do less than they did, and no timer of its own tells whether it became slower.
        (Pace::Unknown, true) if compute_bound::does_less(case) => Outcome::InsufficientData,
        (Pace::Steady(_) | Pace::Unknown, true) => Outcome::NoFault,
    }
}

/// Whether the pace is known over nearly all of the window.
fn kept_pace(case: &Case<'_>, steady: &Steady<'_>) -> bool {
    let Some(view) = case.view(steady.signal) else { return false };
    let member = view.members.iter().find(|m| m.entity == steady.entity);
    member.is_some_and(|m| telemetry_gap::cover(view, &m.samples, case.window).ratio() >= WHOLE)
}

/// The share of a window that a series without holes covers: scrapes fail now and then.
const WHOLE: f64 = 0.9;

fn headline(case: &Case<'_>, outcome: Outcome, supported: &[(&'static str, Support)]) -> DraftClaim {
    match (outcome, supported.first()) {
        (Outcome::Answered, Some((id, support))) => {
            let title = cause_info(id).map_or(*id, |i| i.title.as_str());
            let mut claim = support.why.clone();
            claim.text = format!("Most likely {title}: {}", claim.text);
            claim
        }
        (Outcome::NoFault, Some((_, support))) if matches!(&case.pace, Pace::Steady(s) if is_gap(supported) && kept_pace(case, s)) =>
        {
            let mut claim = support.why.clone();
            claim.text = format!("The job kept its pace, while {}", lower_first(&claim.text));
            claim
        }
        (Outcome::NoFault, Some((_, support))) if !is_gap(supported) => {
            let mut claim = support.why.clone();
            claim.text = format!("Nothing is wrong: {}", lower_first(&claim.text));
            claim
        }
        (Outcome::NoFault, _) => {
            let mut sentence = Sentence::new(
                "Nothing is wrong as far as it is collected: no GPU of the job stands out and its pace shows no change.",
            );
            if let Some(view) = VITAL.into_iter().find_map(|s| case.view(s)) {
                sentence = sentence.cite(&view.evidence.id);
            }
            sentence.claim()
        }
        _ => match &case.pace {
            Pace::Slower(s) => Sentence::new("The job became slower, but nothing that is collected explains why.")
                .cite(&s.evidence.id)
                .claim(),
            Pace::Steady(_) | Pace::Unknown if is_gap(supported) => gap_headline(supported),
            Pace::Steady(_) | Pace::Unknown if case.failed() => {
                seen(case, "The job failed, but nothing that is collected says of what.")
            }
            Pace::Steady(_) | Pace::Unknown if case.just_started() => {
                seen(case, "The job has only just begun: its pace has no past yet to be compared with.")
            }
            Pace::Unknown if compute_bound::does_less(case) => seen(
                case,
                "The GPUs of the job do less than they did; without its step time it cannot be told whether it became slower.",
            ),
            Pace::Steady(_) | Pace::Unknown => {
                let missing: Vec<&str> =
                    VITAL.into_iter().filter(|s| case.view(*s).is_none()).map(Signal::words).collect();
                let text = match missing.is_empty() {
                    true => "There is too little data in this window to judge the job.".to_owned(),
                    false => format!(
                        "There is too little data to judge the job: no samples of {} in this window.",
                        list(&missing)
                    ),
                };
                Sentence::new(&text).claim()
            }
        },
    }
}

/// A sentence that rests on what is known of the job itself.
fn seen(case: &Case<'_>, text: &str) -> DraftClaim {
    let vital = VITAL.into_iter().find_map(|s| case.view(s)).map(|view| &view.evidence.id);
    let cited = case.observations.job.evidence.as_ref().or(vital);
    cited.into_iter().fold(Sentence::new(text), Sentence::cite).claim()
}

fn is_gap(supported: &[(&'static str, Support)]) -> bool {
    supported.first().is_some_and(|(id, _)| *id == telemetry_gap::CHECK.id)
}

fn gap_headline(supported: &[(&'static str, Support)]) -> DraftClaim {
    match supported.first() {
        Some((_, support)) => support.why.clone(),
        None => Sentence::new("There is too little data in this window to judge the job.").claim(),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

fn data_health(case: &Case<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let missing: Vec<&str> = [Signal::StepTime, Signal::Throughput]
        .into_iter()
        .chain(VITAL)
        .chain([Signal::ClockReasons, Signal::PowerLimit])
        .filter(|s| case.view(*s).is_none())
        .map(Signal::words)
        .collect();
    if !missing.is_empty() {
        lines.push(format!("no samples of {} for this job in this window", list(&missing)));
    }
    if case.observations.logs.is_none() {
        lines.push(
            "kernel logs were not read; Xids are known from the metric only, which keeps the last code".to_owned(),
        );
    }
    if case.observations.events.is_none() {
        lines.push("events were not read".to_owned());
    }
    lines.extend(telemetry_artifact::artifacts(case).into_iter().map(|a| a.note));
    for stopped in &case.stopped {
        lines.push(format!(
            "GPU {} on {} sent no {} after {}",
            stopped.placement.gpu,
            stopped.placement.node,
            stopped.signal.words(),
            stopped.last.at
        ));
    }
    let view = VITAL.into_iter().find_map(|s| case.view(s));
    if let Some(view) = view
        && let Some(share) = telemetry_gap::mean_coverage(case, view)
        && share < 0.9
    {
        lines.push(format!("the GPU series cover {:.0} % of the window", share * 100.0));
    }
    lines
}

/// What deserves a closer look, given what is known so far, so that changes are dated to the sample.
pub fn focus(observations: &Observations<'_>) -> Vec<Focus> {
    let case = Case::new(observations);
    let mut wanted = Vec::new();
    if let Some(slowdown) = case.pace.slowdown()
        && let Some(onset) = &slowdown.onset
    {
        wanted.extend(around(&case, slowdown.signal, Vec::new(), onset.at));
        wanted.extend(around(&case, Signal::DataLoading, Vec::new(), onset.at));
    }
    if let Some(stall) = &case.stall {
        wanted.extend(around(&case, stall.signal, Vec::new(), stall.last.at));
    }
    for low in case.clocks.iter().filter(|c| c.reason != Reason::Idle).take(MAX_SUSPECTS) {
        if let Some(onset) = &low.onset {
            wanted.extend(around(&case, Signal::SmClock, vec![low.placement.clone()], onset.at));
        }
    }
    for stopped in case.stopped.iter().take(MAX_SUSPECTS) {
        wanted.extend(around(&case, stopped.signal, vec![stopped.placement.clone()], stopped.last.at));
    }
    let coarse = case.view(Signal::Utilization).filter(|v| v.step_ms > FINE_STEP_MS);
    if let Some(view) = coarse.filter(|_| case.clocks.is_empty()) {
        // Dips are shorter than a step of a long window; a handful of GPUs spread over the job shows them.
        let all = &observations.job.placements;
        let every = all.len().div_ceil(MAX_SUSPECTS).max(1);
        let placements = all.iter().step_by(every).cloned().collect();
        let metric = view.metric().to_owned();
        wanted.push(Focus { signal: Signal::Utilization, metric, placements, range: case.focus() });
    }
    wanted
}

/// The steps on either side of a moment; none when they are fine already.
fn around(case: &Case<'_>, signal: Signal, placements: Vec<Placement>, at: Timestamp) -> Option<Focus> {
    let view = case.view(signal).filter(|v| v.step_ms > FINE_STEP_MS)?;
    let reach = FOCUS_STEPS * view.step_ms;
    let range = TimeRange::new(shift(at, -reach), shift(at, reach))?;
    Some(Focus { signal, metric: view.metric().to_owned(), placements, range })
}

/// Around a change, this many steps on either side are looked at.
const FOCUS_STEPS: i64 = 4;

/// Suspects looked at more closely; more than this many are no longer single culprits.
const MAX_SUSPECTS: usize = 8;

/// The exporter's default interval: steps up to it lose nothing.
const FINE_STEP_MS: i64 = 30_000;
