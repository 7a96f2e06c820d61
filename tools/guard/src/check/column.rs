//! Output columns: values, steps, keys and the few aggregates.

use sqlparser::ast::Expr;

use crate::check::expression::{Call, bind, foreign, level_of, name, plain_number, scalar, step_of, unknown_function};
use crate::check::fault::{Fault, FaultKind};
use crate::mapping::TIME;
use crate::tree::{Aggregate, Column, Held, Scalar};

/// An output column.
pub(crate) fn column(expression: &Expr) -> Result<Column, Fault> {
    let Expr::Function(function) = expression else { return Ok(Column::Plain(scalar(expression)?)) };
    let call = Call::of(function)?;
    let aggregate = match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
        ("toString", None, _) => return Ok(Column::Plain(scalar(expression)?)),
        ("toStartOfInterval", None, [time, step])
            if matches!(time, Expr::CompoundIdentifier(_)) && name(time)? == TIME =>
        {
            return Ok(Column::Bucket { step_ms: step_of(step)?, origin: None });
        }
        ("toStartOfInterval", None, [kept, step]) if scalar(kept)? == Scalar::KeptStep => {
            return Ok(Column::OfKeptSteps(step_of(step)?));
        }
        ("toStartOfInterval", None, [time, step, origin]) => {
            match call_of(time, "toDateTime64")?.as_slice() {
                [time, digits] if name(time)? == "time" && plain_number(digits) == Some("3") => {}
                _ => return Err(unknown_function("toDateTime64")),
            }
            return Ok(Column::Bucket { step_ms: step_of(step)?, origin: Some(bind(origin)?) });
        }
        ("arrayJoin", None, [keys]) if name(argument_of(keys, "mapKeys")?)? == "labels" => return Ok(Column::LabelKey),
        ("nullIf", None, [end, sentinel]) if name(end)? == "end_time" => return Ok(Column::OpenEnd(bind(sentinel)?)),
        ("count", None, []) => Aggregate::Count,
        ("min", None, [of]) => Aggregate::Min(name(of)?),
        ("max", None, [of]) => Aggregate::Max(name(of)?),
        ("avg", None, [of]) => Aggregate::Avg(name(of)?),
        ("sum", None, [of]) => Aggregate::Sum(name(of)?),
        ("stddevPop", None, [of]) => Aggregate::Stddev(name(of)?),
        ("quantileExactInclusive", Some([level]), [of]) => Aggregate::Quantile(level_of(level)?, name(of)?),
        ("argMin", None, [of, by]) => earliest(of, by)?,
        ("argMax", None, [of, by]) => latest(of, by)?,
        ("divide", None, [sum, by]) if plain_number(by) == Some("2") => rise(sum)?,
        ("arrayDotProduct", None, [values, lengths]) => held(values, lengths)?,
        (function, _, _) => return Err(unknown_function(function)),
    };
    Ok(Column::Aggregate(aggregate))
}

/// What `argMin` gives: a value by time, or a time by value.
fn earliest(of: &Expr, by: &Expr) -> Result<Aggregate, Fault> {
    let wrong = || Fault::new(FaultKind::Function, "`argMin` goes by a pair of a column and its tie");
    let of = name(of)?;
    let (first, second) = pair(by).ok_or_else(wrong)?;
    let second = name(second)?;
    if let Expr::Function(_) = first {
        let column = name(argument_of(first, "negate")?)?;
        return if second == of { Ok(Aggregate::MaxTime(column, of)) } else { Err(wrong()) };
    }
    let first = name(first)?;
    if second != of {
        return Err(wrong());
    }
    // `argMin(t.value, (t.time, t.value))` and `argMin(t.time, (t.value, t.time))` are of one form.
    Ok(if of == TIME { Aggregate::MinTime(first, of) } else { Aggregate::First(of, first) })
}

fn latest(of: &Expr, by: &Expr) -> Result<Aggregate, Fault> {
    let wrong = || Fault::new(FaultKind::Function, "`argMax` goes by a pair of a column and its tie");
    let of = name(of)?;
    let (first, second) = pair(by).ok_or_else(wrong)?;
    if name(second)? == of { Ok(Aggregate::Last(of, name(first)?)) } else { Err(wrong()) }
}

