//! Why a job is or was slow, failed or hung.

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_model::{AskedRange, Candidate, Evidence, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::plan::{MAX_CHOICES, call, finish, from_call, output};
use super::super::reading::{Reading, Subject};
use super::super::time::asked;
use super::{doubt, looked_up, named_window, service};
use crate::ports::{Ask, Draft, Gathered, Turn};

/// How far back jobs are looked for by name: a quarter, after which a scheduler's ids are often used again.
const JOB_HORIZON_DAYS: i64 = 90;

pub(super) fn next(ask: &Ask, zone: &TimeZone, reading: &Reading, gathered: &[Gathered]) -> Turn {
    if output(gathered, "service_correlation").is_some() {
        return service::next(ask, zone, reading, Subject::Service, gathered);
    }
    let named = named_window(ask, zone, reading);
    if let Some(result) = output(gathered, "job_correlation") {
        let time_range = named.map(|(_, asked)| asked).or_else(|| job_span(result.ok(), zone));
        return doubt::told(ask, from_call(result, time_range));
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
            Picked::Several(jobs) => finish(which_job(ask, reading.job.as_deref(), &jobs)),
            Picked::None => finish(no_job(reading.job.as_deref(), found, named.map(|(_, asked)| asked))),
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
