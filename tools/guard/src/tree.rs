//! The one shape of query there is, as a tree. The emitter prints it, the checker reads text back into it, and the two trees are
//! compared. Closed: what has no place here cannot be said.

use sightline_query::{Order, QuantileLevel};

use crate::param::ParamType;

/// A place where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bind {
    /// Its number: 2 for `p2`.
    pub(crate) index: usize,
    /// Its type.
    pub(crate) ty: ParamType,
}

/// A query: one table, one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Select {
    /// The output columns, `a0` first.
    pub(crate) columns: Vec<Column>,
    /// The table's database.
    pub(crate) database: String,
    /// The table.
    pub(crate) table: String,
    /// Scope, metric, window and placement: what is decided before any other column is read.
    pub(crate) prewhere: Vec<Condition>,
    /// The other conditions.
    pub(crate) filters: Vec<Condition>,
    /// The grouping keys, as indexes of columns.
    pub(crate) group_by: Vec<usize>,
    /// The order, as indexes of columns.
    pub(crate) order_by: Vec<(usize, Order)>,
    /// The most rows.
    pub(crate) limit: u32,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// `t.node`
    Column(String),
    /// `toString(t.rank)`
    ColumnAsText(String),
    /// `t.labels[{p4:String}]`
    Label(Bind),
    /// `toStartOfInterval(t.time, toIntervalMillisecond(300000))`, the beginning of the kept step that a sample lies in
    KeptStep,
}

/// An output column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A value as it is.
    Plain(Scalar),
    /// `toStartOfInterval(t.time, toIntervalMillisecond(60000))`, or, where steps begin at the window's start,
    /// `toStartOfInterval(toDateTime64(t.time, 3), toIntervalMillisecond(60000), {p2:DateTime64(3, 'UTC')})`
    Bucket {
        /// The step.
        step_ms: u64,
        /// Where steps begin, if not at multiples of the step.
        origin: Option<Bind>,
    },
    /// `toStartOfInterval(toStartOfInterval(t.time, toIntervalMillisecond(300000)), toIntervalMillisecond(900000))`: the step of that
    /// length, a multiple of the kept one, that a kept step lies in
    OfKeptSteps(u64),
    /// `arrayJoin(mapKeys(t.labels))`
    LabelKey,
    /// `nullIf(t.end_time, {p4:DateTime64(3, 'UTC')})`
    OpenEnd(Bind),
    /// An aggregate function.
    Aggregate(Aggregate),
}

/// An aggregate function over columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// `count()`
    Count,
    /// `min(t.value)`
    Min(String),
    /// `max(t.value)`
    Max(String),
    /// `avg(t.value)`
    Avg(String),
    /// `sum(t.value)`
    Sum(String),
    /// `stddevPop(t.value)`
    Stddev(String),
    /// `quantileExactInclusive(0.95)(t.value)`
    Quantile(QuantileLevel, String),
    /// `argMin(t.value, (t.time, t.value))`
    First(String, String),
    /// `argMax(t.value, (t.time, t.value))`
    Last(String, String),
    /// `argMin(t.time, (t.value, t.time))`
    MinTime(String, String),
    /// `argMin(t.time, (negate(t.value), t.time))`
    MaxTime(String, String),
    /// `divide(plus(L1Norm(d), arraySum(d)), 2)` over the differences `d` between neighbours in time
    Rise(String, String),
    /// `arrayDotProduct(arrayPopBack(v), arrayPopFront(arrayDifference(m)))` over the values `v` and instants `m` in time order
    Held(Held, String, String),
}

/// What is multiplied by how long it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// `t.value`
    Value,
    /// `toFloat64(greater(t.value, {p4:Float64}))`
    Above(Bind),
    /// `toFloat64(less(t.value, {p4:Float64}))`
    Below(Bind),
}

/// A condition. None of them can raise an error on any row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// `t.node = {p4:String}`
    Compare(Scalar, Comparison, Bind),
    /// `t.node IN {p4:Array(String)}`
    In(Scalar, Bind),
    /// `t.node NOT IN {p4:Array(String)}`
    NotIn(Scalar, Bind),
    /// `(t.node, t.gpu) IN {p4:Array(Tuple(String, String))}`
    PairIn(String, String, Bind),
    /// `position(t.body, {p4:String}) > 0`
    Contains(Scalar, Bind),
    /// `positionCaseInsensitiveUTF8(t.body, {p4:String}) > 0`
    ContainsFold(Scalar, Bind),
    /// `startsWith(t.body, {p4:String})`
    Prefix(Scalar, Bind),
    /// `match(t.body, {p4:String})`
    Regex(Scalar, Bind),
    /// `notEmpty(t.node)`
    Present(Scalar),
    /// `empty(t.node)`
    Absent(Scalar),
    /// `isFinite(t.value)`
    Finite(String),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// How a quantile's level is written.
pub(crate) fn level_text(level: QuantileLevel) -> &'static str {
    match level {
        QuantileLevel::P50 => "0.5",
        QuantileLevel::P90 => "0.9",
        QuantileLevel::P95 => "0.95",
        QuantileLevel::P99 => "0.99",
    }
}
