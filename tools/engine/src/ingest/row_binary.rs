//! ClickHouse's `RowBinary`: the fields of a row one after the other, without names.

use jiff::Timestamp;
use sightline_model::rows::Labels;

/// Appends a length.
pub(super) fn length(out: &mut Vec<u8>, length: usize) {
    let mut rest = length;
    loop {
        let low = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a `String`.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a `Map(String, String)`.
pub(super) fn labels(out: &mut Vec<u8>, labels: &Labels) {
    length(out, labels.len());
    for (key, value) in labels {
        text(out, key);
        text(out, value);
    }
}

/// Appends a `DateTime64(3)`.
pub(super) fn millis(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.as_millisecond().to_le_bytes());
}

/// Appends a `DateTime64(9)`; a time outside its range (1677 to 2262) is moved to its edge.
pub(super) fn nanos(out: &mut Vec<u8>, time: Timestamp) {
    let clamped = time.as_nanosecond().clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    out.extend_from_slice(&i64::try_from(clamped).unwrap_or(i64::MAX).to_le_bytes());
}

/// Appends an `Int64`.
pub(super) fn int64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `UInt32`.
pub(super) fn uint32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `Float64`.
pub(super) fn float64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `Nullable(DateTime64(3))`.
pub(super) fn optional_millis(out: &mut Vec<u8>, time: Option<Timestamp>) {
    match time {
        Some(time) => {
            out.push(0);
            millis(out, time);
        }
        None => out.push(1),
    }
}

#[cfg(test)]
mod tests {
    use super::{length, optional_millis, text};

    #[test]
    fn lengths_are_leb128() {
        let of = |value| {
            let mut out = Vec::new();
            length(&mut out, value);
            out
        };
        assert_eq!(of(0), [0]);
        assert_eq!(of(127), [127]);
        assert_eq!(of(128), [0x80, 1]);
        assert_eq!(of(300), [0xac, 2]);
    }

    #[test]
    fn fields_follow_each_other() {
        let mut out = Vec::new();
        text(&mut out, "é");
        optional_millis(&mut out, None);
        optional_millis(&mut out, Some(jiff::Timestamp::from_millisecond(1).unwrap()));
        assert_eq!(out, [2, 0xc3, 0xa9, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
