//! `dependency_failure`: what a service depends on fails or is gone, and the service with it.
//!
//! A callee outside has no telemetry of its own: its callers' error lines name it. A callee whose series stop while its callers go
//! on is gone. Where a callee is only slow and nothing says why, this is the weakest word for it.

use jiff::{SignedDuration, Timestamp};
use sightline_model::{DraftClaim, Evidence, EvidenceRow};

use crate::cause::{Finding, Strength, Support};
use crate::sentence::Sentence;
use crate::services::case::ServiceCase;
use crate::services::causes::network_delay::{by_exclusion, by_gap};
use crate::services::role::Role;
use crate::services::shift::Shift;
use crate::services::suspects::Symptom;

/// How a line says that somebody else did not answer.
const UNANSWERED: [&str; 12] = [
    "timeout",
    "timed out",
    "deadline exceeded",
    "connection refused",
    "connection reset",
    "unavailable",
    "no such host",
    "unreachable",
    "no route to host",
    "broken pipe",
    "could not connect",
    "failed to connect",
];

/// How a line says that nobody was there to answer: the caller's own kernel or resolver says so.
const NOT_REACHED: [&str; 12] = [
    // What it calls has no connection left to give.
    "too many clients",
    "too many connections",
    "max number of clients reached",
    "remaining connection slots",
    "connection refused",
    "could not reach",
    "no such host",
    "unreachable",
    "no route to host",
    "could not connect",
    "failed to connect",
    "unable to connect",
];

/// A series that was there in at least this share of the steps is one that ends when its service does.
const STEADY: f64 = 0.8;

/// Silent for this long, and for several samples, is gone: scrapes fail one or two at a time.
const SILENCE: SignedDuration = SignedDuration::from_mins(3);

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    if let Some(support) = gone(case) {
        return Finding::Supported(support);
    }
    if let Some(support) = outside(case) {
        return Finding::Supported(support);
    }
    if let Some(support) = no_answer(case) {
        return Finding::Supported(support);
    }
    let Some(suspect) = case.suspect() else { return case.no_data("who takes the time") };
    let entry = &case.entry;
    let explained = [Role::Cpu, Role::CpuThrottle, Role::Memory, Role::Disk, Role::NetworkErrors];
    if case.is_about(Symptom::Latency)
        && suspect.service != *entry
        && case.worst(&explained).is_none()
        && by_gap(case).is_none()
        && by_exclusion(case).is_none()
    {
        let text = "{service}, which the slow requests go through, adds the most time: its {what} went from {before} to {level}. What kind of fault it is does not show in what is recorded.";
        let why = suspect.shift.sentence(&text.replace("{what}", suspect.shift.role.words()));
        let mut support = case.supported(Strength::Hint, &suspect.shift, why);
        support.components = vec![case.component(&suspect.service, suspect.pod.as_deref())];
        return Finding::Supported(support);
    }
    let text = "Nothing that {service} depends on is gone, and no line says that it did not answer.";
    match case.evidence_of(&suspect.service) {
        Some(evidence) => {
            Finding::RuledOut(Sentence::new(text).named("service", evidence, "service", &suspect.service).claim())
        }
        None => case.no_data("what it depends on"),
    }
}

/// A callee whose series stop while the asked service's go on.
fn gone(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let entry = &case.entry;
    let suspect = case.suspect().map_or(entry.as_str(), |s| s.service.as_str());
    let window = case.observations.window;
    for callee in case.graph.behind(suspect).into_iter().filter(|s| *s != entry.as_str()) {
        for series in &case.observations.series {
            let of = |service: &str| {
                series.recent.series.iter().find(|s| s.entity.get("service").is_some_and(|name| name == service))
            };
            let Some(silent) = of(callee) else { continue };
            let Some(last) = silent.points.last().map(|p| p.time) else { continue };
            let others = series.recent.series.iter().filter(|s| s.entity != silent.entity);
            let Some(end) = others.filter_map(|s| s.points.last()).map(|p| p.time).max() else { continue };
            let step = SignedDuration::from_millis((series.recent.step_seconds.unwrap_or(60.0) * 1000.0) as i64);
            let lasting = end.duration_since(last) >= SILENCE.max(step * 3);
            if lasting && window.contains(last) && steady(series.past, silent, last) {
                let text = "{callee} sent no {what} after {last}, while the services that call it go on.";
                let why = Sentence::new(&text.replace("{what}", series.role.words()))
                    .named("callee", series.recent, "service", callee)
                    .last_seen("last", series.recent, &silent.entity);
                let symptom = case.symptom.as_ref().map(|(_, s)| s)?;
                let mut support = case.supported(Strength::Proof, symptom, why);
                support.components = vec![case.component(callee, None)];
                support.onset = Some(last);
                support.coincides = case.coincides(Some(last));
                return Some(support);
            }
        }
    }
    None
}

