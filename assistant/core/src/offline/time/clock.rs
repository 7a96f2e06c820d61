//! Clock times, dates and instants as people write them.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

use super::super::words::Word;

/// A clock time at that place and how many words it takes, with the zone behind it: `15:00`, `3pm`, `3 pm`, `3:30pm`, `noon`, `02:58 UTC`.
pub(super) fn clock_time(words: &[Word<'_>], place: usize) -> Option<(Time, usize)> {
    let word = roughly(words.get(place)?);
    let alone = |time: Time| {
        let zone_words = usize::from(words.get(place + 1).is_some_and(|word| zone(word.typed).is_some()));
        (time, 1 + zone_words)
    };
    match word {
        "noon" => return Some(alone(Time::new(12, 0, 0, 0).ok()?)),
        "midnight" => return Some(alone(Time::midnight())),
        _ => {}
    }
    let (digits, half, words_used) = if let Some(digits) = word.strip_suffix("pm") {
        (digits, Some(12), 1)
    } else if let Some(digits) = word.strip_suffix("am") {
        (digits, Some(0), 1)
    } else {
        match words.get(place + 1).map(|w| w.folded.as_str()) {
            Some("pm") => (word, Some(12), 2),
            Some("am") => (word, Some(0), 2),
            Some(_) | None => (word, None, 1),
        }
    };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?),
        // A bare number is a clock time only with am or pm.
        None if half.is_some() => (digits.parse::<i8>().ok()?, 0),
        None => return None,
    };
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(offset) => hour % 12 + offset,
        None => hour,
    };
    let zone_words = usize::from(words.get(place + words_used).is_some_and(|word| zone(word.typed).is_some()));
    Some((Time::new(hour, minute, 0, 0).ok()?, words_used + zone_words))
}

/// A time without the sign that it is rough: `~14:50`, `7ish`.
fn roughly<'w>(word: &'w Word<'_>) -> &'w str {
    let word = word.folded.trim_start_matches('~');
    word.strip_suffix("ish").unwrap_or(word)
}

/// An hour that stands alone, as in `since 7`; none of `after 3 days`, which is a length.
pub(super) fn hour_alone(words: &[Word<'_>], place: usize) -> Option<i8> {
    let hour: i8 = roughly(words.get(place)?).parse().ok().filter(|hour| (0..24).contains(hour))?;
    let next = words.get(place + 1).map(|word| word.folded.trim_end_matches('s'));
    let counts = next.is_some_and(|next| NOT_AFTER_AN_HOUR.contains(&next));
    (!counts).then_some(hour)
}

/// What is counted, and so makes no hour of the number before it.
const NOT_AFTER_AN_HOUR: [&str; 15] = [
    "second", "minute", "min", "hour", "hr", "h", "day", "week", "month", "step", "epoch", "run", "job", "node", "gpu",
];

/// A zone as it is written behind a clock time: `UTC`, or an IANA name. Abbreviations like CST are three zones in three countries, so they
/// are none.
pub(super) fn zone(word: &str) -> Option<TimeZone> {
    match word {
        "UTC" | "utc" | "Z" | "GMT" | "gmt" => Some(TimeZone::UTC),
        name if name.contains('/') => TimeZone::get(name).ok(),
        _ => None,
    }
}

/// An ISO date.
pub(super) fn date(word: &str) -> Option<Date> {
    word.parse::<Date>().ok().filter(|_| word.len() == 10)
}

/// An ISO instant, in the zone where it names none: `2026-05-03T14:00`, `2026-05-03T14:00:00Z`.
pub(super) fn instant(word: &str, zone: &TimeZone) -> Option<ZonedDateTime> {
    if !word.contains(['T', 't']) || word.len() < 13 {
        return None;
    }
    if let Ok(at) = word.parse::<Timestamp>() {
        return Some(at.to_zoned_datetime(zone.clone()));
    }
    word.parse::<DateTime>().ok()?.to_zoned_datetime(zone.clone()).ok()
}
