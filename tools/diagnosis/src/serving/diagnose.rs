//! From observations of a service to a diagnosis: every check runs, supported causes are ranked, the outcome follows.

use sightline_model::{DraftClaim, Outcome, Stat, TimeRange};

use crate::case::list;
use crate::cause::Support;
use crate::diagnose::Diagnosis;
use crate::knowledge::cause_info;
use crate::ranking::Ranking;
use crate::sentence::Sentence;
use crate::serving::case::Case;
use crate::serving::causes::CHECKS;
use crate::serving::complaint::LATENCIES;
use crate::serving::observation::ServingObservations;
use crate::serving::say::changed;
use crate::serving::signal::ServingSignal as S;
use crate::view::shift;

/// Below this coverage of the window nothing is judged from a series.
const POOR_COVERAGE: f64 = 0.5;

/// Steps up to this lose nothing of when a change began.
const FINE_STEP_MS: i64 = 30_000;

/// Around a change, this many steps on either side are looked at.
const FOCUS_STEPS: i64 = 4;

/// The phases of a request and what tells them apart: without them a slow service can be seen and not explained.
const PHASES: [S; 7] = [S::QueueTime, S::PrefillTime, S::InterToken, S::Waiting, S::Running, S::KvUsage, S::HitRate];

/// Judges the case.
pub fn diagnose_serving(observations: &ServingObservations<'_>) -> Diagnosis {
    let case = Case::new(observations);
    let ranking = Ranking::of(CHECKS.iter().map(|c| (c.id, (c.assess)(&case))));
    let outcome = outcome(&case, &ranking.supported);
    let headline = headline(&case, outcome, &ranking.supported);
    let (next_steps, runbooks) = ranking.advice();
    let causes = ranking.into_causes();
    let claims = claims(&case);
    Diagnosis { outcome, headline, claims, causes, next_steps, runbooks, data_health: data_health(&case) }
}

/// The stretch around the moment the service became slower; none when it is known to the sample already.
pub fn serving_focus(observations: &ServingObservations<'_>) -> Option<TimeRange> {
    let case = Case::new(observations);
    let change = &case.complaint()?.change;
    let onset = change.onset.as_ref().filter(|_| change.step_ms > FINE_STEP_MS)?;
    let reach = FOCUS_STEPS * change.step_ms;
    TimeRange::new(shift(onset.at, -reach), shift(onset.at, reach))
}

fn seen(case: &Case<'_>) -> Vec<S> {
    let is_seen = |s: &S| case.tracks.whole(*s).is_some_and(|t| t.count(case.window) > 0);
    LATENCIES.into_iter().filter(is_seen).collect()
}

fn outcome(case: &Case<'_>, supported: &[(&'static str, Support)]) -> Outcome {
    if supported.iter().any(|(_, s)| s.fault) {
        return Outcome::Answered;
    }
    let thin = case.tracks.covered(case.window) < POOR_COVERAGE;
    // It became slower and nothing that is collected explains it; or it cannot be told whether it did.
    if case.complaint().is_some() || thin || seen(case).is_empty() {
        Outcome::InsufficientData
    } else {
        Outcome::NoFault
    }
}

fn headline(case: &Case<'_>, outcome: Outcome, supported: &[(&'static str, Support)]) -> DraftClaim {
    match (outcome, supported.first(), case.complaint()) {
        (Outcome::Answered, Some((id, support)), _) => {
            let title = cause_info(id).map_or(*id, |i| i.title.as_str());
            let mut claim = support.why.clone();
            claim.text = format!("Most likely {title}: {}", claim.text);
            claim
        }
        (Outcome::NoFault, _, _) => no_fault(case),
        (_, _, Some(complaint)) => {
            let mut claim = changed(&complaint.change).claim();
            let missing = missing(case, &PHASES);
            let why = if missing.is_empty() {
                "nothing that is collected explains why".to_owned()
            } else {
                format!("why cannot be told without {}, which are not collected", list(&missing))
            };
            claim.text = format!("{} But {why}.", claim.text);
            claim
        }
        (_, _, None) => {
            let missing = missing(case, &LATENCIES);
            let text = if seen(case).is_empty() {
                format!(
                    "There is too little data to judge the service: no samples of {} in this window.",
                    list(&missing)
                )
            } else {
                "There is too little data to judge the service: its series cover less than half of this window."
                    .to_owned()
            };
            let any = LATENCIES.into_iter().chain(PHASES).find_map(|s| case.tracks.whole(s));
            any.map_or(Sentence::new(&text), |t| Sentence::new(&text).cite(&t.evidence.id)).claim()
        }
    }
}

fn no_fault(case: &Case<'_>) -> DraftClaim {
    let signal = seen(case).into_iter().next();
    let Some(track) = signal.and_then(|s| case.tracks.whole(s)) else {
        return Sentence::new("Nothing is wrong as far as it is collected.").claim();
    };
    let daily = case.complaints.daily.first();
    let text = match daily {
        Some(change) => format!(
            "Nothing is wrong: the {} is as high as at the same hours of the days before, {{level}} at the median.",
            change.signal.words()
        ),
        None => format!(
            "Nothing is wrong as far as it is collected: the {} stays at its usual level, {{level}} at the median.",
            track.signal.words()
        ),
    };
    let (evidence, entity) = daily.map_or((track.evidence, track.entity), |c| (c.evidence, c.entity));
    let level = crate::sentence::stat(evidence, entity, Stat::Median, Some(case.window));
    let decimals = daily.map_or(track.signal, |c| c.signal).decimals();
    Sentence::new(&text).entity(evidence, entity).number("level", level, decimals, evidence.unit).claim()
}

/// What became worse, the worst first; else how late first tokens are.
fn claims(case: &Case<'_>) -> Vec<DraftClaim> {
    if case.complaints.worse.is_empty() {
        let usual = seen(case).into_iter().filter_map(|s| case.tracks.whole(s)).take(2);
        return usual.map(|t| crate::serving::say::level(t, case.window).claim()).collect();
    }
    case.complaints.worse.iter().map(|c| changed(&c.change).claim()).collect()
}

fn missing(case: &Case<'_>, signals: &[S]) -> Vec<&'static str> {
    let gone = |s: &S| match s {
        S::HitRate => case.tracks.whole(S::HitRate).or(case.tracks.whole(S::HitRateGauge)).is_none(),
        other => case.tracks.whole(*other).is_none(),
    };
    signals.iter().filter(|s| gone(s)).map(|s| s.words()).collect()
}

fn data_health(case: &Case<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let gone = missing(case, &[S::FirstToken, S::InterToken, S::QueueTime, S::PrefillTime, S::KvUsage, S::HitRate]);
    if !gone.is_empty() {
        lines.push(format!("no samples of {} for this service in this window", list(&gone)));
    }
    if case.observations.events.is_none() {
        lines.push("events were not read".to_owned());
    }
    let share = case.tracks.covered(case.window);
    if share > 0.0 && share < 0.9 {
        lines.push(format!("the service's series cover {:.0} % of the window", share * 100.0));
    }
    lines
}
