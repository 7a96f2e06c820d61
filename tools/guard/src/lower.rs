//! From a valid query and its scope to the tree and its parameters.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sightline_model::{Aggregation, Dim, TimeRange};
use sightline_policies::RowScope;
use sightline_query::kept::{READ_FROM_MS, is_of_kept_steps};
use sightline_query::{Align, Filter, Held as HeldOutput, KEPT_STEP_MS, Match, Output, Shape, ValidQuery, ValueOp};

use crate::mapping::{
    ColumnType, DURATION, END_TIME, GPU, LABELS, METRIC, MappedTable, NODE, SUBMIT, TENANT, TIME, TimeShape, VALUE,
};
use crate::own::{Narrowed, narrow};
use crate::param::{Param, ParamValue};
use crate::refusal::Refusal;
use crate::tree::{Aggregate, Bind, Column, Comparison, Condition, Held, Scalar, Select};

/// `end_time` of a row that is still open: 2100-01-01T00:00:00Z, in seconds since 1970.
const STILL_OPEN_SECONDS: i64 = 4_102_444_800;

/// The tree of a query, and the parameters it names.
pub(crate) fn lower(
    query: &ValidQuery,
    table: &MappedTable,
    scope: &RowScope,
    window: TimeRange,
) -> Result<(Select, Vec<Param>), Refusal> {
    let Narrowed { window, placement, lists } = narrow(query, scope.own(), window);
    let by_kept_steps = by_kept_steps(query, table, window);
    let mut lowering = Lowering { table, params: Vec::new(), label_keys: Vec::new(), from: None, by_kept_steps };
    let prewhere = lowering.prewhere(query, scope, window, placement);
    let filters = lowering.filters(query, lists)?;
    let columns: Vec<Column> =
        query.outputs().iter().map(|column| lowering.column(&column.output)).collect::<Result<_, _>>()?;
    let group_by = if query.grouped() {
        let keys = query.outputs().iter().enumerate().filter(|(_, column)| !column.output.is_aggregate());
        keys.map(|(index, _)| index).collect()
    } else {
        Vec::new()
    };
    let select = Select {
        columns,
        database: table.database.clone(),
        table: table.table.clone(),
        prewhere,
        filters,
        group_by,
        order_by: query.order().to_vec(),
        // One more than is wanted: if it comes, the result was cut.
        limit: query.limit().saturating_add(1),
    };
    Ok((select, lowering.params))
}

/// The nodes and GPUs of a placement that is all of these GPUs on all of these nodes, as it is where a job has whole nodes: both lists
/// together let the same rows through as the pairs do. Two columns whose texts are stored once are held against lists in two thirds
/// of the time that pairs put together for each row take (measured over 3 million samples).
fn crossed(pairs: &[(String, String)]) -> Option<(Vec<String>, Vec<String>)> {
    let distinct: BTreeSet<&(String, String)> = pairs.iter().collect();
    let nodes: BTreeSet<&String> = distinct.iter().map(|(node, _)| node).collect();
    let gpus: BTreeSet<&String> = distinct.iter().map(|(_, gpu)| gpu).collect();
    let is_whole = !distinct.is_empty() && nodes.len().checked_mul(gpus.len()) == Some(distinct.len());
    let owned = |names: BTreeSet<&String>| names.into_iter().cloned().collect();
    is_whole.then(|| (owned(nodes), owned(gpus)))
}

/// Whether a query asks for nothing that kept steps do not tell: samples combined in a way that is kept, over a window and in steps
/// that are made of whole kept ones. The text means the same either way; by steps it lets the engine read what it has kept.
fn by_kept_steps(query: &ValidQuery, table: &MappedTable, window: TimeRange) -> bool {
    use Aggregation::{Avg, Count, Last, Max, Min};
    let is_long = window.millis() >= READ_FROM_MS;
    let is_kept = match &query.query().shape {
        Shape::Series { step_ms, align: Align::Epoch, aggregation, .. } if is_long => {
            step_ms.is_multiple_of(KEPT_STEP_MS) && matches!(aggregation, Avg | Count | Last | Max | Min)
        }
        // When the extreme was is not kept.
        Shape::Rank { aggregation, .. } if is_long => matches!(aggregation, Avg | Count | Last),
        // What exists is asked of every row, and reads no values.
        Shape::Distinct { .. } => true,
        Shape::Series { .. }
        | Shape::Rank { .. }
        | Shape::Samples { .. }
        | Shape::Rows { .. }
        | Shape::LabelKeys { .. } => false,
    };
    let of_values = query.filters().iter().any(|filter| matches!(filter, Filter::Value { .. }));
    table.value && is_kept && !of_values && is_of_kept_steps(window)
}

struct Lowering<'a> {
    table: &'a MappedTable,
    params: Vec<Param>,
    label_keys: Vec<(String, Bind)>,
    /// The window's start.
    from: Option<Bind>,
    /// Whether time goes by kept steps.
    by_kept_steps: bool,
}

