//! Lengths of time as people say them: `3 hours`, `90s`, `half an hour`, `an hour and a half`, `a couple of days`.

use jiff::Span;

use super::super::words::{Word, at, number_word};

/// Words for units, with how a span of so many is made.
fn unit_span(amount: f64, unit: &str) -> Option<Span> {
    // `over 390 W` is a limit, and no seven years.
    if unit == "w" && amount > 12.0 {
        return None;
    }
    let seconds = match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        // Days and weeks as the asker's calendar counts them: 23 or 25 hours when the clocks change.
        "fortnight" | "fortnights" if amount.fract() == 0.0 => return Span::new().try_weeks(whole(amount * 2.0)?).ok(),
        "d" | "day" | "days" if amount.fract() == 0.0 => return Span::new().try_days(whole(amount)?).ok(),
        "w" | "wk" | "week" | "weeks" if amount.fract() == 0.0 => return Span::new().try_weeks(whole(amount)?).ok(),
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    let total = amount * seconds;
    (total >= 1.0).then(|| Span::new().try_seconds(whole(total.round())?).ok())?
}

fn whole(amount: f64) -> Option<i64> {
    (amount.is_finite() && amount.abs() < 1e15).then_some(amount as i64)
}

/// Whether a word is a unit of time, known here or not.
pub(super) fn is_unit(word: &str) -> bool {
    unit_span(1.0, word).is_some() || matches!(word.trim_end_matches('s'), "month" | "year" | "quarter" | "decade")
}

/// `30m` as 30 and `m`.
fn split_amount(word: &str) -> Option<(f64, &str)> {
    let digits = word.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (amount, unit) = word.split_at_checked(digits)?;
    Some((amount.parse().ok().filter(|n| *n > 0.0)?, unit))
}

/// The number that is said at that place, and how many words it takes.
fn amount(words: &[Word<'_>], place: usize) -> Option<(f64, usize)> {
    for (phrase, value) in [
        ("a couple of", 2.0),
        ("couple of", 2.0),
        ("a couple", 2.0),
        ("a few", 3.0),
        ("half an", 0.5),
        ("half a", 0.5),
        ("a quarter of an", 0.25),
        ("quarter of an", 0.25),
        ("a quarter", 0.25),
        ("three quarters of an", 0.75),
        ("one and a half", 1.5),
        ("two and a half", 2.5),
    ] {
        if at(words, place, phrase) {
            return Some((value, super::super::words::length(phrase)));
        }
    }
    let word = words.get(place)?.folded.as_str();
    let value = word.parse::<f64>().ok().or_else(|| number_word(word));
    value.filter(|n| *n > 0.0 && n.is_finite()).map(|n| (n, 1))
}

/// A length of a whole number of seconds, up to a day, and how many words it takes.
pub(in crate::offline) fn seconds_at(words: &[Word<'_>], place: usize) -> Option<(u32, usize)> {
    // `15-minute`
    let glued = words.get(place).and_then(|word| word.folded.split_once('-'));
    let (span, used) = match glued {
        Some((amount, unit)) => (unit_span(amount.parse().ok()?, unit)?, 1),
        None => length_at(words, place)?,
    };
    let seconds = span.total((jiff::Unit::Second, jiff::SpanRelativeTo::days_are_24_hours())).ok()?;
    ((1.0..=86_400.0).contains(&seconds)).then_some((seconds as u32, used))
}

/// The length of time at that place and how many words it takes.
pub(in crate::offline) fn length_at(words: &[Word<'_>], place: usize) -> Option<(Span, usize)> {
    let word = words.get(place)?.folded.as_str();
    if let Some((amount, unit)) = split_amount(word).filter(|(_, unit)| !unit.is_empty()) {
        // `1h30m`
        if let Some((_, rest)) = unit.split_once('h').filter(|(before, rest)| {
            before.is_empty() && !rest.is_empty() && rest.starts_with(|c: char| c.is_ascii_digit())
        }) && let Some((minutes, _)) = split_amount(rest)
        {
            return Some((unit_span(amount * 60.0 + minutes, "m")?, 1));
        }
        return Some((unit_span(amount, unit.trim_start_matches('-'))?, 1));
    }
    let (amount, used) = amount(words, place)?;
    let unit = words.get(place + used)?.folded.as_str();
    let used = used + 1;
    // `an hour and a half`
    if at(words, place + used, "and a half") {
        return Some((unit_span(amount + 0.5, unit)?, used + 3));
    }
    Some((unit_span(amount, unit)?, used))
}
