//! Expressions: the few there are.

use sightline_query::{KEPT_STEP_MS, QuantileLevel};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, DictionaryField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, InTarget, ObjectName, ObjectNamePart, Subscript, Value, ValueWithSpan,
};

use crate::check::fault::{Fault, FaultKind};
use crate::check::read::is_plain;
use crate::mapping::TIME;
use crate::param::ParamType;
use crate::tree::{Bind, Comparison, Condition, Scalar, level_text};

/// A chain of conditions joined by AND, without brackets.
pub(crate) fn conditions(expression: &Expr) -> Result<Vec<Condition>, Fault> {
    let mut found = Vec::new();
    let mut rest = expression;
    // The chain leans to the left; its length is capped before parsing.
    while let Expr::BinaryOp { left, op: BinaryOperator::And, right } = rest {
        found.push(condition(right)?);
        rest = left;
    }
    found.push(condition(rest)?);
    found.reverse();
    Ok(found)
}

/// `a3`.
pub(crate) fn alias(expression: &Expr) -> Result<usize, Fault> {
    let wrong = || Fault::new(FaultKind::Expression, "grouping and order go by `a0`, `a1`, …");
    let Expr::Identifier(Ident { value, quote_style: None, span: _ }) = expression else { return Err(wrong()) };
    value.strip_prefix('a').and_then(canonical_index).ok_or_else(wrong)
}

/// The digits of a plain decimal number.
pub(crate) fn plain_number(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::Number(text, false), span: _ })
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// A number without leading zeros.
fn canonical_index(digits: &str) -> Option<usize> {
    let number: usize = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn condition(expression: &Expr) -> Result<Condition, Fault> {
    match expression {
        Expr::BinaryOp { left, op, right } => compare(left, op, right),
        Expr::In { expr, target, negated, global } => member(expr, target, *negated, *global),
        Expr::Function(function) => {
            let call = Call::of(function)?;
            match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
                ("startsWith", None, [left, prefix]) => Ok(Condition::Prefix(scalar(left)?, bind(prefix)?)),
                ("match", None, [left, pattern]) => Ok(Condition::Regex(scalar(left)?, bind(pattern)?)),
                ("notEmpty", None, [left]) => Ok(Condition::Present(scalar(left)?)),
                ("empty", None, [left]) => Ok(Condition::Absent(scalar(left)?)),
                ("isFinite", None, [of]) => Ok(Condition::Finite(name(of)?)),
                (function, _, _) => Err(unknown_function(function)),
            }
        }
        other => Err(foreign(other)),
    }
}

fn compare(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Condition, Fault> {
    if let (Expr::Function(function), BinaryOperator::Gt, Some("0")) = (left, op, plain_number(right)) {
        let call = Call::of(function)?;
        return match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
            ("position", None, [left, part]) => Ok(Condition::Contains(scalar(left)?, bind(part)?)),
            ("positionCaseInsensitiveUTF8", None, [left, part]) => {
                Ok(Condition::ContainsFold(scalar(left)?, bind(part)?))
            }
            (function, _, _) => Err(unknown_function(function)),
        };
    }
    let comparison = match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::AtMost,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::AtLeast,
        other => return Err(Fault::new(FaultKind::Expression, format!("`{other}` is no part of a condition"))),
    };
    Ok(Condition::Compare(scalar(left)?, comparison, bind(right)?))
}

fn member(left: &Expr, target: &InTarget, negated: bool, global: bool) -> Result<Condition, Fault> {
    if global {
        return Err(Fault::new(FaultKind::Clause, "`GLOBAL` is no part of a query"));
    }
    let list = match target {
        InTarget::List(items) => match items.as_slice() {
            [item] => bind(item)?,
            _ => return Err(Fault::new(FaultKind::Literal, "the list behind `IN` must be one parameter")),
        },
        InTarget::Subquery(_) => return Err(Fault::new(FaultKind::Subquery, "a query behind `IN`")),
        InTarget::Unnest(_) => return Err(Fault::new(FaultKind::Expression, "`UNNEST` is no part of a query")),
        InTarget::Table { name: _, args: _ } => {
            return Err(Fault::new(FaultKind::Relation, "a table behind `IN`"));
        }
    };
    match (left, negated) {
        (Expr::Tuple(pair), false) => match pair.as_slice() {
            [first, second] => Ok(Condition::PairIn(name(first)?, name(second)?, list)),
            _ => Err(Fault::new(FaultKind::Expression, "a tuple of other than two columns")),
        },
        (left, false) => Ok(Condition::In(scalar(left)?, list)),
        (left, true) => Ok(Condition::NotIn(scalar(left)?, list)),
    }
}