/// Calls of the asked service, or of one behind it, that fail with nothing recorded on the other side.
fn no_answer(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    if !case.is_about(Symptom::Errors) {
        return None;
    }
    let behind = case.graph.behind(&case.entry);
    let of_field = |shift: &&Shift<'_>| shift.entity.get("from").is_some_and(|from| behind.contains(from.as_str()));
    let calls = case.shifts.iter().filter(|s| s.role == Role::Unanswered && s.is_change() && s.near(case.stretch()));
    let worst =
        calls.filter(of_field).max_by(|a, b| (a.level - a.usual.level).total_cmp(&(b.level - b.usual.level)))?;
    let callee = worst.entity.get("to")?;
    let text = "{level} of the calls from {from} to {to} fail and {to} shows nothing of them, {before} usually.";
    let mut support = case.supported(Strength::Proof, worst, worst.sentence(text));
    support.components = vec![case.component(callee, None)];
    support.claims.extend(quoted_line(case, worst.entity.get("from")?));
    Some(support)
}

/// Whether a series was there all the time until then.
fn steady(past: Option<&sightline_model::Evidence>, silent: &sightline_model::Series, last: Timestamp) -> bool {
    let before = past.and_then(|e| Some((e, e.series.iter().find(|s| s.entity == silent.entity)?)));
    let Some((evidence, series)) = before else { return false };
    let Some(step) = evidence.step_seconds.filter(|s| *s > 0.0) else { return false };
    let until = evidence.to.min(last);
    let expected = until.duration_since(evidence.from).as_secs_f64() / step;
    expected >= 10.0 && series.points.len() as f64 >= STEADY * expected
}

