//! Days as people write them: `2026-05-03`, `3 May`, `May 3rd`, `3.5.`, `03/05/2026`, `monday`, `the day before yesterday`.

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};

use super::super::words::{Word, at, length};
use super::TimeFault;

const MONTHS: [(&str, &str, i8); 12] = [
    ("january", "jan", 1),
    ("february", "feb", 2),
    ("march", "mar", 3),
    ("april", "apr", 4),
    ("may", "may", 5),
    ("june", "jun", 6),
    ("july", "jul", 7),
    ("august", "aug", 8),
    ("september", "sep", 9),
    ("october", "oct", 10),
    ("november", "nov", 11),
    ("december", "dec", 12),
];

/// A day at that place and how many words it takes. A weekday is the latest one, a date without a year the latest one too.
pub(super) fn day_at(words: &[Word<'_>], place: usize, today: Date) -> Option<(Date, usize)> {
    let fixed = [
        ("the day before yesterday", -2),
        ("day before yesterday", -2),
        ("two days ago", -2),
        ("2 days ago", -2),
        ("three days ago", -3),
        ("3 days ago", -3),
        ("yesterday", -1),
        ("today", 0),
        // There is never data for it; it is read so that the asker is told so.
        ("tomorrow", 1),
    ];
    if let Some((phrase, days)) = fixed.into_iter().find(|(phrase, _)| at(words, place, phrase)) {
        return Some((today.checked_add(i64::from(days).days()).ok()?, length(phrase)));
    }
    let mut lead = 0;
    let mut last = false;
    while let Some(word) = words.get(place + lead) {
        match word.folded.as_str() {
            "on" | "the" if lead < 2 => lead += 1,
            "last" | "past" | "previous" if lead < 2 => {
                last = true;
                lead += 1;
            }
            _ => break,
        }
    }
    let word = words.get(place + lead)?;
    // `jobs that sat on their cards`
    let sits = matches!(word.folded.as_str(), "sat" | "sun" | "wed" | "mon")
        && lead == 0
        && words.get(place + 1).is_some_and(|next| {
            matches!(
                next.folded.as_str(),
                "on" | "idle" | "idly" | "around" | "there" | "unused" | "empty" | "waiting" | "by"
            )
        });
    if sits {
        return None;
    }
    if let Some(weekday) = weekday(&word.folded) {
        let same = today.weekday() == weekday && !last;
        let day = if same { today } else { today.nth_weekday(-1, weekday).ok()? };
        return Some((day, lead + 1));
    }
    if last {
        return None;
    }
    let (date, used) = written(words, place + lead, today)?;
    Some((date, lead + used))
}

pub(super) fn weekday(word: &str) -> Option<Weekday> {
    match word {
        "monday" | "mon" | "mondays" => Some(Weekday::Monday),
        "tuesday" | "tue" | "tues" => Some(Weekday::Tuesday),
        "wednesday" | "wed" => Some(Weekday::Wednesday),
        "thursday" | "thu" | "thurs" => Some(Weekday::Thursday),
        "friday" | "fri" => Some(Weekday::Friday),
        "saturday" | "sat" => Some(Weekday::Saturday),
        "sunday" | "sun" => Some(Weekday::Sunday),
        _ => None,
    }
}

fn month(word: &str) -> Option<i8> {
    MONTHS
        .iter()
        .find(|(long, short, _)| word == *long || word == *short || (word == "sept" && *short == "sep"))
        .map(|m| m.2)
}

/// A day of the month: `3`, `3rd`, `21st`.
fn day_number(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    digits.parse::<i8>().ok().filter(|day| (1..=31).contains(day))
}

fn year(word: Option<&Word<'_>>) -> Option<i16> {
    word?.folded.parse::<i16>().ok().filter(|year| (2000..=2100).contains(year))
}

/// A date that is written out.
fn written(words: &[Word<'_>], place: usize, today: Date) -> Option<(Date, usize)> {
    let word = words.get(place)?;
    if let Some(date) = numeric(&word.folded, today) {
        return Some((date, 1));
    }
    let next = words.get(place + 1).map(|w| w.folded.as_str());
    // `3 May`, `3rd of May 2026`
    if let Some(day) = day_number(&word.folded) {
        let of = usize::from(next == Some("of"));
        let month = month(&words.get(place + 1 + of)?.folded)?;
        let used = 2 + of;
        let year = year(words.get(place + used));
        return Some((of_year(day, month, year, today)?, used + usize::from(year.is_some())));
    }
    // `May 3`, `May 3rd, 2026`; `may` alone is no month.
    let month = month(&word.folded)?;
    let day = day_number(next?)?;
    let year = year(words.get(place + 2));
    Some((of_year(day, month, year, today)?, 2 + usize::from(year.is_some())))
}

/// The date in that year; without one the latest that is not in the future.
fn of_year(day: i8, month: i8, year: Option<i16>, today: Date) -> Option<Date> {
    match year {
        Some(year) => Date::new(year, month, day).ok(),
        None => {
            let this = Date::new(today.year(), month, day).ok();
            this.filter(|date| *date <= today).or_else(|| Date::new(today.year() - 1, month, day).ok())
        }
    }
}

/// The parts of a date in digits, with what stands between them.
fn parts(word: &str) -> Option<(Vec<i64>, char)> {
    let mark = word.chars().find(|c| matches!(c, '/' | '.' | '-'))?;
    let trimmed = word.trim_end_matches('.');
    let parts: Option<Vec<i64>> = trimmed
        .split(mark)
        .map(|part| part.parse().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit())))
        .collect();
    parts.filter(|parts| (2..=3).contains(&parts.len())).map(|parts| (parts, mark))
}

