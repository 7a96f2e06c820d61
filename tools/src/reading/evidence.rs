//! Evidence from what was fetched: what was read, how, and how complete it is.

use std::collections::{BTreeMap, BTreeSet};

use sightline_model::rows::Labels;
use sightline_model::{Aggregation, Coverage, Evidence, EvidenceRow, MetricKind, Read, Series, Stat, Unit};
use sightline_query::{Filter, Match, MetricPart, Shape};

use crate::reading::coverage::coverage;
use crate::reading::group::entity_key;
use crate::reading::stats::{stat, stats};
use crate::reading::table::Table;
use crate::tool::{Fetched, evidence_id};

/// More series than this are not repeated as rows: the answer stays readable, the points are served apart.
const MAX_SERIES_ROWS: usize = 40;

/// What a piece of evidence holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Series.
    Series(Vec<Series>),
    /// Rows of a ranking or a list.
    Rows(Vec<EvidenceRow>),
}

/// The n-th piece of evidence of a tool's output, from one query. What several queries were combined into is the caller's to
/// correct: its unit, aggregation and coverage.
pub fn evidence(fetched: &Fetched, tool: &str, n: usize, content: Content) -> Evidence {
    let query = fetched.query.query();
    let range = query.range;
    let (aggregation, step_ms) = match &query.shape {
        Shape::Series { step_ms, aggregation, .. } => (Some(*aggregation), Some(*step_ms)),
        Shape::Rank { aggregation, .. } => (Some(*aggregation), None),
        Shape::Samples { .. } | Shape::Rows { .. } | Shape::Distinct { .. } | Shape::LabelKeys { .. } => (None, None),
    };
    let (series, rows, coverage) = match content {
        Content::Series(series) => {
            let coverage = coverage(&series, range, step_ms.unwrap_or(0));
            let series = weighed(series, aggregation);
            let rows = mean_rows(&series);
            (series, rows, coverage)
        }
        Content::Rows(rows) => {
            let coverage = seen(&rows, fetched);
            (Vec::new(), rows, coverage)
        }
    };
    let held = if series.is_empty() { rows.len() } else { series.len() } as u64;
    Evidence {
        id: evidence_id(n),
        tool: tool.to_owned(),
        dataset: query.dataset.as_str().to_owned(),
        metric: stored_name(fetched),
        canonical_metric: fetched.query.metric().map(|m| m.canonical.clone()),
        labels: labels(fetched),
        aggregation: aggregation.map(|a| described(a, step_ms)),
        unit: unit(fetched, aggregation),
        from: range.from(),
        to: range.to(),
        step_seconds: step_ms.map(|ms| ms as f64 / 1000.0),
        points: series.iter().map(|s| s.points.len() as u64).sum(),
        stats: stats(&series),
        rows,
        series,
        coverage,
        total: held,
        returned: held,
        truncated: fetched.result.truncated,
        read: fetched.result.read,
        query_id: Some(fetched.result.query_id.clone()),
        sql: Some(fetched.sql.clone()),
        params: fetched.params.clone(),
        entry_id: None,
    }
}

/// Evidence for series that were computed from those of another piece: what was read, and how, stands there.
pub(crate) fn derived(from: &Evidence, n: usize, series: Vec<Series>) -> Evidence {
    let held = series.len() as u64;
    Evidence {
        id: evidence_id(n),
        points: series.iter().map(|s| s.points.len() as u64).sum(),
        stats: stats(&series),
        rows: mean_rows(&series),
        series,
        total: held,
        returned: held,
        read: Read::default(),
        query_id: None,
        sql: None,
        params: BTreeMap::new(),
        ..from.clone()
    }
}

/// The series with what their means weigh each point by. A mean over steps is one over samples, so a step weighs by how many it
/// has; but what grows with the number of samples, weighed by it, would count it twice: there each step is one observation.
fn weighed(mut series: Vec<Series>, aggregation: Option<Aggregation>) -> Vec<Series> {
    if matches!(aggregation, Some(Aggregation::Count | Aggregation::Sum)) {
        series.iter_mut().flat_map(|s| &mut s.points).for_each(|point| point.count = 1);
    }
    series
}

/// How an aggregation is written in evidence.
pub(crate) fn described(aggregation: Aggregation, step_ms: Option<u64>) -> String {
    match step_ms {
        Some(ms) => format!("{} per {} s", aggregation.as_str(), ms as f64 / 1000.0),
        None => format!("{} over the window", aggregation.as_str()),
    }
}

