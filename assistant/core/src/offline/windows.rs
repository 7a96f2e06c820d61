//! The window of a question: named, told by what happened, or the default one, said as such.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::json;
use sightline_model::{AskedRange, EvidenceRow, Outcome, TimeRange};

use super::anchor::{Anchor, Lies};
use super::draft;
use super::plan::Stage;
use super::reading::{Class, Reading};
use super::resolve::Scope;
use super::time::{TimeMention, asked};
use crate::ports::{Ask, Draft, Gathered, ToolCall};

/// How far back an event is looked for by which a time is told.
const EVENTS_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How far around an event is looked.
const AROUND_EVENT: SignedDuration = SignedDuration::from_mins(15);

/// The window, or what has to be looked up for it.
pub(super) enum Window {
    /// It is known.
    Known(TimeRange, AskedRange),
    /// An event has to be looked up first.
    Look(Box<ToolCall>),
    /// It cannot be told.
    Ask(Box<Draft>),
}

/// The window of a question that names none.
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// How far either side of an instant is compared, at the most.
const SIDE: SignedDuration = SignedDuration::from_hours(3);

/// The last hour, said as such.
pub(super) fn last_hour(ask: &Ask, zone: &TimeZone) -> Option<(TimeRange, AskedRange)> {
    let range = TimeRange::new(ask.as_of.checked_sub(HOUR).ok()?, ask.as_of)?;
    Some((range, asked(range, "the last hour, as no time was named", zone)))
}

/// The window that was named, or the last hour: where nothing has to be looked up for it.
pub(super) fn plain(ask: &Ask, zone: &TimeZone, reading: &Reading) -> Option<(TimeRange, AskedRange)> {
    match reading.times.first() {
        Some(time) => Some((time.range, asked(time.range, &time.typed, zone))),
        None => last_hour(ask, zone),
    }
}

/// The window of a question that names no time. An hour, unless its kind wants more: a job's numbers are of its own time, all that could be
/// wrong with a place did not begin in the last hour, and who asks when something was must be shown more than that.
fn unnamed(stage: &Stage<'_>, scope: &Scope) -> Option<(TimeRange, &'static str)> {
    let (reading, as_of) = (stage.reading, stage.ask.as_of);
    let back = |length: SignedDuration| TimeRange::new(as_of.checked_sub(length).ok()?, as_of);
    let numbers = matches!(reading.class, Class::Value | Class::TopK | Class::Threshold | Class::Compare);
    if numbers
        && scope.job.is_some()
        && let Some(own) = scope.job_time.and_then(|(from, to)| TimeRange::new(from, to.unwrap_or(as_of).min(as_of)))
    {
        return Some((own, "the job's own time"));
    }
    let asks_when = reading.has("when") || reading.has("when^");
    match reading.class {
        Class::Events | Class::Logs | Class::Count if asks_when => Some((back(WEEK)?, "the last seven days")),
        Class::FindJobs => Some((back(DAY * 2)?, "the last two days")),
        Class::Health | Class::Why(_) => Some((back(DAY)?, "the last day")),
        Class::Threshold | Class::TopK if reading.has("any_time") => Some((back(DAY)?, "the last day")),
        Class::Waste if asks_when => Some((back(DAY)?, "the last day")),
        Class::Threshold | Class::Value if asks_when => Some((back(DAY)?, "the last day")),
        Class::Count if reading.has("jobs") => Some((back(DAY * 2)?, "the last two days")),
        _ => Some((back(HOUR)?, "the last hour")),
    }
}

