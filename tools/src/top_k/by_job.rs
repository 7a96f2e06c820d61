//! Jobs ranked by what their GPUs measure. Where such samples carry no job, the GPUs of each are read for the time in which it held them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sightline_model::{Dataset, Dim, Entity, Stat, TimeRange};
use sightline_query::catalogue::{EntityLevel, Metric};
use sightline_query::{Align, Filter, MetricPart, Order, Query, Resolution, Shape};

use super::{Asked, NAME, TopKArgs, facts, groups, listed};
use crate::measure::Rows;
use crate::metric_range::{fixed_entity, missing};
use crate::reading::{Ranked, Table, derived, sort_ranked, stat, whole_ms};
use crate::tool::{Fetched, Step, ToolContext, ToolError, ToolOutput};

/// So many jobs are ranked: each is a query of its own.
const MAX_JOBS: usize = 40;

/// A job with its GPUs, and when it held them within the window.
struct Held {
    entity: Entity,
    slots: BTreeSet<(String, String)>,
    from: Timestamp,
    to: Timestamp,
}

/// Whether jobs are ranked by a metric that need not carry one.
pub(super) fn applies(args: &TopKArgs, context: &ToolContext<'_>) -> bool {
    let level = match context.catalogue.resolve(&args.metric) {
        Resolution::Exact(metric) => Some(Metric::entity(metric)),
        Resolution::Ambiguous(_) | Resolution::Unknown { .. } => None,
    };
    args.group_by == ["job"] && args.job.is_none() && matches!(level, Some(EntityLevel::Gpu | EntityLevel::Link))
}

/// First who held what, then what each job's GPUs measured.
pub(super) fn plan(
    asked: &Asked,
    rows: &Rows,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<Step, ToolError> {
    let Some(intervals) = intervals(fetched) else { return Ok(Step::Fetch(vec![holders(rows, context)])) };
    if !reads(fetched).is_empty() {
        return Ok(Step::Done);
    }
    let held = held(intervals, rows, context)?;
    Ok(Step::fetch(held.iter().flat_map(|job| queries(asked, rows, job, context)).collect()))
}

/// The ranking, with every job's own query behind it.
pub(super) fn output(
    args: &TopKArgs,
    asked: &Asked,
    rows: &Rows,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<ToolOutput, ToolError> {
    let Some(intervals) = intervals(fetched) else { return Ok(ToolOutput::default()) };
    let jobs = held(intervals, rows, context)?;
    let read = reads(fetched);
    let mut ranked: Vec<Ranked> = Vec::new();
    let mut pieces = Vec::new();
    // The ranking itself comes first, as E1.
    let mut next = 2;
    for (job, part) in jobs.iter().zip(read.chunks(asked.measure.reads())) {
        let measured = asked.measure.series(part, &[])?;
        let value = measured.series.first().and_then(|series| {
            Some((stat(series, Stat::Mean)?, series.points.iter().map(|point| point.count).sum::<u64>()))
        });
        let mut found = asked.measure.series_evidence(part, &[], measured, NAME, next)?;
        next += found.len();
        for (key, value) in &job.entity {
            found.iter_mut().for_each(|piece| {
                piece.labels.insert(key.clone(), value.clone());
            });
        }
        pieces.extend(found);
        if let Some((value, count)) = value {
            ranked.push(Ranked { entity: job.entity.clone(), value, count, at: None });
        }
    }
    let Some(first) = pieces.first() else {
        return missing(&asked.measure, rows).explain_or_empty(NAME, intervals, &[]);
    };
    let all = ranked.len();
    ranked.retain(|job| args.keeps(job));
    sort_ranked(&mut ranked, args.order.into());
    let mut head = derived(first, 1, Vec::new());
    head.labels = BTreeMap::new();
    asked.measure.label(&mut head);
    head.rows = listed(&asked.measure, &ranked, asked.k);
    head.from = rows.range.from();
    head.to = rows.range.to();
    head.total = ranked.len() as u64;
    head.returned = ranked.len().min(asked.k) as u64;
    head.coverage.seen = ranked.iter().map(|job| job.count).sum();
    head.coverage.gaps.clear();
    let groups = groups::evidence(&head, next, all, &ranked);
    let evidence = std::iter::once(head).chain(pieces).chain(std::iter::once(groups)).collect();
    let fixed = fixed_entity(&rows.filters, None);
    Ok(facts::output(&asked.measure, evidence, &ranked, args.order, &fixed))
}

/// Which jobs held which GPUs in the window, at the places that the filters name.
fn holders(rows: &Rows, context: &ToolContext<'_>) -> Query {
    let of_place = |filter: &&Filter| matches!(filter, Filter::Dim { dim: Dim::Cluster | Dim::Node | Dim::Gpu, .. });
    Query {
        dataset: Dataset::JobGpus,
        metric: None,
        part: MetricPart::Samples,
        range: rows.range,
        filters: rows.filters.iter().filter(of_place).cloned().collect(),
        placement: None,
        threshold: None,
        shape: Shape::Rows { order: Order::Ascending, limit: context.max_rows },
    }
}

fn intervals(fetched: &[Fetched]) -> Option<&Fetched> {
    fetched.iter().find(|f| f.query.dataset() == Dataset::JobGpus)
}

fn reads(fetched: &[Fetched]) -> Vec<&Fetched> {
    fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Series { .. })).collect()
}

