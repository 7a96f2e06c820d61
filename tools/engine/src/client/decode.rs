//! Rows of `JSONCompactEachRow` as cells, by the kinds the query declares.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sightline_model::rows::Labels;
use sightline_model::{Cell, Column, ColumnKind};

use super::code::Failure;

/// How many different texts of one answer are remembered. Names come again in every row and are kept once; bodies of log lines are not
/// remembered without end.
const REMEMBERED: usize = 10_000;

/// Decodes every row. A row of another length, or a value that is not of its column's kind, makes the whole answer unreadable:
/// half a result is no result.
pub(super) fn rows(text: &[u8], columns: &[Column]) -> Result<Vec<Vec<Cell>>, Failure> {
    // Telemetry may hold bytes that are no UTF-8; they show as the replacement character.
    let text = String::from_utf8_lossy(text);
    let mut seen = Seen::default();
    let mut rows = Vec::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let row = Row { columns, seen: &mut seen }.deserialize(&mut deserializer);
        let whole = row.and_then(|row| deserializer.end().map(|()| row));
        rows.push(whole.map_err(|_| Failure::Malformed)?);
    }
    Ok(rows)
}

/// Puts rows that share their first cell, which lie together, in the order of their next `keys` - 1 cells: the order of texts is that of
/// their bytes, as the engine's.
pub(super) fn order_ties(rows: &mut [Vec<Cell>], keys: usize) {
    if keys < 2 {
        return;
    }
    for tied in rows.chunk_by_mut(|left, right| left.first() == right.first()) {
        tied.sort_by(|left, right| {
            let cells = left.iter().zip(right.iter()).take(keys).skip(1);
            cells.map(|(left, right)| by_content(left, right)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
    }
}

/// The order of two keys: both are texts or labels, whatever else there is counts as equal.
fn by_content(left: &Cell, right: &Cell) -> Ordering {
    match (left, right) {
        (Cell::Text(left), Cell::Text(right)) if Arc::ptr_eq(left, right) => Ordering::Equal,
        (Cell::Text(left), Cell::Text(right)) => left.cmp(right),
        (Cell::Labels(left), Cell::Labels(right)) => left.cmp(right),
        (Cell::Int(left), Cell::Int(right)) => left.cmp(right),
        (Cell::Time(left), Cell::Time(right)) => left.cmp(right),
        _ => Ordering::Equal,
    }
}

/// What was read before in the same answer.
#[derive(Default)]
struct Seen {
    texts: HashSet<Arc<str>, foldhash::fast::RandomState>,
    time: Option<(String, Timestamp)>,
}

impl Seen {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        if self.texts.len() < REMEMBERED {
            self.texts.insert(Arc::clone(&new));
        }
        new
    }

    /// Rows of one step follow each other, so the last time is mostly the next one too.
    fn time(&mut self, text: &str) -> Option<Timestamp> {
        if let Some((_, time)) = self.time.as_ref().filter(|(known, _)| known == text) {
            return Some(*time);
        }
        let time = time(text)?;
        self.time = Some((text.to_owned(), time));
        Some(time)
    }
}

/// One row: an array as long as the columns.
struct Row<'a> {
    columns: &'a [Column],
    seen: &'a mut Seen,
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = Vec<Cell>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = Vec<Cell>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an array of {} values", self.columns.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        let Self { columns, seen } = self;
        let mut row = Vec::with_capacity(columns.len());
        for Column { kind, .. } in columns {
            let cell = values.next_element_seed(OneCell { kind: *kind, seen: &mut *seen })?;
            row.push(cell.ok_or_else(|| A::Error::custom("a row is too short"))?);
        }
        match values.next_element::<IgnoredAny>()? {
            None => Ok(row),
            Some(IgnoredAny) => Err(A::Error::custom("a row is too long")),
        }
    }
}

/// One value, by the kind of its column.
struct OneCell<'a> {
    kind: ColumnKind,
    seen: &'a mut Seen,
}

