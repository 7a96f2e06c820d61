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

use super::reading::{Reading, Subject};
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
pub(super) fn next(ask: &Ask, zone: &TimeZone, reading: &Reading, subject: Subject, gathered: &[Gathered]) -> Turn {
    if let Some(reading) = host::goes_on(reading, gathered) {
        return host::next(ask, zone, &reading, gathered);
    }
    match subject {
        Subject::Job => job::next(ask, zone, reading, gathered),
        Subject::Service | Subject::Anything => service::next(ask, zone, reading, subject, gathered),
        Subject::Host => host::next(ask, zone, reading, gathered),
    }
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
