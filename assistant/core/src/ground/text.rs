//! Printing: numbers, times, and text that came from telemetry.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_model::{NumberFormat, is_invisible};

/// Longest quoted text, characters: a log line's first part is enough to recognise it; the row itself is in the evidence.
const MAX_QUOTE: usize = 200;

/// A number as it is printed: rounded half away from zero at the given digit, with its unit.
pub(super) fn number(value: f64, format: NumberFormat) -> String {
    let shown = if format.magnitude { value.abs() } else { value };
    let decimals = usize::from(format.decimals.min(9));
    let mut digits = format!("{shown:.decimals$}");
    // A tiny negative rounds to "-0": a sign without a number.
    if digits.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        digits = digits.trim_start_matches('-').to_owned();
    }
    match format.unit.symbol() {
        "" => digits,
        "%" => format!("{digits} %"),
        symbol => format!("{digits} {symbol}"),
    }
}

/// An instant in the asker's zone, to the second.
pub(super) fn time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// Untrusted text, cleaned and cut: no control, bidirectional or invisible characters, no line breaks.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::new();
    let mut shown = 0;
    let mut signs = text.chars().peekable();
    while let Some(c) = signs.next() {
        // A terminal's escape sequence goes as a whole: without its first character the rest would read as text.
        if c == '\u{1b}' && signs.next_if_eq(&'[').is_some() {
            while signs.next_if(|part| matches!(part, ' '..='?')).is_some() {}
            signs.next_if(|last| matches!(last, '@'..='~'));
            continue;
        }
        if shown == MAX_QUOTE {
            cleaned.push('…');
            break;
        }
        let c = if c.is_whitespace() { ' ' } else { c };
        if c.is_control() || is_invisible(c) {
            continue;
        }
        cleaned.push(c);
        shown += 1;
    }
    cleaned.trim().to_owned()
}
