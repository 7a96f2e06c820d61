//! Marking and classifying: which words are times, metrics and entities, and what kind of question they make.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_query::{Catalogue, Resolution};

use super::lexicon;
use super::subject;
use super::time::{TimeFault, TimeMention, find_times};
use super::words::{Word, any, at, find, length, words};

/// What kind of question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Why is or was something slow, why did it fail or hang, or is it well.
    Why(Subject),
    /// The value of a metric over a window.
    Value,
    /// Entities ranked by a metric.
    TopK,
    /// One metric in two windows.
    Compare,
    /// Log lines.
    Logs,
    /// Events.
    Events,
    /// What something means, or what to do about it.
    Meaning,
    /// A command to change something.
    Write,
    /// Anything else.
    Other,
}

/// What is or may be unwell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A job.
    Job,
    /// A service, or a model that one serves.
    Service,
    /// A node, a GPU or a cluster.
    Host,
    /// Something by a name that may be a service's, a model's or a job's.
    Anything,
}

/// The metric that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MetricMention {
    /// One metric, by canonical id.
    One(String),
    /// Several could be meant.
    Several {
        /// The words.
        typed: String,
        /// Canonical ids.
        candidates: Vec<String>,
    },
    /// None was recognised; these are close.
    None {
        /// Close names, for words that look like a metric's.
        near: Vec<String>,
        /// The word they are close to.
        typed: Option<String>,
    },
}

/// Entities named by kind and name (`node atlas-n07`, `gpu 3`), canonical keys.
pub(super) type Named = Vec<(&'static str, String)>;

/// A question as it was understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// Its class.
    pub(super) class: Class,
    /// The job, as typed.
    pub(super) job: Option<String>,
    /// Whether a word was taken for a job because it is written like one, and may be something else.
    pub(super) job_guessed: bool,
    /// What is unwell, as typed, where it may be a service or a model.
    pub(super) subject: Option<String>,
    /// The metric.
    pub(super) metric: MetricMention,
    /// Other entities.
    pub(super) named: Named,
    /// The tenant it names, if it does (`tenant borealis`).
    pub(super) tenant: Option<String>,
    /// Windows, in the order they were named.
    pub(super) times: Vec<TimeMention>,
    /// Whether the window before the named one is meant too.
    pub(super) and_before: bool,
    /// How many to rank.
    pub(super) count: Option<u32>,
    /// Whether the smallest come first.
    pub(super) ascending: bool,
    /// The aggregation that was asked for, by wire name.
    pub(super) aggregation: Option<&'static str>,
    /// What is ranked: dimensions by wire name.
    pub(super) ranked: Vec<&'static str>,
    /// Whether Xid lines are asked for.
    pub(super) xid: bool,
    /// The kind of events asked for.
    pub(super) event_kind: Option<&'static str>,
}

impl Reading {
    /// Whether the subject was said to be a service or a model.
    pub(super) fn is_subject_named(&self) -> bool {
        let said =
            |(kind, name): &(&str, String)| matches!(*kind, "service" | "model") && self.subject.as_ref() == Some(name);
        self.named.iter().any(said)
    }
}

