//! Whether all is well, of nothing in particular: alerts and faults, kernel errors, and jobs that failed.

use serde_json::json;
use sightline_model::{Evidence, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::resolve::Scope;
use super::metrics::join;
use super::{Stage, finish, scope_filters, windowed, with_window};
use crate::ports::{Gathered, ToolCall, Turn};

/// The tool that reads values.
const VALUES: &str = "metric_range";

/// What to do next.
pub(super) fn next(stage: &Stage<'_>, scope: &Scope) -> Turn {
    windowed(stage, scope, |range, asked| {
        let mut calls = calls(scope, range);
        calls.extend(of_gpu(scope, range));
        let made: Vec<&Gathered> =
            calls.iter().filter_map(|call| stage.gathered.iter().find(|g| g.call == *call)).collect();
        if made.len() < calls.len() {
            return Turn::Calls(calls);
        }
        let of_call = |tool: fn(&str) -> bool| -> Vec<&ToolOutput> {
            made.iter().filter(|g| tool(&g.call.tool)).filter_map(|g| g.outcome.as_ref().ok()).collect()
        };
        let found = of_call(|tool| tool != VALUES);
        let values = of_call(|tool| tool == VALUES);
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
            values.iter().for_each(|more| draft.claims.extend(more.claims.iter().cloned()));
            return finish(draft);
        };
        let mut draft = draft::from_output(first, Some(asked));
        rest.iter().chain(&values).for_each(|more| join(&mut draft, more));
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

/// How a GPU is right now, where one is named: how hot it is, and how fast.
fn of_gpu(scope: &Scope, range: TimeRange) -> Vec<ToolCall> {
    if scope.of("gpu").is_empty() {
        return Vec::new();
    }
    let filters = scope_filters(scope, &[]);
    let call = |metric: &str| ToolCall {
        tool: VALUES.to_owned(),
        arguments: with_window(json!({ "metric": metric, "filters": filters }), range),
    };
    ["gpu_temperature", "sm_clock"].map(call).into()
}

fn has_rows(evidence: &[Evidence]) -> bool {
    evidence.iter().any(|piece| !piece.rows.is_empty())
}
