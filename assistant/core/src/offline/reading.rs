//! Marking: which words are times, metrics, entities, limits and anchors, and what kind of question they make.

mod metrics;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use sightline_query::Catalogue;

use super::anchor::{self, Anchor};
use super::classify::scored;
pub(super) use super::classify::{Class, Scored, Subject};
use super::entities::{self, Mention};
use super::features::features;
use super::lexicon::Lexicon;
use super::limits::{Limit, limits};
use super::subject;
use super::time::{TimeFault, TimeMention, find_times};
use super::words::{Word, any, find, normalised};
pub(super) use metrics::MetricMention;

/// Entities named by kind and name (`node atlas-n07`, `gpu 3`), canonical keys.
pub(super) type Named = Vec<(&'static str, String)>;

/// A question as it was understood.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Its class.
    pub(super) class: Class,
    /// All classes that something spoke for, the best first.
    pub(super) scores: Vec<Scored>,
    /// What rules could ask for.
    pub(super) features: Vec<&'static str>,
    /// The job, as typed.
    pub(super) job: Option<String>,
    /// Whether a word was taken for a job because it is written like one, and may be something else.
    pub(super) job_guessed: bool,
    /// What is unwell, as typed, where it may be a service or a model.
    pub(super) subject: Option<String>,
    /// The metric.
    pub(super) metric: MetricMention,
    /// Further metrics that were named beside it.
    pub(super) also: Vec<String>,
    /// Other entities.
    pub(super) named: Named,
    /// Everything that is or may be a name, as it stands.
    pub(super) mentions: Vec<Mention>,
    /// People whose things are asked for.
    pub(super) users: Vec<String>,
    /// Whether the asker's own are.
    pub(super) own: bool,
    /// The tenant it names, if it does (`tenant borealis`).
    pub(super) tenant: Option<String>,
    /// Windows, in the order they were named.
    pub(super) times: Vec<TimeMention>,
    /// A time told by what happened.
    pub(super) anchor: Option<Anchor>,
    /// `the same time yesterday`: how far back.
    pub(super) shifted: Option<Span>,
    /// Whether the window before the named one is meant too.
    pub(super) and_before: bool,
    /// How many to rank or to list.
    pub(super) count: Option<u32>,
    /// Whether the smallest come first.
    pub(super) ascending: bool,
    /// The aggregation that was asked for, by wire name.
    pub(super) aggregation: Option<String>,
    /// Limits on a value.
    pub(super) limits: Vec<Limit>,
    /// What is ranked, or told apart: dimensions by wire name.
    pub(super) ranked: Vec<&'static str>,
    /// A kind of things of which several are asked for.
    pub(super) kind_many: Option<&'static str>,
    /// Whether Xid lines are asked for.
    pub(super) xid: bool,
    /// The kind of events asked for.
    pub(super) event_kind: Option<String>,
    /// The state of jobs asked for.
    pub(super) state: Option<String>,
    /// The zone in which times are told, where another than the asker's was named.
    pub(super) zone: Option<TimeZone>,
    /// Words read as others than were typed: slips, and what was read for them.
    pub(super) mended: Vec<(String, String)>,
}

impl Reading {
    /// Whether the subject was said to be a service or a model.
    pub(super) fn is_subject_named(&self) -> bool {
        let said =
            |(kind, name): &(&str, String)| matches!(*kind, "service" | "model") && self.subject.as_ref() == Some(name);
        self.named.iter().any(said)
    }

    /// Whether a feature was found.
    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.contains(&feature)
    }

    /// The kind of the two things that are held against each other, where two of a kind are named.
    pub(super) fn sides(&self) -> Option<&'static str> {
        let count = |kind: &str| self.mentions.iter().filter(|mention| mention.kind == Some(kind)).count();
        if let Some(kind) =
            ["job", "node", "gpu", "cluster", "service", "model", "rank"].into_iter().find(|kind| count(kind) == 2)
        {
            return Some(kind);
        }
        let loose = self.mentions.iter().filter(|mention| mention.kind.is_none() && mention.written).count();
        (loose == 2).then_some("loose")
    }
}

