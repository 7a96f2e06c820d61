//! Questions about meaning: what a metric, an Xid or a throttle bit means, how a metric misleads, what to do about something. They are
//! answered from the knowledge, with the asker's own series beside it where a job, a node or a GPU is named.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::draft;
use super::lexicon;
use super::plan::{finish, metric_arguments, output, window, with_window};
use super::reading::{MetricMention, Reading};
use super::time::asked;
use super::words::{Word, any, at, find};
use crate::ports::{Ask, Draft, Gathered, ToolCall, Turn};

/// Asks what something is.
const DEFINES: &[&str] = &[
    "what does",
    "what do",
    "meaning of",
    "mean by",
    "difference between",
    "differ from",
    "explain",
    "define",
    "definition of",
];
/// What such a question goes on with; `what does job J7 do` is none.
const MEANS: &[&str] = &[
    "mean",
    "means",
    "meaning",
    "measure",
    "measures",
    "stand for",
    "indicate",
    "count",
    "difference",
    "differ",
    "explain",
    "define",
    "definition",
];
/// Asks how something can be that looks like a contradiction.
const HOW_CAN: &[&str] = &[
    "why can",
    "why could",
    "why might",
    "why may",
    "why would",
    "how can",
    "how could",
    "is it normal",
    "is it possible",
];
/// Asks what to do.
const WHAT_TO_DO: &[&str] = &[
    "runbook",
    "playbook",
    "what to do",
    "what should i do",
    "what do i do",
    "how do i",
    "how to",
    "how should i",
    "should i use",
    "should we use",
    "which is better",
    "which metric",
];
/// Words of this field: a question that has none of them is about something else.
const FIELD: &[&str] = &[
    "gpu",
    "gpus",
    "xid",
    "xids",
    "sxid",
    "nvlink",
    "nvswitch",
    "nccl",
    "cuda",
    "dcgm",
    "throttle",
    "throttling",
    "clock",
    "bit",
    "metric",
    "metrics",
    "sm",
    "tensor",
    "utilization",
    "utilisation",
    "util",
    "ecc",
    "remap",
    "remapped",
    "hbm",
    "pcie",
    "infiniband",
    "rdma",
    "roce",
    "kv",
    "cache",
    "prefix",
    "ttft",
    "itl",
    "prefill",
    "decode",
    "preemption",
    "preemptions",
    "vllm",
    "sglang",
    "queue",
    "checkpoint",
    "straggler",
    "stragglers",
    "driver",
    "exporter",
    "dcgm-exporter",
    "fabric",
    "mig",
    "mfu",
    "oom",
    "memory",
    "node",
    "job",
    "drain",
    "collective",
    "power",
    "data",
    "loader",
    "dataloader",
    "storage",
    "runbook",
    "latency",
];
/// What makes a plain `what is …` one about a value: somebody's, or at some time.
const OF_SOMETHING: &[&str] =
    &["of", "on", "for", "at", "in", "now", "node", "job", "cluster", "service", "model", "average", "max"];
/// A choice between two things is short; a longer question with `or` in it is something else.
const MAX_CHOICE: usize = 8;
/// So many metrics of the entry are read for the thing that is named.
const MAX_SERIES: usize = 3;

