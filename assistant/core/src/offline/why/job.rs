//! Why a job is or was slow, failed or hung.

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Candidate, Evidence, EvidenceRow, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::plan::{MAX_CHOICES, Stage, call, finish, from_call, output};
use super::super::reading::Subject;
use super::super::resolve::words_of_name;
use super::super::time::asked;
use super::super::words::normalised;
use super::{doubt, looked_up, named_window, service};
use crate::ports::{Ask, Draft, Turn};

/// How far back jobs are looked for by name: a quarter, after which a scheduler's ids are often used again.
const JOB_HORIZON_DAYS: i64 = 90;

pub(super) fn next(stage: &Stage<'_>) -> Turn {
    let Stage { ask, zone, reading, gathered, .. } = *stage;
    if output(gathered, "service_correlation").is_some() {
        return service::next(ask, zone, reading, Subject::Service, gathered);
    }
    let named = named_window(ask, zone, reading);
    if let Some(result) = output(gathered, "job_correlation") {
        let time_range = named.map(|(_, asked)| asked).or_else(|| job_span(result.ok(), zone));
        return doubt::told(ask, reading, from_call(result, time_range));
    }
    match looked_up(gathered, "job", reading.job.is_some()) {
        None => Turn::Calls(vec![look_up(ask, reading.job.as_deref())]),
        Some(Err(sentence)) => finish(draft::call_failed(sentence, None)),
        Some(Ok(found)) => match pick_job(reading.job.as_deref(), found) {
            Picked::One(job) => call("job_correlation", arguments(&job, named.map(|(range, _)| range))),
            // `why is llama-70b slow`: a name that only looks like a job's may be a service's or a model's.
            Picked::Several(_) | Picked::None if reading.job_guessed => {
                service::next(ask, zone, reading, Subject::Anything, gathered)
            }
            // `the llama job`: told by words of its name.
            Picked::Several(jobs) => match told(stage, found, &jobs).as_slice() {
                [only] => call("job_correlation", arguments(only, named.map(|(range, _)| range))),
                [] => finish(which_job(ask, reading.job.as_deref(), &jobs)),
                several => finish(which_job(ask, reading.job.as_deref(), several)),
            },
            Picked::None => finish(no_job(reading.job.as_deref(), found, named.map(|(_, asked)| asked))),
        },
    }
}

/// Whether one job is told by words of its name.
pub(super) enum ByWords {
    /// All jobs have to be looked up first.
    Look(crate::ports::ToolCall),
    /// One is.
    Is,
    /// None, or several.
    Not,
}

/// Whether the words of the question tell one job.
pub(super) fn by_words(stage: &Stage<'_>) -> ByWords {
    if output(stage.gathered, "job_correlation").is_some() {
        return ByWords::Is;
    }
    match looked_up(stage.gathered, "job", false) {
        None => ByWords::Look(look_up(stage.ask, None)),
        Some(Err(_)) => ByWords::Not,
        Some(Ok(found)) => match told(stage, found, &super::names::names(found, "job")).as_slice() {
            [_] => ByWords::Is,
            _ => ByWords::Not,
        },
    }
}

/// The call that looks for a job, or for all of them.
pub(in crate::offline) fn look_up(ask: &Ask, job: Option<&str>) -> crate::ports::ToolCall {
    let from = ask.as_of.checked_sub((24 * JOB_HORIZON_DAYS).hours()).unwrap_or(ask.as_of);
    let mut arguments = json!({ "kind": "job", "from": from.to_string(), "to": ask.as_of.to_string() });
    if let (Some(job), Some(object)) = (job, arguments.as_object_mut()) {
        object.insert("search".to_owned(), json!(job));
    }
    crate::ports::ToolCall { tool: "find_entities".to_owned(), arguments }
}

/// The arguments of `job_correlation`.
pub(super) fn arguments(job: &str, range: Option<TimeRange>) -> Value {
    let mut arguments = json!({ "job": job });
    if let (Some(range), Some(object)) = (range, arguments.as_object_mut()) {
        object.insert("from".to_owned(), json!(range.from().to_string()));
        object.insert("to".to_owned(), json!(range.to().to_string()));
    }
    arguments
}