/// Reads a question.
///
/// # Errors
/// When a time expression has no meaning here.
pub(super) fn read(
    text: &str,
    lexicon: &Lexicon,
    catalogue: &Catalogue,
    as_of: Timestamp,
    zone: &TimeZone,
) -> Result<Reading, TimeFault> {
    let words = normalised(text, lexicon);
    let shifted = anchor::shifted(&words);
    let anchor = anchor::anchor(&words, lexicon);
    let mut times = find_times(&words, as_of, zone)?;
    let inside = |first: usize, length: usize, time: &TimeMention| {
        time.first < first + length && first < time.first + time.length
    };
    times.retain(|time| {
        !shifted.as_ref().is_some_and(|(_, first, length)| inside(*first, *length, time))
            && !anchor.as_ref().is_some_and(|anchor| inside(anchor.first, anchor.length, time))
    });
    let said_named = named(&words, lexicon);
    let (job, job_guessed) = match job(&words, &times, lexicon) {
        Some(job) => (Some(job), false),
        None if lexicon.names.service.any(&words) => (None, false),
        None => match guessed_job(&words, &said_named, lexicon) {
            Some(guessed) => (Some(guessed), true),
            None => (None, false),
        },
    };
    let written = subject::written_name(&words, &times, &said_named, lexicon);
    // `tensor activity of embed-train is low, is the job broken`: the job has a name, only not where one is looked for.
    let spoken = written.as_deref().filter(|name| subject::is_joined_name(name) && lexicon.names.job.any(&words));
    let (job, job_guessed) = match (job, spoken) {
        (None, Some(name)) if said_named.is_empty() && !lexicon.names.service.any(&words) => {
            (Some(name.to_owned()), true)
        }
        (job, _) => (job, job_guessed),
    };
    let about = subject::subject(&words, job.is_some(), &said_named, written.as_deref(), lexicon);
    let found = metrics::find_metrics(&words, &times, about, lexicon, catalogue);
    let stands = &lexicon.stands_for;
    let free = |phrase: &str| {
        (0..words.len()).find(|place| super::words::at(&words, *place, phrase) && !in_time(&times, *place))
    };
    let first_of = |table: &std::collections::BTreeMap<String, String>| {
        let placed =
            table.iter().filter_map(|(phrase, value)| Some((free(phrase)?, std::cmp::Reverse(phrase.len()), value)));
        placed.min().map(|(_, _, value)| value.clone())
    };
    let mut taken = found.taken;
    if let Some(anchor) = anchor.as_ref().filter(|anchor| anchor.kind.as_deref() != Some("start")) {
        taken.iter_mut().skip(anchor.first).take(anchor.length).for_each(|slot| *slot = true);
    }
    let mentions = entities::mentions(&words, &times, lexicon, &taken);
    let mut reading = Reading {
        class: Class::Other,
        scores: Vec::new(),
        features: Vec::new(),
        job,
        job_guessed,
        subject: written,
        metric: found.metric,
        also: found.also,
        users: users(text, &words, lexicon),
        own: entities::own(&words),
        tenant: after(&words, &["tenant", "tenant of", "customer"]).or_else(|| before_tenant(&words, lexicon)),
        and_before: lexicon.what.before.any(&words),
        count: count(&words, lexicon),
        ascending: ascending(&words, lexicon),
        aggregation: first_of(&stands.aggregation),
        limits: limits(&words, lexicon)
            .into_iter()
            .filter(|limit| !times.iter().any(|time| inside(limit.first, limit.length, time)))
            .collect(),
        ranked: ranked(&words),
        kind_many: kind_many(&words, lexicon),
        xid: lexicon.what.xid.any(&words),
        event_kind: first_of(&stands.event_kinds),
        state: first_of(&stands.states),
        mended: words
            .iter()
            .filter(|word| word.mended)
            .map(|word| (word.typed.to_owned(), word.folded.clone()))
            .collect(),
        named: said_named,
        mentions,
        times,
        anchor,
        shifted: shifted.map(|(span, _, _)| span),
        zone: None,
    };
    of_unit(&mut reading);
    let features = features(&words, &reading, about, lexicon);
    reading.scores = scored(&features, &lexicon.rules);
    reading.class = reading.scores.first().map_or(Class::Other, |best| best.class);
    reading.features = features.into_iter().collect();
    of_one(&mut reading);
    Ok(reading)
}

