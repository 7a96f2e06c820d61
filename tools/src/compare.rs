//! `compare`: one metric in two windows or over two sets of rows, and whether it differs.

mod facts;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, TimeRange};
use sightline_query::{Align, Query, Shape};

use crate::args::{AggregationArg, FilterArg, Instant, filters, window};
use crate::job_scope::{JobScope, job_scope};
use crate::measure::{EVERY, Measure, Rows};
use crate::metric_range::{fixed_entity, missing, step, unknown_job};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};

const NAME: &str = "compare";

/// What to compare with what.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareArgs {
    metric: String,
    from: Instant,
    to: Instant,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    /// Default: the same window.
    #[serde(default)]
    base_from: Option<Instant>,
    #[serde(default)]
    base_to: Option<Instant>,
    /// Default: the same filters.
    #[serde(default)]
    base_filters: Option<Vec<FilterArg>>,
    #[serde(default)]
    aggregation: Option<AggregationArg>,
    #[serde(default)]
    threshold: Option<f64>,
}

/// Two windows or cohorts of one metric.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compare;

struct Asked {
    measure: Measure,
    /// The base, then what is compared with it.
    sides: [Rows; 2],
    step_ms: u64,
}

/// The rows of both sides, once it is known where a job ran.
enum Sides {
    Ask(Box<Query>),
    Known([Rows; 2]),
    Unknown,
}

impl Asked {
    fn sides(&self, job: Option<&str>, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Sides, ToolError> {
        let [base, other] = &self.sides;
        let from = base.range.from().min(other.range.from());
        let to = base.range.to().max(other.range.to());
        // Asked for once, over both windows; each side then keeps its own.
        let both = TimeRange::new(from, to).unwrap_or(other.range);
        let scope = |rows: &Rows, range: TimeRange| job_scope(context, job, Rows { range, ..rows.clone() }, fetched);
        if let JobScope::Ask(query) = scope(other, both)? {
            return Ok(Sides::Ask(query));
        }
        match (scope(base, base.range)?, scope(other, other.range)?) {
            (JobScope::Known(base), JobScope::Known(other)) => Ok(Sides::Known([base, other])),
            (JobScope::Ask(query), _) | (_, JobScope::Ask(query)) => Ok(Sides::Ask(query)),
            (JobScope::Unknown, _) | (_, JobScope::Unknown) => Ok(Sides::Unknown),
        }
    }
}

impl CompareArgs {
    fn asked(&self, context: &ToolContext<'_>) -> Result<Asked, ToolError> {
        let fault = |reason: &str| ToolError::Arguments { tool: NAME, reason: reason.to_owned() };
        if self.metric == EVERY {
            return Err(fault("a difference of every metric at once has no meaning; name one metric"));
        }
        let range = window(NAME, self.from, self.to, context.as_of)?;
        let base_range = match (self.base_from, self.base_to) {
            (Some(from), Some(to)) => window(NAME, from, to, context.as_of)?,
            (None, None) => range,
            (Some(_), None) | (None, Some(_)) => {
                return Err(fault("a base window needs both `base_from` and `base_to`"));
            }
        };
        let side = |range: TimeRange, conditions: &[FilterArg]| -> Result<Rows, ToolError> {
            Ok(Rows { range, filters: filters(NAME, Dataset::Metrics, conditions)?, placement: None })
        };
        let base = side(base_range, self.base_filters.as_deref().unwrap_or(&self.filters))?;
        let other = side(range, &self.filters)?;
        if base.range == other.range && base.filters == other.filters {
            return Err(fault(
                "both sides are the same; name another window with `base_from` and `base_to`, or other rows with `base_filters`",
            ));
        }
        // One step for both sides, so that their points mean the same.
        let longer = if base_range.millis() > range.millis() { base_range } else { range };
        let shorter = if base_range.millis() > range.millis() { range } else { base_range };
        let step_ms = step::default_ms(longer, 0).min(u64::try_from(shorter.millis()).unwrap_or(1000).max(1000));
        Ok(Asked {
            measure: Measure::resolve(NAME, context, &self.metric, self.aggregation.map(|a| a.0))?
                .against(NAME, self.threshold)?,
            sides: [base, other],
            step_ms,
        })
    }
}

impl Tool for Compare {
    type Args = CompareArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Metrics];
    const DESCRIPTION: &'static str = "One metric in two windows or two sets of rows.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let asked = args.asked(context)?;
        let sides = match asked.sides(args.job.as_deref(), context, fetched)? {
            Sides::Ask(query) => return Ok(Step::Fetch(vec![*query])),
            Sides::Unknown => return Ok(Step::Done),
            Sides::Known(sides) => sides,
        };
        let read = reads(fetched);
        if read.is_empty() {
            let queries = sides.iter().flat_map(|rows| {
                asked.measure.queries(rows, &[], |group_by, aggregation| Shape::Series {
                    step_ms: asked.step_ms,
                    align: Align::Epoch,
                    group_by,
                    aggregation,
                    limit: context.max_rows,
                })
            });
            return Ok(Step::Fetch(queries.collect()));
        }
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        for (rows, side) in sides.iter().zip(halves(&read)) {
            let missing = missing(&asked.measure, rows);
            if side.iter().all(|f| f.result.rows.is_empty()) && missing.probed(fetched).is_empty() {
                return Ok(Step::Fetch(missing.probes(context)));
            }
        }
        Ok(Step::Done)
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let asked = args.asked(context)?;
        let sides = match asked.sides(args.job.as_deref(), context, fetched)? {
            Sides::Known(sides) => sides,
            Sides::Ask(_) | Sides::Unknown => return Ok(unknown_job(NAME, fetched)),
        };
        let read = reads(fetched);
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        let mut pieces = Vec::new();
        let mut heads = Vec::new();
        for (rows, side) in sides.iter().zip(halves(&read)) {
            let measured = asked.measure.series(side, &[])?;
            if measured.series.is_empty() {
                let Some(empty) = side.first() else { return Ok(ToolOutput::default()) };
                return missing(&asked.measure, rows).explain_or_empty(NAME, empty, fetched);
            }
            heads.push(pieces.len());
            pieces.extend(asked.measure.series_evidence(side, &[], measured, NAME, pieces.len() + 1)?);
        }
        if let Some(job) = &args.job {
            for piece in &mut pieces {
                piece.labels.insert("job".to_owned(), job.clone());
            }
        }
        let [_, other] = &sides;
        let same = fixed_entity(&other.filters, args.job.as_deref());
        Ok(facts::output(&asked.measure, pieces, &heads, &same))
    }
}

fn reads(fetched: &[Fetched]) -> Vec<&Fetched> {
    fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Series { .. })).collect()
}

/// The reads of the base and those of the other side: as many each.
fn halves<'a>(read: &'a [&'a Fetched]) -> [&'a [&'a Fetched]; 2] {
    let (base, other) = read.split_at_checked(read.len() / 2).unwrap_or((read, &[]));
    [base, other]
}

fn cut(context: &ToolContext<'_>) -> ToolError {
    ToolError::Cut {
        what: "the series to compare".to_owned(),
        limit: context.max_rows,
        narrow: "compare shorter windows or narrow the rows with `filters`".to_owned(),
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
