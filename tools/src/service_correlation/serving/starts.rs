//! When replicas started: a counter that begins anew, or a replica that was not there before.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_model::rows::Labels;
use sightline_model::{Dim, Entity, EvidenceRow};

use crate::reading::{Table, entity_key};
use crate::tool::{Fetched, ToolError};

/// A replica whose first sample is this much later than the first of all has started since, milliseconds: all begin together where
/// the data begins.
const LATER_MS: i64 = 180_000;

/// A stored series: its replica, its metric's name and its labels.
type Stored<'a> = (Entity, &'a str, Option<&'a Labels>);

/// When a step's first sample was taken, that sample, and the last one.
type Step = (Timestamp, f64, f64);

/// The starts, in order of time: rows with the replica as entity.
///
/// # Errors
/// When a column is missing.
pub(super) fn starts(counter: &Fetched, replica: &[Dim]) -> Result<Vec<EvidenceRow>, ToolError> {
    let table = Table::new(&counter.result);
    let mut columns = Vec::new();
    for dim in replica {
        columns.push((entity_key(dim), table.column(dim.as_str())?));
    }
    let [first, last, first_time] = [table.column("first")?, table.column("last")?, table.column("first_time")?];
    let labels = table.column("labels")?;
    let metric = table.optional("metric");
    let mut steps: BTreeMap<Stored<'_>, Vec<Step>> = BTreeMap::new();
    let mut seen: BTreeMap<Entity, Timestamp> = BTreeMap::new();
    for row in table.rows() {
        let entity: Entity = columns
            .iter()
            .map(|(key, column)| ((*key).to_owned(), table.text(row, *column).to_owned()))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let (Some(at), Some(from), Some(to)) =
            (table.time(row, first_time), table.number(row, first), table.number(row, last))
        else {
            continue;
        };
        let earliest = seen.entry(entity.clone()).or_insert(at);
        *earliest = at.min(*earliest);
        let name = metric.map_or("", |column| table.text(row, column));
        steps.entry((entity, name, table.labels(row, labels))).or_default().push((at, from, to));
    }
    let mut found: BTreeMap<(Timestamp, Entity), ()> = BTreeMap::new();
    let beginning = seen.values().min().copied();
    for (entity, at) in &seen {
        if beginning.is_some_and(|b| at.as_millisecond() - b.as_millisecond() > LATER_MS) {
            found.insert((*at, entity.clone()), ());
        }
    }
    for ((entity, _, _), mut series) in steps {
        series.sort_by_key(|(at, _, _)| *at);
        for pair in series.windows(2) {
            let [(_, _, before), (at, after, _)] = pair else { continue };
            if after < before {
                found.insert((*at, entity.clone()), ());
            }
        }
    }
    let rows = found.into_keys().map(|(at, entity)| EvidenceRow { entity, time: Some(at), ..EvidenceRow::default() });
    Ok(rows.collect())
}
