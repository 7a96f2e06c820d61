//! Zones as they are written behind a time: `UTC`, `Europe/Berlin`, `Berlin time`, `CEST`, `+02:00`, `UTC-5`.

use jiff::ZonedDateTime;
use jiff::tz::{Offset, TimeZone};

use super::super::words::{Word, at};
use super::TimeFault;

/// Abbreviations that stand for zones of several countries: to take one of them would mislead.
const AMBIGUOUS: [&str; 6] = ["BST", "IST", "CST", "CDT", "AST", "PST8PDT"];

/// Abbreviations that mean one offset, with a zone that uses it for a part of the year, and its hours.
const SEASONAL: [(&str, &str, i8); 10] = [
    ("CET", "Europe/Berlin", 1),
    ("CEST", "Europe/Berlin", 2),
    ("EET", "Europe/Athens", 2),
    ("EEST", "Europe/Athens", 3),
    ("EST", "America/New_York", -5),
    ("EDT", "America/New_York", -4),
    ("MST", "America/Denver", -7),
    ("MDT", "America/Denver", -6),
    ("PST", "America/Los_Angeles", -8),
    ("PDT", "America/Los_Angeles", -7),
];

/// Abbreviations that mean one zone all year.
const FIXED: [(&str, &str); 2] = [("JST", "Asia/Tokyo"), ("KST", "Asia/Seoul")];

/// Places that people name for their zone, besides the last part of a zone's own name.
const PLACES: [(&str, &str); 8] = [
    ("central", "America/Chicago"),
    ("mountain", "America/Denver"),
    ("pacific", "America/Los_Angeles"),
    ("eastern", "America/New_York"),
    ("san francisco", "America/Los_Angeles"),
    ("munich", "Europe/Berlin"),
    ("bangalore", "Asia/Kolkata"),
    ("seattle", "America/Los_Angeles"),
];

/// Whether an abbreviation stands for several zones.
pub(super) fn is_ambiguous(word: &str) -> bool {
    AMBIGUOUS.contains(&word)
}

/// An abbreviation for the half of the year that it is not: somebody who writes `15:00 CET` in May may mean either hour.
pub(super) fn out_of_season(word: &str, when: &ZonedDateTime) -> Option<TimeFault> {
    let (short, name, _) = SEASONAL.iter().find(|(short, _, _)| *short == word)?;
    let zone = TimeZone::get(name).ok()?;
    let in_use = when.with_time_zone(zone).strftime("%Z").to_string();
    (in_use != *short).then(|| {
        TimeFault::plain(format!(
            "“{short}” is not in use on {}, when {name} has {in_use}; write {in_use} or UTC behind the time, or leave it out for your own zone.",
            when.date()
        ))
    })
}

/// The zone that is written at that place, and how many words it takes.
pub(super) fn zone_at(words: &[Word<'_>], place: usize) -> Option<(TimeZone, usize)> {
    let lead = usize::from(at(words, place, "in"));
    let word = words.get(place + lead)?;
    if let Some(zone) = zone(word.typed) {
        let time = usize::from(at(words, place + lead + 1, "time"));
        return Some((zone, lead + 1 + time));
    }
    // `Berlin time`, `in New York time`, `Los Angeles time`
    (1..=2).find_map(|count| {
        let named: Vec<&str> = words.iter().skip(place + lead).take(count).map(|w| w.folded.as_str()).collect();
        let is_time = at(words, place + lead + count, "time");
        if named.len() < count || !is_time {
            return None;
        }
        Some((of_place(&named.join(" "))?, lead + count + 1))
    })
}

/// The zone that is written behind a time: as [`zone_at`], and `Pacific` without the word `time`.
pub(super) fn zone_behind(words: &[Word<'_>], place: usize) -> Option<(TimeZone, usize)> {
    zone_at(words, place).or_else(|| {
        let word = words.get(place)?.folded.as_str();
        let region = matches!(word, "pacific" | "eastern" | "central" | "mountain");
        Some((of_place(word).filter(|_| region)?, 1))
    })
}

/// Whether an abbreviation is that of the asker's own zone then.
pub(super) fn is_own(word: &str, when: &ZonedDateTime) -> bool {
    is_ambiguous(word) && when.strftime("%Z").to_string() == word
}

/// The zone of a place, by the last part of a zone's name.
fn of_place(name: &str) -> Option<TimeZone> {
    if let Some((_, zone)) = PLACES.iter().find(|(place, _)| *place == name) {
        return TimeZone::get(zone).ok();
    }
    let wanted = name.replace(' ', "_");
    let known = jiff::tz::db().available().find(|zone| {
        zone.as_str().rsplit_once('/').is_some_and(|(area, last)| area != "Etc" && last.eq_ignore_ascii_case(&wanted))
    })?;
    TimeZone::get(known.as_str()).ok()
}

/// A zone in one word.
pub(super) fn zone(word: &str) -> Option<TimeZone> {
    match word {
        "UTC" | "utc" | "Utc" | "Z" | "GMT" | "gmt" | "zulu" => return Some(TimeZone::UTC),
        name if name.contains('/') && name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            return TimeZone::get(name).ok();
        }
        _ => {}
    }
    if let Some((_, name)) = FIXED.iter().find(|(short, _)| *short == word) {
        return TimeZone::get(name).ok();
    }
    if let Some((_, _, hours)) = SEASONAL.iter().find(|(short, _, _)| *short == word) {
        return Some(TimeZone::fixed(Offset::from_hours(*hours).ok()?));
    }
    offset(word.trim_start_matches("UTC").trim_start_matches("GMT"))
}

/// `+02:00`, `-5`, `+0530`.
fn offset(word: &str) -> Option<TimeZone> {
    let (sign, rest) = match word.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if !(0..=14).contains(&hours) || !(0..60).contains(&minutes) {
        return None;
    }
    Some(TimeZone::fixed(Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?))
}
