//! Following up: what a question leaves out is taken from the questions before it and from what their answers were about.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan as _};
use sightline_model::TimeRange;
use sightline_query::Catalogue;

use super::entities::Mention;
use super::lexicon::Lexicon;
use super::reading::{Class, MetricMention, Reading, Subject, read as read_one};
use super::time::{TimeFault, TimeMention, zone_named};
use super::words::{Word, normalised};
use crate::ports::{Ask, Earlier};

/// A question of so many words that names nothing goes on from the one before.
const SHORT: usize = 4;
/// A score from which a class was asked for in words of its own, and not guessed from what is left.
const EXPLICIT: u32 = 50;

/// Reads a question in the light of those before it.
///
/// # Errors
/// When a time expression of this question has no meaning here.
pub(super) fn read(ask: &Ask, lexicon: &Lexicon, catalogue: &Catalogue, zone: &TimeZone) -> Result<Reading, TimeFault> {
    let own = read_one(&ask.text, lexicon, catalogue, ask.as_of, zone)?;
    let mut before: Option<(Reading, &Earlier)> = None;
    for earlier in &ask.before {
        // A question that had no meaning leaves nothing to go on from.
        let Ok(one) = read_one(&earlier.text, lexicon, catalogue, ask.as_of, zone) else { continue };
        let words = normalised(&earlier.text, lexicon);
        let whole = match before.take() {
            Some((base, of)) => merged(&base, of, one, &words, lexicon, zone),
            None => one,
        };
        before = Some((whole, earlier));
    }
    let words = normalised(&ask.text, lexicon);
    Ok(match before {
        Some((base, of)) => merged(&base, of, own, &words, lexicon, zone),
        None => own,
    })
}

/// Whether a question only makes sense after another.
fn goes_on(own: &Reading, words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    let names_things =
        own.mentions.iter().any(|mention| mention.kind.is_some() || mention.written) || own.job.is_some();
    let refused = matches!(own.class, Class::Write | Class::Forbidden | Class::Sql | Class::Abilities);
    let alone = matches!(own.class, Class::FindJobs | Class::Health | Class::Waste | Class::List | Class::Meaning);
    !refused
        && (own.class == Class::Other
            || lexicon.follows.leads_on.begin(words)
            || (refers(words, lexicon)
                && !own.mentions.iter().any(|mention| mention.kind.is_some())
                && own.job.is_none())
            || lexicon.follows.others_of.any(words) && !alone && !names_things
            || (words.len() <= SHORT && !names_things && own.kind_many.is_none() && !alone))
}

/// Whether a word stands for what was talked about; `that` behind a comma is no such word, nor is `this morning`.
fn refers(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    words.iter().enumerate().any(|(place, word)| {
        let time = words.get(place + 1).is_some_and(|next| {
            matches!(
                next.folded.as_str(),
                "morning" | "week" | "afternoon" | "evening" | "month" | "hour" | "minute" | "weekend" | "time"
            )
        });
        lexicon.follows.pronouns.at(words, place).is_some()
            && !(matches!(word.folded.as_str(), "this" | "that" | "same" | "the") && time)
    })
}

