//! Whether all is well, of nothing in particular: alerts and faults, kernel errors, and jobs that failed.

use serde_json::json;
use sightline_model::{Evidence, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::resolve::Scope;
use super::metrics::join;
use super::{Stage, finish, scope_filters, windowed, with_window};
use crate::ports::{Gathered, ToolCall, Turn};

/// What to do next.
pub(super) fn next(stage: &Stage<'_>, scope: &Scope) -> Turn {
    windowed(stage, scope, |range, asked| {
        let calls = calls(scope, range);
        let made: Vec<&Gathered> =
            calls.iter().filter_map(|call| stage.gathered.iter().find(|g| g.call == *call)).collect();
        if made.len() < calls.len() {
            return Turn::Calls(calls);
        }
        let found: Vec<&ToolOutput> = made.iter().filter_map(|g| g.outcome.as_ref().ok()).collect();
        let loud: Vec<&ToolOutput> = found.iter().copied().filter(|output| has_rows(&output.evidence)).collect();
        let Some((first, rest)) = loud.split_first() else {
            let mut draft = match found.first() {
                Some(output) => draft::from_output(output, Some(asked)),
                None => draft::call_failed("none of alerts, logs and jobs could be read", Some(asked)),
            };
            draft.outcome = Some(Outcome::NoFault);
            draft.headline = None;
            let named: Vec<&str> =
                scope.filters.iter().flat_map(|(_, values)| values.iter().map(String::as_str)).collect();
            let of = if named.is_empty() {
                String::new()
            } else {
                format!(" for {}", crate::ground::clean(&named.join(", ")))
            };
            draft.plain_headline =
                format!("No alert, no kernel error and no failed job was recorded{of} in this window.");
            return finish(draft);
        };
        let mut draft = draft::from_output(first, Some(asked));
        rest.iter().for_each(|more| join(&mut draft, more));
        draft.outcome = Some(Outcome::Answered);
        finish(draft)
    })
}

fn calls(scope: &Scope, range: TimeRange) -> Vec<ToolCall> {
    let call = |tool: &str, arguments| ToolCall { tool: tool.to_owned(), arguments: with_window(arguments, range) };
    // An event or a line of a node seldom names the GPU, and a job no node.
    let of_place = scope_filters(scope, &["gpu", "rank"]);
    let mut of_jobs = scope_filters(scope, &["gpu", "rank", "node"]);
    of_jobs.push(json!({ "dim": "state", "values": ["failed"] }));
    vec![
        call("list_events", json!({ "latest": true, "limit": 20, "filters": of_place })),
        call("search_logs", json!({ "contains": "Xid", "latest": true, "limit": 20, "filters": of_place })),
        call("find_entities", json!({ "kind": "job", "filters": of_jobs })),
    ]
}

fn has_rows(evidence: &[Evidence]) -> bool {
    evidence.iter().any(|piece| !piece.rows.is_empty())
}
