//! How the columns of an original stand in what the calls gave: a small closed vocabulary.
//!
//! `from` says what the records are: `points` of a piece's series, `rows` of a piece, or `calls` (one record, whose columns name
//! the call they take their number from). Each column is a field of the record or a computation over fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use sightline_model::Evidence;
use sightline_tools::ToolOutput;

/// A value of either side.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) enum Cell {
    Nothing,
    /// Milliseconds since 1970.
    Time(i64),
    Number(f64),
    Text(String),
    List(Vec<Cell>),
}

pub(crate) type Record = BTreeMap<String, Cell>;

/// Text as either side writes it: numbers stay numbers whether they are quoted or not.
fn text(value: &str) -> Cell {
    let plain = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    match value.parse::<f64>() {
        Ok(number) if plain => Cell::Number(number),
        Ok(_) | Err(_) => Cell::Text(value.to_owned()),
    }
}

/// A value as the original's SQL gave it.
pub(crate) fn sql_cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Nothing,
        Value::Bool(yes) => Cell::Number(f64::from(u8::from(*yes))),
        Value::Number(number) => Cell::Number(number.as_f64().unwrap()),
        Value::Array(list) => Cell::List(list.iter().map(sql_cell).collect()),
        Value::Object(_) => panic!("no original gives an object: {value}"),
        Value::String(string) => {
            let iso = format!("{}Z", string.replacen(' ', "T", 1));
            let dated = string.len() >= 19 && string.as_bytes()[4] == b'-' && string.as_bytes()[10] == b' ';
            match iso.parse::<Timestamp>() {
                Ok(time) if dated => Cell::Time(time.as_millisecond()),
                Ok(_) | Err(_) => text(string),
            }
        }
    }
}

/// The records of a piece: its points, or its rows.
fn records(evidence: &Evidence, from: &str) -> Vec<Record> {
    let entity = |entity: &BTreeMap<String, String>| -> Record {
        entity.iter().map(|(key, value)| (key.clone(), text(value))).collect()
    };
    match from {
        "points" => evidence
            .series
            .iter()
            .flat_map(|series| {
                series.points.iter().map(|point| {
                    let mut record = entity(&series.entity);
                    record.insert("time".to_owned(), Cell::Time(point.time.as_millisecond()));
                    for (key, number) in [("value", point.value), ("min", point.min), ("max", point.max)] {
                        record.insert(key.to_owned(), Cell::Number(number));
                    }
                    record
                })
            })
            .collect(),
        "rows" => evidence
            .rows
            .iter()
            .map(|row| {
                let mut record = entity(&row.fields);
                record.extend(entity(&row.entity));
                record.extend(row.value.map(|value| ("value".to_owned(), Cell::Number(value))));
                record.extend(row.rank.map(|rank| ("rank".to_owned(), Cell::Number(rank as f64))));
                record.extend(row.time.map(|time| ("time".to_owned(), Cell::Time(time.as_millisecond()))));
                record
            })
            .collect(),
        other => panic!("records come from points or rows, not from {other}"),
    }
}

fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Number(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

/// One column of a record.
fn column(spec: &Value, record: &Record, calls: &[ToolOutput]) -> Cell {
    if let Some(field) = spec.as_str() {
        return record.get(field).cloned().unwrap_or(Cell::Nothing);
    }
    let (name, operands) = spec.as_object().unwrap().iter().next().unwrap();
    let of = |operand: &Value| -> Cell {
        if operand.is_number() { sql_cell(operand) } else { column(operand, record, calls) }
    };
    let at = |index: usize| number(&of(&operands[index]));
    match name.as_str() {
        "constant" => sql_cell(operands),
        "square" => Cell::Number(number(&of(operands)).powi(2)),
        "root" => Cell::Number(number(&of(operands)).sqrt()),
        "absolute" => Cell::Number(number(&of(operands)).abs()),
        "float32" => Cell::Number(f64::from(number(&of(operands)) as f32)),
        "difference" => Cell::Number(at(0) - at(1)),
        "sum" => Cell::Number(operands.as_array().unwrap().iter().map(|operand| number(&of(operand))).sum()),
        "ratio" => Cell::Number(at(0) / at(1)),
        "scaled" => match of(&operands[0]) {
            Cell::Nothing => Cell::Nothing,
            cell => Cell::Number(number(&cell) * at(1)),
        },
        "rounded" => {
            let scale = 10_f64.powf(at(1));
            Cell::Number((at(0) * scale).round() / scale)
        }
        "whole_part_of_division" => Cell::Number((at(0) / at(1)).floor()),
        "rest_of_division" => Cell::Number(at(0).rem_euclid(at(1))),
        "seconds" => match of(operands) {
            Cell::Time(at) => Cell::Number((at / 1000) as f64),
            other => panic!("{other:?} is no time"),
        },
        "date" => match of(operands) {
            Cell::Time(at) => Cell::Text(Timestamp::from_millisecond(at).unwrap().strftime("%Y-%m-%d").to_string()),
            other => panic!("{other:?} is no time"),
        },
        "list" => Cell::List(operands.as_array().unwrap().iter().map(of).collect()),
        "or" => match of(&operands[0]) {
            Cell::Nothing => of(&operands[1]),
            cell => cell,
        },
        // The first record of another call; of several, only that one counts.
        "call" => {
            let (index, from, field) = (&operands[0], operands[1].as_str().unwrap(), &operands[2]);
            let (call, piece) = place(index);
            let found = records(&calls[call].evidence[piece], from);
            let chosen = match operands.get(3).and_then(Value::as_object) {
                None => found.first(),
                Some(wanted) => found.iter().find(|r| wanted.iter().all(|(key, value)| r[key] == sql_cell(value))),
            };
            chosen.map_or(Cell::Nothing, |record| column(field, record, calls))
        }
        // The smallest or largest of a field over all records of a call.
        "least" | "most" | "any" | "how_many" => {
            let (call, piece) = place(&operands[0]);
            let found = records(&calls[call].evidence[piece], operands[1].as_str().unwrap());
            let mut cells: Vec<Cell> = found.iter().map(|record| column(&operands[2], record, calls)).collect();
            cells.sort_by(|a, b| a.partial_cmp(b).unwrap());
            match name.as_str() {
                "least" => cells.first().cloned().unwrap_or(Cell::Nothing),
                "most" => cells.last().cloned().unwrap_or(Cell::Nothing),
                "how_many" => Cell::Number(cells.len() as f64),
                _ => Cell::List(cells),
            }
        }
        "instant" => match of(operands) {
            Cell::Text(iso) => Cell::Time(iso.parse::<Timestamp>().unwrap().as_millisecond()),
            other => panic!("{other:?} is no written time"),
        },
        other => panic!("`{other}` is not in the vocabulary"),
    }
}

/// `2` is the first piece of the third call, `[2, 1]` its second.
fn place(index: &Value) -> (usize, usize) {
    let whole = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    match index.as_array() {
        Some(pair) => (whole(&pair[0]), whole(&pair[1])),
        None => (whole(index), 0),
    }
}

/// The rows that the calls give in the place of the original's.
pub(crate) fn rows(entry: &Value, calls: &[ToolOutput]) -> Vec<Vec<Cell>> {
    let from = entry["from"].as_str().unwrap();
    let specs: Vec<Value> = entry["columns"].as_array().unwrap().clone();
    let row = |record: &Record| specs.iter().map(|spec| column(spec, record, calls)).collect::<Vec<Cell>>();
    if from == "calls" {
        // One record for each list of columns, or a single one.
        return if specs.iter().all(Value::is_array) {
            let of = |spec: &Value| spec.as_array().unwrap().iter().map(|s| column(s, &Record::new(), calls)).collect();
            specs.iter().map(of).collect()
        } else {
            vec![row(&Record::new())]
        };
    }
    let (call, piece) = entry.get("piece").map_or((0, 0), place);
    let mut found = records(&calls[call].evidence[piece], from);
    if let Some(join) = entry.get("join") {
        let (call, piece) = place(&join[0]);
        let (from, key) = (join[1].as_str().unwrap(), join[2].as_str().unwrap());
        let others = records(&calls[call].evidence[piece], from);
        found = found
            .into_iter()
            .filter_map(|mut record| {
                let other = others.iter().find(|other| other.get(key) == record.get(key))?;
                record.extend(other.iter().map(|(field, cell)| (format!("other {field}"), cell.clone())));
                Some(record)
            })
            .collect();
    }
    if let Some(skip) = entry.get("skip_records").and_then(Value::as_u64) {
        found.drain(..usize::try_from(skip).unwrap().min(found.len()));
    }
    if let Some(only) = entry.get("first_records").and_then(Value::as_u64) {
        found.truncate(usize::try_from(only).unwrap());
    }
    let rows: Vec<Vec<Cell>> = found.iter().map(row).collect();
    match entry.get("collect").and_then(Value::as_str) {
        None => rows,
        Some("all") => vec![vec![Cell::List(rows.into_iter().map(|mut row| row.remove(0)).collect())]],
        Some("by_first") => {
            let mut groups: Vec<(Cell, Vec<Cell>)> = Vec::new();
            for mut row in rows {
                let value = row.pop().unwrap();
                let key = row.remove(0);
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, list)) => list.push(value),
                    None => groups.push((key, vec![value])),
                }
            }
            let sorted = |mut list: Vec<Cell>| {
                list.sort_by(|a, b| a.partial_cmp(b).unwrap());
                Cell::List(list)
            };
            groups.into_iter().map(|(key, list)| vec![key, sorted(list)]).collect()
        }
        Some(other) => panic!("`{other}` is no way to collect"),
    }
}
