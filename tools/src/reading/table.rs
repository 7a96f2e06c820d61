//! A result set with its columns looked up once.

use jiff::Timestamp;
use sightline_model::rows::Labels;
use sightline_model::{Cell, ResultSet};

use crate::tool::ToolError;

/// What reads a result set by column name.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    result: &'a ResultSet,
}

impl<'a> Table<'a> {
    /// The table over a result.
    pub fn new(result: &'a ResultSet) -> Self {
        Self { result }
    }

    /// The index of a column.
    ///
    /// # Errors
    /// When the result lacks it.
    pub fn column(&self, name: &str) -> Result<usize, ToolError> {
        self.result.column(name).ok_or_else(|| ToolError::Result { tool: "series", column: name.to_owned() })
    }

    /// The index of a column that need not be there.
    pub fn optional(&self, name: &str) -> Option<usize> {
        self.result.column(name)
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &'a [Cell]> + use<'a> {
        self.result.rows.iter().map(Vec::as_slice)
    }

    /// The number in a cell; missing and null are none.
    pub fn number(&self, row: &[Cell], column: usize) -> Option<f64> {
        row.get(column).and_then(Cell::number).filter(|v| v.is_finite())
    }

    /// The count in a cell; 0 when missing.
    pub fn count(&self, row: &[Cell], column: usize) -> u64 {
        match row.get(column) {
            Some(Cell::Int(n)) => u64::try_from(*n).unwrap_or(0),
            Some(Cell::Float(_) | Cell::Null | Cell::Text(_) | Cell::Time(_) | Cell::Labels(_)) | None => 0,
        }
    }

    /// The text in a cell; empty when missing.
    pub fn text(&self, row: &'a [Cell], column: usize) -> &'a str {
        row.get(column).and_then(Cell::text).unwrap_or("")
    }

    /// The instant in a cell.
    pub fn time(&self, row: &[Cell], column: usize) -> Option<Timestamp> {
        row.get(column).and_then(Cell::time)
    }

    /// The labels in a cell.
    pub fn labels(&self, row: &'a [Cell], column: usize) -> Option<&'a Labels> {
        row.get(column).and_then(Cell::labels)
    }
}