const DAY: SignedDuration = SignedDuration::from_hours(24);
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The window that was named, told or is the default.
pub(super) fn window(stage: &Stage<'_>, scope: &Scope) -> Window {
    let (reading, zone) = (stage.reading, stage.zone);
    if let Some(anchor) = reading.anchor.as_ref().filter(|anchor| !anchor.both_sides) {
        return told(stage, scope, anchor);
    }
    if let (Some(back), true) = (reading.shifted, reading.class != Class::Compare) {
        let now = named(stage).map(|(range, _)| range).or_else(|| last(stage, HOUR));
        let moved = |at: Timestamp| at.to_zoned_datetime(zone.clone()).checked_sub(back).ok().map(|z| z.timestamp());
        if let Some(range) = now.and_then(|range| TimeRange::new(moved(range.from())?, moved(range.to())?)) {
            return Window::Known(range, asked(range, "the same time of day then", zone));
        }
    }
    match named(stage) {
        Some((range, typed)) => Window::Known(range, asked(range, &typed, zone)),
        None => match unnamed(stage, scope) {
            Some((range, said)) => Window::Known(range, asked(range, &format!("{said}, as no time was named"), zone)),
            None => Window::Ask(Box::new(draft::cannot_yet())),
        },
    }
}

fn last(stage: &Stage<'_>, length: SignedDuration) -> Option<TimeRange> {
    let as_of = stage.ask.as_of;
    TimeRange::new(as_of.checked_sub(length).ok()?, as_of)
}

/// The window that was named, with its words; where two narrow one another (`yesterday … at 3pm`), the narrower.
fn named(stage: &Stage<'_>) -> Option<(TimeRange, String)> {
    let times = &stage.reading.times;
    let first = times.first()?;
    let inside = |time: &&TimeMention| {
        time.range.from() >= first.range.from()
            && time.range.to() <= first.range.to()
            && time.range.millis() < first.range.millis()
    };
    let time = times.iter().skip(1).find(inside).unwrap_or(first);
    let note = time.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    Some((time.range, format!("{}{note}", time.typed)))
}

/// A window told by what happened.
fn told(stage: &Stage<'_>, scope: &Scope, anchor: &Anchor) -> Window {
    if anchor.kind.as_deref() == Some("start") {
        let start = scope.job_time.map(|(start, _)| start);
        return match start.and_then(|start| lies(anchor, start, stage.ask.as_of)) {
            Some(range) => Window::Known(range, asked(range, &anchor.typed, stage.zone)),
            None => {
                Window::Ask(Box::new(draft::plain(Outcome::Clarify, "Which job's start do you mean? Name the job.")))
            }
        };
    }
    let Some(listed) = events(stage.gathered) else {
        let from = stage.ask.as_of.checked_sub(EVENTS_BACK).unwrap_or(stage.ask.as_of);
        let mut arguments =
            json!({ "from": from.to_string(), "to": stage.ask.as_of.to_string(), "latest": true, "limit": 200 });
        if let (Some(kind), Some(object)) = (&anchor.kind, arguments.as_object_mut()) {
            object.insert("kind".to_owned(), json!(kind));
        }
        return Window::Look(Box::new(ToolCall { tool: "list_events".to_owned(), arguments }));
    };
    let rows: Vec<&EvidenceRow> = listed
        .outcome
        .as_ref()
        .ok()
        .map(|output| output.evidence.iter().take(1).flat_map(|piece| &piece.rows).collect())
        .unwrap_or_default();
    let found = meant(&rows, anchor, scope);
    match found.and_then(|(at, _)| lies(anchor, at, stage.ask.as_of)) {
        Some(range) => Window::Known(range, asked(range, &anchor.typed, stage.zone)),
        None => {
            let sentence = format!(
                "I find no event in the last seven days that “{}” can mean; name the time itself.",
                crate::ground::clean(&anchor.typed)
            );
            Window::Ask(Box::new(draft::plain(Outcome::Clarify, &sentence)))
        }
    }
}

/// The listing that was made to find an event.
fn events(gathered: &[Gathered]) -> Option<&Gathered> {
    gathered.iter().find(|g| g.call.tool == "list_events" && g.call.arguments.get("limit") == Some(&json!(200)))
}