/// `how long was n03 g5 above 85 °C`: the unit says what is measured.
fn of_unit(reading: &mut Reading) {
    let unnamed = matches!(reading.metric, MetricMention::None { typed: None, .. });
    let unit = reading.limits.first().map(|limit| limit.unit.as_str()).filter(|_| unnamed);
    let metric = match unit {
        Some("c" | "°c" | "celsius" | "f" | "°f" | "fahrenheit" | "degrees") => "gpu_temperature",
        Some("w" | "watt" | "watts" | "kw") => "gpu_power",
        Some("mhz" | "ghz") => "sm_clock",
        Some(_) | None => return,
    };
    reading.metric = MetricMention::One(metric.to_owned());
}

/// One GPU is not ranked: the highest of it is its maximum.
fn of_one(reading: &mut Reading) {
    let one = reading.mentions.iter().filter(|mention| mention.kind == Some("gpu")).count() == 1;
    if reading.class != Class::TopK || !one || !reading.ranked.is_empty() || reading.count.is_some() {
        return;
    }
    reading.class = Class::Value;
    if reading.aggregation.is_none() {
        reading.aggregation = Some(if reading.ascending { "min" } else { "max" }.to_owned());
    }
}

/// The job: the word after `job`, or a word that looks like a scheduler's id (`J123`, `job-88412`).
fn job(words: &[Word<'_>], times: &[TimeMention], lexicon: &Lexicon) -> Option<String> {
    for (place, word) in words.iter().enumerate() {
        if !matches!(word.folded.as_str(), "job" | "run") {
            continue;
        }
        if let Some(next) = words.get(place + 1)
            && !is_filler(&next.folded)
            && !subject::is_vocabulary(next, lexicon)
            && !lexicon.stands_for.states.contains_key(&next.folded)
            && !in_time(times, place + 1)
            && entities_like(next)
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

fn entities_like(word: &Word<'_>) -> bool {
    word.typed.contains(['-', '_']) || word.typed.chars().any(|c| c.is_ascii_digit())
}

/// `is llama-70b slow`: the word before the slow word, when it looks like a name and is not said to be anything else.
fn guessed_job(words: &[Word<'_>], named: &Named, lexicon: &Lexicon) -> Option<String> {
    let slow = words.iter().position(|word| lexicon.unwell.slow.has(&word.folded))?;
    let before = words.get(slow.checked_sub(1)?)?;
    let is_name = before.folded.contains(['-', '_']) && before.folded.chars().any(char::is_alphanumeric);
    let is_other = named.iter().any(|(_, name)| name == before.typed);
    (is_name && !is_other && !lexicon.names.like_names.has(&before.folded)).then(|| before.typed.to_owned())
}

fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "is",
        "was",
        "so",
        "slow",
        "slower",
        "in",
        "on",
        "at",
        "of",
        "the",
        "a",
        "my",
        "with",
        "and",
        "that",
        "running",
        "run",
        "been",
        "being",
        "get",
        "gets",
        "go",
        "slowed",
        "have",
        "had",
        "has",
        "throughput",
        "step",
        "degraded",
        "now",
        "today",
        "yesterday",
        "take",
        "taking",
        "took",
        "to",
        "for",
        "from",
        "since",
        "lose",
        "by",
        "or",
        "got",
        "did",
        "does",
        "do",
        "it",
        "i",
        "we",
        "they",
        "who",
        "which",
        "what",
        "when",
        "will",
        "can",
        "should",
    ];
    FILLERS.contains(&word)
}

fn in_time(times: &[TimeMention], place: usize) -> bool {
    times.iter().any(|t| (t.first..t.first + t.length).contains(&place))
}

/// `node X`, `gpu N`, `cluster C`, `service S`, `model M`, `rank R`.
fn named(words: &[Word<'_>], lexicon: &Lexicon) -> Named {
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
            let plain = matches!(kind, "cluster" | "service" | "model")
                && !is_filler(&next.folded)
                && (!lexicon.knows(&next.folded) || lexicon.names.common.has(&next.folded) || next.folded == "chat");
            let fits = match kind {
                "gpu" | "rank" => is_index,
                _ => is_name || plain,
            };
            if fits {
                named.push((kind, next.typed.to_owned()));
            }
        }
    }
    named
}

/// `the borealis tenant`
fn before_tenant(words: &[Word<'_>], lexicon: &Lexicon) -> Option<String> {
    let place = find(words, "tenant").or_else(|| find(words, "tenants"))?;
    let word = words.get(place.checked_sub(1)?)?;
    (!is_filler(&word.folded) && !lexicon.knows(&word.folded)).then(|| word.typed.to_owned())
}

/// The word after one of these phrases.
fn after(words: &[Word<'_>], phrases: &[&str]) -> Option<String> {
    phrases.iter().find_map(|phrase| {
        let place = find(words, phrase)? + super::words::length(phrase);
        let word = words.get(place)?;
        (!is_filler(&word.folded)).then(|| word.typed.to_owned())
    })
}

/// `mkoch's jobs`, `jobs of mkoch`, `jobs by mkoch`, `user mkoch`.
fn users(text: &str, words: &[Word<'_>], lexicon: &Lexicon) -> Vec<String> {
    let is_person = |word: &str| {
        word.chars().count() >= 3
            && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'))
            && !lexicon.knows(&word.to_lowercase())
    };
    let mut users: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if is_person(name) && !users.iter().any(|known| known == name) {
            users.push(name.to_owned());
        }
    };
    let raw: Vec<&str> = text.split_whitespace().collect();
    let job_word = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        lexicon.names.jobs.has(&word) || matches!(word.as_str(), "job" | "run" | "gpus" | "stuff")
    };
    for (place, word) in raw.iter().enumerate() {
        let owner = ["'s", "’s", "'", "’"].iter().find_map(|end| word.strip_suffix(end));
        let behind = raw.iter().skip(place + 1).take(3).any(|next| job_word(next));
        if let Some(owner) = owner.filter(|_| behind) {
            add(owner.trim_matches(|c: char| !c.is_alphanumeric()));
        }
    }
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1).map(|w| w.typed);
        let is_job_before = place > 0
            && words.get(place - 1).is_some_and(|w| {
                lexicon.names.jobs.has(&w.folded)
                    || matches!(w.folded.as_str(), "job" | "run" | "submitted" | "started" | "owned" | "launched")
            });
        match word.folded.as_str() {
            "user" | "owner" => next.into_iter().for_each(&mut add),
            "of" | "by" | "from" if is_job_before => next.into_iter().for_each(&mut add),
            // `what did petrov run`, `gpus does mkoch hold`
            "did" | "does" | "is"
                if words.get(place + 2).is_some_and(|w| {
                    matches!(
                        w.folded.as_str(),
                        "run"
                            | "hold"
                            | "have"
                            | "use"
                            | "running"
                            | "submit"
                            | "start"
                            | "launch"
                            | "own"
                            | "using"
                            | "holding"
                    )
                }) =>
            {
                next.into_iter().for_each(&mut add);
            }
            _ => {}
        }
    }
    users
}