/// Reads a question.
///
/// # Errors
/// When a time expression has no meaning here.
pub(super) fn read(text: &str, catalogue: &Catalogue, as_of: Timestamp, zone: &TimeZone) -> Result<Reading, TimeFault> {
    let words = words(text);
    let times = find_times(&words, as_of, zone)?;
    let named = named(&words);
    let (job, job_guessed) = match job(&words, &times) {
        Some(job) => (Some(job), false),
        None if any(&words, lexicon::SERVICE) => (None, false),
        None => match guessed_job(&words, &named) {
            Some(guessed) => (Some(guessed), true),
            None => (None, false),
        },
    };
    let written = subject::written_name(&words, &times, &named);
    // `tensor activity of embed-train is low, is the job broken`: the job has a name, only not where one is looked for.
    let spoken = written.as_deref().filter(|name| subject::is_joined_name(name) && any(&words, lexicon::JOB));
    let (job, job_guessed) = match (job, spoken) {
        (None, Some(name)) if named.is_empty() && !any(&words, lexicon::SERVICE) => (Some(name.to_owned()), true),
        (job, _) => (job, job_guessed),
    };
    let tenant = after(&words, &["tenant", "tenant of", "customer"]);
    let metric = metric(&words, &times, catalogue);
    let about = subject::subject(&words, job.is_some(), &named, written.as_deref());
    let class = classify(&words, &metric, about, written.as_deref(), times.len());
    Ok(Reading {
        class,
        job,
        job_guessed,
        subject: written,
        metric,
        named,
        tenant,
        and_before: any(&words, lexicon::BEFORE),
        count: count(&words),
        ascending: any(&words, lexicon::LEAST),
        aggregation: lexicon::AGGREGATION.iter().find(|(word, _)| find(&words, word).is_some()).map(|(_, agg)| *agg),
        ranked: ranked(&words),
        xid: any(&words, lexicon::XID),
        event_kind: lexicon::EVENT_KINDS.iter().find(|(word, _)| find(&words, word).is_some()).map(|(_, kind)| *kind),
        times,
    })
}

fn classify(
    words: &[Word<'_>],
    metric: &MetricMention,
    about: Option<Subject>,
    written: Option<&str>,
    times: usize,
) -> Class {
    let commands = words.first().is_some_and(|w| lexicon::WRITES.contains(&w.folded.as_str()))
        || (at(words, 0, "please") && words.get(1).is_some_and(|w| lexicon::WRITES.contains(&w.folded.as_str())))
        || (any(words, &["can you", "could you"])
            && words.get(2).is_some_and(|w| lexicon::WRITES.contains(&w.folded.as_str())));
    let asks = words.first().is_some_and(|w| lexicon::ASKS.contains(&w.folded.as_str()));
    if commands && !asks {
        return Class::Write;
    }
    let has_metric = !matches!(metric, MetricMention::None { .. });
    // What is unwell is somebody's, whether or not it has a name.
    let own = about == Some(Subject::Job) || subject::is_unwell(words);
    if super::meaning::asks(words, has_metric, own, times) {
        return Class::Meaning;
    }
    // `On most machines …. Who is holding it up?` ranks nothing.
    let seeks = written.is_some_and(subject::is_joined_name) && any(words, lexicon::SEEKS);
    let ranks = (any(words, lexicon::MOST) || any(words, lexicon::LEAST)) && !seeks;
    // Of a job, a word of slowness is enough; what lies beside it in the question is part of the story.
    if about == Some(Subject::Job) && any(words, lexicon::SLOW) {
        return Class::Why(Subject::Job);
    }
    // `The dashboard shows Xid 45 for job 661204. What actually broke?` asks for the cause, not for the lines.
    let named = written.is_some_and(subject::is_joined_name);
    if let Some(about @ (Subject::Job | Subject::Anything)) = about
        && (about == Subject::Job || named)
        && any(words, lexicon::LOGS)
        && (any(words, lexicon::SEEKS) || any(words, lexicon::SLOW))
    {
        return Class::Why(about);
    }
    // A metric of the same name (`DCGM_FI_DEV_XID_ERRORS`) is meant only when it is written as one.
    let named_metric = words.iter().any(|w| w.folded.contains('_') || w.folded.contains(':')) && has_metric;
    if any(words, lexicon::LOGS) && !any(words, lexicon::LOGS_IN) && !named_metric {
        return Class::Logs;
    }
    if any(words, lexicon::EVENTS) && !named_metric {
        return Class::Events;
    }
    let compares = any(words, lexicon::COMPARE);
    if has_metric && compares && (times >= 2 || any(words, lexicon::BEFORE)) {
        return Class::Compare;
    }
    if let (Some(about), false) = (about, ranks && has_metric)
        && subject::is_symptom(words)
    {
        return Class::Why(about);
    }
    if ranks && (has_metric || lexicon::RANKS_BY.iter().any(|(word, _)| find(words, word).is_some())) {
        return Class::TopK;
    }
    if has_metric {
        return Class::Value;
    }
    // A value question about something that is no known metric is answered with near names.
    let near = matches!(metric, MetricMention::None { typed: Some(_), .. });
    if near && any(words, lexicon::VALUE) {
        return Class::Value;
    }
    // A question that names something and asks nothing else that is understood asks how that does.
    match about {
        Some(Subject::Job) if asks => Class::Why(Subject::Job),
        Some(Subject::Anything) if named => Class::Why(Subject::Anything),
        // What is slow or fails goes by a word that only the look-up can tell from any other: `the shop's frontend`.
        None if subject::is_unwell(words) => Class::Why(Subject::Service),
        Some(Subject::Job | Subject::Service | Subject::Host | Subject::Anything) | None => Class::Other,
    }
}

/// The job: the word after `job`, or a word that looks like a scheduler's id (`J123`, `job-88412`).
fn job(words: &[Word<'_>], times: &[TimeMention]) -> Option<String> {
    for (place, word) in words.iter().enumerate() {
        if !matches!(word.folded.as_str(), "job" | "run") {
            continue;
        }
        if let Some(next) = words.get(place + 1)
            && !is_filler(&next.folded)
            && !subject::is_vocabulary(next)
            && !in_time(times, place + 1)
        {
            return Some(next.typed.to_owned());
        }
    }
    let looks_like_id = |word: &&Word<'_>| {
        let rest = word.folded.strip_prefix("job").unwrap_or(&word.folded);
        let rest = rest.strip_prefix('j').unwrap_or(rest).trim_start_matches(['-', '_', '#']);
        word.folded.starts_with('j') && !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())
    };
    words.iter().find(looks_like_id).map(|word| word.typed.to_owned())
}

