//! `top_k`: entities ranked by a metric over a window, with the total and what the rest amounts to.

mod by_job;
mod facts;
mod groups;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, EvidenceRow};
use sightline_query::{Order, Shape};

use crate::args::{AggregationArg, FilterArg, Instant, OrderArg, dims, filters, window};
use crate::job_scope::{JobScope, job_scope};
use crate::measure::{Measure, Rows};
use crate::metric_range::{fixed_entity, missing, unknown_job};
use crate::reading::{Ranked, combined_value, sort_ranked};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};

const NAME: &str = "top_k";
/// How many come back unless said otherwise.
const DEFAULT_K: usize = 10;
/// The most that come back: more is a table, which `metric_range` gives.
const MAX_K: usize = 100;

/// What to rank.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopKArgs {
    metric: String,
    from: Instant,
    to: Instant,
    group_by: Vec<String>,
    #[serde(default)]
    k: Option<u32>,
    #[serde(default)]
    order: OrderArg,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    #[serde(default)]
    aggregation: Option<AggregationArg>,
    #[serde(default)]
    threshold: Option<f64>,
    /// Ranked values only.
    #[serde(default)]
    above: Option<f64>,
    #[serde(default)]
    below: Option<f64>,
    #[serde(default)]
    min_samples: Option<u64>,
}

/// A ranking of entities by a metric.
#[derive(Clone, Copy, Debug, Default)]
pub struct TopK;

struct Asked {
    measure: Measure,
    group_by: Vec<Dim>,
    k: usize,
    scope: JobScope,
}

impl TopKArgs {
    fn asked(&self, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Asked, ToolError> {
        let fault = |reason: String| ToolError::Arguments { tool: NAME, reason };
        let rows = Rows {
            range: window(NAME, self.from, self.to, context.as_of)?,
            filters: filters(NAME, Dataset::Metrics, &self.filters)?,
            placement: None,
        };
        let group_by = dims(Dataset::Metrics, &self.group_by);
        if group_by.is_empty() {
            return Err(fault(
                "`group_by` is empty, so there is nothing to rank; name for example `node` and `gpu`".to_owned(),
            ));
        }
        let k = self.k.map_or(DEFAULT_K, |k| usize::try_from(k).unwrap_or(usize::MAX));
        if k == 0 || k > MAX_K {
            return Err(fault(format!("`k` is {k}; between 1 and {MAX_K} can be listed")));
        }
        if let (Some(above), Some(below)) = (self.above, self.below)
            && above >= below
        {
            return Err(fault(format!("nothing is above {above} and below {below}; swap them, or leave one out")));
        }
        Ok(Asked {
            measure: Measure::resolve(NAME, context, &self.metric, self.aggregation.map(|a| a.0))?
                .against(NAME, self.threshold)?,
            group_by,
            k,
            scope: job_scope(context, self.job.as_deref(), rows, fetched)?,
        })
    }
}

impl TopKArgs {
    /// Whether a group is among those that are ranked.
    fn keeps(&self, group: &Ranked) -> bool {
        self.above.is_none_or(|bound| group.value > bound)
            && self.below.is_none_or(|bound| group.value < bound)
            && self.min_samples.is_none_or(|least| group.count >= least)
    }
}

impl Asked {
    /// Whether any row that was read names what is ranked: a site may put the job on samples that elsewhere carry none.
    fn names_groups(&self, read: &[&Fetched]) -> Result<bool, ToolError> {
        Ok(!read.is_empty() && self.measure.ranked(read, &self.group_by)?.iter().any(|row| !row.entity.is_empty()))
    }
}

impl Tool for TopK {
    type Args = TopKArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Metrics];
    const DESCRIPTION: &'static str = "Entities ranked by one metric.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let asked = args.asked(context, fetched)?;
        let rows = match &asked.scope {
            JobScope::Ask(query) => return Ok(Step::Fetch(vec![(**query).clone()])),
            JobScope::Unknown => return Ok(Step::Done),
            JobScope::Known(rows) => rows.clone(),
        };
        let read = reads(fetched);
        if by_job::applies(args, context) && !read.is_empty() && !asked.names_groups(&read)? {
            return by_job::plan(&asked, &rows, context, fetched);
        }
        if read.is_empty() {
            let order = Order::from(args.order);
            // Every group is asked for, not the first k: the total and the rest can only be told from all of them.
            return Ok(Step::fetch(asked.measure.queries(&rows, &asked.group_by, |group_by, aggregation| {
                Shape::Rank { group_by, aggregation, order, limit: context.max_rows }
            })));
        }
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        let missing = missing(&asked.measure, &rows);
        if read.iter().all(|f| f.result.rows.is_empty()) && missing.probed(fetched).is_empty() {
            return Ok(Step::fetch(missing.probes(context)));
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
        let rows = match &asked.scope {
            JobScope::Known(rows) => rows.clone(),
            JobScope::Ask(_) | JobScope::Unknown => return Ok(unknown_job(NAME, fetched)),
        };
        let read = reads(fetched);
        if by_job::applies(args, context) && !asked.names_groups(&read)? {
            return by_job::output(args, &asked, &rows, context, fetched);
        }
        if read.iter().any(|f| f.result.truncated) {
            return Err(cut(context));
        }
        let mut ranked = asked.measure.ranked(&read, &asked.group_by)?;
        // A row that lacks every dimension asked for is no entity: a node's metric when GPUs are ranked.
        ranked.retain(|r| !r.entity.is_empty());
        if ranked.is_empty() {
            let Some(empty) = read.first() else { return Ok(ToolOutput::default()) };
            return missing(&asked.measure, &rows).explain_or_empty(NAME, empty, fetched);
        }
        let all = ranked.len();
        ranked.retain(|group| args.keeps(group));
        sort_ranked(&mut ranked, args.order.into());
        let listed = listed(&asked.measure, &ranked, asked.k);
        let mut evidence = asked.measure.rank_evidence(&read, &asked.group_by, listed, NAME, 1)?;
        if let Some(head) = evidence.first_mut() {
            head.total = ranked.len() as u64;
            head.returned = ranked.len().min(asked.k) as u64;
            head.coverage.seen = ranked.iter().map(|r| r.count).sum();
        }
        let groups = evidence.first().map(|head| groups::evidence(head, evidence.len() + 1, all, &ranked));
        evidence.extend(groups);
        if let Some(job) = &args.job {
            for piece in &mut evidence {
                piece.labels.insert("job".to_owned(), job.clone());
            }
        }
        let fixed = fixed_entity(&rows.filters, args.job.as_deref());
        let mut output = facts::output(&asked.measure, evidence, &ranked, args.order, &fixed);
        output.data_health.extend(asked.measure.mixed(&asked.group_by, &rows.filters));
        Ok(output)
    }
}

