//! Why something is slow, fails or is unwell: which calls find the cause, for a job, a service or a place of the cluster.

mod doubt;
mod host;
mod job;
mod names;
mod service;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sightline_model::{AskedRange, TimeRange};
use sightline_tools::ToolOutput;

pub(super) use job::look_up as look_up_job;

use super::plan::Stage;
use super::reading::{Reading, Subject};
use super::resolve::{Resolved, resolve};
use super::time::{Moment, asked};
use crate::ports::{Ask, Gathered, Turn};

#[cfg(test)]
#[path = "why/why_tests.rs"]
mod why_tests;

/// How long before a named instant is looked at too: people round the time at which they noticed, and the change itself must lie inside.
const LEAD: SignedDuration = SignedDuration::from_mins(10);
/// The longest that is looked at after a named instant: what happened within a day of it.
const AFTER: SignedDuration = SignedDuration::from_hours(24);
/// Without a time: the last hour. A cause cannot be told from the five minutes that “now” means elsewhere.
const DEFAULT: SignedDuration = SignedDuration::from_hours(1);

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
    let wanted = match subject {
        Subject::Host => in_part(),
        Subject::Anything => in_part() || cluster(),
        Subject::Job | Subject::Service => false,
    };
    if !wanted || stage.gathered.iter().any(|g| g.call.tool.ends_with("_correlation")) {
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
    if !scope.of("cluster").is_empty() && reading.has("all_well") && !reading.has("slow") && !reading.has("why") {
        return Some(super::plan::overview(stage, &scope));
    }
    let mut named = reading.clone();
    named.named =
        scope.filters.iter().flat_map(|(kind, values)| values.iter().map(|value| (*kind, value.clone()))).collect();
    Some(host::next(stage.ask, stage.zone, &named, stage.gathered))
}

/// The window in which a cause is looked for, where a time was named, with the words for it.
fn named_window(ask: &Ask, zone: &TimeZone, reading: &Reading) -> Option<(TimeRange, AskedRange)> {
    let time = reading.times.first()?;
    let before = |at: Timestamp| at.checked_sub(LEAD).ok();
    let (range, words) = match time.moment {
        Moment::Window => (time.range, time.typed.clone()),
        Moment::Instant(at) => {
            let end = at.checked_add(AFTER).ok()?.min(ask.as_of);
            let until = if end == ask.as_of { "now" } else { "a day later" };
            (TimeRange::new(before(at)?, end)?, format!("from shortly before “{}” until {until}", time.typed))
        }
        Moment::Since(at) => {
            (TimeRange::new(before(at)?, ask.as_of)?, format!("from shortly before “{}” until now", time.typed))
        }
        Moment::Now => {
            let from = ask.as_of.checked_sub(DEFAULT).ok()?;
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
    let range = TimeRange::new(ask.as_of.checked_sub(DEFAULT).ok()?, ask.as_of)?;
    Some((range, asked(range, "the last hour, as no time was named", zone)))
}

/// What the latest look-up of a kind of thing brought, with or without words that were looked for.
fn looked_up<'a>(gathered: &'a [Gathered], kind: &str, searched: bool) -> Option<Result<&'a ToolOutput, &'a str>> {
    let is_it = |arguments: &Value| {
        arguments.get("kind").and_then(Value::as_str) == Some(kind) && arguments.get("search").is_some() == searched
    };
    let latest = gathered.iter().rev().find(|g| g.call.tool == "find_entities" && is_it(&g.call.arguments))?;
    Some(latest.outcome.as_ref().map_err(|none| none.for_people.as_str()))
}