enum Picked {
    One(String),
    Several(Vec<String>),
    None,
}

/// The job that is meant: the one of that very id, else the only one found.
fn pick_job(named: Option<&str>, found: &ToolOutput) -> Picked {
    let ids = super::names::names(found, "job");
    if let Some(exact) = exact(named, &ids) {
        return Picked::One(exact.clone());
    }
    // Near names are offered, never taken for the one that was typed.
    let only_near = found.outcome == Some(Outcome::Clarify);
    match ids.as_slice() {
        [] => Picked::None,
        [only] if !only_near => Picked::One(only.clone()),
        several => Picked::Several(several.to_vec()),
    }
}

/// Of several jobs those whose names have most of the question's words.
fn told(stage: &Stage<'_>, found: &ToolOutput, jobs: &[String]) -> Vec<String> {
    let words = normalised(&stage.ask.text, stage.lexicon);
    let rows: Vec<&EvidenceRow> = found.evidence.iter().flat_map(|piece| &piece.rows).collect();
    let called = |job: &String| {
        let row = rows.iter().find(|row| row.entity.get("job") == Some(job))?;
        row.fields.get("name").map(|name| words_of_name(name, &words, stage.lexicon))
    };
    let scored: Vec<(usize, &String)> =
        jobs.iter().filter_map(|job| Some((called(job)?, job))).filter(|(count, _)| *count > 0).collect();
    let best = scored.iter().map(|(count, _)| *count).max();
    scored.iter().filter(|(count, _)| Some(*count) == best).map(|(_, job)| (*job).clone()).collect()
}

/// The only job of that name, or whose name has it as a part.
pub(super) fn called(written: Option<&str>, found: &ToolOutput) -> Option<String> {
    let written = written?.to_lowercase();
    let rows = found.evidence.iter().flat_map(|piece| &piece.rows);
    let names: Vec<(&String, String)> =
        rows.filter_map(|row| Some((row.entity.get("job")?, row.fields.get("name")?.to_lowercase()))).collect();
    let pick = |fits: &dyn Fn(&String) -> bool| {
        let mut ids: Vec<&String> = names.iter().filter(|(_, name)| fits(name)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        match ids.as_slice() {
            [only] => Some((*only).clone()),
            _ => None,
        }
    };
    pick(&|name| *name == written).or_else(|| pick(&|name| written.len() >= 4 && name.contains(&written)))
}

/// The job of that very id.
pub(super) fn exact<'a>(named: Option<&str>, ids: &'a [String]) -> Option<&'a String> {
    ids.iter().find(|id| named.is_some_and(|named| id.eq_ignore_ascii_case(named)))
}

fn no_job(named: Option<&str>, found: &ToolOutput, time_range: Option<AskedRange>) -> Draft {
    let sentence = match named {
        Some(named) => format!("There is no job `{}` among those you may see.", crate::ground::clean(named)),
        None => "There is no job among those you may see.".to_owned(),
    };
    Draft { time_range, suggestions: found.suggestions.clone(), ..draft::plain(Outcome::InsufficientData, &sentence) }
}

fn which_job(ask: &Ask, named: Option<&str>, jobs: &[String]) -> Draft {
    let choices = jobs.iter().take(MAX_CHOICES).map(|job| Candidate {
        label: job.clone(),
        question: match named {
            Some(named) => ask.text.replacen(named, job, 1),
            None => format!("Why was job {job} slow?"),
        },
    });
    let sentence = match named {
        Some(named) => format!(
            "`{}` is not the id of one job among those you may see; which one do you mean?",
            crate::ground::clean(named)
        ),
        None => "Which job do you mean?".to_owned(),
    };
    draft::clarify(&sentence, choices.collect())
}

/// Without a time in the question the window is the job's own span, as its evidence tells it.
fn job_span(output: Option<&ToolOutput>, zone: &TimeZone) -> Option<AskedRange> {
    let evidence: &Evidence = output?.evidence.iter().find(|e| e.dataset == "metrics")?;
    let range = TimeRange::new(evidence.from, evidence.to)?;
    Some(asked(range, "the job's own time, as no time was named", zone))
}
