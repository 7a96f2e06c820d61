//! Time words, resolved in the asker's zone by code.

mod clock;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, ZonedDateTime};
use sightline_model::{AskedRange, TimeRange};

use super::words::{Word, at, length};
use clock::{clock_time, date, hour_alone, instant, zone};

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
    /// The present.
    Now,
}

/// Why time words have no meaning here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeFault {
    /// One sentence for the asker.
    pub(super) reason: String,
}

/// Half of the window around a single instant (`at 15:00`): wide enough to see the change and what came before.
const AROUND: i64 = 30;

/// Abbreviations that stand for several zones, or for one only half of the year: to take the asker's own zone instead would mislead.
const AMBIGUOUS_ZONES: [&str; 14] =
    ["CET", "CEST", "EET", "BST", "IST", "JST", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"];

/// What an expression means before it is cut at now.
struct Meaning {
    moment: Moment,
    length: usize,
    from: ZonedDateTime,
    to: ZonedDateTime,
}

/// Words for lengths of time, singular; some of them have none that is always the same.
const UNITS: [&str; 9] = ["second", "sec", "minute", "min", "hour", "day", "week", "month", "year"];

/// Everything a rule needs.
struct Reader<'a> {
    words: &'a [Word<'a>],
    now: ZonedDateTime,
}

