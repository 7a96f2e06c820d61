//! From words to windows: which rule reads the words that begin at a place, and the windows that are told from now or from one instant.

use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, ToSpan as _, ZonedDateTime};

use super::super::words::{Word, at, length};
use super::clock::clock_at;
use super::dates::{self, day_at};
use super::lengths::{is_unit, length_at};
use super::zones::{self, zone_at, zone_behind};
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
        let mut meaning = self.in_own_zone(place)?;
        // `today till now`, `yesterday until now`
        let so_far = self.phrase(
            place + meaning.length,
            &["till now", "until now", "up to now", "up until now", "so far", "till this moment", "to now", "to date"],
        );
        if let (Some(words), Moment::Window) = (so_far, meaning.moment) {
            meaning = Meaning { length: meaning.length + words, to: self.now.clone(), ..meaning };
        }
        let inside = (place..place + meaning.length).find_map(|at| zone_at(self.words, at));
        let behind = place + meaning.length;
        // The asker's own abbreviation is no question: `9 am IST` in India.
        if inside.is_none() && self.words.get(behind).is_some_and(|word| zones::is_own(word.typed, &meaning.from)) {
            return Some(Meaning { length: meaning.length + 1, ..meaning });
        }
        let named = inside.map(|(zone, _)| (zone, 0)).or_else(|| zone_behind(self.words, behind));
        let Some((zone, behind)) = named else { return Some(meaning) };
        let meaning = Reader { words: self.words, now: self.now.with_time_zone(zone) }.in_own_zone(place)?;
        Some(Meaning { length: meaning.length + behind, ..meaning })
    }

    fn in_own_zone(&self, place: usize) -> Option<Meaning> {
        self.part_of(place)
            .or_else(|| self.between(place))
            .or_else(|| self.beside(place))
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
                "at the mo",
                "at this very moment",
                "as we speak",
                "presently",
                "at this time",
                "this very moment",
                "this second",
                "right this minute",
                "right this second",
                "at the minute",
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
        // `the past day and a half`
        let unit_and_half = self
            .words
            .get(place + lead)
            .map(|unit| [Word { typed: "", folded: "1.5".to_owned(), mended: false, ends: false }, unit.clone()]);
        if let Some(words) = unit_and_half.filter(|_| at(self.words, place + lead + 1, "and a half"))
            && let Some((span, _)) = length_at(&words, 0)
        {
            return Some(Meaning::window(lead + 4, self.now.checked_sub(span).ok()?, self.now.clone()));
        }
        if let Some((span, words)) = length_at(self.words, place + lead) {
            let from = self.now.checked_sub(span).ok()?;
            return Some(Meaning::window(lead + words, from, self.now.clone()));
        }
        let unit = self.words.get(place + lead)?.folded.as_str();
        let span = match unit {
            "second" | "minute" | "hour" | "day" | "week" | "fortnight" => {
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
        // `two days ago` is that day, not this minute of it.
        let unit = self.words.get(place + lead + words - 1).map_or("", |word| word.folded.as_str());
        if matches!(unit, "day" | "days" | "week" | "weeks" | "d" | "w") {
            let (from, _) = self.on(middle.date(), Time::midnight())?;
            let (to, _) = self.on(middle.date().tomorrow().ok()?, Time::midnight())?;
            return Some(Meaning::window(lead + words + ago, from, to));
        }
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

    /// Today if that time of day has passed, else yesterday.
    pub(super) fn latest_day_with(&self, time: Time) -> Option<Date> {
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