/// `top 5`, `5 hottest`, `the three worst`, `last 10 lines`.
fn count(words: &[Word<'_>], lexicon: &Lexicon) -> Option<u32> {
    let number = |place: usize| {
        let word = words.get(place)?;
        let said =
            lexicon.stands_for.numbers.get(&word.folded).filter(|n| n.fract() == 0.0 && **n >= 2.0).map(|n| *n as u32);
        word.folded.parse::<u32>().ok().or(said).filter(|n| (1..=1000).contains(n))
    };
    let ranks = |word: &Word<'_>| {
        lexicon.what.most.has(&word.folded)
            || lexicon.what.least.has(&word.folded)
            || matches!(word.folded.as_str(), "top" | "bottom" | "worst" | "best" | "first" | "longest" | "shortest")
    };
    let things = |word: Option<&Word<'_>>| {
        word.is_some_and(|w| {
            lexicon.stands_for.kinds.contains_key(&w.folded)
                || matches!(w.folded.as_str(), "lines" | "log" | "events" | "alerts" | "entries" | "messages")
        })
    };
    words.iter().enumerate().find_map(|(place, word)| {
        if ranks(word) {
            return number(place + 1).or_else(|| place.checked_sub(1).and_then(number));
        }
        let last = matches!(word.folded.as_str(), "last" | "latest" | "which" | "newest" | "show" | "list");
        (last && things(words.get(place + 2))).then(|| number(place + 1)).flatten()
    })
}

