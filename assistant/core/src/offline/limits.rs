//! Limits: `over 85 C`, `> 90%`, `less than 2 GB/s`, `185F or more`, in the unit of the metric that they are set for.

use jiff::Span;
use sightline_model::Unit;

use super::lexicon::Lexicon;
use super::time::length_at;
use super::words::{Word, at, length, number_word};

/// A limit as typed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    /// The first word of it.
    pub(super) first: usize,
    /// How many words it takes.
    pub(super) length: usize,
    /// `gt`, `ge`, `lt` or `le`.
    pub(super) op: &'static str,
    /// The number.
    pub(super) amount: f64,
    /// The unit behind it, in lower case; empty where there is none.
    pub(super) unit: String,
    /// The words as typed.
    pub(super) typed: String,
}

/// How long something has run: `running longer than a day`, `for over 40 hours`.
#[derive(Clone, Debug)]
pub(super) struct Age {
    /// The first word of it.
    pub(super) first: usize,
    /// How many words it takes.
    pub(super) length: usize,
    /// Whether it is longer than that.
    pub(super) longer: bool,
    /// The length of time.
    pub(super) span: Span,
}

/// How finely a series is to be shown: `in 15 minute steps`, `every 10 minutes`, `hourly`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The first word of it.
    pub(super) first: usize,
    /// How many words it takes.
    pub(super) length: usize,
    /// The length of a step, seconds.
    pub(super) seconds: u32,
}