/// The unit of a metric's values under an aggregation.
pub(crate) fn unit_of(kind: MetricKind, unit: Unit, aggregation: Aggregation) -> Unit {
    let observations = kind == MetricKind::Histogram;
    match aggregation {
        Aggregation::Count => Unit::Count,
        Aggregation::FractionAbove | Aggregation::FractionBelow => Unit::Ratio,
        Aggregation::Rate if observations => Unit::PerSecond,
        Aggregation::Increase if observations => Unit::Count,
        Aggregation::Rate => unit.per_second(),
        Aggregation::Increase
        | Aggregation::Avg
        | Aggregation::Min
        | Aggregation::Max
        | Aggregation::Sum
        | Aggregation::Last
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99
        | Aggregation::TimeAvg => unit,
    }
}

fn unit(fetched: &Fetched, aggregation: Option<Aggregation>) -> Unit {
    let Some(metric) = fetched.query.metric() else {
        return if aggregation.is_some() { Unit::Count } else { Unit::None };
    };
    let kind = match fetched.query.query().part {
        MetricPart::Buckets | MetricPart::Count => MetricKind::Histogram,
        // A `_sum` grows in the metric's own unit.
        MetricPart::Samples | MetricPart::Sum => metric.kind,
    };
    aggregation.map_or(metric.unit, |a| unit_of(kind, metric.unit, a))
}

fn mean_rows(series: &[Series]) -> Vec<EvidenceRow> {
    if series.len() <= MAX_SERIES_ROWS { series.iter().filter_map(mean_row).collect() } else { Vec::new() }
}

fn mean_row(series: &Series) -> Option<EvidenceRow> {
    let value = stat(series, Stat::Mean)?;
    Some(EvidenceRow { entity: series.entity.clone(), value: Some(value), ..EvidenceRow::default() })
}

fn seen(rows: &[EvidenceRow], fetched: &Fetched) -> Coverage {
    let times = || rows.iter().filter_map(|r| r.time);
    let table = Table::new(&fetched.result);
    let samples = table.optional("count").map(|column| table.rows().map(|row| table.count(row, column)).sum());
    Coverage {
        expected: None,
        seen: samples.unwrap_or(rows.len() as u64),
        first: times().min(),
        last: times().max(),
        gaps: Vec::new(),
    }
}

/// The one stored name that occurs; none when several do.
fn stored_name(fetched: &Fetched) -> Option<String> {
    let stored = &fetched.query.metric()?.stored;
    let table = Table::new(&fetched.result);
    let occurring: BTreeSet<&str> = match table.optional("metric") {
        Some(column) => table.rows().map(|row| table.text(row, column)).filter(|name| !name.is_empty()).collect(),
        None => stored.iter().map(String::as_str).collect(),
    };
    match (occurring.len(), stored.as_slice()) {
        (1, _) => occurring.first().map(|name| (*name).to_owned()),
        (0, [only]) => Some(only.clone()),
        _ => None,
    }
}

/// The filters as labels: plain values for equality, else the condition in words.
fn labels(fetched: &Fetched) -> Labels {
    let mut labels = Labels::new();
    for filter in fetched.query.filters() {
        let (key, text) = match filter {
            Filter::Dim { dim, matches } => (entity_key(dim), condition(matches)),
            Filter::Value { op, bound } => ("value", format!("{op:?} {bound}").to_lowercase()),
        };
        labels
            .entry(key.to_owned())
            .and_modify(|there: &mut String| {
                there.push_str(" and ");
                there.push_str(&text);
            })
            .or_insert(text);
    }
    labels
}

fn condition(matches: &Match) -> String {
    match matches {
        Match::Eq(text) => text.clone(),
        Match::NotEq(text) => format!("not {text}"),
        Match::In(list) => list.join(", "),
        Match::NotIn(list) => format!("not {}", list.join(", ")),
        Match::Contains(text) | Match::ContainsFold(text) => format!("contains {text}"),
        Match::Prefix(text) => format!("begins with {text}"),
        Match::Regex(pattern) => format!("matches {pattern}"),
        Match::Present => "present".to_owned(),
        Match::Absent => "absent".to_owned(),
    }
}
