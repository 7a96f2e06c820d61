//! Arguments that several tools share: windows, filters, dimensions, aggregations. They come from a planner and are untrusted.

use std::borrow::Cow;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_query::schema::dimensions;
use sightline_query::{Align, Filter, Match, Order, SampleOrder, ValueOp};

use crate::tool::ToolError;

/// An instant, RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant(pub Timestamp);

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Timestamp::from_str(&text).map(Self).map_err(|_| {
            de::Error::custom(format!("`{text}` is not a time; write RFC 3339 in UTC, like `2026-05-03T14:00:00Z`"))
        })
    }
}

/// Implements a schema without a description for a value whose place explains it: every planner turn pays for each word.
macro_rules! terse_schema {
    ($name:ty, $schema:expr) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

terse_schema!(Instant, json_schema!({ "type": "string", "format": "date-time" }));
terse_schema!(AggregationArg, {
    let names: Vec<&str> = Aggregation::ALL.into_iter().map(Aggregation::as_str).collect();
    json_schema!({ "type": "string", "enum": names })
});
terse_schema!(OrderArg, json_schema!({ "type": "string", "enum": ["highest", "lowest"] }));
terse_schema!(SampleOrderArg, json_schema!({ "type": "string", "enum": ["time", "latest", "highest", "lowest"] }));
terse_schema!(DatasetArg, json_schema!({ "type": "string", "enum": ["metrics", "logs", "spans", "events", "jobs"] }));
terse_schema!(AlignArg, json_schema!({ "type": "string", "enum": ["epoch", "window"] }));
terse_schema!(FilterOp, json_schema!({ "type": "string", "enum": FilterOp::NAMES }));

/// How samples are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregationArg(pub Aggregation);

impl<'de> Deserialize<'de> for AggregationArg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Aggregation::parse(&text).map(Self).ok_or_else(|| {
            let names: Vec<&str> = Aggregation::ALL.into_iter().map(Aggregation::as_str).collect();
            de::Error::custom(format!("`{text}` is no aggregation; use one of {}", names.join(", ")))
        })
    }
}

/// Which end of a ranking comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderArg {
    /// Largest first.
    #[default]
    Highest,
    /// Smallest first.
    Lowest,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Highest => Self::Descending,
            OrderArg::Lowest => Self::Ascending,
        }
    }
}

/// A dataset with labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatasetArg {
    /// Metric samples.
    Metrics,
    /// Log lines.
    Logs,
    /// Spans of traces.
    Spans,
    /// Events.
    Events,
    /// Jobs.
    Jobs,
}

impl From<DatasetArg> for Dataset {
    fn from(dataset: DatasetArg) -> Self {
        match dataset {
            DatasetArg::Metrics => Self::Metrics,
            DatasetArg::Logs => Self::Logs,
            DatasetArg::Spans => Self::Spans,
            DatasetArg::Events => Self::Events,
            DatasetArg::Jobs => Self::Jobs,
        }
    }
}

/// What samples are listed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleOrderArg {
    /// Earliest first.
    Time,
    /// Latest first.
    Latest,
    /// Largest first.
    Highest,
    /// Smallest first.
    Lowest,
}

impl From<SampleOrderArg> for SampleOrder {
    fn from(order: SampleOrderArg) -> Self {
        match order {
            SampleOrderArg::Time => Self::Time,
            SampleOrderArg::Latest => Self::Latest,
            SampleOrderArg::Highest => Self::Highest,
            SampleOrderArg::Lowest => Self::Lowest,
        }
    }
}

/// Where steps begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlignArg {
    /// At whole multiples of the step since 1970.
    #[default]
    Epoch,
    /// At the window's start.
    Window,
}

impl From<AlignArg> for Align {
    fn from(align: AlignArg) -> Self {
        match align {
            AlignArg::Epoch => Self::Epoch,
            AlignArg::Window => Self::Window,
        }
    }
}

/// How a filter compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterOp {
    /// Equal to one of the values.
    #[default]
    #[serde(alias = "in")]
    Is,
    /// Equal to none of the values.
    #[serde(alias = "not_in")]
    Not,
    /// Contains, without regard to case.
    Contains,
    /// Begins with.
    Prefix,
    /// Matches an RE2 pattern.
    Regex,
    /// Is there.
    Present,
    /// Is missing.
    Absent,
    /// A sample above.
    Gt,
    /// A sample at or above.
    Ge,
    /// A sample below.
    Lt,
    /// A sample at or below.
    Le,
}

