//! Why something is slow, fails or is unwell: which calls find the cause, for a job, a service or a place of the cluster.

mod doubt;
mod host;
mod job;
mod names;
mod service;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sightline_model::{AskedRange, CauseStatus, Outcome, TimeRange};
use sightline_tools::ToolOutput;

pub(super) use job::look_up as look_up_job;

use super::plan::{Stage, finish};
use super::reading::{Reading, Subject};
use super::resolve::{Resolved, resolve};
use super::time::{Moment, asked};
use crate::ports::{Ask, Draft, Gathered, Turn};

#[cfg(test)]
#[path = "why/why_tests.rs"]
mod why_tests;

/// How long before a named instant is looked at too: people round the time at which they noticed, and the change itself must lie inside.
const LEAD: SignedDuration = SignedDuration::from_mins(10);
/// The same of an instant that was said to be rough.
const ROUGHLY: SignedDuration = SignedDuration::from_mins(15);
/// The longest that is looked at after a named instant: what happened within a day of it.
const AFTER: SignedDuration = SignedDuration::from_hours(24);
/// A cause cannot be told from the five minutes that “now” means elsewhere.
const BEFORE_NOW: SignedDuration = SignedDuration::from_hours(1);

/// What to do next.
pub(super) fn next(stage: &Stage<'_>, subject: Subject) -> Turn {
    let Stage { ask, zone, reading, gathered, .. } = *stage;
    if let Some(reading) = host::goes_on(reading, gathered) {
        return host::next(ask, zone, &reading, gathered);
    }
    if let Some(turn) = of_place(stage, subject) {
        return turn;
    }
    match subject {
        // `his reward model died`: told by words of a job's name alone.
        _ if reading.has("about_nothing") && reading.job.is_none() && !reading.has("service") => {
            match job::by_words(stage) {
                job::ByWords::Look(call) => Turn::Calls(vec![call]),
                job::ByWords::Is => job::next(stage),
                job::ByWords::Not => service::next(ask, zone, reading, subject, gathered),
            }
        }
        Subject::Job => job::next(stage),
        Subject::Service | Subject::Anything => service::next(ask, zone, reading, subject, gathered),
        Subject::Host => host::next(ask, zone, reading, gathered),
    }
}

/// A node or a cluster that is named by a part of its name, or without the word for it; and whether all is well with it.
fn of_place(stage: &Stage<'_>, subject: Subject) -> Option<Turn> {
    let reading = stage.reading;
    let places = || reading.mentions.iter().filter(|mention| mention.kind.is_some() || mention.written);
    // `node 7`, `n07` without the word before it: a part of a name.
    let in_part = || {
        places().any(|m| {
            let digits = m.name.bytes().all(|b| b.is_ascii_digit());
            let named = reading.named.iter().any(|(kind, name)| *kind == "node" && *name == m.name);
            m.kind == Some("node") && (digits || !named) && !m.name.contains(['-', '_', '.'])
        })
    };
    // `is atlas-b ok`: a cluster without the word for it; what has a number is a machine.
    let cluster = || {
        reading.has("all_well")
            && places().count() == 1
            && places().all(|m| m.name.chars().all(|c| !c.is_ascii_digit()))
    };
    // Whether it is well, and not why it is unwell: what was noticed there is told as well.
    let is_well = reading.has("all_well") && !reading.has("slow") && !reading.has("why");
    let like_a_machine = || places().any(|m| m.name.chars().any(|c| c.is_ascii_digit()));
    let wanted = match subject {
        Subject::Host => in_part() || is_well,
        Subject::Anything => in_part() || cluster() || (is_well && like_a_machine()),
        Subject::Job | Subject::Service => false,
    };
    let judged = stage.gathered.iter().any(|g| g.call.tool.ends_with("_correlation"));
    if !wanted || (judged && !is_well) {
        return None;
    }
    let scope = match resolve(stage) {
        Resolved::Look(calls) => return Some(Turn::Calls(calls)),
        Resolved::Ask(_) => return None,
        Resolved::Scope(scope) => scope,
    };
    if scope.job.is_some() || (scope.of("node").is_empty() && scope.of("cluster").is_empty()) {
        return None;
    }
    if is_well && !scope.of("cluster").is_empty() {
        return Some(super::plan::overview(stage, &scope));
    }
    let mut named = reading.clone();
    named.named =
        scope.filters.iter().flat_map(|(kind, values)| values.iter().map(|value| (*kind, value.clone()))).collect();
    let by_jobs = host::next(stage.ask, stage.zone, &named, stage.gathered);
    if !is_well {
        return Some(by_jobs);
    }
    Some(match by_jobs {
        Turn::Calls(calls) => Turn::Calls(calls),
        Turn::Draft(by_jobs) => match super::plan::overview(stage, &scope) {
            Turn::Calls(calls) => Turn::Calls(calls),
            Turn::Draft(seen) => finish(together(*by_jobs, *seen)),
        },
    })
}