/// `is llama-70b slow`: the word before the slow word, when it looks like a name and is not said to be anything else.
fn guessed_job(words: &[Word<'_>], named: &Named) -> Option<String> {
    let slow = words.iter().position(|word| lexicon::SLOW.contains(&word.folded.as_str()))?;
    let before = words.get(slow.checked_sub(1)?)?;
    let is_name = before.folded.contains(['-', '_']) && before.folded.chars().any(char::is_alphanumeric);
    let is_other = named.iter().any(|(_, name)| name == before.typed);
    (is_name && !is_other).then(|| before.typed.to_owned())
}

fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "is" | "was"
            | "so"
            | "slow"
            | "slower"
            | "in"
            | "on"
            | "at"
            | "of"
            | "the"
            | "a"
            | "my"
            | "with"
            | "and"
            | "that"
            | "running"
            | "run"
            | "been"
            | "being"
            | "get"
            | "gets"
            | "go"
            | "slowed"
            | "have"
            | "had"
            | "has"
            | "throughput"
            | "step"
            | "degraded"
            | "now"
            | "today"
            | "yesterday"
            | "take"
            | "taking"
            | "took"
            | "to"
            | "for"
            | "from"
            | "since"
            | "lose"
    )
}

fn in_time(times: &[TimeMention], place: usize) -> bool {
    times.iter().any(|t| (t.first..t.first + t.length).contains(&place))
}

