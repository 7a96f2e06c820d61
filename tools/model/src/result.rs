//! What the engine gives back: typed columns and cells.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::evidence::Read;
use crate::id::QueryId;
use crate::rows::Labels;

/// The kind of a result column. The guard knows it before the query runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// UTF-8 text.
    Text,
    /// A 64-bit float; NaN and infinities arrive as null.
    Float,
    /// A signed or unsigned integer that fits 64 bits.
    Int,
    /// An instant.
    Time,
    /// A map of labels.
    Labels,
}

/// One result column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// What it means to the tool, for example `node`, `bucket`, `max`. Not the SQL alias (that is `a<index>`).
    pub name: String,
    /// Its kind.
    pub kind: ColumnKind,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// No value: not zero.
    Null,
    /// Text. Names come again in row after row; the rows share one copy.
    Text(Arc<str>),
    /// A float, always finite.
    Float(f64),
    /// An integer.
    Int(i64),
    /// An instant.
    Time(Timestamp),
    /// Labels.
    Labels(Labels),
}

impl Cell {
    /// The number in it, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Float(v) => Some(*v),
            Self::Int(v) => Some(*v as f64),
            Self::Null | Self::Text(_) | Self::Time(_) | Self::Labels(_) => None,
        }
    }

    /// The text in it, if it is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(s) => Some(s),
            Self::Null | Self::Float(_) | Self::Int(_) | Self::Time(_) | Self::Labels(_) => None,
        }
    }

    /// The instant in it, if it is one.
    pub fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Time(t) => Some(*t),
            Self::Null | Self::Text(_) | Self::Float(_) | Self::Int(_) | Self::Labels(_) => None,
        }
    }

    /// The labels in it, if it is a map.
    pub fn labels(&self) -> Option<&Labels> {
        match self {
            Self::Labels(l) => Some(l),
            Self::Null | Self::Text(_) | Self::Float(_) | Self::Int(_) | Self::Time(_) => None,
        }
    }
}

/// The rows of one query, with what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultSet {
    /// The columns in order.
    pub columns: Vec<Column>,
    /// The rows; each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// What was read to make it.
    pub read: Read,
    /// The id under which the engine ran it.
    pub query_id: QueryId,
    /// Whether the row limit cut it.
    pub truncated: bool,
}

impl ResultSet {
    /// The index of the column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The cell in that row under the column of that name.
    pub fn cell(&self, row: usize, name: &str) -> Option<&Cell> {
        self.rows.get(row)?.get(self.column(name)?)
    }
}
