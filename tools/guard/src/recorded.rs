//! A query that was recorded, to be run once more: read back by the checker, never sent as it stands in the record.

use std::collections::BTreeMap;
use std::sync::Arc;

use sightline_model::{Column as ResultColumn, ColumnKind, Dataset, TimeRange};

use crate::admit::{Admission, Guard, points, sizes};
use crate::bounds::Bounds;
use crate::check::{self, Fault, Sent};
use crate::cost::row_bytes_at_most;
use crate::emit::emit;
use crate::executable::{ExecutableQuery, tied_keys};
use crate::fence::Fence;
use crate::mapping::{DURATION, END_TIME, LABELS, MappedTable, SUBMIT, TENANT, TIME, TimeShape, VALUE};
use crate::param::{Param, ParamValue};
use crate::refusal::Refusal;
use crate::tree::{Aggregate, Bind, Column, Comparison, Condition, Scalar, Select};

/// What a record says was sent, read back. Guaranteed: the text is one that the guard could have written over these tables, and each
/// parameter is of its type. Whose rows it reads is only held against a scope by [`Guard::readmit`].
#[derive(Clone, Debug)]
pub struct RecordedQuery {
    select: Arc<Select>,
    values: Vec<ParamValue>,
    window: TimeRange,
    dataset: Dataset,
}

impl RecordedQuery {
    /// The dataset it reads.
    pub fn dataset(&self) -> Dataset {
        self.dataset
    }

    /// The window it reads.
    pub fn window(&self) -> TimeRange {
        self.window
    }
}

impl Guard {
    /// Reads a recorded text and the exact texts of its parameters back into what they say.
    ///
    /// # Errors
    /// Everything that is wrong with them; never empty. A record is no reason to trust a text.
    pub fn read_recorded(&self, sql: &str, params: &BTreeMap<String, String>) -> Result<RecordedQuery, Vec<Fault>> {
        let Sent { select, values: named } = check::read_sent(sql, params, self.mapping(), self.passed())?;
        let unreadable = |what: &str| vec![Fault::new(check::FaultKind::Window, what)];
        let table = self
            .mapping()
            .named(&select.database, &select.table)
            .ok_or_else(|| vec![Fault::new(check::FaultKind::Relation, "its table is not mapped")])?;
        let window = window(&select, table, &named).ok_or_else(|| unreadable("the text has no window"))?;
        let values = (0..named.len()).map(|index| named.get(&format!("p{index}")).cloned()).collect::<Option<_>>();
        let values = values.ok_or_else(|| vec![Fault::new(check::FaultKind::Parameter, "a parameter is missing")])?;
        Ok(RecordedQuery { dataset: table.dataset(), select, values, window })
    }

