//! Days and parts of days as windows: `last night`, `monday evening`, `yesterday`, `this week`, `the weekend`.

use jiff::civil::{Date, Time, Weekday};
use jiff::{SignedDuration, ToSpan as _};

use super::super::words::{at, number_word};
use super::Meaning;
use super::dates::day_at;
use super::lengths::length_at;
use super::ranges::Reader;

impl Reader<'_> {
    pub(super) fn weekend(&self, length: usize) -> Option<Meaning> {
        let today = self.now.date();
        let monday =
            if today.weekday() == Weekday::Monday { today } else { today.nth_weekday(-1, Weekday::Monday).ok()? };
        let inside = matches!(today.weekday(), Weekday::Saturday | Weekday::Sunday);
        let saturday = if inside { monday.checked_add(5.days()).ok()? } else { monday.checked_sub(2.days()).ok()? };
        let (from, _) = self.on(saturday, Time::midnight())?;
        let (to, _) = self.on(saturday.checked_add(2.days()).ok()?, Time::midnight())?;
        Some(Meaning::window(length, from, to))
    }

    /// `last night` 20:00 to 06:00, `this morning` 06:00 to 12:00, `monday evening`, `tonight`.
    pub(super) fn day_part(&self, place: usize) -> Option<Meaning> {
        let today = self.now.date();
        let before =
            self.phrase(place, &["in the", "during the", "in", "during", "over", "early", "late"]).unwrap_or(0);
        let lead = place + before;
        if let Some(words) = self.phrase(lead, &["last night", "overnight", "the last night", "the night", "tonight"]) {
            let tonight = at(self.words, lead, "tonight") && self.now.hour() >= 18;
            let evening = if tonight { today } else { today.yesterday().ok()? };
            return self.part(evening, 20, evening.tomorrow().ok()?, 6, before + words);
        }
        let small = ["the wee hours", "the small hours", "wee hours", "small hours", "the early hours", "early hours"];
        if let Some(words) = self.phrase(lead, &small) {
            return self.part(today, 0, today, 6, before + words);
        }
        let (day, words) = if at(self.words, lead, "this") {
            (today, 1)
        } else if let Some(found) = day_at(self.words, lead, today) {
            found
        } else if before > 0 && self.phrase(lead, &["morning", "afternoon", "evening"]).is_some() {
            (today, 0)
        } else {
            return None;
        };
        let place = lead + words;
        let part = self.words.get(place)?.folded.as_str();
        let length = before + words + 1;
        match part {
            "morning" => self.part(day, 6, day, 12, length),
            "noon" => self.part(day, 11, day, 13, length),
            "afternoon" => self.part(day, 12, day, 18, length),
            "evening" => self.part(day, 18, day.tomorrow().ok()?, 0, length),
            "night" => self.part(day, 20, day.tomorrow().ok()?, 6, length),
            _ => None,
        }
    }

    /// `the first six hours of today`, `in the last 2 hours of sunday`, `the second half of yesterday`.
    pub(super) fn part_of(&self, place: usize) -> Option<Meaning> {
        let before = self.phrase(place, &["in", "during", "over", "for", "within", "of"]).unwrap_or(0);
        let the = self.phrase(place + before, &["the"]).unwrap_or(0);
        let lead = place + before + the;
        let first = self.phrase(lead, &["first", "opening", "early"]);
        let second = self.phrase(lead, &["second", "other"]).filter(|words| at(self.words, lead + words, "half"));
        let last = self.phrase(lead, &["last", "final", "closing"]).or(second);
        let start = lead + first.or(last)?;
        let (share, used) = match length_at(self.words, start) {
            _ if at(self.words, start, "half") => (None, 1),
            Some((span, used)) => (Some(span), used),
            // `the last six of yesterday`: hours.
            None => {
                let number = number_word(&self.words.get(start)?.folded).filter(|n| n.fract() == 0.0 && *n >= 1.0);
                let hours = number.or_else(|| self.words.get(start)?.folded.parse().ok())?;
                ((1.0..24.0).contains(&hours)).then(|| (Some((hours as i64).hours()), 1))?
            }
        };
        let of = self.phrase(start + used, &["of the", "of", "in"])?;
        let whole = self.day_part(start + used + of).or_else(|| self.whole_day(start + used + of))?;
        let length = start + used + of + whole.length - place;
        let half = SignedDuration::from_millis(whole.to.duration_since(&whole.from).as_millis() as i64 / 2);
        let (from, to) = match (first.is_some(), share) {
            (true, Some(span)) => (whole.from.clone(), whole.from.checked_add(span).ok()?),
            (true, None) => (whole.from.clone(), whole.from.checked_add(half).ok()?),
            (false, Some(span)) => (whole.to.checked_sub(span).ok()?, whole.to.clone()),
            (false, None) => (whole.to.checked_sub(half).ok()?, whole.to.clone()),
        };
        // A part is inside of the whole.
        (from >= whole.from && to <= whole.to).then(|| Meaning::window(length, from, to))
    }

    pub(super) fn part(&self, from: Date, from_hour: i8, to: Date, to_hour: i8, length: usize) -> Option<Meaning> {
        let at = |day: Date, hour: i8| Some(self.on(day, Time::new(hour, 0, 0, 0).ok()?)?.0);
        Some(Meaning::window(length, at(from, from_hour)?, at(to, to_hour)?))
    }

    /// `today`, `yesterday`, a weekday, a date, `this week`, `this month`, `the weekend`.
    pub(super) fn whole_day(&self, place: usize) -> Option<Meaning> {
        let today = self.now.date();
        let lead = self.phrase(place, &["on", "for", "during", "over", "in", "of", "from"]).unwrap_or(0);
        let begins = |first: Date, words: usize| {
            let (from, _) = self.on(first, Time::midnight())?;
            Some(Meaning::window(lead + words, from, self.now.clone()))
        };
        if let Some(words) = self.phrase(place + lead, &["this week", "the week"]) {
            let monday =
                if today.weekday() == Weekday::Monday { today } else { today.nth_weekday(-1, Weekday::Monday).ok()? };
            return begins(monday, words);
        }
        if let Some(words) = self.phrase(place + lead, &["this month"]) {
            return begins(today.first_of_month(), words);
        }
        if let Some(words) = self.phrase(place + lead, &["the weekend", "this weekend", "weekend"]) {
            return self.weekend(lead + words);
        }
        if let Some(words) = self.phrase(place + lead, &["this hour"]) {
            let (from, _) = self.on(today, Time::new(self.now.hour(), 0, 0, 0).ok()?)?;
            return Some(Meaning::window(lead + words, from, self.now.clone()));
        }
        let all = self.phrase(place + lead, &["all day", "all of", "the whole of", "whole"]).unwrap_or(0);
        let (day, words) = day_at(self.words, place + lead + all, today)?;
        let (from, _) = self.on(day, Time::midnight())?;
        let (to, _) = self.on(day.tomorrow().ok()?, Time::midnight())?;
        Some(Meaning::window(lead + all + words, from, to))
    }
}
