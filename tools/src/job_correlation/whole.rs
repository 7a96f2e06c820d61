//! What stands still in good health, looked at once over the whole window: whether it did, and the series of one point that says so.

use sightline_model::{Dim, MetricKind, Point, Series};

use crate::reading::{Table, entity_key};
use crate::tool::{Fetched, ToolError};

/// Whether anything moved. A flag or a code that is set is worth a closer look too: since when tells more.
pub(super) fn moved(series: &[Series], kind: MetricKind) -> bool {
    series.iter().flat_map(|s| &s.points).any(|p| match kind {
        MetricKind::State => p.max != 0.0,
        MetricKind::Counter | MetricKind::Gauge | MetricKind::Histogram => p.min != p.max,
    })
}

/// The members, each with one point: its last sample, with the smallest and the largest of the window.
pub(super) fn series(fetched: &Fetched, group_by: &[Dim]) -> Result<Vec<Series>, ToolError> {
    let table = Table::new(&fetched.result);
    let columns: Vec<(String, usize)> = group_by
        .iter()
        .map(|dim| Ok((entity_key(dim).to_owned(), table.column(dim.as_str())?)))
        .collect::<Result<_, ToolError>>()?;
    let [value, min, max, count, at] = [
        table.column("value")?,
        table.column("min")?,
        table.column("max")?,
        table.column("count")?,
        table.column("at")?,
    ];
    let mut found: Vec<Series> = Vec::new();
    for row in table.rows() {
        let (Some(time), Some(last)) = (table.time(row, at), table.number(row, value)) else { continue };
        let (Some(min), Some(max)) = (table.number(row, min), table.number(row, max)) else { continue };
        let entity = columns
            .iter()
            .map(|(key, column)| (key.clone(), table.text(row, *column).to_owned()))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let point = Point { time, value: last, min, max, count: table.count(row, count) };
        found.push(Series { entity, points: vec![point] });
    }
    found.sort_by(|a, b| a.entity.cmp(&b.entity));
    Ok(found)
}
