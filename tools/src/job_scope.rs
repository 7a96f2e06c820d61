//! The rows of one job: which GPUs it held when, asked first, so that what is read follows the job's size.

use std::collections::BTreeSet;

use sightline_model::{Dataset, Dim, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Order, Query, Shape};

use crate::measure::Rows;
use crate::reading::Table;
use crate::tool::{Fetched, ToolContext, ToolError};

/// What is known of a job's place.
#[derive(Clone, Debug)]
pub(crate) enum JobScope {
    /// It has to be asked for first.
    Ask(Box<Query>),
    /// These rows.
    Known(Rows),
    /// No such job held a GPU in the window, as far as the asker may see.
    Unknown,
}

/// The rows to read: those of the job, if one was named, else all that pass the filters.
pub(crate) fn job_scope(
    context: &ToolContext<'_>,
    job: Option<&str>,
    rows: Rows,
    fetched: &[Fetched],
) -> Result<JobScope, ToolError> {
    let Some(job) = job else { return Ok(JobScope::Known(rows)) };
    let Some(intervals) = job_intervals(fetched) else {
        return Ok(JobScope::Ask(Box::new(Query {
            dataset: Dataset::JobGpus,
            metric: None,
            part: MetricPart::Samples,
            range: rows.range,
            filters: vec![Filter::Dim { dim: Dim::JobId, matches: Match::Eq(job.to_owned()) }],
            placement: None,
            threshold: None,
            shape: Shape::Rows { order: Order::Ascending, limit: context.max_rows },
        })));
    };
    if intervals.result.truncated {
        return Err(ToolError::Cut {
            what: format!("the GPUs of job `{job}`"),
            limit: context.max_rows,
            narrow: "ask about a shorter window".to_owned(),
        });
    }
    let table = Table::new(&intervals.result);
    let [time, end, node, gpu] =
        [table.column("time")?, table.column("end")?, table.column("node")?, table.column("gpu")?];
    let mut held = BTreeSet::new();
    let mut from = rows.range.to();
    let mut to = rows.range.from();
    for row in table.rows() {
        held.insert((table.text(row, node).to_owned(), table.text(row, gpu).to_owned()));
        from = from.min(table.time(row, time).unwrap_or(rows.range.from()));
        to = to.max(table.time(row, end).unwrap_or(rows.range.to()));
    }
    // Before and after its own time a job's GPUs belong to others.
    let own = TimeRange::new(from, to).and_then(|own| own.intersect(&rows.range));
    Ok(match own {
        Some(range) if !held.is_empty() => {
            JobScope::Known(Rows { range, filters: rows.filters, placement: Some(held.into_iter().collect()) })
        }
        Some(_) | None => JobScope::Unknown,
    })
}

/// The fetched intervals of the job, once they were asked for.
pub(crate) fn job_intervals(fetched: &[Fetched]) -> Option<&Fetched> {
    fetched.iter().find(|f| f.query.dataset() == Dataset::JobGpus)
}
