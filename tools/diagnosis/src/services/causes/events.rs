//! `software_regression` and `config_mismatch`: something was rolled out, or a setting changed, just before it began.

use jiff::{SignedDuration, Timestamp};
use sightline_model::EvidenceRow;

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::services::case::ServiceCase;

/// A roll-out reaches the last replica within half an hour as a rule; what lies farther back is no likely reason for a sudden change.
const BEFORE: SignedDuration = SignedDuration::from_mins(30);

/// Clocks of deploy tools and of metrics are not one; steps are minutes long.
const AFTER: SignedDuration = SignedDuration::from_mins(5);

const DEPLOYS: [&str; 5] = ["deploy", "release", "rollout", "rollback", "upgrade"];
const SETTINGS: [&str; 4] = ["config", "setting", "flag", "secret"];

pub(crate) fn software_regression(case: &ServiceCase<'_>) -> Finding {
    let text = "A roll-out of {service} at {at} came just before: {body}.";
    assess(case, &DEPLOYS, text, "roll-outs", "No roll-out of {service} is recorded just before the change.")
}

pub(crate) fn config_mismatch(case: &ServiceCase<'_>) -> Finding {
    let text = "A setting of {service} was changed at {at}, just before: {body}.";
    assess(
        case,
        &SETTINGS,
        text,
        "changes of settings",
        "No change of a setting of {service} is recorded just before the change.",
    )
}

fn assess(case: &ServiceCase<'_>, kinds: &[&str], text: &str, what: &str, none: &str) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    let Some(events) = case.observations.events else { return case.no_data(what) };
    let Some(suspect) = case.suspect() else { return case.no_data(what) };
    let Some((index, row)) = found(case, &suspect.service, kinds) else {
        return match case.evidence_of(&suspect.service) {
            Some(evidence) => {
                let sentence =
                    Sentence::new(none).named("service", evidence, "service", &suspect.service).cite(&events.id);
                Finding::RuledOut(sentence.claim())
            }
            None => case.no_data(what),
        };
    };
    let has_body = row.fields.contains_key("body");
    let text = if has_body { text.to_owned() } else { text.replace(": {body}", "") };
    let mut why = suspect
        .shift
        .sentence(&text)
        .named("service", suspect.shift.evidence, "service", &suspect.service)
        .row_time("at", events, index);
    if has_body {
        why = why.quote("body", events, index, "body");
    }
    let mut support = case.supported(Strength::Pattern, &suspect.shift, why);
    support.components = vec![case.component(&suspect.service, None)];
    support.magnitude += 200.0;
    Finding::Supported(support)
}

/// A change that was made to a service just before it began.
pub(crate) fn just_before<'c>(case: &'c ServiceCase<'_>, service: &str) -> Option<(usize, &'c EvidenceRow)> {
    found(case, service, &DEPLOYS).or_else(|| found(case, service, &SETTINGS))
}

fn found<'c>(case: &'c ServiceCase<'_>, service: &str, kinds: &[&str]) -> Option<(usize, &'c EvidenceRow)> {
    let onset = case.suspect().and_then(|s| case.onset(&s.shift)).unwrap_or(case.stretch().from());
    let events = case.observations.events?;
    let rows = events.rows.iter().enumerate().filter(|(_, row)| {
        let kind = row.fields.get("kind").map(|k| k.to_ascii_lowercase()).unwrap_or_default();
        kinds.iter().any(|k| kind.contains(k)) && is_about(row, service) && row.time.is_some_and(|at| near(at, onset))
    });
    rows.max_by_key(|(_, row)| row.time)
}

fn near(at: Timestamp, onset: Timestamp) -> bool {
    let ahead = onset.duration_since(at);
    ahead <= BEFORE && ahead >= -AFTER
}

fn is_about(row: &EvidenceRow, service: &str) -> bool {
    let named = row.entity.get("service").or_else(|| row.fields.get("service"));
    match named {
        Some(named) => named == service,
        None => row.fields.get("body").is_some_and(|body| mentions(body, service)),
    }
}

/// Whether a text names the service as a word of its own.
fn mentions(body: &str, service: &str) -> bool {
    body.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | '/'))).any(|word| {
        let word = word.trim_matches(['.', ':', '/']);
        word.eq_ignore_ascii_case(service) || word.split([':', '/', '.']).any(|part| part.eq_ignore_ascii_case(service))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_as_a_word_of_its_own() {
        assert!(mentions("deployed cart:v2 to prod", "cart"));
        assert!(mentions("registry/cart rolled out.", "cart"));
        assert!(!mentions("deployed cart-worker", "cart"));
    }
}
