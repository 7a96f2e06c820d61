//! Why a service is slow or fails, or a model that one serves; and what a name means that may be either's or a job's.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sightline_model::{AskedRange, Candidate, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use super::super::draft;
use super::super::plan::{MAX_CHOICES, call, finish, from_call, output, set};
use super::super::reading::{Reading, Subject};
use super::super::words::{Word, words};
use super::names::{meant, names};
use super::{doubt, host, job, looked_up, named_window, window};
use crate::ports::{Ask, Draft, Gathered, ToolCall, Turn};

/// How far before the window a name is looked for that nothing in the window has: as far back as a service's past is read.
const PAST: SignedDuration = SignedDuration::from_hours(48);

/// Under which kinds a service may be known, and the key of its name.
const KINDS: [&str; 2] = ["service", "model"];

pub(super) fn next(ask: &Ask, zone: &TimeZone, reading: &Reading, subject: Subject, gathered: &[Gathered]) -> Turn {
    if let Some(result) = output(gathered, "job_correlation") {
        let turn = from_call(result, named_window(ask, zone, reading).map(|(_, asked)| asked));
        return doubt::told(ask, reading, turn);
    }
    let Some((range, asked)) = window(ask, zone, reading) else { return finish(draft::cannot_yet()) };
    if let Some(result) = output(gathered, "service_correlation") {
        return finish(with_note(reading, gathered, result, asked));
    }
    // What is listed may be so because a place was looked for; a name that may be a job's is looked up all the same.
    let may_be_job = subject == Subject::Anything && reading.subject.is_some();
    let is_looked_up = !may_be_job || looked_up(gathered, "job", true).is_some();
    let Some(listed) = looked_up(gathered, "service", false).filter(|_| is_looked_up) else {
        return Turn::Calls(first_calls(ask, reading, subject, range, gathered));
    };
    let written = reading.subject.as_deref();
    let found = match listed {
        Ok(found) => found,
        // A list that is too long to be read needs no reading where the name is known.
        Err(_) if reading.is_subject_named() => return correlate(written, range),
        Err(sentence) => return finish(draft::call_failed(sentence, Some(asked))),
    };
    let models = looked_up(gathered, "model", false).and_then(Result::ok);
    let mut known = names(found, "service");
    known.extend(models.map(|found| names(found, "model")).unwrap_or_default());
    let spoken = if reading.is_subject_named() { Vec::new() } else { words(&ask.text) };
    if let Some(name) = meant(&spoken, written, &known) {
        let serves = names(found, "service").contains(name);
        return if serves || reading.is_subject_named() {
            correlate(Some(name), range)
        } else {
            of_model(ask, zone, reading, name, range, gathered)
        };
    }
    if let (Subject::Anything, Some(Ok(jobs))) = (subject, looked_up(gathered, "job", true))
        && let Some(job) = job::exact(written, &names(jobs, "job")).cloned().or_else(|| job::called(written, jobs))
    {
        let named = named_window(ask, zone, reading).map(|(range, _)| range);
        return call("job_correlation", job::arguments(&job, named));
    }
    if let (Subject::Anything, Some(reading)) = (subject, host::named_so(reading, gathered)) {
        return host::next(ask, zone, &reading, gathered);
    }
    // Engines are looked at one by one; of other services the one that users see is found by who calls whom.
    let all = models.is_none_or(|found| names(found, "model").is_empty());
    match (written, known.as_slice()) {
        (Some(written), _) => {
            let whole = match names(found, "service").as_slice() {
                _ if reading.is_subject_named() || known.is_empty() => Whole::Unknown,
                _ if all => Whole::All,
                [only] => Whole::Only(only.clone()),
                _ => Whole::Several,
            };
            by_name(ask, written, range, asked, gathered, &known, whole)
        }
        (None, [only]) => correlate(Some(only), range),
        (None, [_, ..]) if all => correlate(None, range),
        (None, []) => finish(Draft { time_range: Some(asked), ..draft::plain(Outcome::InsufficientData, NONE) }),
        (None, several) => finish(which(ask, None, several)),
    }
}

/// A model that no service goes by: the job that trains it, else whatever serves it.
fn of_model(
    ask: &Ask,
    zone: &TimeZone,
    reading: &Reading,
    name: &str,
    range: TimeRange,
    gathered: &[Gathered],
) -> Turn {
    let of = |dim: &str, value: &str| json!({ "dim": dim, "values": [value] });
    let mut look = job::look_up(ask, None);
    set(&mut look.arguments, "filters", json!([of("model", name), of("kind", "training")]));
    let Some(made) = gathered.iter().find(|g| g.call == look) else { return Turn::Calls(vec![look]) };
    let trained = made.outcome.as_ref().ok().map(|found| names(found, "job")).unwrap_or_default();
    match trained.first() {
        // The latest is listed first.
        Some(job) => {
            let named = named_window(ask, zone, reading).map(|(range, _)| range);
            call("job_correlation", job::arguments(job, named))
        }
        None => correlate(Some(name), range),
    }
}

const NONE: &str = "No service and no model of yours was recorded in this window.";

/// What is there in the window, and the job of that name where it may be one.
fn first_calls(
    ask: &Ask,
    reading: &Reading,
    subject: Subject,
    range: TimeRange,
    gathered: &[Gathered],
) -> Vec<ToolCall> {
    let mut calls: Vec<ToolCall> = KINDS.map(|kind| look_up(kind, None, range.from(), range)).into();
    let is_new = looked_up(gathered, "job", true).is_none();
    if let (Subject::Anything, Some(name), true) = (subject, &reading.subject, is_new) {
        calls.push(job::look_up(ask, Some(name)));
    }
    // `the GPUs on a100-62 look frozen`: a machine's name stands in a question without the word `node` as well.
    if let (Subject::Anything, Some(name)) = (subject, &reading.subject) {
        calls.push(look_up("node", Some(name), range.from(), range));
    }
    calls
}