fn reads(fetched: &[Fetched]) -> Vec<&Fetched> {
    fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Rank { .. })).collect()
}

/// The first k as rows, and one for all others together.
fn listed(measure: &Measure, ranked: &[Ranked], k: usize) -> Vec<EvidenceRow> {
    let mut rows: Vec<EvidenceRow> = ranked
        .iter()
        .take(k)
        .zip(1..)
        .map(|(r, rank)| EvidenceRow {
            entity: r.entity.clone(),
            value: Some(r.value),
            rank: Some(rank),
            time: r.at,
            fields: BTreeMap::from([("samples".to_owned(), r.count.to_string())]),
        })
        .collect();
    rows.extend(everything_else(measure, ranked.get(k..).unwrap_or_default()));
    rows
}

/// The others as one row: combined where the aggregation allows it, else their median.
fn everything_else(measure: &Measure, rest: &[Ranked]) -> Option<EvidenceRow> {
    let (value, how) = if measure.combines() {
        let together = rest
            .iter()
            .map(|r| (r.value, r.count))
            .reduce(|left, right| (combined_value(measure.aggregation, left, right), left.1 + right.1))?;
        (together.0, "combined")
    } else {
        (sightline_analysis::median(&rest.iter().map(|r| r.value).collect::<Vec<f64>>())?, "median")
    };
    let fields = BTreeMap::from([
        ("row".to_owned(), "everything else".to_owned()),
        ("groups".to_owned(), rest.len().to_string()),
        ("how".to_owned(), how.to_owned()),
    ]);
    Some(EvidenceRow { value: Some(value), fields, ..EvidenceRow::default() })
}

fn cut(context: &ToolContext<'_>) -> ToolError {
    ToolError::Cut {
        what: "the ranking".to_owned(),
        limit: context.max_rows,
        narrow: "rank by fewer dimensions in `group_by`, or narrow it with `filters` or `job`".to_owned(),
    }
}

#[cfg(test)]
#[path = "top_k_tests.rs"]
mod tests;
