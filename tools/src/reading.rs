//! From the rows of one query to series, rankings and evidence. Every tool reads what was fetched through this module.
//!
//! What is missing stays missing: a step without samples is no point, a counter with one sample has no increase.

mod coverage;
mod evidence;
mod group;
mod growth;
mod held;
mod histogram;
mod rank;
mod stats;
mod table;

pub use coverage::coverage;
pub use evidence::{Content, evidence};
pub(crate) use evidence::{derived, described, unit_of};
pub use group::entity_key;
pub use histogram::{Histogram, histogram_mean, histogram_quantiles, rank_histogram_mean, rank_histogram_quantiles};
pub use rank::{Ranked, read_rank, sort_ranked};
pub use stats::{stat, stats};
pub use table::Table;

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_model::{Aggregation, Dim, Point, Series};
use sightline_query::{Output, Shape};

use crate::tool::{Fetched, ToolError};
use group::Groups;

/// The series in the rows of a [`Shape::Series`] or [`Shape::Samples`] query, told apart by `group_by`, in the order of
/// their entities. Rows of one group and instant are combined where the aggregation allows it (means by their samples); where
/// it does not (a quantile of quantiles is none) the series stay as far apart as the query read them.
///
/// For `rate` and `increase` the growth of every stored series is added up across steps and resets first, then the stored
/// series of a group are summed. For what is told by time, stored series count by how long they were sampled.
///
/// # Errors
/// When a column is missing.
pub fn read_series(fetched: &Fetched, group_by: &[Dim], aggregation: Aggregation) -> Result<Vec<Series>, ToolError> {
    match aggregation {
        Aggregation::Rate | Aggregation::Increase => growth::grown_series(fetched, group_by, aggregation),
        Aggregation::TimeAvg | Aggregation::FractionAbove | Aggregation::FractionBelow => {
            held::held_series(fetched, group_by, aggregation)
        }
        Aggregation::Avg
        | Aggregation::Min
        | Aggregation::Max
        | Aggregation::Sum
        | Aggregation::Count
        | Aggregation::Last
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99 => plain_series(fetched, group_by, aggregation),
    }
}

/// One group's points by instant, each with the number of rows in it.
type Slots = BTreeMap<Timestamp, Point>;

fn plain_series(fetched: &Fetched, group_by: &[Dim], aggregation: Aggregation) -> Result<Vec<Series>, ToolError> {
    let is_samples = matches!(fetched.query.query().shape, Shape::Samples { .. });
    match plain(fetched, group_by, aggregation, is_samples)? {
        Some(series) => Ok(series),
        None => {
            let all = group::queried_dims(fetched);
            Ok(plain(fetched, &all, aggregation, true)?.unwrap_or_default())
        }
    }
}

/// `None` when rows would have to be combined that cannot be.
fn plain(
    fetched: &Fetched,
    group_by: &[Dim],
    aggregation: Aggregation,
    may_combine: bool,
) -> Result<Option<Vec<Series>>, ToolError> {
    let table = Table::new(&fetched.result);
    let is_samples = matches!(fetched.query.query().shape, Shape::Samples { .. });
    let time = table.column(if is_samples { "time" } else { "bucket" })?;
    let value = table.column("value")?;
    // Lines and events are counted: they have no extremes, and their value is their number.
    let has_extremes = fetched.query.outputs().iter().any(|column| column.output == Output::Min);
    let extremes =
        if has_extremes { Some((table.column("min")?, table.column("max")?, table.column("count")?)) } else { None };
    let mut groups: Groups<'_, Slots> = Groups::new(&table, group_by)?;
    for row in table.rows() {
        let (Some(at), Some(v)) = (table.time(row, time), table.number(row, value)) else { continue };
        let (min, max, count) = match extremes {
            None if is_samples => (v, v, 1),
            None => (v, v, table.count(row, value)),
            Some((min, max, count)) if is_on_the_samples_scale(aggregation) => {
                (table.number(row, min).unwrap_or(v), table.number(row, max).unwrap_or(v), table.count(row, count))
            }
            Some((_, _, count)) => (v, v, table.count(row, count)),
        };
        if count == 0 {
            continue;
        }
        let point = Point { time: at, value: v, min, max, count };
        let slots = groups.of(row);
        match slots.get_mut(&at) {
            None => {
                slots.insert(at, point);
            }
            Some(there) => {
                if !may_combine && !combines(aggregation) {
                    return Ok(None);
                }
                *there = combined(*there, point, aggregation);
            }
        }
    }
    Ok(Some(groups.into_series(|slots| slots.into_values().collect())))
}

/// Whether a value lies among the samples it is made of, so that the smallest and the largest of them say how far it is from them.
/// A number of samples, a sum or a spread has no such company: its extremes are its own.
fn is_on_the_samples_scale(aggregation: Aggregation) -> bool {
    match aggregation {
        Aggregation::Avg | Aggregation::Min | Aggregation::Max | Aggregation::Last => true,
        Aggregation::Sum
        | Aggregation::Count
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99
        | Aggregation::Rate
        | Aggregation::Increase
        | Aggregation::TimeAvg
        | Aggregation::FractionAbove
        | Aggregation::FractionBelow => false,
    }
}

/// Whether two groups' values give their union's value.
pub(crate) fn combines(aggregation: Aggregation) -> bool {
    match aggregation {
        Aggregation::Avg
        | Aggregation::Min
        | Aggregation::Max
        | Aggregation::Sum
        | Aggregation::Count
        | Aggregation::Rate
        | Aggregation::Increase => true,
        Aggregation::Last
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99
        | Aggregation::TimeAvg
        | Aggregation::FractionAbove
        | Aggregation::FractionBelow => false,
    }
}

/// The value of two groups together; the mean by samples where nothing better is defined.
pub(crate) fn combined_value(aggregation: Aggregation, left: (f64, u64), right: (f64, u64)) -> f64 {
    match aggregation {
        Aggregation::Min => left.0.min(right.0),
        Aggregation::Max => left.0.max(right.0),
        Aggregation::Sum | Aggregation::Count | Aggregation::Rate | Aggregation::Increase => left.0 + right.0,
        Aggregation::Avg
        | Aggregation::Last
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99
        | Aggregation::TimeAvg
        | Aggregation::FractionAbove
        | Aggregation::FractionBelow => {
            let weight = (left.1 + right.1) as f64;
            if weight > 0.0 { (left.0 * left.1 as f64 + right.0 * right.1 as f64) / weight } else { left.0 }
        }
    }
}

fn combined(left: Point, right: Point, aggregation: Aggregation) -> Point {
    let value = combined_value(aggregation, (left.value, left.count), (right.value, right.count));
    let (min, max) = if is_on_the_samples_scale(aggregation) {
        (left.min.min(right.min), left.max.max(right.max))
    } else {
        (value, value)
    };
    Point { time: left.time, value, min, max, count: left.count + right.count }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