/// `node X`, `gpu N`, `cluster C`, `service S`, `model M`, `rank R`.
fn named(words: &[Word<'_>]) -> Named {
    let mut named = Vec::new();
    for kind in ["node", "gpu", "cluster", "service", "model", "rank", "pod"] {
        for place in 0..words.len() {
            let Some(word) = words.get(place) else { continue };
            if word.folded != kind {
                continue;
            }
            let Some(next) = words.get(place + 1) else { continue };
            let is_index = next.folded.chars().all(|c| c.is_ascii_digit());
            let is_name = next.folded.chars().any(|c| c.is_ascii_digit()) || next.folded.contains(['-', '_', '.']);
            let fits = match kind {
                "gpu" | "rank" => is_index,
                _ => is_name || (matches!(kind, "cluster" | "service" | "model") && !is_filler(&next.folded)),
            };
            if fits {
                named.push((kind, next.typed.to_owned()));
            }
        }
    }
    named
}

/// The word after one of these phrases.
fn after(words: &[Word<'_>], phrases: &[&str]) -> Option<String> {
    phrases.iter().find_map(|phrase| {
        let place = find(words, phrase)? + length(phrase);
        let word = words.get(place)?;
        (!is_filler(&word.folded)).then(|| word.typed.to_owned())
    })
}

/// Longest phrase of everyday words that can name a metric.
const MAX_METRIC_WORDS: usize = 5;

/// The metric, by the longest run of words the catalogue knows.
fn metric(words: &[Word<'_>], times: &[TimeMention], catalogue: &Catalogue) -> MetricMention {
    for size in (1..=MAX_METRIC_WORDS).rev() {
        for place in 0..words.len().saturating_sub(size - 1) {
            if (place..place + size).any(|p| in_time(times, p)) {
                continue;
            }
            let run: Vec<&str> = words.iter().skip(place).take(size).map(|w| w.typed).collect();
            let typed = run.join(" ");
            match catalogue.meant(&typed).as_slice() {
                [] => {}
                [metric] => return MetricMention::One(metric.id().to_owned()),
                several => {
                    let candidates = several.iter().map(|m| m.id().to_owned()).collect();
                    return MetricMention::Several { typed, candidates };
                }
            }
        }
    }
    if let Some((_, id)) = lexicon::RANKS_BY.iter().find(|(word, _)| find(words, word).is_some()) {
        return MetricMention::One((*id).to_owned());
    }
    // A word written like a metric's name is one that was meant, if misspelt.
    let like_a_name = words.iter().find(|w| w.folded.contains(['_', ':']) && w.folded.len() > 3);
    match like_a_name.map(|word| (word, catalogue.resolve(word.typed))) {
        Some((word, Resolution::Unknown { near })) => MetricMention::None { near, typed: Some(word.typed.to_owned()) },
        Some((_, Resolution::Exact(_) | Resolution::Ambiguous(_))) | None => {
            MetricMention::None { near: Vec::new(), typed: None }
        }
    }
}

/// `top 5`, `5 hottest`.
fn count(words: &[Word<'_>]) -> Option<u32> {
    let number =
        |place: usize| words.get(place).and_then(|w| w.folded.parse::<u32>().ok()).filter(|n| (1..=1000).contains(n));
    words.iter().enumerate().find_map(|(place, word)| {
        let ranks = lexicon::MOST.contains(&word.folded.as_str()) || lexicon::LEAST.contains(&word.folded.as_str());
        if ranks { number(place + 1).or_else(|| place.checked_sub(1).and_then(number)) } else { None }
    })
}

/// What is ranked, from the plural or `which …`.
fn ranked(words: &[Word<'_>]) -> Vec<&'static str> {
    let dims: [(&[&str], &[&'static str]); 5] = [
        (&["gpus", "which gpu", "hottest gpu", "coolest gpu", "busiest gpu"], &["node", "gpu"]),
        (&["nodes", "which node", "hosts", "machines"], &["node"]),
        (&["clusters", "which cluster"], &["cluster"]),
        (&["services", "which service", "components", "which component"], &["service"]),
        (&["models", "which model"], &["model"]),
    ];
    dims.iter().find(|(phrases, _)| any(words, phrases)).map(|(_, dims)| dims.to_vec()).unwrap_or_default()
}
