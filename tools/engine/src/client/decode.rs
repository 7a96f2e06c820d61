//! Rows of `JSONCompactEachRow` as cells, by the kinds the query declares.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;
use sightline_model::rows::Labels;
use sightline_model::{Cell, Column, ColumnKind};

use super::code::Failure;

/// Decodes every row. A row of another length, or a value that is not of its column's kind, makes the whole answer unreadable:
/// half a result is no result.
pub(super) fn rows(text: &[u8], columns: &[Column]) -> Result<Vec<Vec<Cell>>, Failure> {
    let mut rows = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // Telemetry may hold bytes that are no UTF-8; they show as the replacement character.
        let line = String::from_utf8_lossy(line);
        let values: Vec<Value> = serde_json::from_str(&line).map_err(|_| Failure::Malformed)?;
        if values.len() != columns.len() {
            return Err(Failure::Malformed);
        }
        let cells = values.into_iter().zip(columns).map(|(value, column)| cell(value, column.kind));
        rows.push(cells.collect::<Option<Vec<Cell>>>().ok_or(Failure::Malformed)?);
    }
    Ok(rows)
}

fn cell(value: Value, kind: ColumnKind) -> Option<Cell> {
    if value.is_null() {
        return Some(Cell::Null);
    }
    match kind {
        ColumnKind::Text => match value {
            Value::String(text) => Some(Cell::Text(text)),
            Value::Number(number) => Some(Cell::Text(number.to_string())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        },
        ColumnKind::Float => float(&value),
        ColumnKind::Int => match value {
            Value::Number(number) => number.as_i64().map(Cell::Int),
            // Servers may quote 64-bit integers whatever the request says.
            Value::String(text) => text.parse().ok().map(Cell::Int),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        },
        ColumnKind::Time => time(&value).map(Cell::Time),
        ColumnKind::Labels => labels(value).map(Cell::Labels),
    }
}

fn float(value: &Value) -> Option<Cell> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        // `nan` and `inf` where a server quotes them; they are no value.
        Value::String(text) => text.parse().ok()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(if number.is_finite() { Cell::Float(number) } else { Cell::Null })
}

/// `2026-05-03 14:10:00.123` in UTC, RFC 3339, or seconds since 1970, whichever `date_time_output_format` the server has.
fn time(value: &Value) -> Option<Timestamp> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        return TimeZone::UTC.to_timestamp(civil).ok();
    }
    seconds_since_1970(&text)
}

fn seconds_since_1970(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let padded = format!("{fraction:0<9}");
    if padded.len() != 9 || !padded.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: i32 = padded.parse().ok()?;
    let seconds: i64 = whole.parse().ok()?;
    Timestamp::new(seconds, if whole.starts_with('-') { -nanos } else { nanos }).ok()
}

fn labels(value: Value) -> Option<Labels> {
    let Value::Object(entries) = value else { return None };
    let mut labels = Labels::new();
    for (key, value) in entries {
        match value {
            Value::String(text) => labels.insert(key, text),
            // An absent label.
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => return None,
        };
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sightline_model::rows::Labels;
    use sightline_model::{Cell, Column, ColumnKind};

    use super::rows;
    use crate::client::code::Failure;

    fn columns(kinds: &[ColumnKind]) -> Vec<Column> {
        kinds.iter().map(|kind| Column { name: "c".to_owned(), kind: *kind }).collect()
    }

    fn one(text: &str, kind: ColumnKind) -> Result<Cell, Failure> {
        rows(format!("[{text}]\n").as_bytes(), &columns(&[kind])).map(|mut rows| rows.remove(0).remove(0))
    }

    #[test]
    fn every_kind_is_read_and_null_is_no_value() {
        use ColumnKind::{Float, Int, Labels as Map, Text, Time};
        let time = |text: &str| Cell::Time(text.parse().unwrap());
        let cases = [
            (r#""a\u0000\"b""#, Text, Cell::Text("a\0\"b".to_owned())),
            ("7", Text, Cell::Text("7".to_owned())),
            ("null", Text, Cell::Null),
            ("0.1", Float, Cell::Float(0.1)),
            ("3", Float, Cell::Float(3.0)),
            ("null", Float, Cell::Null),
            (r#""nan""#, Float, Cell::Null),
            (r#""-inf""#, Float, Cell::Null),
            ("9223372036854775807", Int, Cell::Int(i64::MAX)),
            (r#""-9223372036854775808""#, Int, Cell::Int(i64::MIN)),
            (r#""2026-05-03 14:10:00.123""#, Time, time("2026-05-03T14:10:00.123Z")),
            (r#""2026-05-03 14:10:00""#, Time, time("2026-05-03T14:10:00Z")),
            (r#""2026-05-03T14:10:00.000000001Z""#, Time, time("2026-05-03T14:10:00.000000001Z")),
            ("1777817400.5", Time, time("2026-05-03T14:10:00.5Z")),
            (r#""-1.5""#, Time, time("1969-12-31T23:59:58.5Z")),
            ("null", Time, Cell::Null),
            (r#"{"a":"x","b":null}"#, Map, Cell::Labels(Labels::from([("a".to_owned(), "x".to_owned())]))),
        ];
        for (text, kind, expected) in cases {
            assert_eq!(one(text, kind), Ok(expected), "{text} as {kind:?}");
        }
    }

    #[test]
    fn what_is_of_another_kind_makes_the_answer_unreadable() {
        use ColumnKind::{Float, Int, Labels, Text, Time};
        for (text, kind) in [
            ("true", Text),
            ("{}", Float),
            (r#""x""#, Float),
            ("1.5", Int),
            ("18446744073709551615", Int),
            (r#""yesterday""#, Time),
            ("[]", Labels),
            (r#"{"a":1}"#, Labels),
            ("1,2", Int),
            ("", Int),
        ] {
            assert_eq!(one(text, kind), Err(Failure::Malformed), "{text} as {kind:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_lose_the_row() {
        let rows = rows(b"[\"a\xffb\"]\n[\"c\"]\n", &columns(&[ColumnKind::Text])).unwrap();
        assert_eq!(rows, [[Cell::Text("a\u{fffd}b".to_owned())], [Cell::Text("c".to_owned())]]);
    }

    proptest! {
        #[test]
        fn a_float_comes_back_to_the_last_bit(value in proptest::num::f64::NORMAL) {
            prop_assert_eq!(one(&format!("{value:?}"), ColumnKind::Float), Ok(Cell::Float(value)));
        }

        #[test]
        fn no_answer_makes_it_fail_otherwise(text in any::<Vec<u8>>()) {
            let _ = rows(&text, &columns(&[ColumnKind::Text, ColumnKind::Time]));
        }
    }
}