fn look_up(kind: &str, search: Option<&str>, from: Timestamp, range: TimeRange) -> ToolCall {
    let mut arguments = json!({ "kind": kind, "from": from.to_string(), "to": range.to().to_string(), "limit": 1000 });
    if let (Some(search), Some(object)) = (search, arguments.as_object_mut()) {
        object.insert("search".to_owned(), json!(search));
    }
    ToolCall { tool: "find_entities".to_owned(), arguments }
}

fn correlate(name: Option<&str>, range: TimeRange) -> Turn {
    let mut arguments = json!({ "from": range.from().to_string(), "to": range.to().to_string() });
    if let (Some(name), Some(object)) = (name, arguments.as_object_mut()) {
        object.insert("service".to_owned(), json!(name));
    }
    call("service_correlation", arguments)
}

/// What a word is taken for that names nothing recorded, and is written as any word is (`why is the llm api slow`).
enum Whole {
    /// All services at once.
    All,
    /// The only service there is.
    Only(String),
    /// One of several inference services, which are looked at one by one.
    Several,
    /// Nothing: the word was said to be a name, or nothing is recorded.
    Unknown,
}

/// Nothing in the window goes by the name that was written: it is looked for in the days before, and near names are offered.
fn by_name(
    ask: &Ask,
    written: &str,
    range: TimeRange,
    asked: AskedRange,
    gathered: &[Gathered],
    known: &[String],
    whole: Whole,
) -> Turn {
    let from = range.from().checked_sub(PAST).unwrap_or(range.from());
    let searched: Vec<Option<Result<&ToolOutput, &str>>> =
        KINDS.iter().map(|kind| looked_up(gathered, kind, true)).collect();
    if searched.iter().all(Option::is_none) {
        return Turn::Calls(KINDS.map(|kind| look_up(kind, Some(written), from, range)).into());
    }
    let mut near: Vec<String> = Vec::new();
    for (kind, found) in KINDS.iter().zip(searched) {
        near.extend(found.and_then(Result::ok).map(|found| names(found, kind)).unwrap_or_default());
    }
    if let Some(name) = near.iter().find(|name| name.eq_ignore_ascii_case(written)) {
        return correlate(Some(name), range);
    }
    // `Online Boutique is slow`: an ordinary word that names nothing that is recorded is the name of the whole, if anything's.
    if near.is_empty() && is_plain_word(written) && means_the_whole(&words(&ask.text), written) {
        match whole {
            Whole::All => return correlate(None, range),
            Whole::Only(service) => return correlate(Some(&service), range),
            Whole::Several => return finish(which(ask, Some(written), known)),
            Whole::Unknown => {}
        }
    }
    if near.is_empty() {
        let sentence =
            format!("There is no service, model or job `{}` among those you may see.", crate::ground::clean(written));
        let suggestions = known.iter().take(MAX_CHOICES).map(|name| format!("Why is service {name} slow?")).collect();
        return finish(Draft {
            time_range: Some(asked),
            suggestions,
            ..draft::plain(Outcome::InsufficientData, &sentence)
        });
    }
    finish(which(ask, Some(written), &near))
}

/// The answer, and that all services were looked at where a word of the question named none of them.
fn with_note(reading: &Reading, gathered: &[Gathered], result: Result<&ToolOutput, &str>, asked: AskedRange) -> Draft {
    let mut draft = match result {
        Ok(output) => draft::from_output(output, Some(asked)),
        Err(sentence) => draft::call_failed(sentence, Some(asked)),
    };
    let of_all =
        gathered.iter().any(|g| g.call.tool == "service_correlation" && g.call.arguments.get("service").is_none());
    if let (true, Some(written)) = (of_all, &reading.subject) {
        let word = crate::ground::clean(written);
        draft
            .data_health
            .insert(0, format!("`{word}` is the name of no service you may see; all of them were looked at"));
    }
    draft
}

/// Whether a word is written as any word is: nobody writes `chat-v2`, `PetSite` or `80609` but for a name.
fn is_plain_word(word: &str) -> bool {
    word.chars().all(char::is_alphabetic) && !word.chars().skip(1).any(char::is_uppercase)
}

/// Whether a word that is no service's name speaks of all that there is: a brand (`Online Boutique is slow`), or a thing with an article (`the llm
/// api`, `our shop`). A bare word (`why is recommender slow`) is the name of something that is not there.
fn means_the_whole(words: &[Word<'_>], written: &str) -> bool {
    const ARTICLES: [&str; 6] = ["the", "our", "my", "your", "this", "that"];
    let place = words.iter().position(|word| word.typed == written);
    let before = place.and_then(|place| place.checked_sub(1)).and_then(|place| words.get(place));
    written.chars().next().is_some_and(char::is_uppercase)
        || before.is_some_and(|word| ARTICLES.contains(&word.folded.as_str()))
}

fn which(ask: &Ask, written: Option<&str>, names: &[String]) -> Draft {
    let choices = names.iter().take(MAX_CHOICES).map(|name| Candidate {
        label: name.clone(),
        question: match written {
            Some(written) => ask.text.replacen(written, name, 1),
            None => format!("Why is service {name} slow?"),
        },
    });
    let sentence = match written {
        Some(written) => format!(
            "`{}` is not the name of a service or a model among those you may see; which one do you mean?",
            crate::ground::clean(written)
        ),
        None => "Which service do you mean?".to_owned(),
    };
    draft::clarify(&sentence, choices.collect())
}
