//! Groups over a whole window, with one value each.

use jiff::Timestamp;
use sightline_model::{Aggregation, Dim, Entity};
use sightline_query::Order;

use crate::reading::group::{Groups, queried_dims};
use crate::reading::growth::{amount, gains, stored_series};
use crate::reading::held::{Held, held_groups};
use crate::reading::table::Table;
use crate::reading::{combined_value, combines};
use crate::tool::{Fetched, ToolError};

/// One group of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// What it is about.
    pub entity: Entity,
    /// Its value over the window.
    pub value: f64,
    /// The samples behind it.
    pub count: u64,
    /// When it was sampled, where it is one sample's value (the smallest, the largest, the last).
    pub at: Option<Timestamp>,
}

/// The groups of a [`sightline_query::Shape::Rank`] query in the order of their entities; [`sort_ranked`] ranks them. Groups
/// that differ in what was not asked for are combined as in [`crate::reading::read_series`].
///
/// # Errors
/// When a column is missing.
pub fn read_rank(fetched: &Fetched, group_by: &[Dim], aggregation: Aggregation) -> Result<Vec<Ranked>, ToolError> {
    let table = Table::new(&fetched.result);
    if matches!(aggregation, Aggregation::Rate | Aggregation::Increase) {
        let mut groups: Groups<'_, Option<Value>> = Groups::new(&table, group_by)?;
        for (row, steps) in stored_series(fetched, &table, None)? {
            let state = groups.of(row);
            for gain in gains(steps) {
                let there = state.unwrap_or_default();
                let value = there.value + amount(&gain, aggregation);
                *state = Some(Value { value, count: there.count + gain.count, at: None });
            }
        }
        return Ok(ranked(groups));
    }
    if matches!(aggregation, Aggregation::TimeAvg | Aggregation::FractionAbove | Aggregation::FractionBelow) {
        let groups = held_groups(fetched, &table, group_by)?.into_sorted();
        let ranked =
            |(entity, held): (Entity, Held)| Some(Ranked { entity, value: held.value()?, count: held.count, at: None });
        return Ok(groups.into_iter().filter_map(ranked).collect());
    }
    match plain(&table, group_by, aggregation, combines(aggregation))? {
        Some(ranked) => Ok(ranked),
        None => Ok(plain(&table, &queried_dims(fetched), aggregation, true)?.unwrap_or_default()),
    }
}

fn plain(
    table: &Table<'_>,
    group_by: &[Dim],
    aggregation: Aggregation,
    may_combine: bool,
) -> Result<Option<Vec<Ranked>>, ToolError> {
    let value = table.column("value")?;
    // Lines and events are counted: their value is their number of rows.
    let count = table.optional("count").unwrap_or(value);
    let at = table.optional("at");
    let mut groups: Groups<'_, Option<Value>> = Groups::new(table, group_by)?;
    for row in table.rows() {
        let Some(number) = table.number(row, value) else { continue };
        let at = at.and_then(|column| table.time(row, column));
        let new = Value { value: number, count: table.count(row, count), at };
        let state = groups.of(row);
        match state {
            None => *state = Some(new),
            Some(_) if !may_combine => return Ok(None),
            Some(there) => *there = there.with(new, aggregation),
        }
    }
    Ok(Some(ranked(groups)))
}

/// What a group's rows come to so far.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    value: f64,
    count: u64,
    at: Option<Timestamp>,
}

impl Value {
    fn with(self, other: Self, aggregation: Aggregation) -> Self {
        let value = combined_value(aggregation, (self.value, self.count), (other.value, other.count));
        // The sample that gave the value; of equal ones the earlier.
        let at = [self, other].into_iter().filter(|part| part.value == value).filter_map(|part| part.at).min();
        Self { value, count: self.count + other.count, at }
    }
}

fn ranked(groups: Groups<'_, Option<Value>>) -> Vec<Ranked> {
    groups
        .into_sorted()
        .into_iter()
        .filter_map(|(entity, state)| state.map(|Value { value, count, at }| Ranked { entity, value, count, at }))
        .collect()
}

/// Puts the groups in order of their values, equal ones by entity.
pub fn sort_ranked(ranked: &mut [Ranked], order: Order) {
    ranked.sort_by(|a, b| {
        let by_value = match order {
            Order::Ascending => a.value.total_cmp(&b.value),
            Order::Descending => b.value.total_cmp(&a.value),
        };
        by_value.then_with(|| a.entity.cmp(&b.entity))
    });
}