/// The step that a question asks for.
pub(super) fn step(words: &[Word<'_>], lexicon: &Lexicon) -> Option<Step> {
    (0..words.len()).find_map(|place| {
        let said = &lexicon.stands_for.steps;
        let whole = said.iter().filter(|(phrase, _)| at(words, place, phrase)).max_by_key(|(phrase, _)| length(phrase));
        if let Some((phrase, seconds)) = whole {
            return Some(Step { first: place, length: length(phrase), seconds: *seconds });
        }
        let lead = ["in", "into", "with", "at", "using", "by", "as"].iter().any(|lead| at(words, place, lead));
        let every = ["every", "each", "per"].iter().any(|lead| at(words, place, lead));
        let first = place + usize::from(lead || every);
        let first = if at(words, first, "a") { first + 1 } else { first };
        let (seconds, used) = super::time::seconds_at(words, first)?;
        let named = lexicon.what.steps.at(words, first + used);
        let plural = words.get(first + used - 1).is_some_and(|word| word.folded.ends_with('s'));
        // `every 10 minutes`; of `per second` a pace is meant.
        if named.is_none() && !(every && plural && used > 1) {
            return None;
        }
        let used = first + used + named.unwrap_or(0) - place;
        Some(Step { first: place, length: used, seconds })
    })
}

/// Words that speak of how long something has run.
const RUNS: [&str; 14] = [
    "running", "runs", "run", "ran", "runtime", "older", "old", "age", "going", "lasting", "lasted", "lasts",
    "started", "alive",
];

/// How long something has to have run, where that is asked.
pub(super) fn age(words: &[Word<'_>], lexicon: &Lexicon) -> Option<Age> {
    if !RUNS.iter().any(|verb| words.iter().any(|word| word.folded == *verb)) {
        return None;
    }
    let phrases = &lexicon.stands_for.limits;
    (0..words.len()).find_map(|place| {
        let lead = ["older than", "younger than"].into_iter().find(|lead| at(words, place, lead));
        let (op, used) = match lead {
            Some(lead) => (if lead.starts_with("older") { "gt" } else { "lt" }, length(lead)),
            None => {
                let stands = phrases.iter().filter(|(phrase, _)| at(words, place, phrase) && !is_window(words, place));
                let (phrase, op) = stands.max_by_key(|(phrase, _)| length(phrase))?;
                (op.as_str(), length(phrase))
            }
        };
        let (span, more) = length_at(words, place + used)?;
        Some(Age { first: place, length: used + more, longer: matches!(op, "gt" | "ge"), span })
    })
}

/// `in the past 2 days`: the word sets no limit there.
fn is_window(words: &[Word<'_>], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|place| words.get(place)).map(|word| word.folded.as_str());
    words.get(place).is_some_and(|word| word.folded == "past")
        && matches!(before, Some("the" | "these" | "those" | "in" | "over" | "during" | "for" | "within"))
}

/// The operator of a filter, as a word of its own.
fn operator(name: &str) -> Option<&'static str> {
    ["gt", "ge", "lt", "le"].into_iter().find(|op| *op == name)
}

/// `between 500 and 650 watts`: both ends of a band. Without a unit behind it two numbers may be anything, a window of clock times first.
pub(super) fn bands(words: &[Word<'_>]) -> Vec<Limit> {
    let band = |place: usize| {
        let (lead, joiners) = match words.get(place)?.folded.as_str() {
            "between" => (1, ["and", "to"]),
            "from" => (1, ["to", "up"]),
            _ => return None,
        };
        let (low, low_unit, low_words) = amount_at(words, place + lead)?;
        let joint = place + lead + low_words;
        joiners.contains(&words.get(joint)?.folded.as_str()).then_some(())?;
        let (high, unit, high_words) = amount_at(words, joint + 1)?;
        let is_time = super::time::length_at(words, joint + 1).is_some();
        if !UNITS.contains(&unit.as_str()) || is_time || low >= high {
            return None;
        }
        let length = joint + 1 + high_words - place;
        let typed: Vec<&str> = words.iter().skip(place).take(length).map(|word| word.typed).collect();
        let low_unit = if low_unit.is_empty() { unit.clone() } else { low_unit };
        let made = |op: &'static str, amount: f64, unit: String| Limit {
            first: place,
            length,
            op,
            amount,
            unit,
            typed: typed.join(" "),
        };
        Some([made("ge", low, low_unit), made("le", high, unit)])
    };
    (0..words.len()).filter_map(band).flatten().collect()
}

/// All limits of a question, in order; `more than 16 GPUs` is one too, and limits no metric.
pub(super) fn limits(words: &[Word<'_>], lexicon: &Lexicon) -> Vec<Limit> {
    let mut found = Vec::new();
    let mut place = 0;
    while place < words.len() {
        match limit_at(words, place, lexicon) {
            Some(limit) => {
                place += limit.length;
                found.push(limit);
            }
            None => place += 1,
        }
    }
    found
}

/// Whether a limit is one on how long something lasts: `more than 2 hours`.
pub(super) fn lasts(words: &[Word<'_>], limit: &Limit) -> bool {
    limit.unit.is_empty()
        && words
            .get(limit.first + limit.length)
            .is_some_and(|word| matches!(word.folded.as_str(), "hour" | "hours" | "h" | "day" | "days"))
}

/// The window of the last so long.
pub(super) fn lasting(
    words: &[Word<'_>],
    limit: &Limit,
    as_of: jiff::Timestamp,
    zone: &jiff::tz::TimeZone,
) -> Option<sightline_model::TimeRange> {
    let (span, _) = length_at(words, limit.first + limit.length - 1)?;
    let from = as_of.to_zoned_datetime(zone.clone()).checked_sub(span).ok()?.timestamp();
    sightline_model::TimeRange::new(from, as_of)
}

fn limit_at(words: &[Word<'_>], place: usize, lexicon: &Lexicon) -> Option<Limit> {
    let made = |op: &str, amount: f64, unit: String, length: usize| {
        let typed: Vec<&str> = words.iter().skip(place).take(length).map(|word| word.typed).collect();
        Some(Limit { first: place, length, op: operator(op)?, amount, unit, typed: typed.join(" ") })
    };
    // `>90%`, `<10`
    let word = words.get(place)?;
    for (mark, op) in [(">=", "ge"), ("<=", "le"), ("≥", "ge"), ("≤", "le"), (">", "gt"), ("<", "lt")] {
        if let Some(rest) = word.folded.strip_prefix(mark).filter(|rest| !rest.is_empty())
            && let Some((amount, unit)) = number(rest)
        {
            let (unit, more) = unit_at(words, place + 1, unit);
            return made(op, amount, unit, 1 + more);
        }
    }
    let stands = &lexicon.stands_for.limits;
    let phrases = stands.iter().filter(|(phrase, _)| at(words, place, phrase) && !is_window(words, place));
    if let Some((phrase, op)) = phrases.max_by_key(|(phrase, _)| length(phrase)) {
        let mut next = place + length(phrase);
        while words
            .get(next)
            .is_some_and(|word| matches!(word.folded.as_str(), "the" | "about" | "around" | "a" | "its"))
        {
            next += 1;
        }
        let (amount, unit, used) = amount_at(words, next)?;
        return made(op, amount, unit, next + used - place);
    }
    // `deeper than 100`, `fuller than 80 %`: any comparative; those for less stand in the list.
    if word.folded.len() > 4 && word.folded.ends_with("er") && at(words, place + 1, "than") {
        let (amount, unit, used) = amount_at(words, place + 2)?;
        return made("gt", amount, unit, 2 + used);
    }
    // `85 C or more`, `90% or higher`
    let (amount, unit, used) = amount_at(words, place)?;
    let tail = place + used;
    for (phrase, op) in [
        ("or more", "ge"),
        ("or higher", "ge"),
        ("or above", "ge"),
        ("or less", "le"),
        ("or lower", "le"),
        ("or below", "le"),
        ("and above", "ge"),
        ("and up", "ge"),
    ] {
        if at(words, tail, phrase) {
            return made(op, amount, unit, used + length(phrase));
        }
    }
    None
}

fn amount_at(words: &[Word<'_>], place: usize) -> Option<(f64, String, usize)> {
    let word = words.get(place)?;
    let (amount, unit) = match number(&word.folded) {
        Some(found) => found,
        None => (number_word(&word.folded).filter(|_| word.folded.len() > 2)?, ""),
    };
    let (unit, more) = unit_at(words, place + 1, unit);
    Some((amount, unit, 1 + more))
}

/// `85`, `1,200` (its comma is gone by now), `85c`, `2.5gb/s`, `10k`.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (amount, unit) = text.split_at_checked(digits)?;
    let amount: f64 = amount.trim_end_matches('.').parse().ok()?;
    match unit {
        "k" => Some((amount * 1e3, "")),
        _ if unit.contains([':', '-']) || unit.starts_with(|c: char| c.is_ascii_digit()) => None,
        _ => Some((amount, unit)),
    }
}

/// Units as people write them, in words of their own behind a number.
const UNITS: &[&str] = &[
    "c",
    "°c",
    "celsius",
    "degrees",
    "degree",
    "deg",
    "f",
    "°f",
    "fahrenheit",
    "w",
    "watt",
    "watts",
    "kw",
    "%",
    "percent",
    "pct",
    "mhz",
    "ghz",
    "hz",
    "b",
    "kb",
    "mb",
    "gb",
    "tb",
    "kib",
    "mib",
    "gib",
    "tib",
    "gb/s",
    "mb/s",
    "gib/s",
    "mib/s",
    "gbps",
    "mbps",
    "gbit/s",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "ms",
    "millisecond",
    "milliseconds",
    "us",
    "min",
    "minutes",
    "j",
    "mj",
    "kj",
    "tokens/s",
    "tok/s",
    "/s",
    "k",
    "gigs",
    "gigabytes",
    "megabytes",
    "requests",
];

fn unit_at(words: &[Word<'_>], place: usize, glued: &str) -> (String, usize) {
    if !glued.is_empty() {
        return (glued.to_owned(), 0);
    }
    match words.get(place).map(|word| word.folded.as_str()) {
        Some("degrees" | "degree" | "deg") => match words.get(place + 1).map(|word| word.folded.as_str()) {
            Some(scale @ ("c" | "celsius" | "f" | "fahrenheit")) => (scale.to_owned(), 2),
            _ => ("degrees".to_owned(), 1),
        },
        Some(unit) if UNITS.contains(&unit) => (unit.to_owned(), 1),
        _ => (String::new(), 0),
    }
}

/// The number of a limit in the unit of a metric.
///
/// # Errors
/// When the unit is none that this metric can have.
pub(super) fn in_unit(amount: f64, typed: &str, unit: Unit) -> Result<f64, ()> {
    let bytes = |typed: &str| {
        Some(match typed {
            "b" => 1.0,
            "kb" => 1e3,
            "mb" | "megabytes" => 1e6,
            "gb" | "gigs" | "gigabytes" => 1e9,
            "tb" => 1e12,
            "kib" => 1024.0,
            "mib" => 1024.0_f64.powi(2),
            "gib" => 1024.0_f64.powi(3),
            "tib" => 1024.0_f64.powi(4),
            _ => return None,
        })
    };
    let rate = |typed: &str| {
        typed.strip_suffix("/s").and_then(bytes).or(match typed {
            "gbps" | "gbit/s" => Some(1e9 / 8.0),
            "mbps" | "mbit/s" => Some(1e6 / 8.0),
            _ => None,
        })
    };
    let seconds = |typed: &str| {
        Some(match typed {
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "ms" | "millisecond" | "milliseconds" => 1e-3,
            "us" | "µs" => 1e-6,
            "min" | "minutes" => 60.0,
            _ => return None,
        })
    };
    let factor = match unit {
        _ if typed.is_empty() => Some(1.0),
        Unit::Celsius => match typed {
            "f" | "°f" | "fahrenheit" => return Ok((amount - 32.0) / 1.8),
            "c" | "°c" | "celsius" | "degrees" => Some(1.0),
            _ => None,
        },
        Unit::Watts => match typed {
            "w" | "watt" | "watts" => Some(1.0),
            "kw" => Some(1e3),
            _ => None,
        },
        Unit::Percent => matches!(typed, "%" | "percent" | "pct").then_some(1.0),
        Unit::Ratio => matches!(typed, "%" | "percent" | "pct").then_some(0.01),
        Unit::Megahertz => match typed {
            "mhz" => Some(1.0),
            "ghz" => Some(1e3),
            "hz" => Some(1e-6),
            _ => None,
        },
        Unit::Hertz => match typed {
            "hz" => Some(1.0),
            "mhz" => Some(1e6),
            "ghz" => Some(1e9),
            _ => None,
        },
        // What is counted in bytes is limited by its pace as well.
        Unit::Bytes => bytes(typed).or_else(|| rate(typed)),
        Unit::Mebibytes => bytes(typed).map(|n| n / 1024.0_f64.powi(2)),
        Unit::Gibibytes => bytes(typed).map(|n| n / 1024.0_f64.powi(3)),
        Unit::BytesPerSecond => rate(typed),
        Unit::MegabytesPerSecond => rate(typed).map(|n| n / 1e6),
        Unit::Seconds => seconds(typed),
        Unit::Milliseconds => seconds(typed).map(|n| n * 1e3),
        _ => matches!(typed, "tokens/s" | "tok/s" | "/s" | "requests" | "j" | "mj" | "kj").then_some(1.0),
    };
    factor.map(|factor| amount * factor).ok_or(())
}
