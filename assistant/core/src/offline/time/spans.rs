//! Windows with two ends that are named: `between A and B`, `since A`, `until B`, `the 24 hours up to B`.

use jiff::civil::{Date, Time};
use jiff::{ToSpan as _, ZonedDateTime};

use super::super::words::{Word, at};
use super::clock::{Clock, clock_at, instant};
use super::dates::day_at;
use super::lengths::length_at;
use super::ranges::Reader;
use super::zones::zone_at;
use super::{Meaning, Moment};

/// One end of a range.
struct Point {
    at: ZonedDateTime,
    words: usize,
    day: Date,
    clock: Option<Clock>,
    note: Option<String>,
}

impl Reader<'_> {
    /// `between A and B`, `from A to B`, `14:00-16:00`, `14:00 to 16:00`.
    pub(super) fn between(&self, place: usize) -> Option<Meaning> {
        let (day, day_words) = match day_at(self.words, place, self.now.date()) {
            Some((day, words)) => (Some(day), words),
            None => (None, 0),
        };
        let place_of = place + day_words;
        if let Some(meaning) = self.interval(place) {
            return Some(meaning);
        }
        if let Some(meaning) = self.joined(place_of, day) {
            return Some(Meaning { length: meaning.length + day_words, ..meaning });
        }
        const TO: &[&str] = &["to", "until", "till", "up to", "-", "through", "and until", "and till", "up until"];
        const BUT: &[&str] = &[
            "but before",
            "and before",
            "until",
            "till",
            "to",
            "but not after",
            "and not after",
            "and until",
            "but until",
        ];
        let after = self.phrase(place_of, &["after", "later than", "not before", "past", "since"]);
        let (lead, joiners): (usize, &[&str]) = match (self.words.get(place_of)?.folded.as_str(), after) {
            ("between", _) => (1, &["and", "to", "-"]),
            ("from", _) => (1, TO),
            (_, Some(words)) => (words, BUT),
            _ => (0, &["to", "until", "till", "-"]),
        };
        if let Some(meaning) = self.begun_whole(place, place_of + lead, TO).filter(|_| lead > 0 && day.is_none()) {
            return Some(meaning);
        }
        let mut first = match self.point(place_of + lead, day, lead > 0) {
            Some(first) => first,
            // `6 to 8 this morning`: bare hours are clock times where a day or a part of one stands behind them.
            None if lead == 0 && day.is_none() => return self.bare_hours(place),
            None => return None,
        };
        // `from 21:00 yesterday to 1:00 today`
        let own_day = self.day_behind(&mut first, place_of + lead, day);
        let joint = place_of + lead + first.words;
        let joiner = self.phrase(joint, joiners)?;
        let mut second = self.point(joint + joiner, Some(first.day), true)?;
        if own_day {
            self.day_behind(&mut second, joint + joiner, None);
        }
        let day = day.or(own_day.then_some(first.day));
        // `A to B` without a word before it is a range only of clock times or days that are written out.
        if lead == 0
            && (first.clock.is_none() || second.clock.is_none())
            && first.clock.is_some() != second.clock.is_some()
        {
            return None;
        }
        let length = joint + joiner + second.words - place;
        Some(self.spanned(place, length, first, second, day.is_some()))
    }

    /// A clock time with its day behind it is of that day; whether there is one.
    fn day_behind(&self, point: &mut Point, place: usize, day: Option<Date>) -> bool {
        if point.clock.is_none() || day.is_some() {
            return false;
        }
        let Some((date, words)) = day_at(self.words, place + point.words, self.now.date()) else { return false };
        // `14:00 monday evening` says more than the day.
        let Ok(moved) = point.at.with().date(date).build() else { return false };
        (point.at, point.day) = (moved, date);
        point.words += words;
        true
    }

    /// `from the weekend until now`, `from last night to 9:00`: what begins is a stretch of time.
    fn begun_whole(&self, place: usize, start: usize, joiners: &[&str]) -> Option<Meaning> {
        let whole = self.day_part(start).or_else(|| {
            self.whole_day(start)
                .filter(|_| self.phrase(start, &["the weekend", "this week", "weekend", "last weekend"]).is_some())
        })?;
        let joint = start + whole.length;
        let joiner = self.phrase(joint, joiners)?;
        let end = self.point(joint + joiner, None, true)?;
        let length = joint + joiner + end.words - place;
        Some(Meaning::window(length, whole.from, end.at))
    }

    /// `6 to 8 this morning`, `9-11 yesterday`: hours alone, told by the day behind them.
    fn bare_hours(&self, place: usize) -> Option<Meaning> {
        let from = super::clock::hour_alone(self.words, place)?;
        let joiner = self.phrase(place + 1, &["to", "till", "until", "-"])?;
        let to = super::clock::hour_alone(self.words, place + 1 + joiner)?;
        let behind = place + 2 + joiner;
        let (day, part, words) = match (self.day_part(behind), day_at(self.words, behind, self.now.date())) {
            (Some(part), _) => (part.from.date(), Some(part.from.hour()), part.length),
            (None, Some((day, words))) => (day, None, words),
            (None, None) => return None,
        };
        let late = part.is_some_and(|hour| hour >= 12) && from < 12;
        let moved = |hour: i8| if late && hour < 12 { hour + 12 } else { hour };
        let at = |hour: i8| Some(self.on(day, Time::new(moved(hour), 0, 0, 0).ok()?)?.0);
        let (from, to) = (at(from)?, at(to)?);
        (from < to).then(|| Meaning::window(behind + words - place, from, to))
    }

    /// `2026-05-03T14:00Z..2026-05-03T15:30Z`, `A/B` as ISO writes an interval.
    fn interval(&self, place: usize) -> Option<Meaning> {
        let word = self.words.get(place)?;
        let zone = self.now.time_zone();
        ["...", "..", "--", "/"].into_iter().find_map(|mark| {
            let (from, to) = word.typed.split_once(mark)?;
            Some(Meaning::window(1, instant(from, zone)?, instant(to, zone)?))
        })
    }

    /// `in the 24 hours up to 6am`, `the hour before noon`, `30 minutes after 14:00`.
    pub(super) fn beside(&self, place: usize) -> Option<Meaning> {
        let before = self.phrase(place, &["in", "over", "during", "for", "within"]).unwrap_or(0);
        let the = self.phrase(place + before, &["the", "those"]).unwrap_or(0);
        let first = place + before + the;
        let (span, words) = match self.words.get(first)?.folded.as_str() {
            "hour" if the > 0 => (1.hour(), 1),
            "minute" if the > 0 => (1.minute(), 1),
            _ => length_at(self.words, first)?,
        };
        let joint = first + words;
        let leads_to =
            self.phrase(joint, &["up to", "until", "till", "before", "ending at", "leading up to", "prior to"]);
        let follows = self.phrase(joint, &["after", "following", "from", "starting at"]);
        let used = leads_to.or(follows)?;
        let point = self.point(joint + used, None, true)?;
        point.clock?;
        let mut length = joint + used + point.words - place;
        let mut at = point.at;
        if let Some((date, more)) = day_at(self.words, place + length, self.now.date())
            && let Ok(moved) = at.with().date(date).build()
        {
            at = moved;
            length += more;
        }
        let other = if leads_to.is_some() { at.checked_sub(span).ok()? } else { at.checked_add(span).ok()? };
        let (from, to) = if leads_to.is_some() { (other, at) } else { (at, other) };
        Some(Meaning { note: point.note, ..Meaning::window(length, from, to) })
    }

    /// `14:00-16:00`, `2-4pm`.
    fn joined(&self, place: usize, day: Option<Date>) -> Option<Meaning> {
        let lead = self.phrase(place, &["between", "from", "at", "around"]).unwrap_or(0);
        let word = self.words.get(place + lead)?;
        let (first, second) = word.folded.split_once('-')?;
        let part = |text: &str| Word { typed: "", folded: text.to_owned(), mended: false, ends: false };
        let mut behind = vec![part(second)];
        // `2-4 pm`
        behind.extend(
            self.words.get(place + lead + 1).filter(|next| matches!(next.folded.as_str(), "am" | "pm")).cloned(),
        );
        let from = clock_at(&[part(first)], 0, true)?;
        let to = clock_at(&behind, 0, true)?;
        if !from.sure && !to.sure {
            return None;
        }
        let zone = self.now.time_zone().clone();
        let end_day = match day {
            Some(day) => day,
            None => self.latest_day_with(to.time)?,
        };
        let point = |clock: Clock, day: Date| {
            let (at, note) = self.on(day, clock.time)?;
            Some(Point { at: at.with_time_zone(zone.clone()), words: 1, day, clock: Some(clock), note })
        };
        let length = lead + to.words;
        Some(self.spanned(place, length, point(from, end_day)?, point(to, end_day)?, day.is_some()))
    }

    /// A window from its two ends: a half of the day that one end leaves open is that of the other; a day behind both moves both; an end
    /// before the beginning is on the next day.
    fn spanned(&self, place: usize, mut length: usize, first: Point, second: Point, has_day: bool) -> Meaning {
        let (mut from, mut to) = (first.at, second.at);
        let (mut from_clock, to_clock) = (first.clock, second.clock);
        if let (Some(start), Some(end)) = (from_clock, to_clock)
            && !start.sure
            && end.sure
            && end.time.hour() >= 12
            && start.time.hour() < 12
            && start.time.hour() + 12 < end.time.hour().max(13)
            && let Ok(later) = start.time.with().hour(start.time.hour() + 12).build()
            && let Ok(moved) = from.with().time(later).build()
        {
            from = moved;
            from_clock = Some(Clock { time: later, ..start });
        }
        if !has_day
            && let Some((date, words)) = day_at(self.words, place + length, self.now.date())
            && let (Ok(moved_from), Ok(moved_to)) = (from.with().date(date).build(), to.with().date(date).build())
        {
            length += words;
            (from, to) = (moved_from, moved_to);
        }
        // `between 11 and 1 last night`: hours of a dial, of which the night has those from six in the evening on.
        if !has_day && self.phrase(place + length, &["last night", "yesterday night", "yesterday evening"]).is_some() {
            let evening = |at: &ZonedDateTime, clock: Option<Clock>| {
                let open = clock.is_some_and(|clock| !clock.sure && (6..12).contains(&clock.time.hour()));
                at.checked_add(12.hours()).ok().filter(|_| open)
            };
            from = evening(&from, from_clock).unwrap_or(from);
            to = evening(&to, to_clock).unwrap_or(to);
        }
        if !has_day && let Some((moved_from, moved_to, words)) = self.of_last_night(place + length, &from, &to) {
            length += words;
            (from, to) = (moved_from, moved_to);
        }
        let crosses = from_clock.is_some() && to_clock.is_some() && from.date() == to.date() && to < from;
        let late = from.hour() >= 18 && to.hour() < 12;
        if crosses && late {
            // `between 22:00 and 02:00`: the night.
            if let Ok(next) = to.checked_add(1.day()) {
                to = next;
            }
            if from >= self.now
                && let (Ok(a), Ok(b)) = (from.checked_sub(1.day()), to.checked_sub(1.day()))
            {
                (from, to) = (a, b);
            }
        }
        Meaning { note: first.note.or(second.note), ..Meaning::window(length, from, to) }
    }

    /// `between 23:00 and midnight last night`: each end on its side of the midnight that has passed.
    fn of_last_night(
        &self,
        behind: usize,
        from: &ZonedDateTime,
        to: &ZonedDateTime,
    ) -> Option<(ZonedDateTime, ZonedDateTime, usize)> {
        let words = self.phrase(behind, &["last night", "yesterday night", "yesterday evening"])?;
        let today = self.now.date();
        let evening = today.yesterday().ok()?;
        let begins_late = from.hour() >= 12;
        let moved_from = from.with().date(if begins_late { evening } else { today }).build().ok()?;
        let ends_late = to.hour() >= 12;
        let moved_to = to.with().date(if ends_late { evening } else { today }).build().ok()?;
        (moved_from < moved_to).then_some((moved_from, moved_to, words))
    }

    /// `since A`, `since about A`, `from A on`, `after A`, `A onwards`.
    pub(super) fn since(&self, place: usize) -> Option<Meaning> {
        let lead =
            self.phrase(place, &["ever since", "since", "starting", "starting at", "beginning at", "from", "after"])?;
        let plain = at(self.words, place, "from") || at(self.words, place, "after");
        let about = self.phrase(place + lead, &["about", "around", "roughly", "at", "ca"]).unwrap_or(0);
        let start = place + lead + about;
        let now = self.now.clone();
        let made = |from: ZonedDateTime, words: usize, note: Option<String>| Meaning {
            moment: Moment::Since(from.timestamp()),
            length: lead + about + words,
            from,
            to: now.clone(),
            note,
        };
        // Noon is an instant where something begins then.
        let at_noon = |length: usize| at(self.words, start + length - 1, "noon");
        if let Some(part) = self.day_part(start).filter(|part| !at_noon(part.length)) {
            return Some(made(part.from, part.length, None));
        }
        if let Some((span, words)) = length_at(self.words, start)
            && at(self.words, start + words, "ago")
        {
            return Some(made(self.now.checked_sub(span).ok()?, words + 1, None));
        }
        // `since 3 days`: so long until now.
        let counted = length_at(self.words, start).filter(|_| at(self.words, place, "since") && about == 0);
        if let Some((span, words)) = counted
            && self.words.get(start).is_some_and(|word| word.folded.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Some(made(self.now.checked_sub(span).ok()?, words, None));
        }
        // `since 7`: of an hour that a dial shows twice a day, the later one that has passed.
        let next_is_half =
            self.words.get(start + 1).is_some_and(|w| matches!(w.folded.as_str(), "am" | "pm" | "o'clock"));
        if let Some(hour) = super::clock::hour_alone(self.words, start)
            .filter(|_| !next_is_half && day_at(self.words, start, self.now.date()).is_none())
        {
            return Some(made(self.latest(hour)?, 1, None));
        }
        let point = self
            .point(start, None, false)
            .or_else(|| self.point(start, None, true).filter(|p| p.clock.is_some_and(|c| c.sure)))?;
        let on = self.phrase(start + point.words, &["on", "onwards", "onward"]).unwrap_or(0);
        // `from Monday` may go on with its end, which `between` has looked for.
        if plain && on == 0 && point.clock.is_none() && at(self.words, place, "from") {
            return None;
        }
        let mut words = point.words + on;
        let mut from = point.at;
        if point.clock.is_some()
            && let Some((date, more)) = day_at(self.words, start + words, self.now.date())
            && let Ok(moved) = from.with().date(date).build()
        {
            from = moved;
            words += more;
        }
        Some(made(from, words, point.note))
    }

    /// When a clock last showed this hour; of an hour that a dial shows twice a day, the later time.
    fn latest(&self, hour: i8) -> Option<ZonedDateTime> {
        let hours = if hour <= 12 { vec![hour % 12, hour % 12 + 12] } else { vec![hour] };
        let days = [self.now.date(), self.now.date().yesterday().ok()?];
        let times = days.into_iter().flat_map(|day| {
            hours.iter().filter_map(move |hour| Some(self.on(day, Time::new(*hour, 0, 0, 0).ok()?)?.0))
        });
        times.filter(|time| *time < self.now).max_by_key(ZonedDateTime::timestamp)
    }

    /// `until 3pm`, `before noon`: the day until then.
    pub(super) fn until(&self, place: usize) -> Option<Meaning> {
        let (day, day_words) = match day_at(self.words, place, self.now.date()) {
            Some((day, words)) => (Some(day), words),
            None => (None, 0),
        };
        let lead = self.phrase(place + day_words, &["until", "till", "before", "up to"])?;
        let point = self.point(place + day_words + lead, day, true)?;
        point.clock?;
        let mut length = day_words + lead + point.words;
        let mut to = point.at;
        if day.is_none()
            && let Some((date, more)) = day_at(self.words, place + length, self.now.date())
            && let Ok(moved) = to.with().date(date).build()
        {
            to = moved;
            length += more;
        }
        let (from, _) = self.on(to.date(), Time::midnight())?;
        let moment = Moment::Until(to.timestamp());
        Some(Meaning { moment, note: point.note, ..Meaning::window(length, from, to) })
    }

    /// One end of a range: an instant, a day with or without a clock time, or a clock time alone (on `day`, else the latest day
    /// on which it has passed).
    fn point(&self, place: usize, day: Option<Date>, bare: bool) -> Option<Point> {
        let zone = self.now.time_zone().clone();
        let word = self.words.get(place)?;
        if let Some(at) = instant(word.typed, &zone) {
            let day = at.date();
            return Some(Point { at, words: 1, day, clock: None, note: None });
        }
        if let Some((date, words)) = day_at(self.words, place, self.now.date()) {
            let joiner = self.phrase(place + words, &["at about", "at around", "at", "around"]).unwrap_or(0);
            if let Some(clock) = clock_at(self.words, place + words + joiner, joiner > 0) {
                let (at, note) = self.on(date, clock.time)?;
                return Some(Point { at, words: words + joiner + clock.words, day: date, clock: Some(clock), note });
            }
            let (at, note) = self.on(date, Time::midnight())?;
            return Some(Point { at, words, day: date, clock: None, note });
        }
        if at(self.words, place, "now") {
            let day = self.now.date();
            return Some(Point { at: self.now.clone(), words: 1, day, clock: None, note: None });
        }
        let clock = clock_at(self.words, place, bare)?;
        let date = match day {
            Some(day) => day,
            None => self.latest_day_with(clock.time)?,
        };
        let zoned = zone_at(self.words, place + clock.words).map_or(0, |(_, words)| words);
        let (at, note) = self.on(date, clock.time)?;
        let clock = Clock { words: clock.words + zoned, ..clock };
        Some(Point { at, words: clock.words, day: date, clock: Some(clock), note })
    }
}
