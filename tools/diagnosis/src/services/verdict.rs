//! From observations of services to a diagnosis.

use jiff::SignedDuration;
use sightline_model::{DraftClaim, Outcome};

use crate::cause::Support;
use crate::diagnose::Diagnosis;
use crate::knowledge::cause_info;
use crate::ranking::Ranking;
use crate::sentence::Sentence;
use crate::services::case::ServiceCase;
use crate::services::causes::CHECKS;
use crate::services::observed::ServiceObservations;
use crate::services::role::Role;
use crate::services::suspects::Symptom;

/// Judges the services.
pub fn diagnose_service(observations: &ServiceObservations<'_>) -> Diagnosis {
    let case = ServiceCase::new(observations);
    let ranking = Ranking::of(CHECKS.iter().map(|(id, assess)| (*id, assess(&case))));
    let outcome = outcome(&case, &ranking.supported);
    let headline = headline(&case, outcome, &ranking.supported);
    let (next_steps, runbooks) = ranking.advice();
    let causes = ranking.into_causes();
    Diagnosis {
        outcome,
        headline,
        claims: claims(&case),
        causes,
        next_steps,
        runbooks,
        data_health: data_health(&case),
    }
}

fn outcome(case: &ServiceCase<'_>, supported: &[(&'static str, Support)]) -> Outcome {
    let judged = [Role::Latency, Role::Availability, Role::Errors, Role::OwnErrors]
        .iter()
        .any(|role| case.series(&case.entry, *role).is_some());
    match (&case.symptom, supported.is_empty()) {
        (Some(_), false) => Outcome::Answered,
        // It changed, and nothing that is recorded says where it comes from; or nothing is recorded.
        (Some(_), true) => Outcome::InsufficientData,
        (None, _) if !judged || !is_comparable(case) => Outcome::InsufficientData,
        (None, _) => Outcome::NoFault,
    }
}

/// Whether the service was seen before the window or from its beginning: what is first seen in the middle of it has no usual level.
fn is_comparable(case: &ServiceCase<'_>) -> bool {
    let window = case.observations.window;
    let latest = SignedDuration::from_millis(window.millis() / BEGINNING);
    let roles = [Role::Latency, Role::Availability, Role::Errors, Role::OwnErrors];
    case.observations.series.iter().filter(|s| roles.contains(&s.role)).any(|metric| {
        let pieces = metric.past.into_iter().chain([metric.recent]);
        let series = pieces.flat_map(|piece| &piece.series);
        let own = series.filter(|s| s.entity.get("service").is_some_and(|name| *name == case.entry));
        let first = own.filter_map(|s| s.points.first()).map(|p| p.time).min();
        first.is_some_and(|first| first.duration_since(window.from()) <= latest)
    })
}

/// What is first seen later than this part of the window is not seen from its beginning.
const BEGINNING: i64 = 4;

fn headline(case: &ServiceCase<'_>, outcome: Outcome, supported: &[(&'static str, Support)]) -> DraftClaim {
    let entry = &case.entry;
    let named = |text: &str| match case.evidence_of(entry) {
        Some(evidence) => Sentence::new(text).named("service", evidence, "service", entry),
        None => Sentence::new(&text.replace("{service}", "the service")),
    };
    match (outcome, supported.first()) {
        (Outcome::Answered, Some((id, support))) => {
            let title = cause_info(id).map_or(*id, |i| i.title.as_str());
            let mut claim = support.why.clone();
            claim.text = format!("Most likely {title}: {}", claim.text);
            claim
        }
        (Outcome::NoFault, _) => named(
            "Nothing is wrong as far as it is recorded: neither latency nor errors of {service} leave their usual level in this window.",
        )
        .claim(),
        (Outcome::Answered | Outcome::InsufficientData | Outcome::Clarify | Outcome::Refused, _) => {
            match case.symptom.as_ref().map(|(kind, _)| *kind) {
                Some(Symptom::Errors) => named("Requests of {service} fail, but nothing that is recorded says why."),
                Some(Symptom::Latency) => named("{service} became slower, but nothing that is recorded says why."),
                None => named("There is too little data to judge {service}: no samples of its latency or its errors to compare in this window."),
            }
            .claim()
        }
    }
}

/// What the service that was asked about shows, and the other suspects.
fn claims(case: &ServiceCase<'_>) -> Vec<DraftClaim> {
    const OTHERS: usize = 2;
    let mut claims: Vec<DraftClaim> = case.symptom.iter().map(|(_, shift)| shift.says().claim()).collect();
    for suspect in case.suspects.iter().skip(1).take(OTHERS) {
        let text = "{service} changed too, but adds less by itself: its {what} went from {before} to {level}.";
        let text = text.replace("{what}", suspect.shift.role.words());
        claims.push(suspect.shift.sentence(&text).claim());
    }
    claims
}

fn data_health(case: &ServiceCase<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let missing: Vec<&str> =
        [(Role::Latency, "latency"), (Role::Requests, "requests"), (Role::Cpu, "CPU"), (Role::Memory, "memory")]
            .into_iter()
            .filter(|(role, _)| !case.has(*role))
            .map(|(_, words)| words)
            .collect();
    if !missing.is_empty() {
        lines.push(format!("{} of services is not recorded in this window", crate::case::list(&missing)));
    }
    if !case.has(Role::OwnTime) {
        lines.push("there are no traces of these services; what a service adds by itself is estimated from its callees' latency".to_owned());
    }
    if case.observations.calls.is_empty() {
        lines.push("who calls whom is not recorded".to_owned());
    }
    if case.symptom.as_ref().is_some_and(|(_, shift)| shift.usual.within.is_some()) {
        lines.push("there are too few samples before the window; the level before the change is that of the window's own samples".to_owned());
    }
    lines
}
