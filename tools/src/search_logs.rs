//! `search_logs`: log lines by text, pattern, severity and place, with their number, Xid lines decoded.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_diagnosis::{XidSource, parse_xid_line, xid_info};
use sightline_model::{Dataset, Dim, Evidence, EvidenceRow, FactPath, Outcome};
use sightline_query::{Filter, Match, Order};

use crate::args::{FilterArg, Instant, dims, filters, window};
use crate::listing::{Listed, Listing, limit};
use crate::sentence::{Sentence, at};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};

const NAME: &str = "search_logs";
/// So many different Xids are named in sentences.
const MAX_XIDS: usize = 4;

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
}

impl Tool for SearchLogs {
    type Args = SearchLogsArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Logs];
    const DESCRIPTION: &'static str = "Log lines and their number, Xids decoded.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        args.listing(context)?.plan(context, fetched)
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let listed = match args.listing(context)?.read(context, fetched, decode)? {
            Ok(listed) => listed,
            Err(none) => return Ok(none),
        };
        let mut sentences: Vec<Sentence> = listed.totals(" log lines match");
        if let Some(rows) = listed.evidence.first() {
            sentences.push(end_sentence(rows, args.latest));
            sentences.extend(xids(rows, &listed, args.latest));
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

/// Adds what is known of the Xid in a kernel line.
fn decode(row: &mut EvidenceRow) {
    let Some(line) = row.fields.get("body").and_then(|body| parse_xid_line(body)) else { return };
    let (key, known) = match line.source {
        XidSource::Gpu => ("xid", xid_info(line.code)),
        // A switch's codes are numbered apart from a GPU's.
        XidSource::Switch => ("sxid", None),
    };
    row.fields.insert(key.to_owned(), line.code.to_string());
    if let Some(info) = known {
        row.fields.insert("xid_meaning".to_owned(), info.meaning.clone());
    }
    row.fields.insert("pci".to_owned(), format!("{:04x}:{:02x}:{:02x}", line.domain, line.bus, line.device));
    if let Some(cause) = line.caused_by {
        row.fields.insert("caused_by_xid".to_owned(), cause.to_string());
    }
}

fn end_sentence(rows: &Evidence, latest: bool) -> Sentence {
    Sentence::new()
        .say(if latest { "the latest, at " } else { "the first, at " })
        .time(at(&rows.id, FactPath::RowTime { row: 0 }))
        .say(": ")
        .quote(at(&rows.id, FactPath::RowField { row: 0, field: "body".to_owned() }))
}

/// One sentence for each Xid. Only a whole list in time order can say which line was the first.
fn xids(rows: &Evidence, listed: &Listed, latest: bool) -> Vec<Sentence> {
    let mut named = BTreeSet::new();
    let mut sentences = Vec::new();
    for (index, row) in rows.rows.iter().enumerate() {
        let Some(code) = row.fields.get("xid") else { continue };
        if sentences.len() == MAX_XIDS || !named.insert(code) {
            continue;
        }
        let mut sentence = Sentence::new()
            .say("Xid ")
            .value(&rows.id, "xid", code)
            .say(if latest || listed.cut { " at " } else { " first at " })
            .time(at(&rows.id, FactPath::RowTime { row: index }));
        if !row.entity.is_empty() {
            sentence = sentence.say(" on ").entity(&rows.id, &row.entity);
        }
        if row.fields.contains_key("xid_meaning") {
            sentence = sentence
                .say(": ")
                .quote(at(&rows.id, FactPath::RowField { row: index, field: "xid_meaning".to_owned() }));
        }
        sentences.push(sentence);
    }
    sentences
}

#[cfg(test)]
#[path = "search_logs_tests.rs"]
mod tests;
