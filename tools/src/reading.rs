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

use sightline_model::{Aggregation, Dim, Point, Series, TimeRange};
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
            held::held_series(fetched, group_by)
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

/// The shortest step of a query, milliseconds.
const MIN_STEP_MS: u64 = 1000;

/// The step that takes in a whole window, milliseconds. The window is read between whole milliseconds, both ends cut alike, and its
/// length is of the same ends: a step of finer ones could be too short by one. A query has no step below a second; one that is
/// longer than its window still holds all of it.
pub(crate) fn whole_ms(range: TimeRange) -> u64 {
    let length = range.to().as_millisecond().saturating_sub(range.from().as_millisecond());
    u64::try_from(length).unwrap_or(0).max(MIN_STEP_MS)
}

/// One group's points in the order of time. Rows come in that order, so the next point is nearly always the last.
#[derive(Default)]
struct Slots(Vec<Point>);

impl Slots {
    /// The point of that instant, if there is one; else puts this one in its place.
    fn there_or_put(&mut self, point: Point) -> Option<&mut Point> {
        let points = &mut self.0;
        let at = match points.last() {
            Some(last) if last.time >= point.time => points.binary_search_by_key(&point.time, |p| p.time),
            Some(_) | None => Err(points.len()),
        };
        match at {
            Ok(found) => points.get_mut(found),
            Err(place) => {
                points.insert(place, point);
                None
            }
        }
    }
}

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
            Some((min, max, count)) => {
                (table.number(row, min).unwrap_or(v), table.number(row, max).unwrap_or(v), table.count(row, count))
            }
        };
        if count == 0 {
            continue;
        }
        let point = Point { time: at, value: v, min, max, count };
        let point = if is_of_samples(aggregation) { point } else { level(point) };
        if let Some(there) = groups.of(row).there_or_put(point) {
            if !may_combine && !combines(aggregation) {
                return Ok(None);
            }
            let both = combined(*there, point, aggregation);
            *there = if is_of_samples(aggregation) { both } else { level(both) };
        }
    }
    Ok(Some(groups.into_series(|slots| slots.0)))
}

/// Whether the smallest and the largest sample are extremes of the value: a mean lies between them, a number of samples does not.
fn is_of_samples(aggregation: Aggregation) -> bool {
    match aggregation {
        Aggregation::Avg | Aggregation::Min | Aggregation::Max | Aggregation::Last | Aggregation::TimeAvg => true,
        Aggregation::Sum
        | Aggregation::Count
        | Aggregation::Rate
        | Aggregation::Increase
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99
        | Aggregation::FractionAbove
        | Aggregation::FractionBelow => false,
    }
}

/// A point that has no extremes but its value.
fn level(point: Point) -> Point {
    Point { min: point.value, max: point.value, ..point }
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
    Point {
        time: left.time,
        value: combined_value(aggregation, (left.value, left.count), (right.value, right.count)),
        min: left.min.min(right.min),
        max: left.max.max(right.max),
        count: left.count + right.count,
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
