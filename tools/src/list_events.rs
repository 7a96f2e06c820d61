//! `list_events`: alerts, deploys, driver upgrades, faults and the like, in time order.

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, FactPath, Outcome};
use sightline_query::{Filter, Match, Order};

use crate::args::{FilterArg, Instant, dims, filters, window};
use crate::listing::{Listing, limit};
use crate::sentence::{Sentence, at};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};

const NAME: &str = "list_events";
/// So many events are told in sentences; the rows hold the rest.
const MAX_TOLD: usize = 5;

/// Which events.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListEventsArgs {
    from: Instant,
    to: Instant,
    /// alert, deploy, driver_upgrade, fault, …
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    #[serde(default)]
    count_by: Vec<String>,
    #[serde(default)]
    step_seconds: Option<u32>,
    #[serde(default)]
    latest: bool,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    per: Vec<String>,
}

/// Events.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListEvents;

impl ListEventsArgs {
    fn listing(&self, context: &ToolContext<'_>) -> Result<Listing, ToolError> {
        let mut conditions = filters(NAME, Dataset::Events, &self.filters)?;
        if let Some(kind) = &self.kind {
            conditions.push(Filter::Dim { dim: Dim::Kind, matches: Match::Eq(kind.clone()) });
        }
        Ok(Listing {
            tool: NAME,
            dataset: Dataset::Events,
            range: window(NAME, self.from, self.to, context.as_of)?,
            filters: conditions,
            order: if self.latest { Order::Descending } else { Order::Ascending },
            limit: limit(NAME, self.limit, context)?,
            count_by: dims(Dataset::Events, &self.count_by),
            step_seconds: self.step_seconds,
            per: dims(Dataset::Events, &self.per),
        })
    }
}

impl Tool for ListEvents {
    type Args = ListEventsArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Events];
    const DESCRIPTION: &'static str = "Alerts, deploys, faults and other events.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        args.listing(context)?.plan(context, fetched)
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let listed = match args.listing(context)?.read(context, fetched, |_| ())? {
            Ok(listed) => listed,
            Err(none) => return Ok(none),
        };
        let mut sentences: Vec<Sentence> = listed.totals(" events in this window");
        if let Some(rows) = listed.evidence.first() {
            for (index, row) in rows.rows.iter().enumerate().take(MAX_TOLD) {
                let kind = row.fields.get("kind").map_or("", String::as_str);
                let mut sentence = Sentence::new()
                    .time(at(&rows.id, FactPath::RowTime { row: index }))
                    .say(": ")
                    .value(&rows.id, "kind", kind);
                if !row.entity.is_empty() {
                    sentence = sentence.say(", ").entity(&rows.id, &row.entity);
                }
                if row.fields.contains_key("body") {
                    sentence = sentence
                        .say(": ")
                        .quote(at(&rows.id, FactPath::RowField { row: index, field: "body".to_owned() }));
                }
                sentences.push(sentence);
            }
        }
        let claims: Vec<_> = sentences.into_iter().map(Sentence::finish).collect();
        Ok(ToolOutput {
            headline: claims.first().cloned(),
            claims,
            outcome: Some(Outcome::Answered),
            evidence: listed.evidence,
            ..ToolOutput::default()
        })
    }
}

#[cfg(test)]
#[path = "list_events_tests.rs"]
mod tests;