pub(super) fn scalar(expression: &Expr) -> Result<Scalar, Fault> {
    match expression {
        Expr::CompoundIdentifier(_) => Ok(Scalar::Column(name(expression)?)),
        Expr::Function(function) => {
            let call = Call::of(function)?;
            match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
                ("toString", None, [of]) => Ok(Scalar::ColumnAsText(name(of)?)),
                ("toStartOfInterval", None, [time, step]) if name(time)? == TIME && step_of(step)? == KEPT_STEP_MS => {
                    Ok(Scalar::KeptStep)
                }
                (function, _, _) => Err(unknown_function(function)),
            }
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let wrong = || Fault::new(FaultKind::Expression, "only `t.labels[…]` has a key");
            match (&**root, access_chain.as_slice()) {
                (
                    Expr::Identifier(table),
                    [AccessExpr::Dot(Expr::Identifier(column)), AccessExpr::Subscript(Subscript::Index { index })],
                ) if is_plain(table, "t") && is_plain(column, "labels") => Ok(Scalar::Label(bind(index)?)),
                _ => Err(wrong()),
            }
        }
        other => Err(foreign(other)),
    }
}

/// The column in `t.column`.
pub(super) fn name(expression: &Expr) -> Result<String, Fault> {
    match expression {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, Ident { value, quote_style: None, span: _ }] if is_plain(table, "t") => Ok(value.clone()),
            _ => Err(Fault::new(FaultKind::Column, "a column must be written `t.column`, without quotes")),
        },
        Expr::Identifier(_) => Err(Fault::new(FaultKind::Column, "a column must be written `t.column`")),
        other => Err(foreign(other)),
    }
}

/// The number in `toIntervalMillisecond(60000)`.
pub(super) fn step_of(expression: &Expr) -> Result<u64, Fault> {
    let wrong = || Fault::new(FaultKind::Function, "a step must be written `toIntervalMillisecond(60000)`");
    let Expr::Function(function) = expression else { return Err(wrong()) };
    let call = Call::of(function)?;
    match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
        ("toIntervalMillisecond", None, [number]) => {
            plain_number(number).and_then(|text| text.parse().ok()).filter(|step| *step > 0).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

pub(super) fn level_of(expression: &Expr) -> Result<QuantileLevel, Fault> {
    let text = match expression {
        Expr::Value(ValueWithSpan { value: Value::Number(text, false), span: _ }) => text.as_str(),
        _ => "",
    };
    [QuantileLevel::P50, QuantileLevel::P90, QuantileLevel::P95, QuantileLevel::P99]
        .into_iter()
        .find(|level| level_text(*level) == text)
        .ok_or_else(|| Fault::new(FaultKind::Function, "a quantile of a level that is not offered"))
}

/// `{p0:String}`: a map literal to the parser, of one field with an unquoted key.
pub(super) fn bind(expression: &Expr) -> Result<Bind, Fault> {
    let Expr::Dictionary(fields) = expression else {
        return Err(match expression {
            Expr::Value(_) => Fault::new(FaultKind::Literal, "a value must be a parameter, as in `{p0:String}`"),
            other => foreign(other),
        });
    };
    let wrong = || Fault::new(FaultKind::Parameter, "a parameter must be written as in `{p0:String}`");
    let [DictionaryField { key: Ident { value: key, quote_style: None, span: _ }, value }] = fields.as_slice() else {
        return Err(wrong());
    };
    let index = key.strip_prefix('p').and_then(canonical_index).ok_or_else(wrong)?;
    let ty = param_type(value).ok_or_else(|| {
        Fault::new(FaultKind::Parameter, format!("parameter `p{index}` is of a type that is not on the list"))
    })?;
    Ok(Bind { index, ty })
}

fn param_type(expression: &Expr) -> Option<ParamType> {
    if is_word(expression, "String") {
        return Some(ParamType::Text);
    }
    if is_word(expression, "Float64") {
        return Some(ParamType::Number);
    }
    let Expr::Function(function) = expression else { return None };
    let call = Call::of(function).ok()?;
    match (call.name, call.parameters.as_deref(), call.args.as_slice()) {
        ("Array", None, [of]) if is_word(of, "String") => Some(ParamType::TextList),
        ("Array", None, [Expr::Function(of)]) => {
            let pair = Call::of(of).ok()?;
            match (pair.name, pair.parameters.as_deref(), pair.args.as_slice()) {
                ("Tuple", None, [first, second]) if is_word(first, "String") && is_word(second, "String") => {
                    Some(ParamType::PairList)
                }
                _ => None,
            }
        }
        ("DateTime64", None, [precision, zone]) => {
            let in_utc = matches!(
                zone,
                Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(zone), span: _ }) if zone == "UTC"
            );
            (plain_number(precision) == Some("3") && in_utc).then_some(ParamType::Time)
        }
        _ => None,
    }
}

