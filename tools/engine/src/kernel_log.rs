//! Kernel logs as log rows: the three ways in which `dmesg`, `journalctl -k` and `/dev/kmsg` write the time.
//!
//! A line's text is kept byte for byte; only the head that carries time and level is taken off. A line without a head of its
//! own (a continuation, or a log that was saved without times) takes the time of the line before it.

use jiff::{SignedDuration, Timestamp};
use sightline_model::rows::{Labels, LogRow};

/// What the log itself does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLogSource {
    /// Labels of every row: `node`, and `tenant` and `cluster` where they are known.
    pub labels: Labels,
    /// When the machine booted: seconds since boot count from here.
    pub boot: Timestamp,
    /// The time of lines before the first one that has its own, for example when the log was read.
    pub read_at: Timestamp,
}

/// Reads a kernel log. Never fails: a head that is not understood stays in the text.
pub fn read_kernel_log(text: &str, source: &KernelLogSource) -> Vec<LogRow> {
    let mut time = source.read_at;
    let mut rows = Vec::new();
    for line in text.split('\n') {
        if line.trim().is_empty() {
            continue;
        }
        let head = read_head(line, source.boot).unwrap_or(Head { time: None, severity: "", rest: line });
        time = head.time.unwrap_or(time);
        rows.push(LogRow {
            time,
            severity: head.severity.to_owned(),
            service: "kernel".to_owned(),
            labels: source.labels.clone(),
            body: head.rest.to_owned(),
        });
    }
    rows
}

/// What stands before the text of a line.
struct Head<'a> {
    time: Option<Timestamp>,
    severity: &'static str,
    rest: &'a str,
}

fn read_head(line: &str, boot: Timestamp) -> Option<Head<'_>> {
    if let Some(head) = kmsg_head(line, boot) {
        return Some(head);
    }
    let (severity, after_level) = match level_head(line) {
        Some((severity, rest)) => (severity, rest),
        None => ("", line),
    };
    let (time, rest) = since_boot(after_level, boot).or_else(|| iso_time(after_level))?;
    Some(Head { time: Some(time), severity, rest })
}

/// `priority,sequence,microseconds,flags[,…];text`: the record format of `/dev/kmsg`.
fn kmsg_head(line: &str, boot: Timestamp) -> Option<Head<'_>> {
    let (fields, rest) = line.split_once(';')?;
    let mut fields = fields.split(',');
    let priority: u32 = digits(fields.next()?)?.parse().ok()?;
    digits(fields.next()?)?;
    let micros: i64 = digits(fields.next()?)?.parse().ok()?;
    fields.next()?;
    let time = boot.checked_add(SignedDuration::from_micros(micros)).ok()?;
    // The low three bits are the level, the others the facility.
    let severity = match priority & 7 {
        0..=2 => "critical",
        3 => "error",
        4 => "warning",
        5 => "notice",
        6 => "info",
        _ => "debug",
    };
    Some(Head { time: Some(time), severity, rest })
}

/// `kern  :warn  : …`: facility and level as `dmesg --decode` writes them.
fn level_head(line: &str) -> Option<(&'static str, &str)> {
    let mut parts = line.splitn(3, ':');
    let facility = parts.next()?.trim_end();
    let level = parts.next()?.trim_end();
    let rest = parts.next()?.strip_prefix(' ')?;
    let is_word = !facility.is_empty() && facility.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let severity = match level {
        "emerg" | "alert" | "crit" => "critical",
        "err" => "error",
        "warn" => "warning",
        "notice" => "notice",
        "info" => "info",
        "debug" => "debug",
        _ => return None,
    };
    is_word.then_some((severity, rest))
}

/// `[171167.620236] …`: seconds since boot, padded on the left.
fn since_boot(text: &str, boot: Timestamp) -> Option<(Timestamp, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (seconds, fraction) = number.trim_start_matches(' ').split_once('.')?;
    let seconds: i64 = digits(seconds)?.parse().ok()?;
    let nanos = fraction_nanos(fraction)?;
    let time = boot.checked_add(SignedDuration::new(seconds, nanos)).ok()?;
    Some((time, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// `2025-01-21T04:41:44,283302+00:00 …`: ISO 8601 with a comma, as `dmesg --time-format iso` writes it.
fn iso_time(text: &str) -> Option<(Timestamp, &str)> {
    let (token, rest) = text.split_once(' ')?;
    // Longest form: nanoseconds and an offset with minutes.
    if token.len() > "2025-01-21T04:41:44,283302123+00:00".len() || !token.is_ascii() {
        return None;
    }
    let time = token.replacen(',', ".", 1).parse::<Timestamp>().ok()?;
    Some((time, rest))
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// The digits after the point as nanoseconds; at most nine of them.
fn fraction_nanos(fraction: &str) -> Option<i32> {
    let digits = digits(fraction)?;
    let missing = 9_usize.checked_sub(digits.len())?;
    let value: i32 = digits.parse().ok()?;
    let scale = 10_i32.checked_pow(u32::try_from(missing).ok()?)?;
    value.checked_mul(scale)
}

#[cfg(test)]
#[path = "kernel_log/kernel_log_tests.rs"]
mod kernel_log_tests;
