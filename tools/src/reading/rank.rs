//! Groups over a whole window, with one value each.

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
}

/// The groups of a [`sightline_query::Shape::Rank`] query in the order of their entities; [`sort_ranked`] ranks them. Groups
/// that differ in what was not asked for are combined as in [`crate::reading::read_series`].
///
/// # Errors
/// When a column is missing.
pub fn read_rank(fetched: &Fetched, group_by: &[Dim], aggregation: Aggregation) -> Result<Vec<Ranked>, ToolError> {
    let table = Table::new(&fetched.result);
    if matches!(aggregation, Aggregation::Rate | Aggregation::Increase) {
        let mut groups: Groups<'_, Option<(f64, u64)>> = Groups::new(&table, group_by)?;
        for (row, steps) in stored_series(fetched, &table, None)? {
            let state = groups.of(row);
            for gain in gains(steps) {
                let (value, count) = state.unwrap_or((0.0, 0));
                *state = Some((value + amount(&gain, aggregation), count + gain.count));
            }
        }
        return Ok(ranked(groups));
    }
    if matches!(aggregation, Aggregation::TimeAvg | Aggregation::FractionAbove | Aggregation::FractionBelow) {
        let groups = held_groups(fetched, &table, group_by, aggregation)?.into_sorted();
        let ranked = |(entity, held): (Entity, Held)| Some(Ranked { entity, value: held.value()?, count: held.count });
        return Ok(groups.into_iter().filter_map(ranked).collect());
    }
    match plain(fetched, &table, group_by, aggregation, combines(aggregation))? {
        Some(ranked) => Ok(ranked),
        None => Ok(plain(fetched, &table, &queried_dims(fetched), aggregation, true)?.unwrap_or_default()),
    }
}

fn plain(
    fetched: &Fetched,
    table: &Table<'_>,
    group_by: &[Dim],
    aggregation: Aggregation,
    may_combine: bool,
) -> Result<Option<Vec<Ranked>>, ToolError> {
    let value = table.column("value")?;
    // Lines and events are counted: their value is their number of rows.
    let count = if fetched.query.metric().is_some() { table.column("count")? } else { value };
    let mut groups: Groups<'_, Option<(f64, u64)>> = Groups::new(table, group_by)?;
    for row in table.rows() {
        let Some(v) = table.number(row, value) else { continue };
        let new = (v, table.count(row, count));
        let state = groups.of(row);
        match state {
            None => *state = Some(new),
            Some(_) if !may_combine => return Ok(None),
            Some(there) => *there = (combined_value(aggregation, *there, new), there.1 + new.1),
        }
    }
    Ok(Some(ranked(groups)))
}

fn ranked(groups: Groups<'_, Option<(f64, u64)>>) -> Vec<Ranked> {
    groups
        .into_sorted()
        .into_iter()
        .filter_map(|(entity, state)| state.map(|(value, count)| Ranked { entity, value, count }))
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
