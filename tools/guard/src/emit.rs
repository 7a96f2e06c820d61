//! From a tree to text. Every name in it comes from the mapping or from this file; every value is a parameter.

use sightline_query::{KEPT_STEP_MS, Order};

use crate::mapping::TIME;
use crate::tree::{Aggregate, Bind, Column, Comparison, Condition, Held, Scalar, Select, level_text};

/// The text of a query.
pub(crate) fn emit(select: &Select) -> String {
    let Select { columns, database, table, prewhere, filters, group_by, order_by, limit } = select;
    let mut text = String::with_capacity(1024);
    text.push_str("SELECT ");
    for (index, expression) in columns.iter().enumerate() {
        comma(index, &mut text);
        column(expression, &mut text);
        text.push_str(" AS ");
        alias(index, &mut text);
    }
    text.push_str(" FROM ");
    text.push_str(database);
    text.push('.');
    text.push_str(table);
    text.push_str(" AS t");
    conditions(" PREWHERE ", prewhere, &mut text);
    conditions(" WHERE ", filters, &mut text);
    for (position, index) in group_by.iter().enumerate() {
        text.push_str(if position == 0 { " GROUP BY " } else { ", " });
        alias(*index, &mut text);
    }
    for (position, (index, order)) in order_by.iter().enumerate() {
        text.push_str(if position == 0 { " ORDER BY " } else { ", " });
        alias(*index, &mut text);
        match order {
            Order::Ascending => {}
            Order::Descending => text.push_str(" DESC"),
        }
    }
    text.push_str(" LIMIT ");
    text.push_str(&limit.to_string());
    text
}

fn comma(index: usize, text: &mut String) {
    if index > 0 {
        text.push_str(", ");
    }
}

fn alias(index: usize, text: &mut String) {
    text.push('a');
    text.push_str(&index.to_string());
}

fn name(column: &str, text: &mut String) {
    text.push_str("t.");
    text.push_str(column);
}

fn bind(Bind { index, ty }: Bind, text: &mut String) {
    text.push_str("{p");
    text.push_str(&index.to_string());
    text.push(':');
    text.push_str(ty.as_sql());
    text.push('}');
}

fn conditions(keyword: &str, list: &[Condition], text: &mut String) {
    for (index, item) in list.iter().enumerate() {
        text.push_str(if index == 0 { keyword } else { " AND " });
        condition(item, text);
    }
}

fn scalar(value: &Scalar, text: &mut String) {
    match value {
        Scalar::Column(column) => name(column, text),
        Scalar::ColumnAsText(column) => call("toString", |text| name(column, text), text),
        Scalar::Label(key) => {
            text.push_str("t.labels[");
            bind(*key, text);
            text.push(']');
        }
        Scalar::KeptStep => step_of(KEPT_STEP_MS, |text| name(TIME, text), text),
    }
}

/// The beginning of the step that a time lies in.
fn step_of(step_ms: u64, time: impl FnOnce(&mut String), text: &mut String) {
    let arguments = |text: &mut String| {
        time(text);
        text.push_str(", toIntervalMillisecond(");
        text.push_str(&step_ms.to_string());
        text.push(')');
    };
    call("toStartOfInterval", arguments, text);
}

fn call(function: &str, arguments: impl FnOnce(&mut String), text: &mut String) {
    text.push_str(function);
    text.push('(');
    arguments(text);
    text.push(')');
}

fn column(expression: &Column, text: &mut String) {
    match expression {
        Column::Plain(value) => scalar(value, text),
        Column::Bucket { step_ms, origin } => {
            // The engine wants an origin of the time's own precision, and a line's time is finer than a window's.
            text.push_str(match origin {
                None => "toStartOfInterval(t.time, toIntervalMillisecond(",
                Some(_) => "toStartOfInterval(toDateTime64(t.time, 3), toIntervalMillisecond(",
            });
            text.push_str(&step_ms.to_string());
            text.push(')');
            if let Some(origin) = origin {
                text.push_str(", ");
                bind(*origin, text);
            }
            text.push(')');
        }
        Column::OfKeptSteps(step_ms) => step_of(*step_ms, |text| scalar(&Scalar::KeptStep, text), text),
        Column::LabelKey => text.push_str("arrayJoin(mapKeys(t.labels))"),
        Column::OpenEnd(sentinel) => {
            text.push_str("nullIf(t.end_time, ");
            bind(*sentinel, text);
            text.push(')');
        }
        Column::Aggregate(aggregate) => self::aggregate(aggregate, text),
    }
}