    /// Admits a recorded query for the one who runs it now: its tenants must lie in this decision's, its size in these limits. What
    /// runs is written anew from what the record says.
    ///
    /// # Errors
    /// The first bound that does not hold.
    pub fn readmit(&self, recorded: &RecordedQuery, admission: Admission<'_>) -> Result<ExecutableQuery, Refusal> {
        let RecordedQuery { select, values, window, dataset } = recorded;
        let unmapped = || Refusal::Unmapped { dataset: *dataset, what: "table".to_owned() };
        let table = self.mapping().table(*dataset).ok_or_else(unmapped)?;
        let step_points = select.columns.iter().find_map(|column| match column {
            Column::Bucket { step_ms, origin } => Some(points(*window, *step_ms, origin.is_some())),
            Column::OfKeptSteps(step_ms) => Some(points(*window, *step_ms, false)),
            Column::Plain(_) | Column::LabelKey | Column::OpenEnd(_) | Column::Aggregate(_) => None,
        });
        // The text asks for one row more than a reader gets.
        let row_limit = select.limit.saturating_sub(1);
        let limits = admission.limits;
        if admission.decision.scope().is_some_and(|scope| scope.own().is_some()) {
            let reason = "your rows are narrowed to your own jobs, and a recorded query cannot be narrowed".to_owned();
            return Err(Refusal::Denied { reasons: vec![reason] });
        }
        let tenants = sizes(&admission, *window, table.time == TimeShape::Instant, step_points, row_limit)?;
        let named: Vec<(String, &ParamValue)> =
            values.iter().enumerate().map(|(index, value)| (format!("p{index}"), value)).collect();
        let named: Vec<(&str, &ParamValue)> = named.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        check::scope(select, &named, tenants).map_err(|faults| {
            let foreign = faults.iter().any(|fault| fault.kind() == check::FaultKind::ForeignTenant);
            if foreign {
                Refusal::Denied { reasons: vec!["it read rows of a tenant that is not open to you".to_owned()] }
            } else {
                Refusal::Unverified { faults }
            }
        })?;
        let mapped = self.mapping().tables().iter().map(|t| (t.database(), t.table(), TENANT));
        Ok(ExecutableQuery {
            query_id: admission.query_id,
            sql: emit(select),
            params: values.iter().enumerate().map(|(index, value)| Param::new(index, value.clone())).collect(),
            columns: columns(select),
            tied_keys: tied_keys(select),
            bounds: Bounds::of(limits, admission.bytes_left, select.limit, table.force_primary_key),
            tenants: tenants.clone(),
            database: select.database.clone(),
            tables: vec![select.table.clone()],
            row_limit,
            row_bytes: row_bytes_at_most(*dataset),
            fence: Fence::new(mapped, tenants),
        })
    }
}

/// The window, from the two conditions that every text has.
fn window(select: &Select, table: &MappedTable, named: &BTreeMap<String, ParamValue>) -> Option<TimeRange> {
    let begins = match table.time {
        TimeShape::Instant => TIME,
        TimeShape::Interval => END_TIME,
    };
    let at = |column: &str, comparison: Comparison| {
        select.prewhere.iter().find_map(|condition| match condition {
            Condition::Compare(left, found, Bind { index, .. })
                if *found == comparison
                    && (*left == Scalar::KeptStep || matches!(left, Scalar::Column(name) if name == column)) =>
            {
                match named.get(&format!("p{index}")) {
                    Some(ParamValue::Time(time)) => Some(*time),
                    Some(_) | None => None,
                }
            }
            _ => None,
        })
    };
    TimeRange::new(at(begins, Comparison::AtLeast)?, at(TIME, Comparison::Less)?)
}

/// The columns of its result. Their names are the engine's: nobody interprets them, their rows are compared.
fn columns(select: &Select) -> Vec<ResultColumn> {
    let named = |(index, column)| ResultColumn { name: format!("a{index}"), kind: kind(column) };
    select.columns.iter().enumerate().map(named).collect()
}

fn kind(column: &Column) -> ColumnKind {
    match column {
        Column::Plain(Scalar::Column(name)) => match name.as_str() {
            TIME | END_TIME | SUBMIT => ColumnKind::Time,
            DURATION => ColumnKind::Int,
            VALUE => ColumnKind::Float,
            LABELS => ColumnKind::Labels,
            _ => ColumnKind::Text,
        },
        Column::Plain(Scalar::ColumnAsText(_) | Scalar::Label(_)) | Column::LabelKey => ColumnKind::Text,
        Column::Plain(Scalar::KeptStep) | Column::Bucket { .. } | Column::OfKeptSteps(_) | Column::OpenEnd(_) => {
            ColumnKind::Time
        }
        Column::Aggregate(aggregate) => match aggregate {
            Aggregate::Count => ColumnKind::Int,
            Aggregate::MinTime(..) | Aggregate::MaxTime(..) => ColumnKind::Time,
            Aggregate::Min(of) | Aggregate::Max(of) if of == TIME => ColumnKind::Time,
            Aggregate::Min(_)
            | Aggregate::Max(_)
            | Aggregate::Avg(_)
            | Aggregate::Sum(_)
            | Aggregate::Stddev(_)
            | Aggregate::Quantile(..)
            | Aggregate::First(..)
            | Aggregate::Last(..)
            | Aggregate::Rise(..)
            | Aggregate::Held(..) => ColumnKind::Float,
        },
    }
}