fn four_digits(year: i64) -> Option<i16> {
    i16::try_from(if (0..100).contains(&year) { 2000 + year } else { year }).ok().filter(|y| (2000..=2100).contains(y))
}

/// `2026-05-03`, `2026/05/03`, `3.5.2026`, `3.5.`, `25/04/2026`: all that can be read in one way only.
fn numeric(word: &str, today: Date) -> Option<Date> {
    let (parts, mark) = parts(word)?;
    let small = |n: i64| i8::try_from(n).ok();
    match (parts.as_slice(), mark) {
        ([year, month, day], _) if *year >= 1000 => {
            Date::new(i16::try_from(*year).ok()?, small(*month)?, small(*day)?).ok()
        }
        ([day, month, year], '.') => Date::new(four_digits(*year)?, small(*month)?, small(*day)?).ok(),
        // `3.5` is a number; `3.5.` would have lost its point, and `03.05` is written by nobody who means one.
        ([day, month], '.') if word.len() == 5 => of_year(small(*day)?, small(*month)?, None, today),
        ([a, b, rest @ ..], '/') => {
            let year = match rest {
                [year] => Some(four_digits(*year)?),
                _ => None,
            };
            let (day_first, month_first) =
                (of_year(small(*a)?, small(*b)?, year, today), of_year(small(*b)?, small(*a)?, year, today));
            match (day_first, month_first) {
                (Some(one), Some(other)) if one == other => Some(one),
                (Some(only), None) | (None, Some(only)) => Some(only),
                (Some(_), Some(_)) | (None, None) => None,
            }
        }
        _ => None,
    }
}

/// `03/04`: two days in two habits of writing.
pub(super) fn ambiguous(word: &Word<'_>, today: Date) -> Option<TimeFault> {
    let (parts, mark) = parts(&word.folded)?;
    if mark != '/' || parts.first().is_none_or(|first| *first >= 1000) || numeric(&word.folded, today).is_some() {
        return None;
    }
    let (Some(a), Some(b)) = (parts.first(), parts.get(1)) else { return None };
    let year = match parts.get(2) {
        Some(year) => Some(four_digits(*year)?),
        None => None,
    };
    let small = |n: &i64| i8::try_from(*n).ok();
    let day_first = of_year(small(a)?, small(b)?, year, today)?;
    let month_first = of_year(small(b)?, small(a)?, year, today)?;
    Some(TimeFault {
        reason: format!("“{}” can be {day_first} or {month_first}; which day do you mean?", word.typed),
        readings: Some((word.typed.to_owned(), vec![day_first.to_string(), month_first.to_string()])),
    })
}
