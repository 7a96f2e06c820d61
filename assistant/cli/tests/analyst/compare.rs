//! The original's rows held against those of the calls.

use serde_json::Value;
use sightline_model::Coverage;

use crate::mapping::Cell;

/// Sums of the same numbers in another order differ in the last digits; nothing else may.
const SAME: f64 = 1e-9;

fn same(sql: &Cell, tool: &Cell, tolerance: f64) -> bool {
    match (sql, tool) {
        (Cell::Nothing, Cell::Nothing) => true,
        // The engine has no NULL for a text that is not there.
        (Cell::Text(text), Cell::Nothing) => text.is_empty(),
        (Cell::Time(a), Cell::Time(b)) => a == b,
        (Cell::Text(a), Cell::Text(b)) => a == b,
        (Cell::Number(a), Cell::Number(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
        (Cell::List(a), Cell::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance)),
        // What was arbitrary in the original is one of what the call lists.
        (one, Cell::List(all)) => all.iter().any(|other| same(one, other, tolerance)),
        (Cell::Nothing | Cell::Time(_) | Cell::Text(_) | Cell::Number(_) | Cell::List(_), _) => false,
    }
}

fn same_row(sql: &[Cell], tool: &[Cell], tolerance: f64) -> bool {
    sql.len() == tool.len() && sql.iter().zip(tool).all(|(sql, tool)| same(sql, tool, tolerance))
}

/// What differs; nothing if the same numbers came back. Every row of the original needs one of its own among the calls', and,
/// unless the entry says why not, the other way round.
pub(crate) fn difference(
    entry: &Value,
    mut sql: Vec<Vec<Cell>>,
    mut tool: Vec<Vec<Cell>>,
    coverage: &Coverage,
) -> Option<String> {
    let tolerance = entry.get("tolerance").and_then(Value::as_f64).unwrap_or(SAME);
    if let Some(left_out) = entry.get("but_column").and_then(Value::as_u64) {
        let left_out = usize::try_from(left_out).unwrap();
        sql.iter_mut().for_each(|row| drop(row.remove(left_out)));
    }
    if entry.get("flatten").is_some() {
        sql = sql
            .into_iter()
            .flatten()
            .flat_map(|cell| match cell {
                Cell::List(list) => list.into_iter().map(|one| vec![one]).collect(),
                other => vec![vec![other]],
            })
            .collect();
    }
    if entry.get("but_first_of_each").is_some() {
        let mut seen: Vec<Cell> = Vec::new();
        sql.retain(|row| {
            let known = seen.contains(&row[0]);
            if !known {
                seen.push(row[0].clone());
            }
            known
        });
    }
    if let Some(left_out) = entry.get("but_for").and_then(Value::as_array) {
        tool.retain(|row| !left_out.iter().any(|name| row[0] == crate::mapping::sql_cell(name)));
    }
    if let Some(filled_with) = entry.get("filled").and_then(Value::as_str)
        && let Some(fault) = take_filled(&mut sql, &tool, filled_with, coverage)
    {
        return Some(fault);
    }
    if sql.is_empty() {
        return Some("the original gave no rows, so nothing was compared".to_owned());
    }
    for row in &sql {
        let Some(found) = tool.iter().position(|other| same_row(row, other, tolerance)) else {
            let near: Vec<_> = tool.iter().filter(|other| same(&row[0], &other[0], tolerance)).take(3).collect();
            return Some(format!(
                "{row:?} is not among {} rows of the calls, such as {near:?} {:?}",
                tool.len(),
                tool.first()
            ));
        };
        tool.swap_remove(found);
    }
    if entry.get("zeros_beside").is_some() {
        tool.retain(|row| row.last() != Some(&Cell::Number(0.0)));
    }
    let subset = entry.get("compare").and_then(Value::as_str) == Some("subset");
    (!subset && !tool.is_empty())
        .then(|| format!("{} rows of the calls are not the original's, such as {:?}", tool.len(), tool[0]))
}

/// Takes out the steps that the original invented. They must hold what it invents, and lie in gaps that the call shows.
fn take_filled(sql: &mut Vec<Vec<Cell>>, tool: &[Vec<Cell>], with: &str, coverage: &Coverage) -> Option<String> {
    let mut previous = Cell::Number(0.0);
    let mut fault = None;
    let mut filled = 0;
    sql.retain(|row| {
        if tool.iter().any(|other| other[0] == row[0]) {
            previous = row[1].clone();
            return true;
        }
        filled += 1;
        let invented = if with == "previous" { &previous } else { &Cell::Number(0.0) };
        let Cell::Time(at) = row[0] else { panic!("{row:?} has no time") };
        let in_gap = |gap: &sightline_model::Gap| gap.from.as_millisecond() <= at && at < gap.to.as_millisecond();
        if !same(invented, &row[1], SAME) || !coverage.gaps.iter().any(in_gap) {
            fault = Some(format!("{row:?} was filled in by the original, but the call shows no gap there"));
        }
        false
    });
    if filled == 0 { Some("the original filled nothing in".to_owned()) } else { fault }
}
