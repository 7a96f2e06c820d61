//! Time words, resolved in the asker's zone by code.

mod clock;
mod dates;
mod days;
mod lengths;
mod ranges;
mod spans;
mod zones;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use sightline_model::{AskedRange, TimeRange};

use super::words::Word;
pub(super) use lengths::{length_at, seconds_at};
use ranges::Reader;

/// A time expression found in a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeMention {
    /// The first word of it.
    pub(super) first: usize,
    /// How many words it takes.
    pub(super) length: usize,
    /// What it means; cut at `as_of`.
    pub(super) range: TimeRange,
    /// The words as typed.
    pub(super) typed: String,
    /// What was named: an instant means another window to who asks for a cause than to who asks for a value.
    pub(super) moment: Moment,
    /// What the asker should know of how it was read: a clock time that was skipped or came twice.
    pub(super) note: Option<String>,
}

/// What a time expression names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// A stretch of time.
    Window,
    /// About an instant (`at 14:10`).
    Instant(Timestamp),
    /// All since an instant.
    Since(Timestamp),
    /// All until an instant.
    Until(Timestamp),
    /// The present.
    Now,
}

/// Why time words have no meaning here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeFault {
    /// One sentence for the asker.
    pub(super) reason: String,
    /// The words that can be read in several ways, with what each way would be written as.
    pub(super) readings: Option<(String, Vec<String>)>,
}

impl TimeFault {
    fn plain(reason: String) -> Self {
        Self { reason, readings: None }
    }
}

/// What an expression means before it is cut at now.
struct Meaning {
    moment: Moment,
    length: usize,
    from: ZonedDateTime,
    to: ZonedDateTime,
    note: Option<String>,
}

impl Meaning {
    fn window(length: usize, from: ZonedDateTime, to: ZonedDateTime) -> Self {
        Self { moment: Moment::Window, length, from, to, note: None }
    }
}

/// The words that the rules of time know, so that a slip in one of them is mended.
pub(super) const VOCABULARY: &[&str] = &[
    "yesterday",
    "today",
    "tonight",
    "tomorrow",
    "morning",
    "afternoon",
    "evening",
    "night",
    "midnight",
    "noon",
    "overnight",
    "last",
    "past",
    "previous",
    "since",
    "between",
    "until",
    "around",
    "about",
    "during",
    "before",
    "after",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "weekend",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "now",
    "currently",
    "moment",
    "couple",
    "half",
    "quarter",
    "recently",
    "early",
    "late",
];

/// All time expressions of a question, in order, not overlapping.
///
/// # Errors
/// When an expression lies in the future or is reversed, or can be read in several ways.
pub(super) fn find_times(words: &[Word<'_>], as_of: Timestamp, zone: &TimeZone) -> Result<Vec<TimeMention>, TimeFault> {
    let reader = Reader { words, now: as_of.to_zoned_datetime(zone.clone()) };
    let mut mentions = Vec::new();
    let mut place = 0;
    while place < words.len() {
        if let Some(fault) = reader.fault_at(place) {
            return Err(fault);
        }
        let Some(meaning) = reader.meaning_at(place) else {
            place += 1;
            continue;
        };
        let typed: Vec<&str> = words.iter().skip(place).take(meaning.length).map(|w| w.typed).collect();
        let typed = typed.join(" ");
        let last = place + meaning.length;
        for word in words.get(place..last).into_iter().flatten() {
            if let Some(fault) = zones::out_of_season(word.typed, &meaning.from) {
                return Err(fault);
            }
        }
        if let Some(word) = words.get(last).filter(|word| zones::is_ambiguous(word.typed)) {
            let reason = format!(
                "“{}” is the name of more than one zone; write UTC or a name such as `Europe/Berlin` behind the time, or leave it out for your own zone.",
                word.typed
            );
            return Err(TimeFault::plain(reason));
        }
        mentions.push(TimeMention {
            first: place,
            length: meaning.length,
            range: cut(&meaning, &typed, as_of)?,
            typed,
            moment: meaning.moment,
            note: meaning.note,
        });
        place = last;
    }
    Ok(mentions)
}

/// The zone in which times are to be told: `in UTC`, `in Berlin time`. One that stands behind a time says only when that was.
pub(super) fn told_in(words: &[Word<'_>]) -> Option<TimeZone> {
    let mut places = words.iter().enumerate().filter(|(_, word)| word.folded == "in").map(|(place, _)| place);
    places.find_map(|place| zones::zone_at(words, place)).map(|(zone, _)| zone)
}

/// A zone that is named for the whole of a question: `in UTC`, `in Berlin time`, `UTC`.
pub(super) fn zone_named(words: &[Word<'_>]) -> Option<TimeZone> {
    let place = words.iter().position(|word| word.folded == "in" || zones::zone(word.typed).is_some())?;
    (place..words.len()).find_map(|place| zones::zone_at(words, place)).map(|(zone, _)| zone)
}

/// The window as it is told to the asker.
pub(super) fn asked(range: TimeRange, typed: &str, zone: &TimeZone) -> AskedRange {
    let name = crate::answer_question::zone_name(zone);
    let from = range.from().to_zoned_datetime(zone.clone());
    let to = range.to().to_zoned_datetime(zone.clone());
    AskedRange {
        from: range.from(),
        to: range.to(),
        how: format!("{typed} ({} {name})", span_text(&from, &to)),
        time_zone: name,
    }
}

/// `2026-05-03 00:00-24:00` within a day, else both ends in full.
pub(super) fn span_text(from: &ZonedDateTime, to: &ZonedDateTime) -> String {
    let next_midnight = from.date().tomorrow().ok() == Some(to.date()) && to.time() == Time::midnight();
    if next_midnight {
        format!("{} {}-24:00", from.date(), from.strftime("%H:%M"))
    } else if from.date() == to.date() {
        format!("{} {}-{}", from.date(), from.strftime("%H:%M"), to.strftime("%H:%M"))
    } else {
        format!("{} - {}", from.strftime("%Y-%m-%d %H:%M"), to.strftime("%Y-%m-%d %H:%M"))
    }
}

fn cut(meaning: &Meaning, typed: &str, as_of: Timestamp) -> Result<TimeRange, TimeFault> {
    let (from, to) = (meaning.from.timestamp(), meaning.to.timestamp());
    if from >= as_of {
        return Err(TimeFault::plain(format!("“{typed}” lies in the future; there is no data yet.")));
    }
    if from >= to {
        return Err(TimeFault::plain(format!("“{typed}” ends before it begins; turn it round.")));
    }
    TimeRange::new(from, to.min(as_of)).ok_or_else(|| TimeFault::plain(format!("“{typed}” holds no time before now.")))
}
