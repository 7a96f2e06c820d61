//! What a query must be, beyond its grammar: scope first, then metric, window and placement; columns that exist; keys and
//! aggregates apart; a limit.

use std::collections::{BTreeMap, BTreeSet};

use sightline_model::TimeRange;
use sightline_query::kept::is_of_kept_steps;
use sightline_query::{KEPT_STEP_MS, check_pattern};

use crate::check::fault::{Fault, FaultKind};
use crate::mapping::{
    ColumnType, DURATION, END_TIME, GPU, LABELS, METRIC, MappedTable, Mapping, NODE, SUBMIT, TENANT, TIME, TimeShape,
    VALUE,
};
use crate::param::{ParamType, ParamValue};
use crate::tree::{Aggregate, Bind, Column, Comparison, Condition, Held, Scalar, Select};

/// The highest limit: the catalogue's cap, and the one row more that shows a cut.
const MAX_LIMIT: u32 = 1_000_001;

/// The steps there may be, milliseconds: the catalogue's shortest, and a century, longer than any table's rows are kept.
const STEPS_MS: std::ops::RangeInclusive<u64> = 1000..=3_155_760_000_000;

/// What is wrong with the query's shape.
pub(crate) fn shape(select: &Select, mapping: &Mapping) -> Vec<Fault> {
    let Select { columns, database, table, prewhere, filters, group_by, order_by, limit } = select;
    let Some(table) = mapping.named(database, table) else {
        return vec![Fault::new(FaultKind::Relation, format!("`{database}.{table}` is not a mapped table"))];
    };
    let mut rules = Rules { table, faults: Vec::new() };
    let reads_samples = columns.iter().any(reads_value);
    rules.prewhere(prewhere);
    rules.filters(filters, reads_samples);
    let from = window_bind(select, Comparison::AtLeast);
    for column in columns {
        rules.column(column, from);
    }
    rules.grouping(columns, group_by, order_by);
    if *limit == 0 || *limit > MAX_LIMIT {
        rules.fault(FaultKind::Limit, format!("`LIMIT` must be 1 to {MAX_LIMIT}"));
    }
    rules.faults
}

/// What is wrong with the parameters: each that the text names is there, once, of its type, and no other; the scope lies in the
/// asker's; the window is one.
pub(crate) fn parameters(select: &Select, values: &[(&str, &ParamValue)], tenants: &BTreeSet<String>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |kind, what: String| faults.push(Fault::new(kind, what));
    let mut types: BTreeMap<usize, ParamType> = BTreeMap::new();
    for Bind { index, ty } in binds(select) {
        if *types.entry(index).or_insert(ty) != ty {
            fault(FaultKind::Parameter, format!("parameter `p{index}` has two types"));
        }
    }
    for (position, index) in types.keys().enumerate() {
        if position != *index {
            fault(FaultKind::Parameter, format!("parameters must be numbered without gaps; `p{position}` is not used"));
            break;
        }
    }
    let given: BTreeMap<&str, &ParamValue> = values.iter().copied().collect();
    for (index, ty) in &types {
        let name = format!("p{index}");
        match given.get(name.as_str()) {
            Some(value) if value.ty() == *ty => {}
            Some(_) => fault(FaultKind::Parameter, format!("parameter `{name}` is not a {}", ty.as_sql())),
            None => fault(FaultKind::Parameter, format!("parameter `{name}` has no value")),
        }
    }
    if given.len() != values.len() || given.len() != types.len() {
        fault(FaultKind::Parameter, "a parameter is given that the text does not name".to_owned());
    }
    match given.get("p0") {
        Some(ParamValue::TextList(scope)) => {
            if scope.is_empty() {
                fault(FaultKind::Scope, "the list of tenants is empty".to_owned());
            }
            for tenant in scope.iter().filter(|tenant| !tenants.contains(*tenant)) {
                fault(FaultKind::ForeignTenant, format!("tenant `{tenant}` is not in the asker's scope"));
            }
        }
        Some(_) | None => fault(FaultKind::Scope, "`p0` is not the list of tenants".to_owned()),
    }
    let time = |bind: Option<Bind>| bind.and_then(|bind| given.get(format!("p{}", bind.index).as_str()).copied());
    match (time(window_bind(select, Comparison::AtLeast)), time(window_bind(select, Comparison::Less))) {
        (Some(ParamValue::Time(from)), Some(ParamValue::Time(to))) if from < to => {
            // A kept step that only partly lies in the window would bring samples from outside of it.
            if by_kept_steps(select) && !TimeRange::new(*from, *to).is_some_and(is_of_kept_steps) {
                fault(FaultKind::Window, "a window of kept steps must begin and end with one".to_owned());
            }
        }
        _ => fault(FaultKind::Window, "the window's end is not after its start".to_owned()),
    }
    for condition in &select.filters {
        if let Condition::Regex(_, bind) = condition
            && let Some(ParamValue::Text(pattern)) = given.get(format!("p{}", bind.index).as_str())
            && check_pattern(pattern).is_err()
        {
            fault(
                FaultKind::Parameter,
                format!("parameter `p{}` is no regular expression the engine can run", bind.index),
            );
        }
    }
    faults
}