fn queries(asked: &Asked, rows: &Rows, job: &Held, context: &ToolContext<'_>) -> Vec<Query> {
    let Some(range) = TimeRange::new(job.from, job.to) else { return Vec::new() };
    let own = Rows { range, filters: rows.filters.clone(), placement: Some(job.slots.iter().cloned().collect()) };
    let whole = whole_ms(range);
    asked.measure.queries(&own, &[], |group_by, aggregation| Shape::Series {
        step_ms: whole,
        align: Align::Window,
        group_by,
        aggregation,
        limit: context.max_rows,
    })
}

fn held(intervals: &Fetched, rows: &Rows, context: &ToolContext<'_>) -> Result<Vec<Held>, ToolError> {
    let cut = |limit: u32| ToolError::Cut {
        what: "the jobs to rank".to_owned(),
        limit,
        narrow: "ask for a shorter window, or for one cluster".to_owned(),
    };
    if intervals.result.truncated {
        return Err(cut(context.max_rows));
    }
    let table = Table::new(&intervals.result);
    let [time, end] = [table.column("time")?, table.column("end")?];
    let mut columns = Vec::new();
    for dim in [Dim::Cluster, Dim::JobId, Dim::Node, Dim::Gpu] {
        columns.push(table.column(dim.as_str())?);
    }
    let mut jobs: BTreeMap<(String, String), Held> = BTreeMap::new();
    for row in table.rows() {
        let texts: Vec<String> = columns.iter().map(|column| table.text(row, *column).to_owned()).collect();
        let [cluster, job, node, gpu] = texts.as_slice() else { continue };
        // Before and after its own time a job's GPUs belong to others.
        let from = table.time(row, time).unwrap_or(rows.range.from()).max(rows.range.from());
        let to = table.time(row, end).unwrap_or(rows.range.to()).min(rows.range.to());
        if from >= to || job.is_empty() {
            continue;
        }
        let named = [("cluster", cluster), ("job", job)].map(|(key, name)| (key.to_owned(), name.clone()));
        let there = jobs.entry((cluster.clone(), job.clone())).or_insert_with(|| Held {
            entity: named.into_iter().filter(|(_, name)| !name.is_empty()).collect(),
            slots: BTreeSet::new(),
            from,
            to,
        });
        there.from = there.from.min(from);
        there.to = there.to.max(to);
        there.slots.insert((node.clone(), gpu.clone()));
    }
    if jobs.len() > MAX_JOBS {
        return Err(cut(u32::try_from(MAX_JOBS).unwrap_or(u32::MAX)));
    }
    Ok(jobs.into_values().collect())
}

#[cfg(test)]
#[path = "by_job_tests.rs"]
mod tests;
