//! A new version or a new configuration that made the service slower.
//!
//! Needs events (deploy, config) or a version label. Speaks for it: the service became slower when one was recorded, and traffic
//! did not change. Rules it out: none was recorded then. Traps: a better request latency or throughput hides a later first token
//! (vLLM issue 14845); what happened at the same time is not proven to be the reason.

use jiff::Timestamp;
use sightline_model::{DraftClaim, Evidence, EvidenceRow};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::changed;
use crate::serving::signal::ServingSignal as S;

pub(crate) const SOFTWARE: ServingCheck = ServingCheck { id: "software_regression", assess: software };
pub(crate) const CONFIG: ServingCheck = ServingCheck { id: "config_mismatch", assess: config };

/// A roll-out takes minutes from the record to the first request it serves.
const BEFORE_MS: i64 = 900_000;

/// Clocks differ, and a record is written when a roll-out ends as often as when it begins.
const AFTER_MS: i64 = 300_000;

/// Whether a new version was recorded when the service became slower.
pub(super) fn is_recorded(case: &Case<'_>) -> bool {
    matches!(software(case), Finding::Supported(_))
}

fn software(case: &Case<'_>) -> Finding {
    assess(case, &["deploy", "release", "upgrade", "rollout"], "no new version was recorded when it began")
}

fn config(case: &Case<'_>) -> Finding {
    assess(case, &["config", "config_change"], "no change of configuration was recorded when it began")
}

fn assess(case: &Case<'_>, kinds: &[&str], none: &str) -> Finding {
    let is_software = kinds.contains(&"deploy");
    let versions = case.observations.versions.filter(|_| is_software);
    if case.observations.events.is_none() && versions.is_none() {
        return Finding::NoData(Sentence::new("Not judged: events were not read.").claim());
    }
    let Some(complaint) = case.complaint() else {
        return case.ruled_out("nothing is slower than usual", &[S::FirstToken, S::RequestLatency]);
    };
    let Some(onset) = complaint.change.onset.as_ref() else {
        return case.ruled_out("it is not seen when the service became slower", &[complaint.change.signal]);
    };
    let event = case.observations.events.and_then(|events| recorded(case, events, kinds, onset.at));
    let version = versions.and_then(|rows| first_seen(rows, onset.at));
    if event.is_none() && version.is_none() {
        return case.ruled_out(none, &[complaint.change.signal]);
    }
    let named = event.as_ref().is_some_and(|e| e.names_it) || version.is_some();
    let mut found = Found::by(case, &complaint.change, if named { Strength::Pattern } else { Strength::Hint });
    // Of equals, what is measured inside the engine says more than what was recorded at the same time.
    found.magnitude = 0.1;
    let mut claims: Vec<DraftClaim> = event.into_iter().map(|e| e.claim).chain(version).collect();
    let why = if claims.is_empty() { None } else { Some(claims.remove(0)) };
    claims.insert(0, found.why.clone());
    for signal in [S::RequestLatency, S::InterToken] {
        let better = case.fall(signal, MIN_CHANGE).filter(|c| c.signal != complaint.change.signal);
        claims.extend(better.map(|c| changed(&c).claim()));
    }
    if let Some(why) = why {
        found.why = why;
    }
    found.claims = claims;
    found.finding(case)
}

/// An event that fits.
struct Recorded {
    names_it: bool,
    claim: DraftClaim,
}

/// The event of one of these kinds that lies nearest to the onset and does not concern another service.
fn recorded(case: &Case<'_>, events: &Evidence, kinds: &[&str], onset: Timestamp) -> Option<Recorded> {
    let field = |row: &EvidenceRow, key: &str| row.entity.get(key).or_else(|| row.fields.get(key)).cloned();
    let apart = |at: Timestamp| at.as_millisecond() - onset.as_millisecond();
    let near = events.rows.iter().enumerate().filter_map(|(index, row)| {
        let at = row.time?;
        let kind = field(row, "kind")?;
        let fits = kinds.contains(&kind.as_str()) && (-BEFORE_MS..=AFTER_MS).contains(&apart(at));
        let others = ["service", "model", "job"]
            .iter()
            .any(|key| field(row, key).is_some_and(|v| !case.observations.service.values().any(|own| *own == v)));
        let own = case.observations.service.values();
        let names_it =
            own.clone().any(|own| row.entity.values().chain(row.fields.values()).any(|v| v.contains(own.as_str())));
        (fits && (names_it || !others)).then_some((index, row, apart(at).abs(), names_it))
    });
    let (index, row, _, names_it) = near.min_by_key(|(_, _, apart, names_it)| (!names_it, *apart))?;
    let said = if row.fields.contains_key("body") { ": {body}" } else { "" };
    let text = format!("It began when this was recorded, at {{at}}{said}.");
    let mut sentence = Sentence::new(&text).row_time("at", events, index);
    if row.fields.contains_key("body") {
        sentence = sentence.quote("body", events, index, "body");
    }
    Some(Recorded { names_it, claim: sentence.claim() })
}

/// A version that was first seen when it began, while another was there before.
fn first_seen(versions: &Evidence, onset: Timestamp) -> Option<DraftClaim> {
    let timed = || versions.rows.iter().enumerate().filter_map(|(index, row)| Some((index, row, row.time?)));
    let earlier = timed().map(|(_, _, at)| at).min()?;
    let (index, row, _) = timed().find(|(_, _, at)| {
        let apart = at.as_millisecond() - onset.as_millisecond();
        *at > earlier && (-BEFORE_MS..=AFTER_MS).contains(&apart)
    })?;
    row.fields.contains_key("version").then(|| {
        Sentence::new("It began when version {version} was first seen, at {at}.")
            .quote("version", versions, index, "version")
            .row_time("at", versions, index)
            .claim()
    })
}