/// Whether the window goes by kept steps.
fn by_kept_steps(select: &Select) -> bool {
    select.prewhere.iter().any(|condition| matches!(condition, Condition::Compare(Scalar::KeptStep, _, _)))
}

/// The parameter of one end of the window.
pub(crate) fn window_bind(select: &Select, end: Comparison) -> Option<Bind> {
    select.prewhere.iter().find_map(|condition| match condition {
        Condition::Compare(_, comparison, bind) if *comparison == end => Some(*bind),
        _ => None,
    })
}

struct Rules<'a> {
    table: &'a MappedTable,
    faults: Vec<Fault>,
}

impl Rules<'_> {
    fn fault(&mut self, kind: FaultKind, what: impl Into<String>) {
        self.faults.push(Fault::new(kind, what));
    }

    /// In this order and no other: tenant, metric, start, end, placement.
    fn prewhere(&mut self, conditions: &[Condition]) {
        let mut rest = conditions;
        let is = |scalar: &Scalar, name: &str| matches!(scalar, Scalar::Column(column) if column == name);
        match rest {
            [Condition::In(left, Bind { index: 0, ty: ParamType::TextList }), tail @ ..] if is(left, TENANT) => {
                rest = tail
            }
            _ => {
                return self.fault(FaultKind::Scope, "`PREWHERE` must begin with `t.tenant IN {p0:Array(String)}`");
            }
        }
        if let [Condition::In(left, Bind { index: _, ty: ParamType::TextList }), tail @ ..] = rest
            && self.table.value
            && is(left, METRIC)
        {
            rest = tail;
        }
        let end_column = match self.table.time {
            TimeShape::Instant => TIME,
            TimeShape::Interval => END_TIME,
        };
        match rest {
            [
                Condition::Compare(from, Comparison::AtLeast, Bind { index: _, ty: ParamType::Time }),
                Condition::Compare(to, Comparison::Less, Bind { index: _, ty: ParamType::Time }),
                tail @ ..,
            ] if (is(from, end_column) && is(to, TIME))
                || (self.table.value && *from == Scalar::KeptStep && *to == Scalar::KeptStep) =>
            {
                rest = tail;
            }
            _ => {
                return self.fault(
                    FaultKind::Window,
                    format!("`PREWHERE` must go on with `t.{end_column} >= …` and `t.{TIME} < …`"),
                );
            }
        }
        match rest {
            [] => {}
            [Condition::PairIn(node, gpu, Bind { index: _, ty: ParamType::PairList })]
                if node == NODE && gpu == GPU && self.is_column(NODE) && self.is_column(GPU) => {}
            // All of these GPUs on all of these nodes.
            [
                Condition::In(node, Bind { index: _, ty: ParamType::TextList }),
                Condition::In(gpu, Bind { index: _, ty: ParamType::TextList }),
            ] if is(node, NODE) && is(gpu, GPU) && self.is_column(NODE) && self.is_column(GPU) => {}
            _ => self.fault(FaultKind::Expression, "`PREWHERE` may end with a placement, and with nothing else"),
        }
    }

    fn filters(&mut self, conditions: &[Condition], reads_samples: bool) {
        let last = conditions.len().saturating_sub(1);
        let is_finite = |condition: &Condition| matches!(condition, Condition::Finite(column) if column == VALUE);
        if reads_samples && !conditions.last().is_some_and(is_finite) {
            self.fault(FaultKind::Expression, "samples are read with `isFinite(t.value)` as the last condition only");
        }
        for (index, condition) in conditions.iter().enumerate() {
            match condition {
                Condition::Compare(left, comparison, bind) => self.comparison(left, *comparison, *bind),
                Condition::In(left, bind) | Condition::NotIn(left, bind) => self.text(left, *bind, ParamType::TextList),
                Condition::Contains(left, bind)
                | Condition::ContainsFold(left, bind)
                | Condition::Prefix(left, bind)
                | Condition::Regex(left, bind) => self.text(left, *bind, ParamType::Text),
                Condition::Present(left) | Condition::Absent(left) => self.text_column(left),
                Condition::PairIn(_, _, _) => self.fault(FaultKind::Expression, "a placement stands in `PREWHERE`"),
                Condition::Finite(_) => {
                    if !(reads_samples && index == last && is_finite(condition)) {
                        self.fault(FaultKind::Expression, "`isFinite` stands last, and over `t.value`");
                    }
                }
            }
        }
    }

    fn comparison(&mut self, left: &Scalar, comparison: Comparison, bind: Bind) {
        let is_value = matches!(left, Scalar::Column(column) if self.is_sample(column));
        if is_value {
            if bind.ty != ParamType::Number {
                self.fault(FaultKind::Parameter, "a sample or duration is compared with a number");
            }
            return;
        }
        match comparison {
            Comparison::Equal | Comparison::NotEqual => self.text(left, bind, ParamType::Text),
            Comparison::Less | Comparison::AtMost | Comparison::Greater | Comparison::AtLeast => {
                self.fault(FaultKind::Expression, "texts are compared with `=` and `!=` only");
            }
        }
    }

    fn text(&mut self, left: &Scalar, bind: Bind, ty: ParamType) {
        self.text_column(left);
        if bind.ty != ty {
            self.fault(FaultKind::Parameter, format!("parameter `p{}` must be a {}", bind.index, ty.as_sql()));
        }
    }

    fn is_column(&self, name: &str) -> bool {
        self.table.column_type(name).is_some()
    }

    /// A dimension as text.
    fn text_column(&mut self, scalar: &Scalar) {
        let fits = match scalar {
            Scalar::Column(column) => self.table.column_type(column) == Some(ColumnType::Text),
            Scalar::ColumnAsText(column) => self.table.column_type(column) == Some(ColumnType::Integer),
            Scalar::Label(key) => self.table.labels && key.ty == ParamType::Text,
            Scalar::KeptStep => false,
        };
        if !fits {
            self.fault(FaultKind::Column, format!("{} is no dimension of the table", say(scalar)));
        }
    }

    fn column(&mut self, column: &Column, from: Option<Bind>) {
        let table = self.table;
        match column {
            Column::Plain(Scalar::Column(name)) => {
                let fits = match name.as_str() {
                    TIME => true,
                    LABELS => table.labels,
                    VALUE => table.value,
                    DURATION => table.duration,
                    SUBMIT => table.submit,
                    other => table.column_type(other) == Some(ColumnType::Text),
                };
                if !fits {
                    self.fault(FaultKind::Column, format!("`t.{name}` is no column to read"));
                }
            }
            Column::Plain(scalar) => self.text_column(scalar),
            Column::Bucket { step_ms, origin } => {
                if !STEPS_MS.contains(step_ms) {
                    self.fault(FaultKind::Literal, "a step is a second or longer");
                }
                if origin.is_some() && *origin != from {
                    self.fault(FaultKind::Parameter, "steps begin at whole multiples or at the window's start");
                }
            }
            Column::OfKeptSteps(step_ms) => {
                if !table.value || !STEPS_MS.contains(step_ms) || !step_ms.is_multiple_of(KEPT_STEP_MS) {
                    self.fault(FaultKind::Literal, "kept steps make steps of whole multiples of theirs");
                }
            }
            Column::LabelKey => {
                if !table.labels {
                    self.fault(FaultKind::Column, "the table has no labels");
                }
            }
            Column::OpenEnd(bind) => {
                if table.time != TimeShape::Interval || bind.ty != ParamType::Time {
                    self.fault(FaultKind::Column, "`t.end_time` is no column to read");
                }
            }
            Column::Aggregate(aggregate) => self.aggregate(aggregate),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        let fits = match aggregate {
            Aggregate::Count => true,
            Aggregate::Min(column) | Aggregate::Max(column) => column == TIME || self.is_sample(column),
            Aggregate::Avg(column)
            | Aggregate::Sum(column)
            | Aggregate::Stddev(column)
            | Aggregate::Quantile(_, column) => self.is_sample(column),
            Aggregate::First(column, by)
            | Aggregate::Last(column, by)
            | Aggregate::MinTime(column, by)
            | Aggregate::MaxTime(column, by)
            | Aggregate::Rise(column, by) => self.is_sample(column) && by == TIME,
            // How long a sample stood is told by milliseconds, which a sample's time has and a line's has not.
            Aggregate::Held(what, column, by) => {
                let in_numbers = match what {
                    Held::Value => true,
                    Held::Above(bind) | Held::Below(bind) => bind.ty == ParamType::Number,
                };
                self.table.value && column == VALUE && by == TIME && in_numbers
            }
        };
        if !fits {
            self.fault(FaultKind::Column, "an aggregate over something that is no sample");
        }
    }

    fn is_sample(&self, column: &str) -> bool {
        self.table.measured() == Some(column)
    }

    /// Keys are exactly the columns that are no aggregates, or there is no aggregate; the order goes by columns, each once.
    fn grouping(&mut self, columns: &[Column], group_by: &[usize], order_by: &[(usize, sightline_query::Order)]) {
        let is_aggregate = |column: &Column| matches!(column, Column::Aggregate(_));
        let grouped = columns.iter().any(is_aggregate);
        let keys: Vec<usize> = if grouped {
            columns.iter().enumerate().filter(|(_, column)| !is_aggregate(column)).map(|(index, _)| index).collect()
        } else {
            Vec::new()
        };
        if columns.is_empty() || group_by != keys.as_slice() {
            self.fault(
                FaultKind::Grouping,
                "the keys of `GROUP BY` must be the columns that are no aggregates, in their order",
            );
        }
        let mut seen = BTreeSet::new();
        let is_order = order_by.iter().all(|(index, _)| *index < columns.len() && seen.insert(*index));
        if !is_order {
            self.fault(FaultKind::Grouping, "`ORDER BY` must name output columns, each once");
        }
        if order_by.is_empty() && !(grouped && keys.is_empty()) {
            self.fault(FaultKind::Grouping, "there is no `ORDER BY`");
        }
    }
}