impl FilterOp {
    const NAMES: [&'static str; 11] =
        ["is", "not", "contains", "prefix", "regex", "present", "absent", "gt", "ge", "lt", "le"];
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FilterArg {
    /// `node`, `gpu`, `cluster`, `service`, any label, or `value` for the sample.
    pub dim: String,
    /// How it is compared; `is` unless said otherwise.
    #[serde(default)]
    pub op: FilterOp,
    /// With what.
    #[serde(default)]
    pub values: Vec<String>,
}

/// The window of a tool call.
///
/// # Errors
/// When it is empty, reversed, or begins after `as_of`. An end after `as_of` is taken as `as_of`: nothing later was measured.
pub fn window(tool: &'static str, from: Instant, to: Instant, as_of: Timestamp) -> Result<TimeRange, ToolError> {
    let (Instant(from), Instant(to)) = (from, to);
    let fault = |reason: String| ToolError::Arguments { tool, reason };
    if from == to {
        return Err(fault(format!("the window is empty: `from` and `to` are both `{from}`; let `to` be later")));
    }
    if from > to {
        return Err(fault(format!("the window is reversed: `from` `{from}` is after `to` `{to}`; swap them")));
    }
    TimeRange::new(from, to.min(as_of)).ok_or_else(|| {
        fault(format!("the window begins at `{from}`, which is not before now (`{as_of}`); ask about an earlier time"))
    })
}

/// The dimension of a dataset that goes by this name.
pub fn dim(dataset: Dataset, name: &str) -> Dim {
    if name == "job" && dimensions(dataset).contains(&Dim::JobId) {
        return Dim::JobId;
    }
    dimensions(dataset).iter().find(|d| d.as_str() == name).cloned().unwrap_or_else(|| Dim::Label(name.to_owned()))
}

/// The dimensions of a dataset that go by these names, each once.
pub fn dims(dataset: Dataset, names: &[String]) -> Vec<Dim> {
    let mut list: Vec<Dim> = Vec::new();
    for name in names {
        let dim = dim(dataset, name);
        if !list.contains(&dim) {
            list.push(dim);
        }
    }
    list
}

/// The filters of a tool call over a dataset.
///
/// # Errors
/// When a comparison lacks its value, has too many, or compares a sample with something that is no number.
pub fn filters(tool: &'static str, dataset: Dataset, args: &[FilterArg]) -> Result<Vec<Filter>, ToolError> {
    args.iter().map(|arg| filter(dataset, arg).map_err(|reason| ToolError::Arguments { tool, reason })).collect()
}

fn filter(dataset: Dataset, arg: &FilterArg) -> Result<Filter, String> {
    let FilterArg { dim: name, op, values } = arg;
    if name == "value" && dataset == Dataset::Metrics {
        return Ok(Filter::Value { op: value_op(*op)?, bound: number(name, values)? });
    }
    let matches = match op {
        FilterOp::Is => match values.as_slice() {
            [] => return Err(no_value(name)),
            [only] => Match::Eq(only.clone()),
            several => Match::In(several.to_vec()),
        },
        FilterOp::Not => match values.as_slice() {
            [] => return Err(no_value(name)),
            [only] => Match::NotEq(only.clone()),
            several => Match::NotIn(several.to_vec()),
        },
        FilterOp::Contains => Match::ContainsFold(single(name, values)?),
        FilterOp::Prefix => Match::Prefix(single(name, values)?),
        FilterOp::Regex => Match::Regex(single(name, values)?),
        FilterOp::Present | FilterOp::Absent if !values.is_empty() => {
            return Err(format!(
                "the filter on `{name}` asks whether it is there; leave `values` out, or use is or not"
            ));
        }
        FilterOp::Present => Match::Present,
        FilterOp::Absent => Match::Absent,
        FilterOp::Gt | FilterOp::Ge | FilterOp::Lt | FilterOp::Le => {
            return Err(format!("`{name}` is text and cannot be compared by size; only a metric's `value` can"));
        }
    };
    Ok(Filter::Dim { dim: dim(dataset, name), matches })
}

fn no_value(name: &str) -> String {
    format!("the filter on `{name}` names no value; put one into `values`")
}

fn single(name: &str, values: &[String]) -> Result<String, String> {
    match values {
        [only] => Ok(only.clone()),
        [] => Err(no_value(name)),
        several => {
            Err(format!("the filter on `{name}` takes one value here, not {}; use several filters", several.len()))
        }
    }
}

fn value_op(op: FilterOp) -> Result<ValueOp, String> {
    match op {
        FilterOp::Gt => Ok(ValueOp::Above),
        FilterOp::Ge => Ok(ValueOp::AtLeast),
        FilterOp::Lt => Ok(ValueOp::Below),
        FilterOp::Le => Ok(ValueOp::AtMost),
        FilterOp::Is => Ok(ValueOp::Equal),
        FilterOp::Not => Ok(ValueOp::NotEqual),
        FilterOp::Contains | FilterOp::Prefix | FilterOp::Regex | FilterOp::Present | FilterOp::Absent => {
            Err("a sample's `value` is a number; compare it with gt, ge, lt, le, is or not".to_owned())
        }
    }
}

fn number(name: &str, values: &[String]) -> Result<f64, String> {
    let text = single(name, values)?;
    text.parse()
        .ok()
        .filter(|v: &f64| v.is_finite())
        .ok_or_else(|| format!("`{text}` is not a number to compare a value with"))
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