/// Whether the question is one about meaning.
pub(super) fn asks(words: &[Word<'_>], has_metric: bool, has_job: bool, times: usize) -> bool {
    let code = find(words, "xid").or_else(|| find(words, "sxid")).and_then(|place| words.get(place + 1));
    let has_code = code.is_some_and(|word| word.folded.chars().all(|c| c.is_ascii_digit()));
    let has_mask = words.iter().any(|word| word.folded.starts_with("0x"));
    let of_field =
        has_metric || has_code || has_mask || any(words, FIELD) || words.iter().any(|w| w.folded.contains('_'));
    if !of_field {
        return false;
    }
    let begins = |phrases: &[&str]| phrases.iter().any(|phrase| at(words, 0, phrase));
    // "and what does it mean" asks the same as "what does it mean".
    // "TTFT of chat went through the roof, explain" asks for the cause.
    let explains_own = has_job && words.last().is_some_and(|word| word.folded == "explain");
    if any(words, DEFINES) && any(words, MEANS) && !explains_own {
        return true;
    }
    if any(words, HOW_CAN) && (begins(HOW_CAN) || !has_job) {
        return true;
    }
    if any(words, WHAT_TO_DO) {
        return true;
    }
    let plain = begins(&["what is", "what are"]);
    if plain && (has_code || has_mask) {
        return true;
    }
    // `why are requests slow` names a metric as well, and is no question about it.
    let own = has_job || times > 0 || any(words, OF_SOMETHING) || any(words, lexicon::SLOW);
    // `what is SM activity`, but not `what is the SM clock`, which asks for its value.
    if plain && has_metric && !own && words.get(2).is_none_or(|word| word.folded != "the") {
        return true;
    }
    // `why does utilisation show 100 % when nothing runs`: of no job or node.
    if begins(&["why does", "why do", "why is", "why are"]) && has_metric && !own {
        return true;
    }
    any(words, &["or"]) && has_metric && !own && words.len() <= MAX_CHOICE
}

/// Looks it up; then, where something is named, reads its series; then says both.
pub(super) fn next(ask: &Ask, zone: &TimeZone, reading: &Reading, gathered: &[Gathered]) -> Turn {
    let Some(found) = output(gathered, "search_runbooks") else {
        let search = ToolCall { tool: "search_runbooks".to_owned(), arguments: json!({ "query": ask.text }) };
        let mut calls = vec![search];
        // When a job ran has to be known before its series can be read.
        if let (Some(job), true) = (named_job(reading), reading.times.is_empty()) {
            calls.push(super::why::look_up_job(ask, Some(job)));
        }
        return Turn::Calls(calls);
    };
    let found = match found {
        Ok(found) => found,
        Err(sentence) => return finish(draft::call_failed(sentence, None)),
    };
    let Some((range, how)) = own_window(ask, zone, reading, gathered) else {
        return finish(draft::from_output(found, None));
    };
    let read: Vec<&Gathered> = gathered.iter().filter(|g| g.call.tool == "metric_range").collect();
    if !read.is_empty() {
        return finish(both(found, &read, how));
    }
    let calls: Vec<ToolCall> = metrics(reading, found)
        .iter()
        .map(|metric| ToolCall { tool: "metric_range".to_owned(), arguments: series(reading, metric, range) })
        .collect();
    if calls.is_empty() { finish(draft::from_output(found, None)) } else { Turn::Calls(calls) }
}

/// The job that is named; of `the job hangs` none is.
fn named_job(reading: &Reading) -> Option<&str> {
    reading.job.as_deref().filter(|job| !lexicon::SLOW.contains(&job.to_lowercase().as_str()))
}

/// The window of what is named; none where nothing is, or the job is not known.
fn own_window(ask: &Ask, zone: &TimeZone, reading: &Reading, gathered: &[Gathered]) -> Option<(TimeRange, AskedRange)> {
    let named = named_job(reading).is_some() || reading.named.iter().any(|(kind, _)| matches!(*kind, "node" | "gpu"));
    if !named {
        return None;
    }
    match (named_job(reading), reading.times.is_empty()) {
        (Some(job), true) => {
            let range = span(job, output(gathered, "find_entities")?.ok()?, ask.as_of)?;
            Some((range, asked(range, "the job's own time, as no time was named", zone)))
        }
        _ => window(ask, zone, reading),
    }
}

/// When the job ran.
fn span(job: &str, found: &ToolOutput, as_of: Timestamp) -> Option<TimeRange> {
    let rows = found.evidence.iter().flat_map(|piece| &piece.rows);
    let row = rows.into_iter().find(|row| row.entity.get("job").is_some_and(|id| id.eq_ignore_ascii_case(job)))?;
    let time = |key: &str| row.fields.get(key).and_then(|text| text.parse::<Timestamp>().ok());
    let from = time("start").or(row.time)?;
    TimeRange::new(from, time("end").unwrap_or(as_of).min(as_of))
}

/// The metric that was named, then those that the best entry is about.
fn metrics(reading: &Reading, found: &ToolOutput) -> Vec<String> {
    let mut metrics: Vec<String> = match &reading.metric {
        MetricMention::One(id) => vec![id.clone()],
        MetricMention::Several { .. } | MetricMention::None { .. } => Vec::new(),
    };
    let of_entry = found.evidence.first().and_then(|piece| piece.labels.get("metrics"));
    for id in of_entry.iter().flat_map(|list| list.split(", ")) {
        if !metrics.iter().any(|there| there == id) {
            metrics.push(id.to_owned());
        }
    }
    metrics.truncate(MAX_SERIES);
    metrics
}

fn series(reading: &Reading, metric: &str, range: TimeRange) -> Value {
    with_window(metric_arguments(reading, metric), range)
}

/// What the knowledge says, and the series beside it. What could not be read is told, and takes nothing away from the rest.
fn both(found: &ToolOutput, read: &[&Gathered], how: AskedRange) -> Draft {
    let mut draft = draft::from_output(found, Some(how));
    for gathered in read {
        match &gathered.outcome {
            Ok(series) => {
                // A series that is not there is an answer too: not collected is not zero.
                draft.claims.extend(series.claims.iter().cloned());
                draft.data_health.extend(series.data_health.iter().cloned());
                draft.suggestions.extend(series.suggestions.iter().cloned());
            }
            Err(none) => draft.data_health.push(format!("a series could not be read: {}", none.for_people)),
        }
    }
    draft.data_health.dedup();
    if draft.outcome == Some(Outcome::InsufficientData) && read.iter().any(|g| g.outcome.is_ok()) {
        draft.outcome = Some(Outcome::Answered);
    }
    draft
}
