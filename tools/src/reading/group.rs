//! Rows told apart by dimensions.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sightline_model::{Cell, Dim, Entity, Point, Series};
use sightline_query::{Output, Shape};

use crate::reading::table::Table;
use crate::tool::{Fetched, ToolError};

/// The canonical name under which a dimension stands in an entity.
pub fn entity_key(dim: &Dim) -> &str {
    match dim {
        // People and components say `job`; `job_id` is the column's name.
        Dim::JobId => "job",
        Dim::Tenant
        | Dim::Cluster
        | Dim::Metric
        | Dim::Node
        | Dim::Gpu
        | Dim::Service
        | Dim::Severity
        | Dim::Body
        | Dim::Kind
        | Dim::Name
        | Dim::User
        | Dim::State
        | Dim::GpuUuid
        | Dim::Rank
        | Dim::Attempt
        | Dim::Pod
        | Dim::Operation
        | Dim::TraceId
        | Dim::SpanId
        | Dim::ParentId
        | Dim::Label(_) => dim.as_str(),
    }
}

/// The dimensions a query's rows are told apart by, as far as they were asked for by name.
pub(crate) fn queried_dims(fetched: &Fetched) -> Vec<Dim> {
    match &fetched.query.query().shape {
        Shape::Series { group_by, .. } | Shape::Samples { group_by, .. } | Shape::Rank { group_by, .. } => {
            group_by.clone()
        }
        Shape::Distinct { of, .. } => of.clone(),
        Shape::Rows { .. } | Shape::LabelKeys { .. } => Vec::new(),
    }
}

/// The names of all text columns that tell stored series apart.
pub(crate) fn dimension_columns(fetched: &Fetched) -> Vec<String> {
    fetched.query.outputs().iter().filter(|c| matches!(c.output, Output::Dim(_))).map(|c| c.name.clone()).collect()
}

/// Groups of rows, each with a state that rows are folded into.
pub(crate) struct Groups<'a, S> {
    table: Table<'a>,
    columns: Vec<(String, usize)>,
    index: HashMap<Vec<&'a str>, usize, RandomState>,
    /// The key of the row that is looked at; rows by the hundred thousand share it.
    key: Vec<&'a str>,
    states: Vec<(Entity, S)>,
}

impl<'a, S: Default> Groups<'a, S> {
    /// No groups yet.
    pub(crate) fn new(table: &Table<'a>, group_by: &[Dim]) -> Result<Self, ToolError> {
        let mut columns = Vec::new();
        for dim in group_by {
            columns.push((entity_key(dim).to_owned(), table.column(dim.as_str())?));
        }
        Ok(Self { table: *table, columns, index: HashMap::default(), key: Vec::new(), states: Vec::new() })
    }

    /// The state of the row's group.
    pub(crate) fn of(&mut self, row: &'a [Cell]) -> &mut S {
        self.key.clear();
        self.key.extend(self.columns.iter().map(|(_, column)| self.table.text(row, *column)));
        let at = match self.index.get(self.key.as_slice()) {
            Some(at) => *at,
            None => {
                let next = self.states.len();
                // A dimension without a value says nothing about the group: a node's own metric has no GPU.
                let named = self.columns.iter().zip(&self.key).filter(|(_, value)| !value.is_empty());
                let entity = named.map(|((name, _), value)| (name.clone(), (*value).to_owned())).collect();
                self.states.push((entity, S::default()));
                self.index.insert(self.key.clone(), next);
                next
            }
        };
        // INVARIANT: `at` was pushed above or in an earlier call, and states are never removed.
        #[expect(clippy::indexing_slicing, reason = "the index holds positions of pushed states only")]
        &mut self.states[at].1
    }

    /// The groups in the order of their entities.
    pub(crate) fn into_sorted(self) -> Vec<(Entity, S)> {
        let mut states = self.states;
        states.sort_by(|a, b| a.0.cmp(&b.0));
        states
    }

    /// One series a group, without those that have no point.
    pub(crate) fn into_series(self, points: impl Fn(S) -> Vec<Point>) -> Vec<Series> {
        self.into_sorted()
            .into_iter()
            .map(|(entity, state)| Series { entity, points: points(state) })
            .filter(|series| !series.points.is_empty())
            .collect()
    }
}
