//! Questions about meaning: what a metric, an Xid or a throttle bit means, how a metric misleads, what to do about something. They are
//! answered from the knowledge, with the asker's own series beside it where a job, a node or a GPU is named.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::draft;
use super::lexicon::Lexicon;
use super::plan::{finish, metric_arguments, output, with_window};
use super::reading::{MetricMention, Reading};
use super::time::asked;
use super::words::{Word, any, at, find};
use crate::ports::{Ask, Draft, Gathered, ToolCall, Turn};

/// A choice between two things is short; a longer question with `or` in it is something else.
const MAX_CHOICE: usize = 8;
/// So many metrics of the entry are read for the thing that is named.
const MAX_SERIES: usize = 3;

/// What else is known of a question that may be one about meaning.
pub(super) struct Asked {
    /// Whether it names a metric.
    pub(super) has_metric: bool,
    /// Whether it names two.
    pub(super) has_two: bool,
    /// Whether it is about a job, or says that something is unwell.
    pub(super) has_job: bool,
    /// Whether a job, a node or another thing is named.
    pub(super) is_named: bool,
    /// Whether a time is.
    pub(super) has_time: bool,
    /// Whether a measure of pace is said to have moved.
    pub(super) has_moved: bool,
}

/// Whether the question is one about meaning.
pub(super) fn asks(words: &[Word<'_>], lexicon: &Lexicon, asked: &Asked) -> bool {
    let Asked { has_metric, has_two, has_job, is_named, has_time, has_moved } = *asked;
    let (meaning, start) = (&lexicon.meaning, super::classify::begins(words, lexicon));
    let said = words.get(start..).unwrap_or_default();
    let code = find(words, "xid").or_else(|| find(words, "sxid")).and_then(|place| words.get(place + 1));
    let has_code = code.is_some_and(|word| word.folded.chars().all(|c| c.is_ascii_digit()));
    let has_mask = words.iter().any(|word| word.folded.starts_with("0x"));
    let of_field =
        has_metric || has_code || has_mask || meaning.field.any(words) || words.iter().any(|w| w.folded.contains('_'));
    if !of_field {
        return false;
    }
    let begins = |phrases: &[&str]| phrases.iter().any(|phrase| at(said, 0, phrase));
    // "and what does it mean" asks the same as "what does it mean".
    // "TTFT of chat went through the roof, explain" asks for the cause.
    let explains_own = has_job
        && (words.last().is_some_and(|word| word.folded == "explain") || lexicon.what.why.any(words) || has_moved);
    // `somebody mentioned MFU, what is it`
    let tail = words.get(words.len().saturating_sub(3)..).unwrap_or_default();
    let asks_last = ["what is it", "what is that", "what are they", "what are those", "what is this"];
    if asks_last.iter().any(|phrase| at(tail, 0, phrase)) && !is_named && !has_time && !has_job {
        return true;
    }
    if meaning.defines.any(words) && meaning.means.any(words) && !explains_own {
        return true;
    }
    if meaning.how_can.any(words) && (meaning.how_can.begin(said) || !has_job) {
        return true;
    }
    if meaning.what_to_do.any(words) {
        return true;
    }
    // `never heard of row remapping`, `MFU, eli5`: of nothing that runs here.
    if meaning.explains.any(words) && !is_named && !has_time {
        return true;
    }
    // `what is an XID anyway?`, wherever it stands.
    let what_a = ["what is a", "what is an", "what are"]
        .iter()
        .find_map(|lead| Some(find(words, lead)? + super::words::length(lead)));
    let of_field_word = what_a
        .and_then(|place| words.get(place))
        .is_some_and(|word| meaning.field.has(&word.folded) || lexicon.names.like_names.has(&word.folded));
    if of_field_word && !is_named && !has_time && !lexicon.what.most.any(words) && !lexicon.what.least.any(words) {
        return true;
    }
    // `the log says Xid 74. bad?`
    if has_code && meaning.grave.any(words) && !is_named && !has_time {
        return true;
    }
    let plain = begins(&["what is", "what are"]);
    if (plain || said.len() <= 2) && (has_code || has_mask) {
        return true;
    }
    // `is Xid 31 a hardware problem or my code`: of a code that no node or time goes with.
    let places =
        words.iter().any(|word| matches!(word.folded.as_str(), "where" | "when" | "how" | "any" | "last" | "since"));
    let yes_or_no = lexicon.what.yes_or_no.begin(said) || begins(&["should", "can", "could"]);
    if has_code && yes_or_no && !is_named && !has_time && !places {
        return true;
    }
    // `what is KV cache usage and when is it bad`: of nothing that is named.
    let of_something = meaning.of_something.any(words);
    if plain
        && has_metric
        && !is_named
        && !has_time
        && !of_something
        && said.get(2).is_none_or(|word| word.folded != "the")
    {
        return true;
    }
    // `why are requests slow` names a metric as well, and is no question about it.
    let own = has_job || is_named || has_time || of_something || lexicon.unwell.slow.any(words);
    // `why does utilisation show 100 % when nothing runs`: of no job or node.
    if begins(&["why does", "why do", "why is", "why are"]) && has_metric && !own {
        return true;
    }
    // `SM active vs GPU util`, `single bit or double bit ECC errors`
    let held = any(words, &["or", "vs", "versus", "against", "compared"]);
    held && has_metric && !own && (words.len() <= MAX_CHOICE || (has_two && meaning.means.any(words)))
}

/// Looks it up; then, where something is named, reads its series; then says both.
pub(super) fn next(ask: &Ask, zone: &TimeZone, reading: &Reading, gathered: &[Gathered]) -> Turn {
    let Some(found) = output(gathered, "search_runbooks") else {
        let mut arguments = json!({ "query": ask.text });
        if let Some(xid) = xid(&ask.text) {
            super::plan::set(&mut arguments, "xid", json!(xid));
        }
        let search = ToolCall { tool: "search_runbooks".to_owned(), arguments };
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

/// The number of an Xid that is asked about.
fn xid(text: &str) -> Option<u32> {
    let words = super::words::words(text);
    words.iter().enumerate().find_map(|(place, word)| {
        let glued = word.folded.strip_prefix("xid").filter(|rest| !rest.is_empty());
        let number = match glued {
            Some(rest) => rest.trim_start_matches(['-', '_', ':', '#']),
            None if word.folded == "xid" => words.get(place + 1)?.folded.as_str(),
            None => return None,
        };
        number.parse().ok()
    })
}

/// The job that is named; of `the job hangs` none is.
fn named_job(reading: &Reading) -> Option<&str> {
    reading.job.as_deref()
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
        _ => super::windows::plain(ask, zone, reading),
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
