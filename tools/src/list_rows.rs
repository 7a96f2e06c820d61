//! Rows of logs, events and jobs as evidence rows.

use sightline_model::{Cell, EvidenceRow};
use sightline_query::Output;

use crate::reading::entity_key;
use crate::tool::{Fetched, ToolError};

/// The rows of a [`sightline_query::Shape::Rows`] query: what a row is about as its entity, the rest as fields.
pub(crate) fn list_rows(fetched: &Fetched) -> Result<Vec<EvidenceRow>, ToolError> {
    let outputs = fetched.query.outputs();
    let mut rows = Vec::with_capacity(fetched.result.rows.len());
    for cells in &fetched.result.rows {
        let mut row = EvidenceRow::default();
        for (column, cell) in outputs.iter().zip(cells) {
            match (&column.output, cell) {
                (Output::Time, Cell::Time(time)) => row.time = Some(*time),
                (Output::Dim(dim), Cell::Text(text)) if !text.is_empty() => {
                    let key = entity_key(dim);
                    let names_it = IDENTITY.contains(&key);
                    let place = if names_it { &mut row.entity } else { &mut row.fields };
                    place.insert(key.to_owned(), text.to_string());
                }
                (_, Cell::Labels(labels)) => {
                    for (key, value) in labels {
                        row.fields.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                }
                (_, Cell::Null) => {}
                (_, Cell::Time(time)) => {
                    row.fields.insert(column.name.clone(), time.to_string());
                }
                (_, Cell::Text(text)) => {
                    if !text.is_empty() {
                        row.fields.insert(column.name.clone(), text.to_string());
                    }
                }
                (_, Cell::Int(n)) => {
                    row.fields.insert(column.name.clone(), n.to_string());
                }
                (_, Cell::Float(v)) => {
                    row.fields.insert(column.name.clone(), v.to_string());
                }
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// What tells things apart; everything else describes them.
const IDENTITY: [&str; 7] = ["cluster", "node", "gpu", "service", "job", "rank", "pod"];

/// A text of a row, wherever it stands.
pub(crate) fn text_of<'a>(row: &'a EvidenceRow, key: &str) -> &'a str {
    row.entity.get(key).or_else(|| row.fields.get(key)).map_or("", String::as_str)
}
