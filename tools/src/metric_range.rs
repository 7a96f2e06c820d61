//! `metric_range`: one metric over a time range.

mod facts;
pub(crate) mod step;

pub(crate) use facts::subject;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, Entity, Outcome};
use sightline_query::{Align, Filter, Match, Shape};

use crate::absence::Missing;
use crate::args::{AggregationArg, FilterArg, Instant, dims, filters, window};
use crate::job_scope::{JobScope, job_intervals, job_scope};
use crate::measure::{Measure, Rows};
use crate::reading::{Content, evidence};
use crate::sentence::{Sentence, fact};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput, evidence_id};

const NAME: &str = "metric_range";

/// What to read.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricRangeArgs {
    /// Any name or words for it.
    metric: String,
    /// RFC 3339 in UTC.
    from: Instant,
    /// Exclusive.
    to: Instant,
    /// Only this job's GPUs.
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    /// Dimensions: one series each.
    #[serde(default)]
    group_by: Vec<String>,
    #[serde(default)]
    aggregation: Option<AggregationArg>,
    #[serde(default)]
    step_seconds: Option<u32>,
}

/// One metric over a time range.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricRange;

struct Asked {
    measure: Measure,
    group_by: Vec<Dim>,
    scope: JobScope,
}

impl MetricRangeArgs {
    fn asked(&self, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Asked, ToolError> {
        let rows = Rows {
            range: window(NAME, self.from, self.to, context.as_of)?,
            filters: filters(NAME, Dataset::Metrics, &self.filters)?,
            placement: None,
        };
        Ok(Asked {
            measure: Measure::resolve(NAME, context, &self.metric, self.aggregation.map(|a| a.0))?,
            group_by: dims(Dataset::Metrics, &self.group_by),
            scope: job_scope(context, self.job.as_deref(), rows, fetched)?,
        })
    }
}

impl Tool for MetricRange {
    type Args = MetricRangeArgs;

    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "One metric over a time range. Arguments of one name mean the same in all tools.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let asked = args.asked(context, fetched)?;
        let rows = match asked.scope {
            JobScope::Ask(query) => return Ok(Step::Fetch(vec![*query])),
            JobScope::Unknown => return Ok(Step::Done),
            JobScope::Known(rows) => rows,
        };
        let read = last_read(fetched);
        let tries = reads(fetched);
        if read.is_empty() {
            return Ok(Step::Fetch(series_queries(args, context, &asked.measure, &asked.group_by, &rows, 0)));
        }
        if read.iter().any(|f| f.result.truncated) {
            if args.step_seconds.is_none() && tries < step::TARGETS.len() {
                return Ok(Step::Fetch(series_queries(args, context, &asked.measure, &asked.group_by, &rows, tries)));
            }
            return Err(cut(context));
        }
        let missing = missing(&asked.measure, &rows);
        if read.iter().all(|f| f.result.rows.is_empty()) && missing.probed(fetched).is_empty() {
            return Ok(Step::Fetch(missing.probes(context)));
        }
        Ok(Step::Done)
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let asked = args.asked(context, fetched)?;
        let rows = match asked.scope {
            JobScope::Known(rows) => rows,
            JobScope::Ask(_) | JobScope::Unknown => return Ok(unknown_job(NAME, fetched)),
        };
        let read = last_read(fetched);
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        let measured = asked.measure.series(&read, &asked.group_by)?;
        if measured.series.is_empty() {
            let Some(empty) = read.first() else { return Ok(ToolOutput::default()) };
            return missing(&asked.measure, &rows).explain_or_empty(NAME, empty, fetched);
        }
        let mut evidence = asked.measure.series_evidence(&read, &asked.group_by, measured, NAME, 1)?;
        let fixed = fixed_entity(&rows.filters, args.job.as_deref());
        if let Some(job) = &args.job {
            for piece in &mut evidence {
                piece.labels.insert("job".to_owned(), job.clone());
            }
        }
        Ok(facts::output(&asked.measure, evidence, &fixed))
    }
}

fn series_queries(
    args: &MetricRangeArgs,
    context: &ToolContext<'_>,
    measure: &Measure,
    group_by: &[Dim],
    rows: &Rows,
    tries: usize,
) -> Vec<sightline_query::Query> {
    let step_ms = args.step_seconds.map_or_else(|| step::default_ms(rows.range, tries), |s| u64::from(s) * 1000);
    measure.queries(rows, group_by, |group_by, aggregation| Shape::Series {
        step_ms,
        align: Align::Epoch,
        group_by,
        aggregation,
        limit: context.max_rows,
    })
}

fn is_read(fetched: &Fetched) -> bool {
    fetched.query.dataset() == Dataset::Metrics && matches!(fetched.query.query().shape, Shape::Series { .. })
}

/// The latest read of the metric: an earlier one was cut.
fn last_read(fetched: &[Fetched]) -> Vec<&Fetched> {
    let latest = fetched.iter().filter(|f| is_read(f)).map(|f| f.round).max();
    fetched.iter().filter(|f| is_read(f) && Some(f.round) == latest).collect()
}

/// In how many rounds the metric was read.
fn reads(fetched: &[Fetched]) -> usize {
    let rounds: std::collections::BTreeSet<usize> = fetched.iter().filter(|f| is_read(f)).map(|f| f.round).collect();
    rounds.len()
}

pub(crate) fn missing(measure: &Measure, rows: &Rows) -> Missing {
    Missing {
        dataset: Dataset::Metrics,
        metric: Some((measure.metric.clone(), measure.probe_part())),
        range: rows.range,
        filtered: !rows.filters.is_empty() || rows.placement.is_some(),
    }
}

fn cut(context: &ToolContext<'_>) -> ToolError {
    ToolError::Cut {
        what: "the series asked for".to_owned(),
        limit: context.max_rows,
        narrow: "ask for a shorter window, a longer step, fewer dimensions in `group_by`, or more filters".to_owned(),
    }
}

/// What all rows have in common by the question's own words.
pub(crate) fn fixed_entity(filters: &[Filter], job: Option<&str>) -> Entity {
    let mut entity = Entity::new();
    for filter in filters {
        if let Filter::Dim { dim, matches: Match::Eq(value) } = filter {
            entity.insert(crate::reading::entity_key(dim).to_owned(), value.clone());
        }
    }
    if let Some(job) = job {
        entity.insert("job".to_owned(), job.to_owned());
    }
    entity
}

/// A job that held no GPU in the window, or is not the asker's to see: the same words for both.
pub(crate) fn unknown_job(tool: &str, fetched: &[Fetched]) -> ToolOutput {
    let Some(intervals) = job_intervals(fetched) else { return ToolOutput::default() };
    let id = evidence_id(1);
    let found = evidence(intervals, tool, 1, Content::Rows(Vec::new()));
    let job = found.labels.get("job").cloned().unwrap_or_default();
    let headline = Sentence::new()
        .say("no data: job ")
        .value(&id, "job", &job)
        .say(" held no GPU in this window")
        .compare(
            fact(&id, sightline_model::FactPath::Total),
            sightline_model::Relation::AtMost,
            sightline_model::Quantity::Constant(0.0),
        )
        .cite(&id)
        .finish();
    ToolOutput {
        evidence: vec![found],
        claims: vec![headline.clone()],
        headline: Some(headline),
        outcome: Some(Outcome::InsufficientData),
        ..ToolOutput::default()
    }
}

#[cfg(test)]
#[path = "metric_range_tests.rs"]
mod tests;
