//! From words to windows.

use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, ToSpan as _, ZonedDateTime};

use super::super::words::{Word, at, length};
use super::clock::{Clock, clock_at, instant};
use super::dates::{self, day_at};
use super::lengths::{is_unit, length_at};
use super::zones::zone_at;
use super::{Meaning, Moment, TimeFault};

/// Half of the window around an instant (`at 14:10`): people round the time to a quarter of an hour.
const AROUND: SignedDuration = SignedDuration::from_mins(15);
/// What “now” means for a value.
const NOW: SignedDuration = SignedDuration::from_mins(5);
/// What “recently” means.
const RECENTLY: SignedDuration = SignedDuration::from_hours(1);

/// Everything a rule needs.
pub(super) struct Reader<'a> {
    pub(super) words: &'a [Word<'a>],
    pub(super) now: ZonedDateTime,
}

/// One end of a range.
struct Point {
    at: ZonedDateTime,
    words: usize,
    day: Date,
    clock: Option<Clock>,
    note: Option<String>,
}

impl Reader<'_> {
    /// Words there that cannot be read as the time that they are meant to be.
    pub(super) fn fault_at(&self, place: usize) -> Option<TimeFault> {
        if let Some(typed) = self.unknown_length(place) {
            return Some(TimeFault::plain(format!(
                "“{typed}” is no length of time that is known here; write, for example, `in the last 3 hours` or `in the last 2 days`."
            )));
        }
        dates::ambiguous(self.words.get(place)?, self.now.date())
    }

    /// The expression that begins there. Where it names a zone, its clock times and days are those of that zone.
    pub(super) fn meaning_at(&self, place: usize) -> Option<Meaning> {
        let meaning = self.in_own_zone(place)?;
        let inside = (place..place + meaning.length).find_map(|at| zone_at(self.words, at));
        let named = inside.map(|(zone, _)| (zone, 0)).or_else(|| zone_at(self.words, place + meaning.length));
        let Some((zone, behind)) = named else { return Some(meaning) };
        let meaning = Reader { words: self.words, now: self.now.with_time_zone(zone) }.in_own_zone(place)?;
        Some(Meaning { length: meaning.length + behind, ..meaning })
    }

    fn in_own_zone(&self, place: usize) -> Option<Meaning> {
        self.between(place)
            .or_else(|| self.since(place))
            .or_else(|| self.until(place))
            .or_else(|| self.rolling(place))
            .or_else(|| self.ago(place))
            .or_else(|| self.around(place))
            .or_else(|| self.day_part(place))
            .or_else(|| self.whole_day(place))
    }

    pub(super) fn phrase(&self, place: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().filter(|p| at(self.words, place, p)).map(|p| length(p)).max()
    }

    /// `between A and B`, `from A to B`, `14:00-16:00`, `14:00 to 16:00`.
    fn between(&self, place: usize) -> Option<Meaning> {
        let (day, day_words) = match day_at(self.words, place, self.now.date()) {
            Some((day, words)) => (Some(day), words),
            None => (None, 0),
        };
        let place_of = place + day_words;
        if let Some(meaning) = self.joined(place_of, day) {
            return Some(Meaning { length: meaning.length + day_words, ..meaning });
        }
        let (lead, joiners): (usize, &[&str]) = match self.words.get(place_of)?.folded.as_str() {
            "between" => (1, &["and", "to", "-"]),
            "from" => (1, &["to", "until", "till", "up to", "-", "through"]),
            _ => (0, &["to", "until", "till", "-"]),
        };
        let first = self.point(place_of + lead, day, lead == 1)?;
        let joint = place_of + lead + first.words;
        let joiner = self.phrase(joint, joiners)?;
        let second = self.point(joint + joiner, Some(first.day), true)?;
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

    /// `since A`, `since about A`, `from A on`, `after A`, `A onwards`.
    fn since(&self, place: usize) -> Option<Meaning> {
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
        if let Some(part) = self.day_part(start) {
            return Some(made(part.from, part.length, None));
        }
        if let Some((span, words)) = length_at(self.words, start)
            && at(self.words, start + words, "ago")
        {
            return Some(made(self.now.checked_sub(span).ok()?, words + 1, None));
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
    fn until(&self, place: usize) -> Option<Meaning> {
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
        Some(Meaning { note: point.note, ..Meaning::window(length, from, to) })
    }

    /// `now`, `last hour`, `past 30 minutes`, `last 2 days`, `2h`.
    fn rolling(&self, place: usize) -> Option<Meaning> {
        let back = |by: SignedDuration| self.now.checked_sub(by).ok();
        if let Some(length) = self.phrase(
            place,
            &[
                "right now",
                "now",
                "currently",
                "at the moment",
                "at this moment",
                "at present",
                "atm",
                "just now",
                "this minute",
                "as of now",
                "this instant",
            ],
        ) {
            return Some(Meaning { moment: Moment::Now, ..Meaning::window(length, back(NOW)?, self.now.clone()) });
        }
        if let Some(length) = self.phrase(place, &["recently", "lately", "a moment ago", "just recently"]) {
            return Some(Meaning::window(length, back(RECENTLY)?, self.now.clone()));
        }
        let before = self.phrase(place, &["in", "over", "during", "for", "within", "across"]).unwrap_or(0);
        let the = self.phrase(place + before, &["the", "these"]).unwrap_or(0);
        let lead = before + the;
        let last =
            self.phrase(place + lead, &["last", "past", "latest", "most recent", "preceding", "previous", "trailing"]);
        let Some(last) = last else {
            // `temp g3 2h`
            let bare = self.words.get(place)?;
            // `over 24 hours`: minutes and less are limits on something, hours are not.
            if before > 0
                && !at(self.words, place, "for")
                && let Some((span, words)) = length_at(self.words, place + lead)
                && self.phrase(place + lead + words, &["ago"]).is_none()
                && self
                    .now
                    .checked_sub(span)
                    .is_ok_and(|from| self.now.duration_since(&from) >= SignedDuration::from_mins(30))
            {
                return Some(Meaning::window(lead + words, self.now.checked_sub(span).ok()?, self.now.clone()));
            }
            let is_short = bare.folded.len() <= 4
                && bare.folded.starts_with(|c: char| c.is_ascii_digit())
                && bare.folded.ends_with(['h', 'm', 'n', 'd']);
            let (span, words) = length_at(self.words, place).filter(|(_, words)| is_short && *words == 1)?;
            if self.phrase(place + words, &["ago"]).is_some() || (place > 0 && self.is_limit(place - 1)) {
                return None;
            }
            return Some(Meaning::window(words, self.now.checked_sub(span).ok()?, self.now.clone()));
        };
        let lead = lead + last;
        if let Some((span, words)) = length_at(self.words, place + lead) {
            let from = self.now.checked_sub(span).ok()?;
            return Some(Meaning::window(lead + words, from, self.now.clone()));
        }
        let unit = self.words.get(place + lead)?.folded.as_str();
        let span = match unit {
            "second" | "minute" | "hour" | "day" | "week" => {
                length_at(
                    &[
                        Word { typed: "", folded: "1".to_owned(), mended: false, ends: false },
                        self.words.get(place + lead)?.clone(),
                    ],
                    0,
                )?
                .0
            }
            "month" => {
                let first = self.now.date().first_of_month();
                let before = first.checked_sub(1.month()).ok()?;
                let (from, _) = self.on(before, Time::midnight())?;
                let (to, _) = self.on(first, Time::midnight())?;
                return Some(Meaning::window(lead + 1, from, to));
            }
            "weekend" => return self.weekend(lead + 1),
            _ => return None,
        };
        Some(Meaning::window(lead + 1, self.now.checked_sub(span).ok()?, self.now.clone()))
    }

    /// `over 2h`: a limit, no window.
    fn is_limit(&self, place: usize) -> bool {
        self.words.get(place).is_some_and(|word| {
            matches!(word.folded.as_str(), "over" | "above" | "under" | "below" | "than" | "least" | "most")
        })
    }

    /// `last -5 hours`, `last 5 years`: a length was meant, and to answer for another would mislead.
    fn unknown_length(&self, place: usize) -> Option<String> {
        self.phrase(place, &["last", "past"])?;
        let amount = self.words.get(place + 1)?;
        let unit = self.words.get(place + 2)?;
        let is_number = amount.folded.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
        if !is_number
            || !is_unit(&unit.folded)
            || length_at(self.words, place + 1).is_some_and(|(span, _)| self.now.checked_sub(span).is_ok())
        {
            return None;
        }
        Some(format!("{} {} {}", self.words.get(place).map_or("", |w| w.typed), amount.typed, unit.typed))
    }

    /// `20 minutes ago`, `about an hour ago`.
    fn ago(&self, place: usize) -> Option<Meaning> {
        let lead = self.phrase(place, &["about", "around", "some", "roughly", "like"]).unwrap_or(0);
        let (span, words) = length_at(self.words, place + lead)?;
        let ago = self.phrase(place + lead + words, &["ago", "earlier", "back"])?;
        let middle = self.now.checked_sub(span).ok()?;
        Some(self.about(middle, lead + words + ago, None))
    }

    fn about(&self, middle: ZonedDateTime, length: usize, note: Option<String>) -> Meaning {
        let (from, to) = (middle.saturating_sub(AROUND), middle.saturating_add(AROUND));
        Meaning { moment: Moment::Instant(middle.timestamp()), length, from, to, note }
    }

    /// `at 3pm`, `around 14:10`, `14:10`, with `yesterday` or a date on either side.
    fn around(&self, place: usize) -> Option<Meaning> {
        let (day, day_words) = match day_at(self.words, place, self.now.date()) {
            Some((date, words)) => (Some(date), words),
            None => (None, 0),
        };
        let leads = [
            "at about",
            "at around",
            "at roughly",
            "at approximately",
            "at",
            "around",
            "about",
            "near",
            "roughly",
            "approximately",
            "ca",
            "by",
            "@",
        ];
        let is_rough = self.words.get(place + day_words).is_some_and(|word| word.typed.starts_with('~'));
        let lead = self.phrase(place + day_words, &leads).or_else(|| is_rough.then_some(0));
        let about = lead.is_some() && !at(self.words, place + day_words, "at") || lead.is_some_and(|words| words > 1);
        let clock = clock_at(self.words, place + day_words + lead.unwrap_or(0), lead.is_some())?;
        // `8 am` says it; a number alone behind `at` may be anything: `at 85 C`.
        let next = self.words.get(place + day_words + lead.unwrap_or(0) + clock.words);
        let measures = next.is_some_and(|w| {
            matches!(
                w.folded.as_str(),
                "c" | "°c" | "f" | "w" | "%" | "percent" | "degrees" | "watts" | "mhz" | "gb" | "gib" | "gpus" | "gpu"
            )
        });
        if !clock.sure && measures {
            return None;
        }
        let mut length = day_words + lead.unwrap_or(0) + clock.words;
        let day = match day {
            Some(date) => date,
            None => {
                // `14:10 UTC yesterday`
                let zoned = zone_at(self.words, place + length).map_or(0, |(_, words)| words);
                match day_at(self.words, place + length + zoned, self.now.date()) {
                    Some((date, words)) => {
                        length += zoned + words;
                        date
                    }
                    None => self.latest_day_with(clock.time)?,
                }
            }
        };
        let (middle, note) = self.on(day, clock.time)?;
        // `at 3pm` is the hour that begins then.
        if clock.hour_only && !about {
            let to = middle.checked_add(1.hour()).ok()?;
            return Some(Meaning { moment: Moment::Instant(middle.timestamp()), length, from: middle, to, note });
        }
        Some(self.about(middle, length, note))
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

    /// Today if that time of day has passed, else yesterday.
    fn latest_day_with(&self, time: Time) -> Option<Date> {
        let today = self.now.date();
        if time <= self.now.time() { Some(today) } else { today.yesterday().ok() }
    }

    /// That time of that day; with a word where the clocks skipped it or showed it twice.
    pub(super) fn on(&self, day: Date, time: Time) -> Option<(ZonedDateTime, Option<String>)> {
        let zone: TimeZone = self.now.time_zone().clone();
        let ambiguous = zone.to_ambiguous_zoned_datetime(day.to_datetime(time));
        let note = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => None,
            AmbiguousOffset::Gap { .. } => Some(format!(
                "the clocks skipped {} on {day}; the time after the change is taken",
                time.strftime("%H:%M")
            )),
            AmbiguousOffset::Fold { .. } => {
                Some(format!("the clocks showed {} twice on {day}; the first time is taken", time.strftime("%H:%M")))
            }
        };
        Some((ambiguous.compatible().ok()?, note))
    }
}