fn aggregate(aggregate: &Aggregate, text: &mut String) {
    match aggregate {
        Aggregate::Count => text.push_str("count()"),
        Aggregate::Min(column) => call("min", |text| name(column, text), text),
        Aggregate::Max(column) => call("max", |text| name(column, text), text),
        Aggregate::Avg(column) => call("avg", |text| name(column, text), text),
        Aggregate::Sum(column) => call("sum", |text| name(column, text), text),
        Aggregate::Stddev(column) => call("stddevPop", |text| name(column, text), text),
        Aggregate::Quantile(level, column) => {
            text.push_str("quantileExactInclusive(");
            text.push_str(level_text(*level));
            text.push(')');
            call("", |text| name(column, text), text);
        }
        Aggregate::First(column, by) => over("argMin", column, by, text),
        Aggregate::Last(column, by) => over("argMax", column, by, text),
        Aggregate::MinTime(column, by) => {
            text.push_str("argMin(");
            name(by, text);
            text.push_str(", (");
            name(column, text);
            text.push_str(", ");
            name(by, text);
            text.push_str("))");
        }
        Aggregate::MaxTime(column, by) => {
            text.push_str("argMin(");
            name(by, text);
            text.push_str(", (negate(");
            name(column, text);
            text.push_str("), ");
            name(by, text);
            text.push_str("))");
        }
        Aggregate::Rise(column, by) => rise(column, by, text),
        Aggregate::Held(what, column, by) => held(*what, column, by, text),
    }
}

/// The value breaks ties of time, so that the same question has the same answer however the rows lie.
fn over(function: &str, column: &str, by: &str, text: &mut String) {
    let arguments = |text: &mut String| {
        name(column, text);
        text.push_str(", (");
        name(by, text);
        text.push_str(", ");
        name(column, text);
        text.push(')');
    };
    call(function, arguments, text);
}

/// Σ vᵢ · (tᵢ₊₁ − tᵢ) over samples in time order, milliseconds: the last sample stands for no time.
fn held(what: Held, column: &str, by: &str, text: &mut String) {
    let value = |text: &mut String| match what {
        Held::Value => name(column, text),
        Held::Above(threshold) => beyond("greater", column, threshold, text),
        Held::Below(threshold) => beyond("less", column, threshold, text),
    };
    let sorted = |part: &str, text: &mut String| {
        text.push_str("tupleElement(arraySort(groupArray((toUnixTimestamp64Milli(");
        name(by, text);
        text.push_str("), ");
        value(text);
        text.push_str("))), ");
        text.push_str(part);
        text.push(')');
    };
    text.push_str("arrayDotProduct(arrayPopBack(");
    sorted("2", text);
    text.push_str("), arrayPopFront(arrayDifference(");
    sorted("1", text);
    text.push_str(")))");
}

fn beyond(function: &str, column: &str, threshold: Bind, text: &mut String) {
    text.push_str("toFloat64(");
    text.push_str(function);
    text.push('(');
    name(column, text);
    text.push_str(", ");
    bind(threshold, text);
    text.push_str("))");
}

/// The sum of the positive differences d between neighbours in time, as (Σ|d| + Σd) / 2.
///
/// The engine's own `deltaSumTimestamp` takes no `DateTime64`, and is wrong wherever two threads or parts hold interleaved
/// stretches of a series: half the true rise on two million rows read by four threads, twice it on two overlapping parts.
fn rise(column: &str, by: &str, text: &mut String) {
    let differences = |text: &mut String| {
        text.push_str("arrayDifference(tupleElement(arraySort(groupArray((");
        name(by, text);
        text.push_str(", ");
        name(column, text);
        text.push_str("))), 2))");
    };
    text.push_str("divide(plus(L1Norm(");
    differences(text);
    text.push_str("), arraySum(");
    differences(text);
    text.push_str(")), 2)");
}

fn condition(condition: &Condition, text: &mut String) {
    let infix = |left: &Scalar, operator: &str, right: Bind, text: &mut String| {
        scalar(left, text);
        text.push_str(operator);
        bind(right, text);
    };
    let test = |function: &str, left: &Scalar, right: Bind, text: &mut String| {
        let arguments = |text: &mut String| {
            scalar(left, text);
            text.push_str(", ");
            bind(right, text);
        };
        call(function, arguments, text);
    };
    match condition {
        Condition::Compare(left, comparison, right) => infix(left, operator(*comparison), *right, text),
        Condition::In(left, list) => infix(left, " IN ", *list, text),
        Condition::NotIn(left, list) => infix(left, " NOT IN ", *list, text),
        Condition::PairIn(first, second, list) => {
            text.push('(');
            name(first, text);
            text.push_str(", ");
            name(second, text);
            text.push_str(") IN ");
            bind(*list, text);
        }
        Condition::Contains(left, part) => {
            test("position", left, *part, text);
            text.push_str(" > 0");
        }
        Condition::ContainsFold(left, part) => {
            test("positionCaseInsensitiveUTF8", left, *part, text);
            text.push_str(" > 0");
        }
        Condition::Prefix(left, prefix) => test("startsWith", left, *prefix, text),
        Condition::Regex(left, pattern) => test("match", left, *pattern, text),
        Condition::Present(left) => call("notEmpty", |text| scalar(left, text), text),
        Condition::Absent(left) => call("empty", |text| scalar(left, text), text),
        Condition::Finite(column) => call("isFinite", |text| name(column, text), text),
    }
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => " = ",
        Comparison::NotEqual => " != ",
        Comparison::Less => " < ",
        Comparison::AtMost => " <= ",
        Comparison::Greater => " > ",
        Comparison::AtLeast => " >= ",
    }
}
