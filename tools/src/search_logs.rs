//! `search_logs`: log lines by text, pattern, severity and place, with their number, what they mean, and their message templates.

mod decoded;
mod templates;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, Evidence, FactPath, Outcome, TimeRange};
use sightline_query::{Filter, Match, Order};

use crate::args::{FilterArg, Instant, dims, filters, window};
use crate::listing::{Listing, limit};
use crate::sentence::{Sentence, at};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};

const NAME: &str = "search_logs";

/// What to search for.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchLogsArgs {
    from: Instant,
    to: Instant,
    #[serde(default)]
    contains: Option<String>,
    #[serde(default)]
    regex: Option<String>,
    #[serde(default)]
    severity: Option<String>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    #[serde(default)]
    count_by: Vec<String>,
    /// Counts per step.
    #[serde(default)]
    step_seconds: Option<u32>,
    #[serde(default)]
    latest: bool,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    per: Vec<String>,
    /// Message templates too.
    #[serde(default)]
    templates: bool,
    /// Templates new or gone since.
    #[serde(default)]
    base_from: Option<Instant>,
    #[serde(default)]
    base_to: Option<Instant>,
}

/// Log lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchLogs;

impl SearchLogsArgs {
    fn listing(&self, context: &ToolContext<'_>) -> Result<Listing, ToolError> {
        let mut conditions = filters(NAME, Dataset::Logs, &self.filters)?;
        let mut body = |matches: Match| conditions.push(Filter::Dim { dim: Dim::Body, matches });
        if let Some(text) = &self.contains {
            body(Match::ContainsFold(text.clone()));
        }
        if let Some(pattern) = &self.regex {
            body(Match::Regex(pattern.clone()));
        }
        if let Some(severity) = &self.severity {
            // Severities are stored as written: `warn` has to find `WARNING` too.
            conditions.push(Filter::Dim { dim: Dim::Severity, matches: Match::ContainsFold(severity.clone()) });
        }
        Ok(Listing {
            tool: NAME,
            dataset: Dataset::Logs,
            range: window(NAME, self.from, self.to, context.as_of)?,
            filters: conditions,
            order: if self.latest { Order::Descending } else { Order::Ascending },
            limit: limit(NAME, self.limit, context)?,
            count_by: dims(Dataset::Logs, &self.count_by),
            step_seconds: self.step_seconds,
            per: dims(Dataset::Logs, &self.per),
        })
    }

    /// The window that messages are compared with; it ends where the asked one begins unless said otherwise.
    fn baseline(&self, context: &ToolContext<'_>) -> Result<Option<TimeRange>, ToolError> {
        match (self.base_from, self.base_to) {
            (None, None) => Ok(None),
            (None, Some(_)) => {
                let reason = "`base_to` stands without `base_from`; give both, or `base_from` alone".to_owned();
                Err(ToolError::Arguments { tool: NAME, reason })
            }
            (Some(from), to) => {
                let baseline = window(NAME, from, to.unwrap_or(self.from), context.as_of)?;
                let asked = window(NAME, self.from, self.to, context.as_of)?;
                if baseline.from() < asked.to() && asked.from() < baseline.to() {
                    let reason = "the baseline overlaps the window; let it end where the window begins".to_owned();
                    return Err(ToolError::Arguments { tool: NAME, reason });
                }
                Ok(Some(baseline))
            }
        }
    }
}

impl Tool for SearchLogs {
    type Args = SearchLogsArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Logs];
    const DESCRIPTION: &'static str = "Log lines, their number and meaning, Xids decoded.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let listing = args.listing(context)?;
        let baseline = args.baseline(context)?;
        let mut step = listing.plan(context, fetched)?;
        if let (Step::Fetch(queries), true, true) =
            (&mut step, fetched.is_empty(), args.templates || baseline.is_some())
            && let Some(rows) = queries.first().cloned()
        {
            queries.extend(templates::queries(&rows, baseline, context));
        }
        Ok(step)
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let listing = args.listing(context)?;
        let range = listing.range;
        let mut listed = match listing.read(context, fetched, decoded::decode)? {
            Ok(listed) => listed,
            Err(none) => return Ok(none),
        };
        let mut sentences: Vec<Sentence> = listed.totals(" log lines match");
        if let Some(rows) = listed.evidence.first() {
            sentences.push(end_sentence(rows, args.latest));
            sentences.extend(decoded::told(rows, &listed, args.latest));
        }
        let mut data_health = Vec::new();
        let next = listed.evidence.len() + 1;
        if let Some(found) = templates::read(NAME, fetched, range, args.baseline(context)?, next)? {
            listed.evidence.extend(found.evidence);
            sentences.extend(found.sentences);
            data_health.extend(found.health);
        }
        let claims: Vec<_> = sentences.into_iter().map(Sentence::finish).collect();
        Ok(ToolOutput {
            headline: claims.first().cloned(),
            claims,
            outcome: Some(Outcome::Answered),
            evidence: listed.evidence,
            data_health,
            ..ToolOutput::default()
        })
    }
}

fn end_sentence(rows: &Evidence, latest: bool) -> Sentence {
    Sentence::new()
        .say(if latest { "the latest, at " } else { "the first, at " })
        .time(at(&rows.id, FactPath::RowTime { row: 0 }))
        .say(": ")
        .quote(at(&rows.id, FactPath::RowField { row: 0, field: "body".to_owned() }))
}

#[cfg(test)]
#[path = "search_logs_tests.rs"]
mod tests;