/// A callee without telemetry that the suspect's error lines name, or say did not answer.
fn outside(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let suspect = case.suspect()?;
    let lines = case.observations.error_lines?;
    let mut services = vec![suspect.service.as_str(), case.entry.as_str()];
    // Whoever fails behind them says it in lines that it did not write before.
    let loud = |service: &&str| !case.changes(service, Role::ErrorLines).is_empty();
    services.extend(case.graph.behind(&case.entry).into_iter().filter(loud));
    for service in services {
        let callees: Vec<&str> = case.graph.callees(service).collect();
        let unseen: Vec<&str> = callees.iter().copied().filter(|c| case.evidence_of(c).is_none()).collect();
        let silent: Vec<&str> = callees.iter().copied().filter(|c| is_silent(case, c)).collect();
        for (index, row) in lines.rows.iter().enumerate().filter(|(_, row)| is_of(row, service) && unanswered(row)) {
            let body = row.fields.get("body").map(|b| b.to_ascii_lowercase()).unwrap_or_default();
            let named = callees.iter().find(|c| body.contains(&c.to_ascii_lowercase()));
            // A line may tell an address only: then it is the one callee of which nothing is seen, ever or any more.
            let alone = |of: &[&'_ str]| if let [one] = of { Some((*one).to_owned()) } else { None };
            let Some(callee) = named.map(|c| (*c).to_owned()).or_else(|| alone(&unseen)).or_else(|| alone(&silent))
            else {
                continue;
            };
            let callee = callee.as_str();
            // A callee that is well by its own telemetry did answer; but it cannot know of requests that never reached it.
            let well = case.evidence_of(callee).is_some() && !is_failing(case, callee) && !is_silent(case, callee);
            if well && !(named.is_some_and(|callee| is_new(case, lines, service, callee)) && was_not_reached(row)) {
                continue;
            }
            let calls = case.observations.calls_evidence?;
            let why = Sentence::new("{service} fails because {callee} does not answer: {line}.")
                .named("service", lines, "service", service)
                .named("callee", calls, "service", callee)
                .quote("line", lines, index, "body");
            let mut support = case.supported(Strength::Proof, &suspect.shift, why);
            support.components = vec![case.component(callee, None)];
            support.claims.push(quoted_row(lines, index, service));
            return Some(support);
        }
    }
    None
}

fn is_failing(case: &ServiceCase<'_>, service: &str) -> bool {
    [Role::Availability, Role::Errors, Role::OwnErrors, Role::Latency]
        .iter()
        .any(|role| !case.changes(service, *role).is_empty())
}

/// Whether no request to the callee is seen any more while those to others are.
fn is_silent(case: &ServiceCase<'_>, callee: &str) -> bool {
    let seen = [Role::OwnTime, Role::Latency, Role::Requests];
    case.observations.series.iter().filter(|s| seen.contains(&s.role)).any(|series| {
        let of = |s: &&sightline_model::Series| s.entity.get("service").is_some_and(|name| name == callee);
        let last = |s: &sightline_model::Series| s.points.last().map(|p| p.time);
        let own = series.recent.series.iter().filter(of).filter_map(last).max();
        let all = series.recent.series.iter().filter_map(last).max();
        own.zip(all).is_some_and(|(own, all)| all.duration_since(own) >= SILENCE)
    })
}

fn is_of(row: &EvidenceRow, service: &str) -> bool {
    row.entity.get("service").is_some_and(|s| s == service)
}

fn unanswered(row: &EvidenceRow) -> bool {
    let body = row.fields.get("body").map(|b| b.to_ascii_lowercase()).unwrap_or_default();
    let late = body.contains("deadline") && body.contains("exceeded");
    late || was_not_reached(row) || UNANSWERED.iter().any(|words| body.contains(words))
}

fn was_not_reached(row: &EvidenceRow) -> bool {
    let body = row.fields.get("body").map(|b| b.to_ascii_lowercase()).unwrap_or_default();
    NOT_REACHED.iter().any(|words| body.contains(words))
}

/// Whether a service says only since it fails that a callee is not to be reached: what it always said explains nothing.
fn is_new(case: &ServiceCase<'_>, lines: &Evidence, service: &str, callee: &str) -> bool {
    const AHEAD: SignedDuration = SignedDuration::from_mins(5);
    let Some(begin) = case.symptom.as_ref().map(|(_, symptom)| symptom.extent.from()) else { return false };
    let says = |row: &&EvidenceRow| {
        let body = row.fields.get("body").map(|b| b.to_ascii_lowercase()).unwrap_or_default();
        is_of(row, service) && was_not_reached(row) && body.contains(&callee.to_ascii_lowercase())
    };
    let mut times = lines.rows.iter().filter(says).filter_map(|row| row.time);
    times.all(|time| begin.duration_since(time) <= AHEAD)
}

/// The first error line of a service within the stretch, quoted.
pub(crate) fn quoted_line(case: &ServiceCase<'_>, service: &str) -> Option<DraftClaim> {
    let lines = case.observations.error_lines?;
    let stretch = case.stretch();
    let (index, _) = lines
        .rows
        .iter()
        .enumerate()
        .find(|(_, row)| is_of(row, service) && row.time.is_some_and(|t| stretch.contains(t)))?;
    Some(quoted_row(lines, index, service))
}

/// A line of a service with its time, quoted.
fn quoted_row(lines: &Evidence, index: usize, service: &str) -> DraftClaim {
    Sentence::new("{service} wrote at {at}: {line}.")
        .named("service", lines, "service", service)
        .row_time("at", lines, index)
        .quote("line", lines, index, "body")
        .claim()
}