/// All time expressions of a question, in order, not overlapping.
///
/// # Errors
/// When an expression lies in the future or is reversed.
pub(super) fn find_times(words: &[Word<'_>], as_of: Timestamp, zone: &TimeZone) -> Result<Vec<TimeMention>, TimeFault> {
    let reader = Reader { words, now: as_of.to_zoned_datetime(zone.clone()) };
    let mut mentions = Vec::new();
    let mut place = 0;
    while place < words.len() {
        let Some(meaning) = reader.meaning_at(place) else {
            if let Some(typed) = reader.unknown_length(place) {
                let reason = format!(
                    "“{typed}” is no length of time that is known here; write, for example, `in the last 3 hours` or `in the last 2 days`."
                );
                return Err(TimeFault { reason });
            }
            place += 1;
            continue;
        };
        let typed: Vec<&str> = words.iter().skip(place).take(meaning.length).map(|w| w.typed).collect();
        let typed = typed.join(" ");
        mentions.push(TimeMention {
            first: place,
            length: meaning.length,
            range: cut(&meaning, &typed, as_of)?,
            typed,
            moment: meaning.moment,
        });
        place += meaning.length;
        if let Some(word) = words.get(place).filter(|word| AMBIGUOUS_ZONES.contains(&word.typed)) {
            let reason = format!(
                "“{}” is the name of more than one zone; write UTC or a name such as `Europe/Berlin` behind the time, or leave it out for your own zone.",
                word.typed
            );
            return Err(TimeFault { reason });
        }
    }
    Ok(mentions)
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
fn span_text(from: &ZonedDateTime, to: &ZonedDateTime) -> String {
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
        return Err(TimeFault { reason: format!("“{typed}” lies in the future; there is no data yet.") });
    }
    if from >= to {
        return Err(TimeFault { reason: format!("“{typed}” ends before it begins; turn it round.") });
    }
    TimeRange::new(from, to.min(as_of))
        .ok_or_else(|| TimeFault { reason: format!("“{typed}” holds no time before now.") })
}

impl Reader<'_> {
    /// The expression that begins there. Where it names a zone, its clock times and days are those of that zone.
    fn meaning_at(&self, place: usize) -> Option<Meaning> {
        let meaning = self.in_own_zone(place)?;
        let named = (place..place + meaning.length).find_map(|at| zone(self.words.get(at)?.typed));
        match named {
            Some(zone) => Reader { words: self.words, now: self.now.with_time_zone(zone) }.in_own_zone(place),
            None => Some(meaning),
        }
    }

    fn in_own_zone(&self, place: usize) -> Option<Meaning> {
        self.between(place)
            .or_else(|| self.since(place))
            .or_else(|| self.rolling(place))
            .or_else(|| self.around(place))
            .or_else(|| self.day_part(place))
            .or_else(|| self.whole_day(place))
    }

    fn phrase(&self, place: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().filter(|p| at(self.words, place, p)).map(|p| length(p)).max()
    }

    /// `between A and B`, `from A to B`.
    fn between(&self, place: usize) -> Option<Meaning> {
        let joiners: &[&str] = if at(self.words, place, "between") {
            &["and"]
        } else if at(self.words, place, "from") {
            &["to", "until", "till"]
        } else {
            return None;
        };
        let (from, from_words, day) = self.point(place + 1, None)?;
        let joint = place + 1 + from_words;
        self.phrase(joint, joiners)?;
        let (to, to_words, _) = self.point(joint + 1, Some(day))?;
        let mut length = joint + 1 + to_words - place;
        let (mut from, mut to) = (from, to);
        // `between 14:00 and 16:00 yesterday`: a day behind both moves both.
        if let Some((date, words)) = self.day_at(place + length) {
            length += words;
            from = from.with().date(date).build().ok()?;
            to = to.with().date(date).build().ok()?;
        }
        Some(Meaning { moment: Moment::Window, length, from, to })
    }

    /// `since A`, `since about A`, `after A`; `since 7`, `since 7ish`.
    fn since(&self, place: usize) -> Option<Meaning> {
        self.phrase(place, &["since", "after"])?;
        let about = self.phrase(place + 1, &["about", "around"]).unwrap_or(0);
        let start = place + 1 + about;
        let point = self.point(start, None).map(|(from, words, _)| (from, words));
        let (from, words) = point.or_else(|| Some((self.latest(hour_alone(self.words, start)?)?, 1)))?;
        let moment = Moment::Since(from.timestamp());
        Some(Meaning { moment, length: 1 + about + words, from, to: self.now.clone() })
    }

    /// When a clock last showed this hour; of an hour that a dial shows twice a day, the later time.
    fn latest(&self, hour: i8) -> Option<ZonedDateTime> {
        let hours = if hour <= 12 { vec![hour % 12, hour % 12 + 12] } else { vec![hour] };
        let days = [self.now.date(), self.now.date().yesterday().ok()?];
        let times = days.into_iter().flat_map(|day| hours.iter().filter_map(move |hour| self.hour(day, *hour)));
        times.filter(|time| *time < self.now).max_by_key(ZonedDateTime::timestamp)
    }

    /// `now`, `last hour`, `past 30 minutes`, `last 2 days`.
    fn rolling(&self, place: usize) -> Option<Meaning> {
        if let Some(length) = self.phrase(place, &["right now", "now", "currently", "at the moment", "at this moment"])
        {
            let from = self.now.checked_sub(5.minutes()).ok()?;
            return Some(Meaning { moment: Moment::Now, length, from, to: self.now.clone() });
        }
        let lead = self.phrase(
            place,
            &[
                "in the last",
                "over the last",
                "during the last",
                "for the last",
                "within the last",
                "in the past",
                "over the past",
                "during the past",
                "the last",
                "the past",
                "last",
                "past",
            ],
        )?;
        let next = self.words.get(place + lead)?;
        let (amount, unit_place) = match next.folded.parse::<i64>() {
            Ok(amount) if amount > 0 => (amount, place + lead + 1),
            Ok(_) => return None,
            Err(_) => match split_amount(&next.folded) {
                Some((amount, unit)) => {
                    let from = self.now.checked_sub(span(amount, unit)?).ok()?;
                    return Some(Meaning { moment: Moment::Window, length: lead + 1, from, to: self.now.clone() });
                }
                None => (1, place + lead),
            },
        };
        let unit = self.words.get(unit_place)?;
        let from = self.now.checked_sub(span(amount, &unit.folded)?).ok()?;
        let length = unit_place + 1 - place;
        Some(Meaning { moment: Moment::Window, length, from, to: self.now.clone() })
    }

    /// `last -5 hours`, `last 5 years`: a length was meant, and to answer for another would mislead.
    fn unknown_length(&self, place: usize) -> Option<String> {
        self.phrase(place, &["last", "past"])?;
        let amount = self.words.get(place + 1)?;
        let unit = self.words.get(place + 2)?;
        let is_number = amount.folded.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
        let is_unit = UNITS.iter().any(|name| unit.folded.trim_end_matches('s') == *name);
        (is_number && is_unit)
            .then(|| format!("{} {} {}", self.words.get(place).map_or("", |w| w.typed), amount.typed, unit.typed))
    }

    /// `at 3pm`, `around 14:10`, with `yesterday` or a date on either side.
    fn around(&self, place: usize) -> Option<Meaning> {
        let (day, day_words) = match self.day_at(place) {
            Some((date, words)) => (Some(date), words),
            None => (None, 0),
        };
        let lead = self.phrase(place + day_words, &["at about", "at around", "at", "around", "about", "near"]);
        // `~14:50`
        let is_rough = || self.words.get(place + day_words).is_some_and(|word| word.typed.starts_with('~'));
        let lead = lead.or_else(|| is_rough().then_some(0))?;
        let clock_place = place + day_words + lead;
        let (time, clock_words) = clock_time(self.words, clock_place)?;
        let mut length = day_words + lead + clock_words;
        let day = match day {
            Some(date) => date,
            None => match self.day_at(place + length) {
                Some((date, words)) => {
                    length += words;
                    date
                }
                None => self.latest_day_with(time)?,
            },
        };
        let middle = day.to_datetime(time).to_zoned_datetime(self.now.time_zone().clone()).ok()?;
        Some(Meaning {
            moment: Moment::Instant(middle.timestamp()),
            length,
            from: middle.checked_sub(AROUND.minutes()).ok()?,
            to: middle.checked_add(AROUND.minutes()).ok()?,
        })
    }

    /// `last night` 20:00 to 06:00, `this morning` 06:00 to 12:00, `this afternoon`, `this evening`.
    fn day_part(&self, place: usize) -> Option<Meaning> {
        let today = self.now.date();
        let parts: [(&str, i8, Date, i8, Date); 6] = [
            ("last night", 20, today.yesterday().ok()?, 6, today),
            ("this morning", 6, today, 12, today),
            ("this afternoon", 12, today, 18, today),
            ("this evening", 18, today, 0, today.tomorrow().ok()?),
            ("yesterday morning", 6, today.yesterday().ok()?, 12, today.yesterday().ok()?),
            ("yesterday afternoon", 12, today.yesterday().ok()?, 18, today.yesterday().ok()?),
        ];
        let (phrase, from_hour, from_day, to_hour, to_day) =
            parts.into_iter().find(|part| at(self.words, place, part.0))?;
        let (from, to) = (self.hour(from_day, from_hour)?, self.hour(to_day, to_hour)?);
        Some(Meaning { moment: Moment::Window, length: length(phrase), from, to })
    }

    /// `today`, `yesterday`, a weekday, a date, `this week`, `last week`.
    fn whole_day(&self, place: usize) -> Option<Meaning> {
        let monday = self.now.date().nth_weekday(-1, Weekday::Monday).ok();
        let this_monday = if self.now.date().weekday() == Weekday::Monday { Some(self.now.date()) } else { monday };
        if let Some(length) = self.phrase(place, &["this week"]) {
            let from = self.hour(this_monday?, 0)?;
            return Some(Meaning { moment: Moment::Window, length, from, to: self.now.clone() });
        }
        let lead = self.phrase(place, &["on"]).unwrap_or(0);
        let (day, words) = self.day_at(place + lead)?;
        let (from, to) = (self.hour(day, 0)?, self.hour(day.tomorrow().ok()?, 0)?);
        Some(Meaning { moment: Moment::Window, length: lead + words, from, to })
    }

    /// A day in words: `today`, `yesterday`, `the day before yesterday`, a weekday (the latest one), a date.
    fn day_at(&self, place: usize) -> Option<(Date, usize)> {
        let today = self.now.date();
        if let Some(words) = self.phrase(place, &["the day before yesterday", "day before yesterday"]) {
            return Some((today.yesterday().ok()?.yesterday().ok()?, words));
        }
        if at(self.words, place, "yesterday") {
            return Some((today.yesterday().ok()?, 1));
        }
        if at(self.words, place, "today") {
            return Some((today, 1));
        }
        // There is never data for it; it is read so that the asker is told so.
        if at(self.words, place, "tomorrow") {
            return Some((today.tomorrow().ok()?, 1));
        }
        let lead = self.phrase(place, &["on", "last"]).unwrap_or(0);
        let word = self.words.get(place + lead)?;
        if let Some(weekday) = weekday(&word.folded) {
            let day =
                if today.weekday() == weekday && lead == 0 { today } else { today.nth_weekday(-1, weekday).ok()? };
            return Some((day, lead + 1));
        }
        date(word.typed).map(|day| (day, lead + 1))
    }

    /// One end of a range: an instant, a day with or without a clock time, or a clock time alone (on `day`, else the latest day
    /// on which it has passed).
    fn point(&self, place: usize, day: Option<Date>) -> Option<(ZonedDateTime, usize, Date)> {
        let zone = self.now.time_zone().clone();
        let word = self.words.get(place)?;
        if let Some(at) = instant(word.typed, &zone) {
            let date = at.date();
            return Some((at, 1, date));
        }
        if let Some((date, words)) = self.day_at(place) {
            let joiner = self.phrase(place + words, &["at"]).unwrap_or(0);
            if let Some((time, clock_words)) = clock_time(self.words, place + words + joiner) {
                let at = date.to_datetime(time).to_zoned_datetime(zone).ok()?;
                return Some((at, words + joiner + clock_words, date));
            }
            return Some((self.hour(date, 0)?, words, date));
        }
        if at(self.words, place, "now") {
            return Some((self.now.clone(), 1, self.now.date()));
        }
        let (time, words) = clock_time(self.words, place)?;
        let date = match day {
            Some(day) => day,
            None => self.latest_day_with(time)?,
        };
        Some((date.to_datetime(time).to_zoned_datetime(zone).ok()?, words, date))
    }

    /// Today if that time of day has passed, else yesterday.
    fn latest_day_with(&self, time: Time) -> Option<Date> {
        let today = self.now.date();
        if time <= self.now.time() { Some(today) } else { today.yesterday().ok() }
    }

    fn hour(&self, day: Date, hour: i8) -> Option<ZonedDateTime> {
        day.to_datetime(Time::new(hour, 0, 0, 0).ok()?).to_zoned_datetime(self.now.time_zone().clone()).ok()
    }
}

