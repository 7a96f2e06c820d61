//! What is told by time and not by samples: the mean over time, and the share of time beyond a threshold.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_model::{Cell, Dim, Point, Series};
use sightline_query::{Held as Rule, Output};

use crate::reading::group::Groups;
use crate::reading::table::Table;
use crate::tool::{Fetched, ToolError};

/// What the stored series of a group held in one step, or in the whole window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// Sum over consecutive samples of the earlier one (or 0 or 1) times the milliseconds until the later one.
    sum: f64,
    /// The milliseconds between the first and the last sample, of all stored series together.
    millis: f64,
    /// What single samples say, which stood for no time that is known.
    alone: f64,
    singles: u64,
    /// Samples.
    pub(crate) count: u64,
}

impl Held {
    /// The mean over time. Where no sample has a successor, the mean of the samples: it is all that is known.
    pub(crate) fn value(&self) -> Option<f64> {
        if self.millis > 0.0 {
            return Some(self.sum / self.millis);
        }
        (self.singles > 0).then(|| self.alone / self.singles as f64)
    }
}

/// The series of a `time_avg`, `fraction_above` or `fraction_below`; stored series of a group count by how long they were sampled.
/// A step knows its own samples only: the stretch between the last of one step and the first of the next belongs to neither.
pub(crate) fn held_series(fetched: &Fetched, group_by: &[Dim]) -> Result<Vec<Series>, ToolError> {
    let table = Table::new(&fetched.result);
    let bucket = table.column("bucket")?;
    let columns = Columns::of(fetched, &table)?;
    let mut groups: Groups<'_, BTreeMap<Timestamp, Held>> = Groups::new(&table, group_by)?;
    for row in table.rows() {
        if let Some(at) = table.time(row, bucket) {
            columns.add(&table, row, groups.of(row).entry(at).or_default());
        }
    }
    let point = |(time, held): (Timestamp, Held)| {
        let value = held.value()?;
        Some(Point { time, value, min: value, max: value, count: held.count })
    };
    Ok(groups.into_series(|slots| slots.into_iter().filter_map(point).collect()))
}

/// The groups of a [`sightline_query::Shape::Rank`] query by the same rules, with what each held.
pub(crate) fn held_groups<'a>(
    fetched: &Fetched,
    table: &Table<'a>,
    group_by: &[Dim],
) -> Result<Groups<'a, Held>, ToolError> {
    let columns = Columns::of(fetched, table)?;
    let mut groups: Groups<'a, Held> = Groups::new(table, group_by)?;
    for row in table.rows() {
        columns.add(table, row, groups.of(row));
    }
    Ok(groups)
}

/// What a single sample counts for: the same as the engine was asked to hold it for.
fn single(rule: Rule, value: f64) -> f64 {
    match rule {
        Rule::Value => value,
        Rule::Above(threshold) => f64::from(value > threshold),
        Rule::Below(threshold) => f64::from(value < threshold),
    }
}

struct Columns {
    rule: Rule,
    count: usize,
    min: usize,
    max: usize,
    held: usize,
    first_time: usize,
    last_time: usize,
}

impl Columns {
    fn of(fetched: &Fetched, table: &Table<'_>) -> Result<Self, ToolError> {
        let rule = fetched
            .query
            .outputs()
            .iter()
            .find_map(|c| if let Output::Held(rule) = c.output { Some(rule) } else { None });
        Ok(Self {
            rule: rule.ok_or_else(|| ToolError::Result { tool: "series", column: "held".to_owned() })?,
            count: table.column("count")?,
            min: table.column("min")?,
            max: table.column("max")?,
            held: table.column("held")?,
            first_time: table.column("first_time")?,
            last_time: table.column("last_time")?,
        })
    }

    /// Adds one stored series' step.
    fn add(&self, table: &Table<'_>, row: &[Cell], held: &mut Held) {
        let (Some(first), Some(last)) = (table.time(row, self.first_time), table.time(row, self.last_time)) else {
            return;
        };
        let (Some(sum), Some(min), Some(max)) =
            (table.number(row, self.held), table.number(row, self.min), table.number(row, self.max))
        else {
            return;
        };
        held.count += table.count(row, self.count);
        let millis = (last.as_millisecond() - first.as_millisecond()) as f64;
        if millis > 0.0 {
            held.sum += sum;
            held.millis += millis;
        } else {
            // Several samples of one instant differ only where a series was written twice.
            held.alone += single(self.rule, min.midpoint(max));
            held.singles += 1;
        }
    }
}