fn pair(expression: &Expr) -> Option<(&Expr, &Expr)> {
    match expression {
        Expr::Tuple(pair) => match pair.as_slice() {
            [first, second] => Some((first, second)),
            _ => None,
        },
        _ => None,
    }
}

/// The rise in `plus(L1Norm(d), arraySum(d))`.
fn rise(expression: &Expr) -> Result<Aggregate, Fault> {
    let wrong = || Fault::new(FaultKind::Function, "`divide` is part of a rise only");
    let [falls_and_rises, rises_less_falls] = call_of(expression, "plus")?.try_into().map_err(|_| wrong())?;
    let first = differences(falls_and_rises, "L1Norm")?;
    let second = differences(rises_less_falls, "arraySum")?;
    if first != second {
        return Err(wrong());
    }
    let (by, of) = first;
    Ok(Aggregate::Rise(of, by))
}

/// Time and value column in `outer(arrayDifference(tupleElement(arraySort(groupArray((t.time, t.value))), 2)))`.
fn differences(expression: &Expr, outer: &str) -> Result<(String, String), Fault> {
    let values = argument_of(argument_of(expression, outer)?, "arrayDifference")?;
    let (by, of) = sorted_pair(values, "2", outer)?;
    Ok((name(by)?, name(of)?))
}

/// The pair in `tupleElement(arraySort(groupArray((…, …))), n)`.
fn sorted_pair<'a>(expression: &'a Expr, element: &str, outer: &str) -> Result<(&'a Expr, &'a Expr), Fault> {
    let wrong = || Fault::new(FaultKind::Function, format!("`{outer}` is not used as it must be"));
    let sorted = match call_of(expression, "tupleElement")?.as_slice() {
        [sorted, number] if plain_number(number) == Some(element) => *sorted,
        _ => return Err(wrong()),
    };
    pair(argument_of(argument_of(sorted, "arraySort")?, "groupArray")?).ok_or_else(wrong)
}

/// What was held in `arrayDotProduct(arrayPopBack(v), arrayPopFront(arrayDifference(m)))`.
fn held(values: &Expr, lengths: &Expr) -> Result<Aggregate, Fault> {
    let function = "arrayDotProduct";
    let first = sample(sorted_pair(argument_of(values, "arrayPopBack")?, "2", function)?)?;
    let differences = argument_of(lengths, "arrayPopFront")?;
    let second = sample(sorted_pair(argument_of(differences, "arrayDifference")?, "1", function)?)?;
    if first != second {
        return Err(unknown_function(function));
    }
    let (what, of, by) = first;
    Ok(Aggregate::Held(what, of, by))
}

/// What of a sample, which column and at which time, in `(toUnixTimestamp64Milli(t.time), t.value)`.
fn sample((time, value): (&Expr, &Expr)) -> Result<(Held, String, String), Fault> {
    let by = name(argument_of(time, "toUnixTimestamp64Milli")?)?;
    let Expr::Function(_) = value else { return Ok((Held::Value, name(value)?, by)) };
    let Expr::Function(test) = argument_of(value, "toFloat64")? else { return Err(foreign(value)) };
    let call = Call::of(test)?;
    match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
        ("greater", None, [of, threshold]) => Ok((Held::Above(bind(threshold)?), name(of)?, by)),
        ("less", None, [of, threshold]) => Ok((Held::Below(bind(threshold)?), name(of)?, by)),
        (function, _, _) => Err(unknown_function(function)),
    }
}

/// The only argument of a call of that function.
fn argument_of<'a>(expression: &'a Expr, function: &str) -> Result<&'a Expr, Fault> {
    match call_of(expression, function)?.as_slice() {
        [argument] => Ok(*argument),
        _ => Err(unknown_function(function)),
    }
}

/// The arguments of a call of that function.
fn call_of<'a>(expression: &'a Expr, function: &str) -> Result<Vec<&'a Expr>, Fault> {
    let Expr::Function(found) = expression else { return Err(foreign(expression)) };
    let call = Call::of(found)?;
    if call.name == function && call.parameters.is_none() { Ok(call.args) } else { Err(unknown_function(call.name)) }
}
