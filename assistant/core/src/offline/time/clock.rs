//! Clock times and instants as people write them.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

use super::super::words::{Word, at};

/// A clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// The time of day.
    pub(super) time: Time,
    /// How many words it takes.
    pub(super) words: usize,
    /// Whether it was said which half of the day it is in: `3pm`, `15:00`.
    pub(super) sure: bool,
    /// Whether only the hour was said.
    pub(super) hour_only: bool,
}

/// A clock time at that place: `15:00`, `3pm`, `3 pm`, `3:30pm`, `noon`, `15h30`, `half past 2`, `3 o'clock`. A bare number is one only
/// where `bare` says that a time must stand there.
pub(super) fn clock_at(words: &[Word<'_>], place: usize, bare: bool) -> Option<Clock> {
    let word = roughly(words.get(place)?);
    let whole = |hour: i8, minute: i8, words: usize, sure: bool| {
        Some(Clock { time: Time::new(hour, minute, 0, 0).ok()?, words, sure, hour_only: minute == 0 })
    };
    match word {
        "noon" | "midday" => return whole(12, 0, 1, true).map(|clock| Clock { hour_only: false, ..clock }),
        "breakfast" => return whole(8, 0, 1, true).map(|clock| Clock { hour_only: false, ..clock }),
        "lunch" | "lunchtime" => return whole(12, 0, 1, true).map(|clock| Clock { hour_only: false, ..clock }),
        "midnight" => return whole(0, 0, 1, true).map(|clock| Clock { hour_only: false, ..clock }),
        _ => {}
    }
    for (lead, minutes) in
        [("half past", 30), ("quarter past", 15), ("quarter to", -15), ("a quarter past", 15), ("a quarter to", -15)]
    {
        if at(words, place, lead) {
            let used = super::super::words::length(lead);
            let hour = clock_at(words, place + used, true)?;
            let minutes = i64::from(hour.time.hour()) * 60 + minutes;
            let (h, m) = (minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60));
            return whole(i8::try_from(h).ok()?, i8::try_from(m).ok()?, used + hour.words, hour.sure);
        }
    }
    let next = words.get(place + 1).map(|w| w.folded.as_str());
    let joined = [("pm", 12), ("p.m", 12), ("am", 0), ("a.m", 0)];
    let (digits, half, used) = match joined.iter().find_map(|(end, half)| Some((word.strip_suffix(end)?, *half))) {
        Some((digits, half)) if !digits.is_empty() => (digits, Some(half), 1),
        _ => match next {
            Some("pm" | "p.m" | "p.m.") => (word, Some(12), 2),
            Some("am" | "a.m" | "a.m.") => (word, Some(0), 2),
            Some("o'clock" | "oclock") => (word, None, 2),
            _ => (word, None, 1),
        },
    };
    // `half past nine`, `at eight`
    let spelled =
        super::super::words::number_word(digits).filter(|n| bare && n.fract() == 0.0 && (1.0..=12.0).contains(n));
    let spelled = spelled.filter(|_| digits.len() > 2 && !matches!(digits, "couple" | "few" | "dozen" | "both"));
    let spelled = spelled.map(|hour| hour.to_string());
    let digits = spelled.as_deref().unwrap_or(digits);
    let is_digits = |text: &str| !text.is_empty() && text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
    let (hour, minute, second, written) = match digits.split(':').collect::<Vec<_>>().as_slice() {
        [hour, minute] if is_digits(hour) && minute.len() == 2 && is_digits(minute) => (*hour, *minute, "0", true),
        [hour, minute, second] if [hour, minute, second].iter().all(|part| is_digits(part)) => {
            (*hour, *minute, *second, true)
        }
        [only] => match only.split_once('h').or_else(|| only.split_once('.').filter(|_| bare || half.is_some())) {
            Some((hour, "")) if is_digits(hour) && bare => (hour, "0", "0", true),
            Some((hour, minute)) if is_digits(hour) && minute.len() == 2 && is_digits(minute) => {
                (hour, minute, "0", true)
            }
            Some(_) => return None,
            None if is_digits(only) && (half.is_some() || bare || used == 2) => (*only, "0", "0", false),
            // `at 1430`
            None if bare && only.len() == 4 && only.bytes().all(|b| b.is_ascii_digit()) => {
                let (hour, minute) = only.split_at(2);
                (hour, minute, "0", true)
            }
            None => return None,
        },
        _ => return None,
    };
    let (hour, minute, second): (i8, i8, i8) = (hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?);
    let hour_only = minute == 0 && second == 0 && !written;
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(offset) => hour % 12 + offset,
        None => hour,
    };
    let time = Time::new(hour, minute, second, 0).ok()?;
    Some(Clock { time, words: used, sure: half.is_some() || written || hour > 12, hour_only })
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

/// Seconds or milliseconds since 1970, as programs print them: ten digits or thirteen, from the year 2001 on.
fn unix(word: &str) -> Option<Timestamp> {
    let number: i64 = word.parse().ok().filter(|_| word.bytes().all(|b| b.is_ascii_digit()))?;
    match word.len() {
        10 => Timestamp::from_second(number).ok(),
        13 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

/// An ISO instant, in the zone where it names none: `2026-05-03T14:00`, `2026-05-03T14:00:00Z`.
pub(super) fn instant(word: &str, zone: &TimeZone) -> Option<ZonedDateTime> {
    if let Some(at) = unix(word) {
        return Some(at.to_zoned_datetime(zone.clone()));
    }
    if !word.contains(['T', 't']) || word.len() < 13 {
        return None;
    }
    if let Ok(at) = word.parse::<Timestamp>() {
        return Some(at.to_zoned_datetime(zone.clone()));
    }
    word.parse::<DateTime>().ok()?.to_zoned_datetime(zone.clone()).ok()
}