/// One question made whole by what was asked before.
fn merged(
    base: &Reading,
    of: &Earlier,
    own: Reading,
    words: &[Word<'_>],
    lexicon: &Lexicon,
    zone: &TimeZone,
) -> Reading {
    if !goes_on(&own, words, lexicon) {
        return own;
    }
    // `now the p99 instead`: the word leads on, and names no time.
    let mut own = own;
    own.times.retain(|time| !(time.first == 0 && time.length == 1 && time.moment == super::time::Moment::Now));
    let mut whole = own.clone();
    whole.mentions = mentions(base, of, &own, words, lexicon);
    let replaced = |kind: &str| own.mentions.iter().any(|mention| mention.kind == Some(kind));
    if whole.job.is_none() && !replaced("job") && !replaced("service") && !replaced("model") {
        whole.job.clone_from(&base.job);
        whole.job_guessed = base.job_guessed;
    }
    if whole.named.is_empty() {
        whole.named.clone_from(&base.named);
    }
    if whole.job.is_none()
        && let Some(job) = whole.mentions.iter().find(|mention| mention.kind == Some("job"))
    {
        whole.job = Some(job.name.clone());
    }
    if whole.subject.is_none() {
        whole.subject.clone_from(&base.subject);
    }
    if whole.users.is_empty() && !replaced("job") {
        whole.users.clone_from(&base.users);
    }
    let persons = whole.mentions.iter().filter(|mention| mention.kind == Some("user") && mention.inherited);
    if whole.users.is_empty() {
        whole.users = persons.map(|mention| mention.name.clone()).collect();
    }
    whole.class = class(base, &own, &whole, words, lexicon);
    let same = whole.class == base.class;
    if matches!(own.metric, MetricMention::None { .. }) {
        whole.metric = base.metric.clone();
        whole.also.clone_from(&base.also);
    }
    if own.times.is_empty() && own.anchor.is_none() {
        whole.anchor.clone_from(&base.anchor);
        // `the same window an hour earlier` says itself how far back it lies.
        let compares = whole.class == Class::Compare;
        let before = own.and_before && own.shifted.is_none() && !compares;
        whole.times = if before { earlier(base, words, zone) } else { base.times.clone() };
        // `compare that with the 12 hours before`: both windows are meant.
        whole.and_before =
            if compares { own.and_before || base.and_before } else { base.and_before && !own.and_before };
    }
    // `make it 10`
    let more = words.iter().find_map(|word| word.folded.parse::<u32>().ok()).filter(|n| (1..=100).contains(n));
    let bare = own.times.is_empty() && own.limits.is_empty() && own.mentions.is_empty();
    let made = more.filter(|_| bare && whole.class == Class::TopK);
    whole.count = own.count.or(made).or(base.count.filter(|_| same));
    if !(own.has("most") || own.has("least")) {
        whole.ascending = base.ascending;
    }
    if whole.aggregation.is_none() && same {
        whole.aggregation.clone_from(&base.aggregation);
    }
    if whole.limits.is_empty() {
        whole.limits.clone_from(&base.limits);
    }
    if whole.ranked.is_empty() {
        whole.ranked.clone_from(&base.ranked);
    }
    whole.kind_many = own.kind_many.or(base.kind_many.filter(|_| same));
    whole.xid |= base.xid && (same || own.class == Class::Other);
    if same {
        whole.event_kind = own.event_kind.clone().or_else(|| base.event_kind.clone());
        whole.state = own.state.clone().or_else(|| base.state.clone());
    }
    let named = if own.times.is_empty() { zone_named(words) } else { None };
    whole.zone = own.zone.clone().or(named).or_else(|| base.zone.clone());
    if lexicon.follows.others_of.any(words) {
        others(&mut whole);
    }
    whole.features = features(base, &own, same);
    whole
}

/// What is asked of it: in words of its own, else what was asked before.
fn class(base: &Reading, own: &Reading, whole: &Reading, words: &[Word<'_>], lexicon: &Lexicon) -> Class {
    let score = own.scores.first().map_or(0, |best| best.score);
    let numbers = |class: Class| matches!(class, Class::Value | Class::TopK | Class::Threshold | Class::Compare);
    // `only atlas-b`: a name alone asks how it is; behind a word that leads on it asks what was asked before.
    let is_named_only = matches!(own.class, Class::Why(_))
        && lexicon.follows.leads_on.begin(words)
        && !super::subject::is_unwell(words, lexicon)
        && base.class != Class::Other;
    let asks_why = lexicon.what.why.any(words) || (matches!(own.class, Class::Why(_)) && !is_named_only);
    if asks_why && !matches!(own.class, Class::Meaning) {
        return Class::Why(subject(whole));
    }
    // `and power?` after a ranking asks for a ranking.
    if numbers(own.class) && numbers(base.class) && score <= 60 && !lexicon.what.shows.begin(words) {
        return base.class;
    }
    if own.class != Class::Other && score >= EXPLICIT && !is_named_only {
        return own.class;
    }
    if numbers(base.class) && holds_against(base, own, words, lexicon) {
        return Class::Compare;
    }
    let held = lexicon.what.compare.any(words);
    if numbers(base.class) && held && (own.times.len() + base.times.len() > 1 || own.and_before) {
        return Class::Compare;
    }
    if base.class == Class::Value && (own.has("most") || own.has("least")) && own.aggregation.is_none() {
        return Class::TopK;
    }
    // `what is Xid 79?` … `where did we have one in the last 24 hours?`
    let seen = super::words::any(words, &["did we", "do we", "have we", "any", "seen", "where", "when", "ours"]);
    if base.class == Class::Meaning && base.xid && (!own.times.is_empty() || seen) {
        return Class::Logs;
    }
    base.class
}

/// What a reason is asked for.
fn subject(whole: &Reading) -> Subject {
    let names = |kinds: &[&str]| whole.mentions.iter().any(|m| m.kind.is_some_and(|kind| kinds.contains(&kind)));
    if whole.job.is_some() || names(&["job", "rank"]) {
        Subject::Job
    } else if names(&["service", "model"]) {
        Subject::Service
    } else if names(&["node", "gpu", "cluster"]) {
        Subject::Host
    } else if whole.mentions.iter().any(|mention| mention.written) || whole.subject.is_some() {
        Subject::Anything
    } else {
        Subject::Host
    }
}

/// Its own names, and of those before what they do not replace. Without any, what the last answer was about.
fn mentions(base: &Reading, of: &Earlier, own: &Reading, words: &[Word<'_>], lexicon: &Lexicon) -> Vec<Mention> {
    let mut all: Vec<Mention> =
        base.mentions.iter().filter(|mention| mention.kind.is_some() || mention.written).cloned().collect();
    for mention in &mut all {
        mention.inherited = true;
    }
    let plural = words.iter().any(|word| matches!(word.folded.as_str(), "they" | "them" | "their" | "those" | "these"));
    let asks_of_it = (refers(words, lexicon) && !plural) || lexicon.what.why.any(words);
    if all.is_empty() && base.job.is_none() && asks_of_it {
        all.extend(of.focus.iter().filter_map(|(kind, name)| {
            let kind = ["node", "gpu", "job", "service", "model", "cluster", "rank", "user"]
                .into_iter()
                .find(|known| known == kind)?;
            Some(Mention {
                kind: Some(kind),
                name: name.clone(),
                place: 0,
                written: true,
                inherited: true,
                excluded: false,
            })
        }));
    }
    // `compare with n19`: beside the one that was asked about.
    let held = holds_against(base, own, words, lexicon);
    let replaces = |kind: &str| !held && own.mentions.iter().any(|mention| mention.kind == Some(kind));
    all.retain(|mention| mention.kind.is_none_or(|kind| !replaces(kind)));
    all.extend(own.mentions.iter().cloned());
    all
}

/// Whether a thing is to be held against the one of its kind that was asked about.
fn holds_against(base: &Reading, own: &Reading, words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    let said = ["compare", "compared", "comparing", "vs", "versus", "against", "next to", "side by side"];
    let kind = |reading: &Reading| {
        let mut named = reading.mentions.iter().filter(|mention| mention.kind.is_some() || mention.written);
        named.next().filter(|_| named.next().is_none()).map(|mention| mention.kind)
    };
    lexicon.what.compare.any(words)
        && super::words::any(words, &said)
        && own.times.is_empty()
        && matches!((kind(base), kind(own)), (Some(one), Some(other)) if one == other)
}

/// All but what was talked about: the finest place goes, and what is left is told apart by it.
fn others(whole: &mut Reading) {
    let finest = ["gpu", "rank", "node", "job", "service", "cluster"]
        .into_iter()
        .find(|kind| whole.mentions.iter().any(|mention| mention.kind == Some(kind)));
    let Some(finest) = finest else { return };
    whole.mentions.retain(|mention| mention.kind != Some(finest));
    whole.named.retain(|(kind, _)| *kind != finest);
    if finest == "job" {
        whole.job = None;
    }
    whole.ranked = match finest {
        "gpu" => vec!["node", "gpu"],
        "rank" => vec!["job", "rank"],
        other => vec![other],
    };
    if whole.class == Class::Value {
        whole.class = Class::TopK;
    }
}

/// The window before the one that was asked about.
fn earlier(base: &Reading, words: &[Word<'_>], zone: &TimeZone) -> Vec<TimeMention> {
    let Some(time) = base.times.first() else { return Vec::new() };
    let by_day = words.iter().any(|word| matches!(word.folded.as_str(), "day" | "night" | "morning" | "evening"));
    let range = if by_day {
        let back =
            |at: jiff::Timestamp| at.to_zoned_datetime(zone.clone()).checked_sub(1.day()).ok().map(|z| z.timestamp());
        back(time.range.from()).zip(back(time.range.to())).and_then(|(from, to)| TimeRange::new(from, to))
    } else {
        let length = SignedDuration::from_millis(time.range.millis());
        time.range.from().checked_sub(length).ok().and_then(|from| TimeRange::new(from, time.range.from()))
    };
    range
        .map(|range| TimeMention {
            range,
            typed: format!("before {}", time.typed),
            moment: super::time::Moment::Window,
            ..time.clone()
        })
        .into_iter()
        .collect()
}

/// What plans may ask for: of the question itself, and of the one before where it asks the same.
fn features(base: &Reading, own: &Reading, same: bool) -> Vec<&'static str> {
    let mut all = own.features.clone();
    if same {
        let asks = ["when", "when^", "how_long", "how_many", "how_many^"];
        let own_asks = asks.iter().any(|name| own.features.contains(name));
        all.extend(base.features.iter().filter(|name| !(own_asks && asks.contains(name))));
        all.sort_unstable();
        all.dedup();
    }
    all
}