fn weekday(word: &str) -> Option<Weekday> {
    match word {
        "monday" | "mon" => Some(Weekday::Monday),
        "tuesday" | "tue" | "tues" => Some(Weekday::Tuesday),
        "wednesday" | "wed" => Some(Weekday::Wednesday),
        "thursday" | "thu" | "thurs" => Some(Weekday::Thursday),
        "friday" | "fri" => Some(Weekday::Friday),
        "saturday" | "sat" => Some(Weekday::Saturday),
        "sunday" | "sun" => Some(Weekday::Sunday),
        _ => None,
    }
}

/// `30m` as 30 and `m`.
fn split_amount(word: &str) -> Option<(i64, &str)> {
    let digits = word.chars().take_while(char::is_ascii_digit).count();
    let (amount, unit) = word.split_at_checked(digits)?;
    Some((amount.parse().ok().filter(|n| *n > 0)?, unit))
}

/// A length of time; none for a word that is no unit or an amount past reason.
fn span(amount: i64, unit: &str) -> Option<Span> {
    let span = Span::new();
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => span.try_seconds(amount).ok(),
        "m" | "min" | "mins" | "minute" | "minutes" => span.try_minutes(amount).ok(),
        "h" | "hr" | "hrs" | "hour" | "hours" => span.try_hours(amount).ok(),
        // Days and weeks as the asker's calendar counts them: 23 or 25 hours when the clocks change.
        "d" | "day" | "days" => span.try_days(amount).ok(),
        "w" | "week" | "weeks" => span.try_weeks(amount).ok(),
        _ => None,
    }
}
