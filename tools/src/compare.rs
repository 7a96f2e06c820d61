//! `compare`: metrics in two windows or over two sets of rows, whether they differ, by how much, and whether the one may replace the
//! other.
//!
//! Two windows: a day and the day before, or before and after an event. Two sets of rows: a driver, an engine version, a rack, a
//! replica, against another. Several metrics are judged together, with their significance corrected for their number.

mod canary;
mod facts;
mod judge;
mod sides;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::Dataset;
use sightline_query::{Align, Shape};

use crate::args::{AggregationArg, FilterArg, Instant};
use crate::measure::{EVERY, Measure};
use crate::metric_range::{fixed_entity, missing, unknown_job};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};
use judge::{Side, judged};
use sides::{Sides, Windows};

const NAME: &str = "compare";

/// More metrics than this at once answer no question that somebody asked.
const MAX_METRICS: usize = 8;

/// What to compare with what.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareArgs {
    metric: String,
    /// Further metrics.
    #[serde(default)]
    also: Vec<String>,
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
    /// Kind of an event: after its last one, against before.
    #[serde(default)]
    event: Option<String>,
    /// Promote, hold or roll back?
    #[serde(default)]
    canary: bool,
    #[serde(default)]
    aggregation: Option<AggregationArg>,
    #[serde(default)]
    threshold: Option<f64>,
}

/// Two windows or cohorts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compare;

impl CompareArgs {
    fn measures(&self, context: &ToolContext<'_>) -> Result<Vec<Measure>, ToolError> {
        let fault = |reason: String| ToolError::Arguments { tool: NAME, reason };
        let names: Vec<&String> = std::iter::once(&self.metric).chain(&self.also).collect();
        if names.iter().any(|name| *name == EVERY) {
            return Err(fault("a difference of every metric at once has no meaning; name the metrics".to_owned()));
        }
        if names.len() > MAX_METRICS {
            let asked = names.len();
            return Err(fault(format!("{asked} metrics at once are too many; name at most {MAX_METRICS}")));
        }
        let mut measures: Vec<Measure> = Vec::new();
        for (index, name) in names.into_iter().enumerate() {
            // What is asked of the first metric may not fit the kind of another, which then takes what its own kind suggests.
            let asked = self.aggregation.map(|a| a.0).filter(|_| index == 0);
            let measure = Measure::resolve(NAME, context, name, asked)?;
            let measure = if index == 0 { measure.against(NAME, self.threshold)? } else { measure };
            if measures.contains(&measure) {
                return Err(fault(format!("`{name}` is named twice")));
            }
            measures.push(measure);
        }
        Ok(measures)
    }
}

impl Tool for Compare {
    type Args = CompareArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Metrics];
    const DESCRIPTION: &'static str = "Metrics in two windows, before and after an event, or in two sets of rows.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let measures = args.measures(context)?;
        let windows = match sides::windows(args, context, fetched)? {
            Windows::Ask(queries) => return Ok(Step::fetch(queries)),
            Windows::NoEvent => return Ok(Step::Done),
            Windows::Known(windows) => windows,
        };
        let sides = match sides::sides(args, &windows, context, fetched)? {
            Sides::Ask(query) => return Ok(Step::Fetch(vec![*query])),
            Sides::Unknown => return Ok(Step::Done),
            Sides::Known(sides) => sides,
        };
        let read = reads(fetched);
        if read.is_empty() {
            let step_ms = windows.step_ms();
            let shape = |group_by, aggregation| Shape::Series {
                step_ms,
                align: Align::Epoch,
                group_by,
                aggregation,
                limit: context.max_rows,
            };
            let queries = measures
                .iter()
                .flat_map(|measure| sides.iter().flat_map(move |rows| measure.queries(rows, &[], shape)));
            return Ok(Step::fetch(queries.collect()));
        }
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        // Of several metrics one that is not there is left out; of one, the reader wants to know why.
        if let [measure] = measures.as_slice() {
            for (rows, side) in sides.iter().zip(halves(&read)) {
                let missing = missing(measure, rows);
                if side.iter().all(|f| f.result.rows.is_empty()) && missing.probed(fetched).is_empty() {
                    return Ok(Step::fetch(missing.probes(context)));
                }
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
        let measures = args.measures(context)?;
        let windows = match sides::windows(args, context, fetched)? {
            Windows::Known(windows) => windows,
            Windows::Ask(_) | Windows::NoEvent => return sides::no_event(args, fetched),
        };
        let sides = match sides::sides(args, &windows, context, fetched)? {
            Sides::Known(sides) => sides,
            Sides::Ask(_) | Sides::Unknown => return Ok(unknown_job(NAME, fetched)),
        };
        let read = reads(fetched);
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        let mut file = facts::File::new(windows.event_evidence(fetched)?);
        let mut rest = read.as_slice();
        for measure in &measures {
            let (own, later) = rest.split_at_checked(2 * measure.reads()).unwrap_or((rest, &[]));
            rest = later;
            let mut pair = Vec::new();
            for (rows, side) in sides.iter().zip(halves(own)) {
                let measured = measure.series(side, &[])?;
                if measured.series.is_empty() {
                    if measures.len() > 1 {
                        break;
                    }
                    let Some(empty) = side.first() else { return Ok(ToolOutput::default()) };
                    return missing(measure, rows).explain_or_empty(NAME, empty, fetched);
                }
                pair.push(measure.series_evidence(side, &[], measured, NAME, file.next())?);
                if let Some(pieces) = pair.last() {
                    file.add(pieces, args.job.as_deref());
                }
            }
            match pair.as_slice() {
                [base, other] => file.compared(measure, base.first(), other.first(), context),
                _ => file.missing(measure),
            }
        }
        let [_, other] = &sides;
        let same = fixed_entity(&other.filters, args.job.as_deref());
        let judgements = judged(&file.pairs.iter().map(Side::of).collect::<Vec<_>>());
        Ok(facts::output(file, &judgements, &same, args.canary))
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