impl Lowering<'_> {
    fn bind(&mut self, value: ParamValue) -> Bind {
        let bind = Bind { index: self.params.len(), ty: value.ty() };
        self.params.push(Param::new(bind.index, value));
        bind
    }

    /// Scope first, then what the sort key can use.
    fn prewhere(
        &mut self,
        query: &ValidQuery,
        scope: &RowScope,
        window: TimeRange,
        placement: Option<Vec<(String, String)>>,
    ) -> Vec<Condition> {
        let column = |name: &str| Scalar::Column(name.to_owned());
        let tenants = self.bind(ParamValue::TextList(scope.tenants().iter().cloned().collect()));
        let mut conditions = vec![Condition::In(column(TENANT), tenants)];
        if let Some(metric) = query.metric() {
            let stored = self.bind(ParamValue::TextList(metric.stored.clone()));
            conditions.push(Condition::In(column(METRIC), stored));
        }
        let from = self.bind(ParamValue::Time(window.from()));
        let to = self.bind(ParamValue::Time(window.to()));
        self.from = Some(from);
        // An interval belongs to every window it overlaps.
        let end_column = match self.table.time {
            TimeShape::Instant => TIME,
            TimeShape::Interval => END_TIME,
        };
        let (begins, ends) = match self.by_kept_steps {
            true => (Scalar::KeptStep, Scalar::KeptStep),
            false => (column(end_column), column(TIME)),
        };
        conditions.push(Condition::Compare(begins, Comparison::AtLeast, from));
        conditions.push(Condition::Compare(ends, Comparison::Less, to));
        let Some(pairs) = placement else { return conditions };
        // The asker's own rows are told by pairs, whatever they are: that is what the check of own rows looks for.
        match crossed(&pairs).filter(|_| scope.own().is_none()) {
            Some((nodes, gpus)) => {
                let nodes = self.bind(ParamValue::TextList(nodes));
                conditions.push(Condition::In(column(NODE), nodes));
                let gpus = self.bind(ParamValue::TextList(gpus));
                conditions.push(Condition::In(column(GPU), gpus));
            }
            None => {
                let pairs = self.bind(ParamValue::PairList(pairs));
                conditions.push(Condition::PairIn(NODE.to_owned(), GPU.to_owned(), pairs));
            }
        }
        conditions
    }

    /// What the asker filters by, then what its own rows are told by.
    fn filters(&mut self, query: &ValidQuery, lists: Vec<(Dim, Vec<String>)>) -> Result<Vec<Condition>, Refusal> {
        let mut conditions = Vec::new();
        for filter in query.filters() {
            let condition = match filter {
                Filter::Dim { dim, matches } => self.dim_filter(dim, matches)?,
                Filter::Value { op, bound } => {
                    let bound = self.bind(ParamValue::Number(*bound));
                    Condition::Compare(Scalar::Column(self.value_column()?), value_comparison(*op), bound)
                }
            };
            conditions.push(condition);
        }
        for (dim, list) in lists {
            let left = self.scalar(&dim)?;
            let list = self.bind(ParamValue::TextList(list));
            conditions.push(Condition::In(left, list));
        }
        // A NaN is no sample. What exists is asked of every row, and reads no values.
        let reads_samples = match query.query().shape {
            Shape::Series { .. } | Shape::Samples { .. } | Shape::Rank { .. } | Shape::Rows { .. } => true,
            Shape::Distinct { .. } | Shape::LabelKeys { .. } => false,
        };
        if self.table.value && reads_samples {
            conditions.push(Condition::Finite(self.value_column()?));
        }
        Ok(conditions)
    }

    fn dim_filter(&mut self, dim: &Dim, matches: &Match) -> Result<Condition, Refusal> {
        let left = self.scalar(dim)?;
        let text = |text: &String| ParamValue::Text(text.clone());
        let list = |texts: &Vec<String>| ParamValue::TextList(texts.clone());
        let condition = match matches {
            Match::Eq(value) => Condition::Compare(left, Comparison::Equal, self.bind(text(value))),
            Match::NotEq(value) => Condition::Compare(left, Comparison::NotEqual, self.bind(text(value))),
            Match::In(values) => Condition::In(left, self.bind(list(values))),
            Match::NotIn(values) => Condition::NotIn(left, self.bind(list(values))),
            Match::Contains(part) => Condition::Contains(left, self.bind(text(part))),
            Match::ContainsFold(part) => Condition::ContainsFold(left, self.bind(text(part))),
            Match::Prefix(prefix) => Condition::Prefix(left, self.bind(text(prefix))),
            Match::Regex(pattern) => Condition::Regex(left, self.bind(text(pattern))),
            Match::Present => Condition::Present(left),
            Match::Absent => Condition::Absent(left),
        };
        Ok(condition)
    }

    fn scalar(&mut self, dim: &Dim) -> Result<Scalar, Refusal> {
        if let Some((column, ty)) = self.table.column(dim) {
            return Ok(match ty {
                ColumnType::Text => Scalar::Column(column.to_owned()),
                ColumnType::Integer => Scalar::ColumnAsText(column.to_owned()),
            });
        }
        if !self.table.labels {
            return Err(self.unmapped(dim.as_str()));
        }
        let key = dim.as_str();
        if let Some((_, bind)) = self.label_keys.iter().find(|(known, _)| known == key) {
            return Ok(Scalar::Label(*bind));
        }
        let bind = self.bind(ParamValue::Text(key.to_owned()));
        self.label_keys.push((key.to_owned(), bind));
        Ok(Scalar::Label(bind))
    }

    fn column(&mut self, output: &Output) -> Result<Column, Refusal> {
        let plain = |name: &str| Column::Plain(Scalar::Column(name.to_owned()));
        let table = self.table;
        let having = |has: bool, name: &str| if has { Ok(plain(name)) } else { Err(self.unmapped(name)) };
        let value = self.value_column();
        let time = || TIME.to_owned();
        Ok(match output {
            Output::Bucket { step_ms, .. } if self.by_kept_steps => Column::OfKeptSteps(*step_ms),
            Output::Bucket { step_ms, align } => Column::Bucket {
                step_ms: *step_ms,
                origin: match align {
                    Align::Epoch => None,
                    Align::Window => self.from,
                },
            },
            Output::Dim(dim) => Column::Plain(self.scalar(dim)?),
            Output::Labels => having(table.labels, LABELS)?,
            Output::LabelKey if table.labels => Column::LabelKey,
            Output::LabelKey => return Err(self.unmapped(LABELS)),
            Output::Time => plain(TIME),
            Output::EndTime => match table.time {
                TimeShape::Instant => return Err(self.unmapped(END_TIME)),
                TimeShape::Interval => Column::OpenEnd(self.bind(ParamValue::Time(still_open()))),
            },
            Output::SubmitTime => having(table.submit, SUBMIT)?,
            Output::DurationMicros => having(table.duration, DURATION)?,
            Output::Value => Column::Plain(Scalar::Column(value?)),
            Output::Count => Column::Aggregate(Aggregate::Count),
            Output::Min => Column::Aggregate(Aggregate::Min(value?)),
            Output::Max => Column::Aggregate(Aggregate::Max(value?)),
            Output::Avg => Column::Aggregate(Aggregate::Avg(value?)),
            Output::Sum => Column::Aggregate(Aggregate::Sum(value?)),
            Output::Stddev => Column::Aggregate(Aggregate::Stddev(value?)),
            Output::Quantile(level) => Column::Aggregate(Aggregate::Quantile(*level, value?)),
            Output::First => Column::Aggregate(Aggregate::First(value?, time())),
            Output::Last => Column::Aggregate(Aggregate::Last(value?, time())),
            Output::Rise => Column::Aggregate(Aggregate::Rise(value?, time())),
            Output::Held(what) => {
                let threshold = |value: f64| ParamValue::Number(value);
                let what = match what {
                    HeldOutput::Value => Held::Value,
                    HeldOutput::Above(value) => Held::Above(self.bind(threshold(*value))),
                    HeldOutput::Below(value) => Held::Below(self.bind(threshold(*value))),
                };
                Column::Aggregate(Aggregate::Held(what, value?, time()))
            }
            Output::MinTime => Column::Aggregate(Aggregate::MinTime(value?, time())),
            Output::MaxTime => Column::Aggregate(Aggregate::MaxTime(value?, time())),
            Output::FirstTime => Column::Aggregate(Aggregate::Min(time())),
            Output::LastTime => Column::Aggregate(Aggregate::Max(time())),
        })
    }

    /// What is aggregated: a sample, or a span's duration.
    fn value_column(&self) -> Result<String, Refusal> {
        match self.table.measured() {
            Some(column) => Ok(column.to_owned()),
            None => Err(self.unmapped(VALUE)),
        }
    }

    fn unmapped(&self, what: &str) -> Refusal {
        Refusal::Unmapped { dataset: self.table.dataset, what: what.to_owned() }
    }
}

/// The end of a row that is still open.
fn still_open() -> Timestamp {
    Timestamp::constant(STILL_OPEN_SECONDS, 0)
}

fn value_comparison(op: ValueOp) -> Comparison {
    match op {
        ValueOp::Above => Comparison::Greater,
        ValueOp::Below => Comparison::Less,
        ValueOp::AtLeast => Comparison::AtLeast,
        ValueOp::AtMost => Comparison::AtMost,
        ValueOp::Equal => Comparison::Equal,
        ValueOp::NotEqual => Comparison::NotEqual,
    }
}
