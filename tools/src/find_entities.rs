//! `find_entities`: which clusters, nodes, GPUs, jobs, models, services, metrics and labels there are, and when they were last
//! seen; jobs counted by what they have in common.

mod facts;
mod jobs;
mod kinds;
pub(crate) mod matching;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::Dataset;

use crate::args::{DatasetArg, FilterArg, Instant, dims, window};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};
pub use jobs::JobOrder;
pub use kinds::EntityKind;
use kinds::Wanted;

const NAME: &str = "find_entities";
/// How many come back unless said otherwise.
const DEFAULT_LIMIT: usize = 50;
/// The most that come back.
const MAX_LIMIT: usize = 1000;

/// What to look for.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindEntitiesArgs {
    kind: EntityKind,
    /// Part of a name, or words for a metric.
    #[serde(default)]
    search: Option<String>,
    from: Instant,
    to: Instant,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    /// Of label_value.
    #[serde(default)]
    label: Option<String>,
    /// Of labels.
    #[serde(default)]
    dataset: Option<DatasetArg>,
    #[serde(default)]
    per: Vec<String>,
    /// Jobs: number, GPUs, mean duration.
    #[serde(default)]
    count_by: Vec<String>,
    /// Jobs: began in it.
    #[serde(default)]
    started: bool,
    /// Jobs: the largest or longest first.
    #[serde(default)]
    order: Option<JobOrder>,
    /// Of jobs.
    #[serde(default)]
    min_gpus: Option<u32>,
}

/// What exists.
#[derive(Clone, Copy, Debug, Default)]
pub struct FindEntities;

impl FindEntitiesArgs {
    fn wanted<'a>(&'a self, context: &ToolContext<'_>) -> Result<Wanted<'a>, ToolError> {
        let fault = |reason: String| ToolError::Arguments { tool: NAME, reason };
        let of_labels = matches!(self.kind, EntityKind::Label | EntityKind::LabelValue);
        let of_jobs = self.kind == EntityKind::Job;
        let misplaced = [
            ("label", self.label.is_some() && self.kind != EntityKind::LabelValue, "kind `label_value`"),
            ("dataset", self.dataset.is_some() && !of_labels, "kinds `label` and `label_value`"),
            (
                "per",
                !self.per.is_empty() && !matches!(self.kind, EntityKind::Metric | EntityKind::LabelValue),
                "kinds `metric` and `label_value`",
            ),
            ("count_by", !self.count_by.is_empty() && !of_jobs, "kind `job`"),
            ("started", self.started && !of_jobs, "kind `job`"),
            ("order", self.order.is_some() && !of_jobs, "kind `job`"),
            ("min_gpus", self.min_gpus.is_some() && !of_jobs, "kind `job`"),
        ];
        if let Some((name, _, kinds)) = misplaced.into_iter().find(|(_, given, _)| *given) {
            return Err(fault(format!("`{name}` is for {kinds}, not for `{}`; leave it out", self.kind.as_str())));
        }
        if self.kind == EntityKind::LabelValue && self.label.as_deref().is_none_or(str::is_empty) {
            return Err(fault("kind `label_value` needs the `label` whose values are meant".to_owned()));
        }
        Ok(Wanted {
            range: window(NAME, self.from, self.to, context.as_of)?,
            filters: &self.filters,
            dataset: self.dataset.map_or(Dataset::Metrics, Dataset::from),
            label: self.label.as_deref(),
            per: &self.per,
            limit: context.max_rows,
        })
    }

    /// The words looked for; none when they are empty.
    fn words(&self) -> Option<&str> {
        self.search.as_deref().map(str::trim).filter(|s| !s.is_empty())
    }

    fn limit(&self) -> Result<usize, ToolError> {
        let limit = self.limit.map_or(DEFAULT_LIMIT, |n| usize::try_from(n).unwrap_or(usize::MAX));
        if limit == 0 || limit > MAX_LIMIT {
            let reason = format!("`limit` is {limit}; between 1 and {MAX_LIMIT} can be listed");
            return Err(ToolError::Arguments { tool: NAME, reason });
        }
        Ok(limit)
    }
}

impl Tool for FindEntities {
    type Args = FindEntitiesArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &Dataset::ALL;
    const DESCRIPTION: &'static str = "What exists, is collected, and when it was last seen; jobs counted.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let wanted = args.wanted(context)?;
        args.limit()?;
        // Metrics and labels are matched here, by words, so all names are fetched.
        let by_name = !matches!(args.kind, EntityKind::Metric | EntityKind::Label);
        let in_query = args.words().filter(|_| by_name);
        let mut queries = Vec::new();
        if fetched.is_empty() {
            queries = args.kind.queries(context, &wanted, in_query)?;
        } else if rounds(fetched) == 1 {
            if fetched.iter().any(|f| !f.result.rows.is_empty()) {
                if !args.count_by.is_empty() {
                    queries.extend(jobs::gpus_query(
                        context,
                        &wanted,
                        fetched,
                        args.started.then(|| wanted.range.from()),
                    )?);
                }
            } else if in_query.is_some() {
                // Nothing goes by that name: all names of the kind, to find near ones.
                queries = args.kind.queries(context, &wanted, None)?;
            }
        }
        Ok(Step::fetch(queries))
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let wanted = args.wanted(context)?;
        let limit = args.limit()?;
        let started_from = args.started.then(|| wanted.range.from());
        let (first, rest): (Vec<&Fetched>, Vec<&Fetched>) = fetched.iter().partition(|f| f.round == 0);
        if first.is_empty() {
            return Ok(facts::unreadable(args.kind));
        }
        let mut found = matching::found(args.kind, args.words(), context, started_from, &first)?;
        if let Some(least) = args.min_gpus {
            found.retain(|job| jobs::labelled_gpus(job).is_some_and(|gpus| gpus >= f64::from(least)));
        }
        if let Some(order) = args.order {
            jobs::sort(&mut found, order, context.as_of);
        }
        if !found.is_empty() && !args.count_by.is_empty() {
            let by = dims(Dataset::Jobs, &args.count_by);
            return jobs::counted(&by, &first, rest.first().copied(), started_from, context);
        }
        if !found.is_empty() {
            return Ok(facts::found(args.kind, &first, found, limit));
        }
        let all = if rest.is_empty() { first.as_slice() } else { rest.as_slice() };
        let known = matching::found(args.kind, None, context, started_from, all)?;
        let key = wanted.searched_key(args.kind);
        Ok(facts::none(args.kind, &key, args.words(), all, &known, all.iter().any(|f| f.result.truncated)))
    }
}

fn rounds(fetched: &[Fetched]) -> usize {
    fetched.iter().map(|f| f.round + 1).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "find_entities_tests.rs"]
mod tests;
