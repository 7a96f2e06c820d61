//! What is wrong with a node, a GPU or a cluster: seen through the jobs that ran there, because they are what it would slow down.

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, CauseStatus, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::plan::{finish, from_call, output};
use super::super::reading::Reading;
use super::names::names;
use super::{doubt, job, looked_up, named_window, window};
use crate::ports::{Ask, Draft, Gathered, ToolCall, Turn};

/// So many jobs are looked into: those that were seen last.
const MAX_JOBS: usize = 4;

/// The reading with what it calls by a name alone taken for a node, where nothing but a node goes by that name.
pub(super) fn named_so(reading: &Reading, gathered: &[Gathered]) -> Option<Reading> {
    let written = reading.subject.as_deref()?;
    let found = looked_up(gathered, "node", true)?.ok()?;
    let node = names(found, "node").into_iter().find(|name| name.eq_ignore_ascii_case(written))?;
    let mut named = reading.clone();
    named.named.push(("node", node));
    Some(named)
}

/// The same, once its jobs have been looked for: then the question is on this way already.
pub(super) fn goes_on(reading: &Reading, gathered: &[Gathered]) -> Option<Reading> {
    looked_up(gathered, "job", false).and_then(|_| named_so(reading, gathered))
}

pub(super) fn next(ask: &Ask, zone: &TimeZone, reading: &Reading, gathered: &[Gathered]) -> Turn {
    let Some((range, asked)) = window(ask, zone, reading) else { return finish(draft::cannot_yet()) };
    if gathered.iter().any(|g| g.call.tool == "job_correlation") {
        return judged(ask, reading, asked, gathered);
    }
    if let Some(result) = output(gathered, "search_logs") {
        return from_call(result, Some(asked));
    }
    match looked_up(gathered, "job", false) {
        None => Turn::Calls(vec![jobs(reading, range)]),
        Some(Err(sentence)) => finish(draft::call_failed(sentence, Some(asked))),
        Some(Ok(found)) => {
            let named = named_window(ask, zone, reading).map(|(range, _)| range);
            let of =
                |job: &String| ToolCall { tool: "job_correlation".to_owned(), arguments: job::arguments(job, named) };
            let calls: Vec<ToolCall> = names(found, "job").iter().take(MAX_JOBS).map(of).collect();
            // Without a job the kernel's own words are what is left.
            if calls.is_empty() { Turn::Calls(vec![logs(reading, range)]) } else { Turn::Calls(calls) }
        }
    }
}

/// The jobs of the window, in the cluster where one was named.
fn jobs(reading: &Reading, range: TimeRange) -> ToolCall {
    let arguments = json!({
        "kind": "job", "from": range.from().to_string(), "to": range.to().to_string(),
        "filters": filters(reading, &["cluster"]),
    });
    ToolCall { tool: "find_entities".to_owned(), arguments }
}

fn logs(reading: &Reading, range: TimeRange) -> ToolCall {
    let arguments = json!({
        "from": range.from().to_string(), "to": range.to().to_string(),
        "filters": filters(reading, &["cluster", "node"]), "contains": "Xid",
    });
    ToolCall { tool: "search_logs".to_owned(), arguments }
}

fn filters(reading: &Reading, dims: &[&str]) -> Vec<Value> {
    let named = reading.named.iter().filter(|(dim, _)| dims.contains(dim));
    named.map(|(dim, value)| json!({ "dim": dim, "values": [value] })).collect()
}

/// Of the jobs that ran there, the one whose cause lies there; else the first that ran there at all.
fn judged(ask: &Ask, reading: &Reading, asked: AskedRange, gathered: &[Gathered]) -> Turn {
    let of_jobs = gathered.iter().filter(|g| g.call.tool == "job_correlation");
    let outputs: Vec<&ToolOutput> = of_jobs.clone().filter_map(|g| g.outcome.as_ref().ok()).collect();
    let blamed = |output: &&&ToolOutput| {
        let mut supported = output.causes.iter().filter(|cause| cause.status == CauseStatus::Supported);
        supported.any(|cause| !cause.components.is_empty() && cause.components.iter().any(|c| is_there(c, reading)))
    };
    let touched = |output: &&&ToolOutput| {
        let series = output.evidence.iter().flat_map(|e| e.series.iter().map(|s| &s.entity));
        let rows = output.evidence.iter().flat_map(|e| e.rows.iter().map(|r| &r.entity));
        series.chain(rows).any(|entity| is_there(entity, reading))
    };
    if let Some(output) = outputs.iter().find(blamed).or_else(|| outputs.iter().find(touched)) {
        return finish(doubt::answered(ask, reading, draft::from_output(output, Some(asked))));
    }
    if let (true, Some(failed)) = (outputs.is_empty(), of_jobs.clone().find_map(|g| g.outcome.as_ref().err())) {
        return finish(draft::call_failed(&failed.for_people, Some(asked)));
    }
    let sentence = "None of the jobs that were seen in this window ran there, so nothing can be said about it; name a longer time range.";
    finish(Draft { time_range: Some(asked), ..draft::plain(Outcome::InsufficientData, sentence) })
}

/// Whether an entity lies at the node and GPU that were named. A cluster was filtered by already.
fn is_there(entity: &sightline_model::Entity, reading: &Reading) -> bool {
    let mut places = reading.named.iter().filter(|(dim, _)| matches!(*dim, "node" | "gpu")).peekable();
    let any_place = ["node", "gpu"].into_iter().any(|key| entity.contains_key(key));
    if places.peek().is_none() {
        return any_place;
    }
    places.all(|(dim, value)| entity.get(*dim).is_some_and(|own| own.eq_ignore_ascii_case(value)))
}