/// Whether a place is well, by the jobs that ran there and by what was noticed: a cause leads, then what was noticed, then that nothing was.
fn together(by_jobs: Draft, mut seen: Draft) -> Draft {
    let caused = by_jobs.outcome == Some(Outcome::Answered)
        && by_jobs.causes.iter().any(|cause| cause.status == CauseStatus::Supported);
    if caused {
        let mut draft = by_jobs;
        if seen.outcome == Some(Outcome::Answered) {
            draft.claims.extend(seen.headline.into_iter().chain(seen.claims));
        }
        return draft;
    }
    seen.data_health.extend(by_jobs.data_health);
    seen.data_health.dedup();
    seen
}

/// The window in which a cause is looked for, where a time was named, with the words for it.
fn named_window(ask: &Ask, zone: &TimeZone, reading: &Reading) -> Option<(TimeRange, AskedRange)> {
    let time = reading.times.first()?;
    let before = |at: Timestamp| at.checked_sub(LEAD).ok();
    let (range, words) = match time.moment {
        Moment::Window | Moment::Until(_) => (time.range, time.typed.clone()),
        Moment::Instant(at) => {
            // `around 2am` is rounder than `at 01:58`.
            let before = |at: Timestamp| {
                let rough = time.typed.to_lowercase().starts_with("around");
                if rough { at.checked_sub(ROUGHLY).ok() } else { before(at) }
            };
            let end = at.checked_add(AFTER).ok()?.min(ask.as_of);
            let until = if end == ask.as_of { "now" } else { "a day later" };
            (TimeRange::new(before(at)?, end)?, format!("from shortly before “{}” until {until}", time.typed))
        }
        Moment::Since(at) => {
            (TimeRange::new(before(at)?, ask.as_of)?, format!("from shortly before “{}” until now", time.typed))
        }
        Moment::Now => {
            let from = ask.as_of.checked_sub(BEFORE_NOW).ok()?;
            (TimeRange::new(from, ask.as_of)?, format!("the hour that led to “{}”", time.typed))
        }
    };
    Some((range, asked(range, &words, zone)))
}

/// The same, or the last hour where no time was named.
fn window(ask: &Ask, zone: &TimeZone, reading: &Reading) -> Option<(TimeRange, AskedRange)> {
    if !reading.times.is_empty() {
        return named_window(ask, zone, reading);
    }
    super::windows::last_hour(ask, zone)
}

/// What the latest look-up of a kind of thing brought, with or without words that were looked for.
fn looked_up<'a>(gathered: &'a [Gathered], kind: &str, searched: bool) -> Option<Result<&'a ToolOutput, &'a str>> {
    let is_it = |arguments: &Value| {
        arguments.get("kind").and_then(Value::as_str) == Some(kind) && arguments.get("search").is_some() == searched
    };
    let latest = gathered.iter().rev().find(|g| g.call.tool == "find_entities" && is_it(&g.call.arguments))?;
    Some(latest.outcome.as_ref().map_err(|none| none.for_people.as_str()))
}