impl OneCell<'_> {
    fn number<E: serde::de::Error>(self, number: serde_json::Number) -> Result<Cell, E> {
        let cell = match self.kind {
            ColumnKind::Text => Some(Cell::Text(self.seen.text(&number.to_string()))),
            ColumnKind::Float => number.as_f64().map(float),
            ColumnKind::Int => number.as_i64().map(Cell::Int),
            ColumnKind::Time => self.seen.time(&number.to_string()).map(Cell::Time),
            ColumnKind::Labels => None,
        };
        cell.ok_or_else(|| E::custom("a number that is none of its column's"))
    }
}

impl<'de> DeserializeSeed<'de> for OneCell<'_> {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneCell<'_> {
    type Value = Cell;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a value of kind {:?}", self.kind)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Cell, E> {
        Ok(Cell::Null)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Cell, E> {
        self.number(number.into())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Cell, E> {
        self.number(number.into())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Cell, E> {
        match self.kind {
            ColumnKind::Float => Ok(float(number)),
            _ => {
                let number = serde_json::Number::from_f64(number).ok_or_else(|| E::custom("no number"))?;
                self.number(number)
            }
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Cell, E> {
        let cell = match self.kind {
            ColumnKind::Text => Some(Cell::Text(self.seen.text(text))),
            // `nan` and `inf` where a server quotes them; they are no value.
            ColumnKind::Float => text.parse().ok().map(float),
            // Servers may quote 64-bit integers whatever the request says.
            ColumnKind::Int => text.parse().ok().map(Cell::Int),
            ColumnKind::Time => self.seen.time(text).map(Cell::Time),
            ColumnKind::Labels => None,
        };
        cell.ok_or_else(|| E::custom("a text that is none of its column's"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Cell, A::Error> {
        if self.kind != ColumnKind::Labels {
            return Err(A::Error::custom("a map where none stands"));
        }
        let mut labels = Labels::new();
        // An absent label is null.
        while let Some((key, value)) = entries.next_entry::<String, Option<String>>()? {
            if let Some(value) = value {
                labels.insert(key, value);
            }
        }
        Ok(Cell::Labels(labels))
    }
}

fn float(number: f64) -> Cell {
    if number.is_finite() { Cell::Float(number) } else { Cell::Null }
}

/// `2026-05-03 14:10:00.123` in UTC, RFC 3339, or seconds since 1970, whichever `date_time_output_format` the server has.
fn time(text: &str) -> Option<Timestamp> {
    if let Ok(civil) = text.parse::<DateTime>() {
        return TimeZone::UTC.to_timestamp(civil).ok();
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    seconds_since_1970(text)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sightline_model::rows::Labels;
    use sightline_model::{Cell, Column, ColumnKind};

    use super::{order_ties, rows};
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
            (r#""a\u0000\"b""#, Text, Cell::Text("a\0\"b".into())),
            ("7", Text, Cell::Text("7".into())),
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
        assert_eq!(rows, [[Cell::Text("a\u{fffd}b".into())], [Cell::Text("c".into())]]);
    }

    #[test]
    fn rows_of_one_step_are_put_in_order_and_steps_stay() {
        use ColumnKind::{Int, Text, Time};
        let text = r#"["2026-05-03 00:05:00","n2","1",1]
["2026-05-03 00:05:00","n10","0",2]
["2026-05-03 00:05:00","n2","0",3]
["2026-05-03 00:00:00","n1","0",4]"#;
        let mut found = rows(text.as_bytes(), &columns(&[Time, Text, Text, Int])).unwrap();
        order_ties(&mut found, 3);
        let numbers: Vec<&Cell> = found.iter().filter_map(|row| row.last()).collect();
        assert_eq!(numbers, [&Cell::Int(2), &Cell::Int(3), &Cell::Int(1), &Cell::Int(4)]);
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
