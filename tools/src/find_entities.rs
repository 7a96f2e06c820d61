//! `find_entities`: which clusters, nodes, GPUs, jobs, models, services and metrics there are, and when they were last seen.

mod facts;
mod kinds;
mod matching;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::TimeRange;

use crate::args::{Instant, window};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};
pub use kinds::EntityKind;

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
}

/// What exists.
#[derive(Clone, Copy, Debug, Default)]
pub struct FindEntities;

impl FindEntitiesArgs {
    fn range(&self, context: &ToolContext<'_>) -> Result<TimeRange, ToolError> {
        window(NAME, self.from, self.to, context.as_of)
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
    const DESCRIPTION: &'static str = "What exists, is collected, and when it was last seen.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let range = args.range(context)?;
        args.limit()?;
        // Metrics are matched here, by the catalogue's words, so all names are fetched.
        let in_query = args.words().filter(|_| args.kind != EntityKind::Metric);
        let mut queries = Vec::new();
        if fetched.is_empty() {
            queries = args.kind.queries(context, range, in_query);
        } else if in_query.is_some() && rounds(fetched) == 1 && fetched.iter().all(|f| f.result.rows.is_empty()) {
            // Nothing goes by that name: all names of the kind, to find near ones.
            queries = args.kind.queries(context, range, None);
        }
        Ok(if queries.is_empty() { Step::Done } else { Step::Fetch(queries) })
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let limit = args.limit()?;
        let (first, rest): (Vec<&Fetched>, Vec<&Fetched>) = fetched.iter().partition(|f| f.round == 0);
        if first.is_empty() {
            return Ok(facts::unreadable(args.kind));
        }
        let found = matching::found(args.kind, args.words(), context, &first)?;
        if !found.is_empty() {
            return Ok(facts::found(args.kind, &first, found, limit));
        }
        let all = if rest.is_empty() { first.as_slice() } else { rest.as_slice() };
        let known = matching::found(args.kind, None, context, all)?;
        Ok(facts::none(args.kind, args.words(), all, &known, all.iter().any(|f| f.result.truncated)))
    }
}

fn rounds(fetched: &[Fetched]) -> usize {
    fetched.iter().map(|f| f.round + 1).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "find_entities_tests.rs"]
mod tests;