fn ascending(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    lexicon.what.least.any(words) && !any(words, &["at least"])
        || any(words, &["shortest", "odd one out"]) && !lexicon.what.most.any(words)
}

/// What is ranked, from the plural or `which …`.
fn ranked(words: &[Word<'_>]) -> Vec<&'static str> {
    let dims: [(&[&str], &[&'static str]); 10] = [
        (&["by gpu", "per gpu", "each gpu", "every gpu"], &["node", "gpu"]),
        (&["by pod", "per pod", "each pod", "pods", "which pod", "replicas", "which replica"], &["pod"]),
        (
            &["by node", "per node", "by host", "per host", "each node", "every node", "by machine", "per machine"],
            &["node"],
        ),
        (&["by cluster", "per cluster", "each cluster"], &["cluster"]),
        (
            &[
                "by job",
                "per job",
                "each job",
                "which job",
                "rank the jobs",
                "jobs by",
                "jobs with",
                "top jobs",
                "jobs",
            ],
            &["job"],
        ),
        (&["rank has", "which rank", "slowest rank", "ranks", "by rank", "per rank"], &["rank"]),
        (
            &[
                "gpus",
                "which gpu",
                "hottest gpu",
                "coolest gpu",
                "busiest gpu",
                "cards",
                "which card",
                "gpu has",
                "gpu had",
                "what gpu",
            ],
            &["node", "gpu"],
        ),
        (
            &[
                "nodes",
                "which node",
                "hosts",
                "machines",
                "which host",
                "which machine",
                "what node",
                "boxes",
                "servers",
            ],
            &["node"],
        ),
        (&["clusters", "which cluster"], &["cluster"]),
        (
            &[
                "services",
                "which service",
                "components",
                "which component",
                "by service",
                "per service",
                "models",
                "which model",
                "by model",
                "per model",
            ],
            &["service"],
        ),
    ];
    dims.iter().find(|(phrases, _)| any(words, phrases)).map(|(_, dims)| dims.to_vec()).unwrap_or_default()
}

/// A kind of things that is asked for in the plural: `which nodes`, `how many users`.
fn kind_many(words: &[Word<'_>], lexicon: &Lexicon) -> Option<&'static str> {
    const KINDS: [&str; 10] = ["gpu", "node", "cluster", "job", "user", "service", "model", "rack", "pod", "metric"];
    words.iter().find_map(|word| {
        let kind = lexicon.stands_for.kinds.get(&word.folded)?;
        let plural = word.folded.ends_with('s');
        KINDS.into_iter().find(|known| known == kind && plural)
    })
}
