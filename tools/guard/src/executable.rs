//! A query that may run.

use std::collections::BTreeSet;

use sightline_model::{Column, QueryId};

use crate::bounds::Bounds;
use crate::fence::Fence;
use crate::param::Param;
use crate::tree::{Column as SelectColumn, Select};

/// A query that may run. Only [`crate::Guard::admit`] makes one, and [`crate::Guard::readmit`] from what was recorded of one.
/// Guaranteed: the text was emitted from a checked query in the one fixed shape, was parsed and found equal to what was meant; it reads one mapped table, rows of [`Self::tenants`] only;
/// every value is a parameter; the bounds are those of the asker.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutableQuery {
    pub(crate) query_id: QueryId,
    pub(crate) sql: String,
    pub(crate) params: Vec<Param>,
    pub(crate) columns: Vec<Column>,
    pub(crate) tied_keys: usize,
    pub(crate) bounds: Bounds,
    pub(crate) tenants: BTreeSet<String>,
    pub(crate) database: String,
    pub(crate) tables: Vec<String>,
    pub(crate) row_limit: u32,
    pub(crate) row_bytes: u64,
    pub(crate) fence: Fence,
}

/// How many keys are left to be ordered by: those of a query by steps that orders by its steps alone.
pub(crate) fn tied_keys(select: &Select) -> usize {
    let is_step = |column: &SelectColumn| matches!(column, SelectColumn::Bucket { .. } | SelectColumn::OfKeptSteps(_));
    match (select.columns.first().is_some_and(is_step), select.order_by.as_slice()) {
        (true, [(0, _)]) if select.group_by.len() > 1 => select.group_by.len(),
        _ => 0,
    }
}

impl ExecutableQuery {
    /// The id under which the engine runs it, and audit and evidence know it.
    pub fn query_id(&self) -> &QueryId {
        &self.query_id
    }

    /// The text: to be sent as it is, without a format or settings clause (those go beside it).
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The parameters, `p0` first.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The result's columns; the engine names them `a0`, `a1`, … in this order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many leading columns are keys that the reader has to order by, where the engine orders by the first of them only: 0 where the
    /// engine's order is the whole order. Rows of one step come by the hundred thousand, and the engine takes three times as long to
    /// put them in order by all of their texts as to make them.
    pub fn tied_keys(&self) -> usize {
        self.tied_keys
    }

    /// The bounds it runs under; [`Bounds::settings`] are the settings to send.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The tenants whose rows it may read.
    pub fn tenants(&self) -> &BTreeSet<String> {
        &self.tenants
    }

    /// The database it reads.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The tables it reads, without the database.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// The most rows a reader gets. The text asks for one more: when that one comes, it is dropped and the result is marked
    /// truncated.
    pub fn row_limit(&self) -> u32 {
        self.row_limit
    }

    /// The bytes that one row of it takes when it is read, about: what makes bytes of an estimate in rows.
    pub fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// The second fence, to be set on the connection.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }
}