fn is_word(expression: &Expr, word: &str) -> bool {
    matches!(expression, Expr::Identifier(ident) if is_plain(ident, word))
}

/// A function call with nothing but arguments.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) parameters: Option<Vec<&'a Expr>>,
    pub(super) args: Vec<&'a Expr>,
}

impl<'a> Call<'a> {
    pub(super) fn of(function: &'a Function) -> Result<Self, Fault> {
        let Function { name, uses_odbc_syntax, parameters, args, within_group, filter, null_treatment, over } =
            function;
        let ObjectName(parts) = name;
        let [ObjectNamePart::Identifier(Ident { value: name, quote_style: None, span: _ })] = parts.as_slice() else {
            return Err(Fault::new(FaultKind::Function, "a function with a quoted or compound name"));
        };
        let is_plain = !uses_odbc_syntax
            && within_group.is_empty()
            && filter.is_none()
            && null_treatment.is_none()
            && over.is_none();
        if !is_plain {
            return Err(Fault::new(FaultKind::Function, format!("`{name}` has more than arguments")));
        }
        let parameters = match parameters {
            FunctionArguments::None => None,
            FunctionArguments::List(list) => Some(arguments(name, list)?),
            FunctionArguments::Subquery(_) => return Err(subquery(name)),
        };
        let args = match args {
            FunctionArguments::List(list) => arguments(name, list)?,
            FunctionArguments::None => return Err(unknown_function(name)),
            FunctionArguments::Subquery(_) => return Err(subquery(name)),
        };
        Ok(Self { name, parameters, args })
    }
}

fn arguments<'a>(name: &str, list: &'a FunctionArgumentList) -> Result<Vec<&'a Expr>, Fault> {
    let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
    if duplicate_treatment.is_some() || !clauses.is_empty() {
        return Err(Fault::new(FaultKind::Function, format!("`{name}` has more than arguments")));
    }
    args.iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression),
            FunctionArg::Unnamed(
                FunctionArgExpr::QualifiedWildcard(_)
                | FunctionArgExpr::Wildcard
                | FunctionArgExpr::WildcardWithOptions(_),
            ) => Err(Fault::new(FaultKind::Wildcard, format!("`*` as an argument of `{name}`"))),
            FunctionArg::Named { name: _, arg: _, operator: _ }
            | FunctionArg::ExprNamed { name: _, arg: _, operator: _ } => {
                Err(Fault::new(FaultKind::Function, format!("`{name}` has a named argument")))
            }
        })
        .collect()
}

pub(super) fn unknown_function(name: &str) -> Fault {
    Fault::new(FaultKind::Function, format!("`{name}` is not on the list of functions, or not used as it must be"))
}

fn subquery(name: &str) -> Fault {
    Fault::new(FaultKind::Subquery, format!("a query as the argument of `{name}`"))
}

/// The fault of an expression that has no place where it stands.
pub(super) fn foreign(expression: &Expr) -> Fault {
    match expression {
        Expr::Value(_) => Fault::new(FaultKind::Literal, "a value must be a parameter, as in `{p0:String}`"),
        Expr::Subquery(_) | Expr::Exists { subquery: _, negated: _ } => {
            Fault::new(FaultKind::Subquery, "a query within the query")
        }
        Expr::Identifier(_) => Fault::new(FaultKind::Column, "a column must be written `t.column`"),
        Expr::Wildcard(_) | Expr::QualifiedWildcard(_, _) => Fault::new(FaultKind::Wildcard, "`*` in an expression"),
        Expr::Nested(_) => Fault::new(FaultKind::Expression, "brackets that are not needed"),
        Expr::Dictionary(_) => Fault::new(FaultKind::Parameter, "a parameter where none may stand"),
        // Refused, whatever it is.
        _ => Fault::new(FaultKind::Expression, "an expression that is no part of a query"),
    }
}