/// The event that is meant: the one with most of the words that tell it, of what is asked about where one is, the latest of several.
fn meant(rows: &[&EvidenceRow], anchor: &Anchor, scope: &Scope) -> Option<(Timestamp, usize)> {
    let named: Vec<&String> = scope.filters.iter().flat_map(|(_, values)| values).collect();
    let score = |row: &EvidenceRow| {
        let text: String =
            row.entity.values().chain(row.fields.values()).map(|v| v.to_lowercase()).collect::<Vec<_>>().join(" ");
        let told = anchor
            .words
            .iter()
            .filter(|word| text.contains(word.as_str()) || text.replace('-', " ").contains(word.as_str()))
            .count();
        let own = named.iter().filter(|name| text.contains(&name.to_lowercase())).count();
        (told, own)
    };
    let mut best: Option<((usize, usize), Timestamp)> = None;
    for row in rows {
        let Some(at) = row.time else { continue };
        let score = score(row);
        if best.is_none_or(|(other, time)| (score, at) > (other, time)) {
            best = Some((score, at));
        }
    }
    let ((told, _), at) = best?;
    // Without a kind the words are all there is to tell it by.
    (anchor.kind.is_some() || told * 2 >= anchor.words.len().max(1)).then_some((at, told))
}

fn lies(anchor: &Anchor, at: Timestamp, as_of: Timestamp) -> Option<TimeRange> {
    let zoned = at.to_zoned_datetime(jiff::tz::TimeZone::UTC);
    match anchor.lies {
        Lies::Since => TimeRange::new(at, as_of),
        Lies::Before(span) => TimeRange::new(zoned.checked_sub(span).ok()?.timestamp(), at),
        Lies::After(span) => TimeRange::new(at, zoned.checked_add(span).ok()?.timestamp().min(as_of)),
        Lies::Between(before, after) => TimeRange::new(
            zoned.checked_sub(before).ok()?.timestamp(),
            zoned.checked_add(after).ok()?.timestamp().min(as_of),
        ),
        Lies::Around => {
            TimeRange::new(at.checked_sub(AROUND_EVENT).ok()?, at.checked_add(AROUND_EVENT).ok()?.min(as_of))
        }
    }
}

/// The two windows of a comparison, the earlier first.
pub(super) fn two(stage: &Stage<'_>) -> Option<(TimeRange, TimeRange)> {
    let (reading, zone) = (stage.reading, stage.zone);
    let moved = |range: TimeRange, back: jiff::Span| {
        let at = |time: Timestamp| time.to_zoned_datetime(zone.clone()).checked_sub(back).ok().map(|z| z.timestamp());
        TimeRange::new(at(range.from())?, at(range.to())?)
    };
    if let Some(back) = reading.shifted {
        let range = match reading.times.first() {
            Some(time) => time.range,
            None => last(stage, HOUR)?,
        };
        return Some((moved(range, back)?, range));
    }
    match reading.times.as_slice() {
        [first, second, ..] if first.range.from() <= second.range.from() => Some((first.range, second.range)),
        [first, second, ..] => Some((second.range, first.range)),
        [only] => {
            // `after 21:30`, `since 14:00`: as long before it.
            if let super::time::Moment::Since(at) = only.moment {
                let length = only.range.to().duration_since(at);
                return Some((TimeRange::new(at.checked_sub(length).ok()?, at)?, TimeRange::new(at, only.range.to())?));
            }
            // `before 15:30 with after`: as long after it as before it.
            if let (super::time::Moment::Until(at), true) = (only.moment, reading.has("either_side")) {
                let length = at.duration_since(only.range.from());
                let end = at.checked_add(length).ok()?.min(stage.ask.as_of);
                return Some((TimeRange::new(only.range.from(), at)?, TimeRange::new(at, end)?));
            }
            // `at 21:40, before and after`: how far to look is not said.
            if let (super::time::Moment::Instant(at), true) = (only.moment, reading.has("either_side")) {
                let length = stage.ask.as_of.duration_since(at).min(SIDE);
                let before = TimeRange::new(at.checked_sub(length).ok()?, at)?;
                return Some((before, TimeRange::new(at, at.checked_add(length).ok()?)?));
            }
            if !reading.and_before {
                return None;
            }
            let day = only.range.millis() >= 4 * 3_600_000 && !only.typed.to_lowercase().contains("hour");
            if day {
                return Some((moved(only.range, 1.day())?, only.range));
            }
            let length = SignedDuration::from_millis(only.range.millis());
            Some((TimeRange::new(only.range.from().checked_sub(length).ok()?, only.range.from())?, only.range))
        }
        [] => None,
    }
}
