//! How many series a query may have: counted in what it names before it runs, and in its rows before anybody sees them.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use sightline_model::{Cell, Dim, ResultSet};
use sightline_policies::Limits;
use sightline_query::{MetricPart, Output, Shape, ValidQuery};

use crate::cost::listed;
use crate::refusal::Refusal;

/// Refuses a query that names more series than may come back.
pub(crate) fn check_named(query: &ValidQuery, limits: &Limits) -> Result<(), Refusal> {
    match series_of(query) {
        Some(group_by) => within(named(query, group_by), limits),
        None => Ok(()),
    }
}

/// Refuses a result of more series than the asker may have.
///
/// # Errors
/// With how many there are; of a result that was cut, how many were seen.
pub fn check_result(query: &ValidQuery, result: &ResultSet, limits: &Limits) -> Result<(), Refusal> {
    let Some(group_by) = series_of(query) else { return Ok(()) };
    // Each series has a row at least, so few rows need no counting.
    if count(result.rows.len()) <= limits.max_series {
        return Ok(());
    }
    // Spellings of one metric and the buckets of one histogram are parts of a series, not series.
    let is_spelling = |dim: &Dim| *dim == Dim::Metric && query.metric().is_some();
    let is_bucket =
        |dim: &Dim| query.query().part == MetricPart::Buckets && matches!(dim, Dim::Label(key) if key == "le");
    let tells_apart = |dim: &Dim| group_by.contains(dim) && !is_spelling(dim) && !is_bucket(dim);
    let keys: Vec<usize> = query
        .outputs()
        .iter()
        .enumerate()
        .filter(|(_, column)| matches!(&column.output, Output::Dim(dim) if tells_apart(dim)))
        .map(|(index, _)| index)
        .collect();
    let mut seen: HashSet<Vec<&str>, RandomState> = HashSet::default();
    let mut series = Vec::with_capacity(keys.len());
    for row in &result.rows {
        series.clear();
        series.extend(keys.iter().map(|key| row.get(*key).map_or("", text)));
        // A series has many rows: most are known.
        if !seen.contains(series.as_slice()) {
            seen.insert(series.clone());
        }
    }
    within(count(seen.len()), limits)
}

/// The dimensions that tell the series of a query apart; none where its rows are a list, which `max_result_rows` bounds.
fn series_of(query: &ValidQuery) -> Option<&[Dim]> {
    match &query.query().shape {
        Shape::Series { group_by, .. } | Shape::Samples { group_by, .. } => Some(group_by),
        Shape::Rank { .. } | Shape::Rows { .. } | Shape::Distinct { .. } | Shape::LabelKeys { .. } => None,
    }
}

/// How many series a query surely names: the pairs of its placement, or the longest list of a dimension it groups by.
fn named(query: &ValidQuery, group_by: &[Dim]) -> u64 {
    let pairs = query.placement().map_or(0, |pairs| {
        let by_node = group_by.contains(&Dim::Node);
        let by_gpu = group_by.contains(&Dim::Gpu);
        let keys = pairs.iter().map(|(node, gpu)| (part(by_node, node.as_str()), part(by_gpu, gpu.as_str())));
        if by_node || by_gpu { keys.collect::<HashSet<(&str, &str)>>().len() } else { 0 }
    });
    let lists = group_by.iter().flat_map(|dim| query.filters().iter().filter_map(move |filter| listed(filter, dim)));
    count(lists.chain([pairs]).max().unwrap_or(0))
}

/// A part of a key, empty where it is not asked for.
fn part(wanted: bool, text: &str) -> &str {
    if wanted { text } else { "" }
}

fn within(series: u64, limits: &Limits) -> Result<(), Refusal> {
    if series > limits.max_series {
        return Err(Refusal::TooManySeries { asked: series, limit: limits.max_series });
    }
    Ok(())
}

fn text(cell: &Cell) -> &str {
    match cell {
        Cell::Text(text) => text,
        // A dimension is text, and one that is missing is empty.
        Cell::Null | Cell::Float(_) | Cell::Int(_) | Cell::Time(_) | Cell::Labels(_) => "",
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