fn reads_value(column: &Column) -> bool {
    match column {
        Column::Plain(Scalar::Column(name)) => name == VALUE,
        Column::Plain(Scalar::ColumnAsText(_) | Scalar::Label(_) | Scalar::KeptStep)
        | Column::Bucket { step_ms: _, origin: _ }
        | Column::OfKeptSteps(_)
        | Column::LabelKey
        | Column::OpenEnd(_) => false,
        Column::Aggregate(aggregate) => match aggregate {
            Aggregate::Count => false,
            Aggregate::Min(column)
            | Aggregate::Max(column)
            | Aggregate::Avg(column)
            | Aggregate::Sum(column)
            | Aggregate::Stddev(column)
            | Aggregate::Quantile(_, column)
            | Aggregate::First(column, _)
            | Aggregate::Last(column, _)
            | Aggregate::MinTime(column, _)
            | Aggregate::MaxTime(column, _)
            | Aggregate::Rise(column, _)
            | Aggregate::Held(_, column, _) => column == VALUE,
        },
    }
}

fn say(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Column(column) | Scalar::ColumnAsText(column) => format!("`t.{column}`"),
        Scalar::Label(_) => "`t.labels[…]`".to_owned(),
        Scalar::KeptStep => "a step".to_owned(),
    }
}

