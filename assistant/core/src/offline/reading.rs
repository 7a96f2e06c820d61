//! Marking: which words are times, metrics, entities, limits and anchors, and what kind of question they make.

mod metrics;
mod said;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use sightline_model::TimeRange;
use sightline_query::Catalogue;

use super::anchor::{self, Anchor};
use super::classify::scored;
pub(super) use super::classify::{Class, Scored, Subject};
use super::entities::{self, Mention};
use super::features::features;
use super::lexicon::Lexicon;
use super::limits::{self, Age, Limit, limits};
use super::subject;
use super::time::{TimeFault, TimeMention, find_times, told_in};
use super::words::{Word, normalised};
pub(super) use metrics::MetricMention;
use said::{after, ascending, before_tenant, count, guessed_job, in_time, job, kind_many, named, ranked, users};

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
    /// The words that named it, as typed.
    pub(super) metric_typed: Option<String>,
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
    /// How long something has to have run, where that is asked: whether longer, and how long.
    pub(super) age: Option<Age>,
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
    earlier_one(&mut times);
    let age = limits::age(&words, lexicon);
    times.retain(|time| {
        !shifted.as_ref().is_some_and(|(_, first, length)| inside(*first, *length, time))
            && !anchor.as_ref().is_some_and(|anchor| inside(anchor.first, anchor.length, time))
            && !age.as_ref().is_some_and(|age| inside(age.first, age.length, time))
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
    // A misspelt metric is no entity: what it may have been is asked about before anything is looked up.
    if let MetricMention::None { near, typed: Some(typed) } = &found.metric
        && !near.is_empty()
    {
        let here = words.iter().map(|word| word.typed == typed);
        taken.iter_mut().zip(here).for_each(|(slot, here)| *slot |= here);
    }
    let mut limits = limits(&words, lexicon);
    limits.retain(|limit| !times.iter().any(|time| inside(limit.first, limit.length, time)));
    // A unit behind a number is no name.
    for limit in &limits {
        taken.iter_mut().skip(limit.first).take(limit.length).for_each(|slot| *slot = true);
    }
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
        metric_typed: found.typed,
        also: found.also,
        users: users(text, &words, lexicon),
        own: entities::own(&words),
        tenant: after(&words, &["tenant", "tenant of", "customer"]).or_else(|| before_tenant(&words, lexicon)),
        and_before: lexicon.what.before.any(&words),
        count: count(&words, lexicon),
        ascending: ascending(&words, lexicon),
        aggregation: first_of(&stands.aggregation),
        limits,
        age,
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
        zone: told_in(&words),
    };
    of_unit(&mut reading);
    of_pace(&mut reading, &words, lexicon);
    let features = features(&words, &reading, about, lexicon);
    reading.scores = scored(&features, &lexicon.rules);
    reading.class = reading.scores.first().map_or(Class::Other, |best| best.class);
    reading.features = features.into_iter().collect();
    of_one(&mut reading, &words);
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

/// `is J130 slower than J132`: of two jobs that are held against each other the time of a step tells.
fn of_pace(reading: &mut Reading, words: &[Word<'_>], lexicon: &Lexicon) {
    let unnamed = matches!(reading.metric, MetricMention::None { typed: None, .. });
    let paced = super::words::any(words, &["slower", "faster", "quicker"]) && !lexicon.what.why.any(words);
    let of_jobs = match reading.sides() {
        Some("job") => true,
        Some("loose") => lexicon.names.job.any(words) || reading.job.is_some(),
        Some(_) | None => false,
    };
    if unnamed && paced && of_jobs {
        reading.metric = MetricMention::One("step_time".to_owned());
    }
}

/// `the last 6 hours against the previous 6`: of two windows that are the same, the one that was called the previous lies before the other.
fn earlier_one(times: &mut [TimeMention]) {
    let [first, second, ..] = times else { return };
    if first.range != second.range {
        return;
    }
    let is_before = |time: &TimeMention| {
        ["previous", "preceding", "prior", "before"].iter().any(|word| time.typed.to_lowercase().contains(word))
    };
    let (moved, other) = if is_before(second) { (second, first) } else { (first, second) };
    let length = jiff::SignedDuration::from_millis(other.range.millis());
    let from = other.range.from().checked_sub(length).ok();
    if let Some(range) = from.and_then(|from| TimeRange::new(from, other.range.from())).filter(|_| is_before(moved)) {
        moved.range = range;
        moved.moment = super::time::Moment::Window;
    }
}

/// One thing is not ranked: the highest of it is its maximum.
fn of_one(reading: &mut Reading, words: &[Word<'_>]) {
    let of_gpu = reading.mentions.iter().filter(|mention| mention.kind == Some("gpu")).count() == 1;
    let named = reading.mentions.iter().filter(|mention| mention.kind.is_some() || mention.written).count();
    // `who is the odd one out on n03` looks for one of those that are there.
    let among = super::words::any(words, &["odd one out", "outlier", "outliers", "who", "which"]);
    let one = of_gpu || (named == 1 && reading.kind_many.is_none() && !among);
    if reading.class != Class::TopK
        || !one
        || !reading.ranked.is_empty()
        || reading.count.is_some()
        || !reading.limits.is_empty()
    {
        return;
    }
    reading.class = Class::Value;
    if reading.aggregation.is_none() {
        reading.aggregation = Some(if reading.ascending { "min" } else { "max" }.to_owned());
    }
}
