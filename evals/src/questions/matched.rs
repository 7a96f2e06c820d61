//! Whether the calls and the words of an answer are what a label asks for.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sightline_model::{Answer, Outcome};

use super::labelled::Labelled;
use super::numbers::says_number;

/// How far a window's end may lie from the labelled one.
const NEAR: SignedDuration = SignedDuration::from_secs(1);
/// A diagnosis reads a while before the window that was asked about, so that the change lies inside.
const LEAD: SignedDuration = SignedDuration::from_mins(60);

/// A call that was made.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// What came of a labelled question.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The answer.
    pub answer: &'a Answer,
    /// The answer as text.
    pub text: &'a str,
    /// The calls.
    pub calls: &'a [Call],
    /// The number of the label's own statement.
    pub value: Option<f64>,
}

/// What is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The answer ended otherwise.
    Outcome(String),
    /// No call of these tools was made.
    Tool,
    /// The calls were about another metric.
    Metric,
    /// The calls read another window.
    Time,
    /// The calls were not limited to what was named, or to more.
    Entities,
    /// Another argument is not what the words ask for.
    Arguments(String),
    /// The number is not stated.
    Value(String),
    /// A word or a choice is missing.
    Says(String),
}

/// Everything that is not as the label says; empty where all is right.
pub fn faults(label: &Labelled, given: Given<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let outcome = given.answer.outcome;
    if !label.outcome.contains(&outcome) {
        faults.push(Fault::Outcome(outcome.as_str().to_owned()));
    }
    let text = given.text.to_lowercase();
    for said in &label.says {
        if !text.contains(&said.to_lowercase()) {
            faults.push(Fault::Says(said.clone()));
        }
    }
    for choice in &label.choices {
        let offered = given.answer.choices.iter().any(|candidate| {
            candidate.label.to_lowercase().contains(&choice.to_lowercase())
                || candidate.question.to_lowercase().contains(&choice.to_lowercase())
        });
        if outcome == Outcome::Clarify && !offered {
            faults.push(Fault::Says(choice.clone()));
        }
    }
    // Where the answer may as well be a question back or a refusal, and is one, nothing has to be called.
    let data_due = matches!(outcome, Outcome::Answered | Outcome::NoFault) || label.outcome.len() == 1;
    if !label.tool.is_empty() && data_due && !faults.iter().any(|fault| matches!(fault, Fault::Outcome(_))) {
        faults.extend(closest(label, given.calls));
    }
    if let Some(value) = given.value
        && outcome == Outcome::Answered
        && !says_number(given.text, value, label.unit.as_deref())
    {
        faults.push(Fault::Value(value.to_string()));
    }
    faults
}

/// The faults of the call that comes closest.
fn closest(label: &Labelled, calls: &[Call]) -> Vec<Fault> {
    let of_tool = calls.iter().filter(|call| label.tool.contains(&call.tool));
    of_tool.map(|call| of_call(label, call)).min_by_key(Vec::len).unwrap_or_else(|| vec![Fault::Tool])
}

fn of_call(label: &Labelled, call: &Call) -> Vec<Fault> {
    let mut faults = Vec::new();
    let argument = |name: &str| call.arguments.get(name);
    if !label.metric.is_empty()
        && let Some(metric) = argument("metric").and_then(Value::as_str)
        && !label.metric.iter().any(|id| id == metric)
    {
        faults.push(Fault::Metric);
    }
    if !window_fits(label, call) {
        faults.push(Fault::Time);
    }
    let limited = label.entities.iter().all(|(dim, value)| is_limited(call, dim, value));
    let free = label.absent.iter().all(|dim| !names(call, dim));
    if !limited || !free {
        faults.push(Fault::Entities);
    }
    for (name, wanted) in &label.arguments {
        if !argument_fits(call, name, wanted) {
            faults.push(Fault::Arguments(name.clone()));
        }
    }
    faults
}

fn instant(call: &Call, name: &str) -> Option<Timestamp> {
    call.arguments.get(name)?.as_str()?.parse().ok()
}