/// Every place where a parameter stands.
pub(crate) fn binds(select: &Select) -> Vec<Bind> {
    let mut found = Vec::new();
    let scalar = |scalar: &Scalar| match scalar {
        Scalar::Label(key) => Some(*key),
        Scalar::Column(_) | Scalar::ColumnAsText(_) | Scalar::KeptStep => None,
    };
    for column in &select.columns {
        match column {
            Column::Plain(value) => found.extend(scalar(value)),
            Column::OpenEnd(bind) => found.push(*bind),
            Column::Bucket { step_ms: _, origin } => found.extend(*origin),
            Column::Aggregate(Aggregate::Held(Held::Above(bind) | Held::Below(bind), _, _)) => found.push(*bind),
            Column::OfKeptSteps(_) | Column::LabelKey | Column::Aggregate(_) => {}
        }
    }
    for condition in select.prewhere.iter().chain(&select.filters) {
        match condition {
            Condition::Compare(left, _, bind)
            | Condition::In(left, bind)
            | Condition::NotIn(left, bind)
            | Condition::Contains(left, bind)
            | Condition::ContainsFold(left, bind)
            | Condition::Prefix(left, bind)
            | Condition::Regex(left, bind) => {
                found.extend(scalar(left));
                found.push(*bind);
            }
            Condition::PairIn(_, _, bind) => found.push(*bind),
            Condition::Present(left) | Condition::Absent(left) => found.extend(scalar(left)),
            Condition::Finite(_) => {}
        }
    }
    found
}