fn window_fits(label: &Labelled, call: &Call) -> bool {
    let (from, to) = (instant(call, "from"), instant(call, "to"));
    let near = |wanted: Option<Timestamp>, read: Option<Timestamp>| match (wanted, read) {
        (None, _) => true,
        (Some(wanted), Some(read)) => wanted.duration_since(read).abs() <= NEAR,
        (Some(_), None) => false,
    };
    if near(label.from, from) && near(label.to, to) {
        return true;
    }
    // A diagnosis may read more than was asked about, as long as it reads that.
    let diagnoses = matches!(call.tool.as_str(), "job_correlation" | "service_correlation");
    let (Some(wanted), Some(read)) = (label.from, from) else { return false };
    let covers = read <= wanted && wanted.duration_since(read) <= LEAD;
    let ends = label.to.is_none_or(|wanted| to.is_none_or(|read| read >= wanted));
    diagnoses && covers && ends
}

/// The filters of a call: dimension and values.
fn filters(call: &Call) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let list = ["filters", "base_filters"].into_iter().filter_map(|name| call.arguments.get(name)?.as_array());
    list.flatten().filter_map(|filter| {
        let dim = filter.get("dim")?.as_str()?;
        let values = filter
            .get("values")
            .and_then(Value::as_array)
            .map(|values| values.iter().filter_map(Value::as_str).collect());
        Some((dim, values.unwrap_or_default()))
    })
}

fn is_limited(call: &Call, dim: &str, value: &str) -> bool {
    let same = |text: &str| text.eq_ignore_ascii_case(value);
    let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str).is_some_and(same);
    let aliases: &[&str] = match dim {
        "job" => &["job", "job_id"],
        "service" | "model" => &["service", "model"],
        "state" => &["state"],
        other => {
            return filters(call).any(|(key, values)| key == other && values.iter().any(|text| same(text)))
                || argument("search");
        }
    };
    filters(call).any(|(key, values)| aliases.contains(&key) && values.iter().any(|text| same(text)))
        || argument(dim)
        || argument("search")
}

fn names(call: &Call, dim: &str) -> bool {
    filters(call).any(|(key, _)| key == dim) || (dim == "job" && call.arguments.get("job").is_some())
}

fn argument_fits(call: &Call, name: &str, wanted: &Value) -> bool {
    let own = call.arguments.get(name);
    match name {
        "threshold" => {
            let Some(wanted) = wanted.as_f64() else { return false };
            let stands = |value: &Value| {
                value.as_f64().or_else(|| value.as_str()?.parse().ok()).is_some_and(|n: f64| close(n, wanted))
            };
            let of_filters = call.arguments.get("filters").and_then(Value::as_array).into_iter().flatten();
            let bounds = of_filters
                .filter(|f| f.get("dim").and_then(Value::as_str) == Some("value"))
                .filter_map(|f| f.get("values")?.get(0));
            ["threshold", "above", "below"]
                .iter()
                .filter_map(|name| call.arguments.get(*name))
                .chain(bounds)
                .any(stands)
        }
        "aggregation" => {
            let by_samples = match call.arguments.get("samples").and_then(Value::as_str) {
                Some("highest") => Some("max"),
                Some("lowest") => Some("min"),
                _ => None,
            };
            own.and_then(Value::as_str).or(by_samples) == wanted.as_str()
        }
        "base_from" | "base_to" | "from" | "to" => {
            let wanted: Option<Timestamp> = wanted.as_str().and_then(|text| text.parse().ok());
            wanted.zip(instant(call, name)).is_some_and(|(a, b)| a.duration_since(b).abs() <= NEAR)
        }
        _ => match (own, wanted) {
            (Some(Value::Array(own)), Value::Array(wanted)) => wanted.iter().all(|item| own.contains(item)),
            (Some(Value::Number(own)), Value::Number(wanted)) => {
                own.as_f64().zip(wanted.as_f64()).is_some_and(|(a, b)| close(a, b))
            }
            (Some(Value::String(own)), Value::String(wanted)) => own.to_lowercase().contains(&wanted.to_lowercase()),
            (Some(own), wanted) => own == wanted,
            (None, _) => false,
        },
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}
