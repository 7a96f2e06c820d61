//! Classifying: every rule of the lexicon speaks for a class; the best score is the reading, the second best what it was held against.

use std::collections::BTreeSet;

use super::lexicon::{Lexicon, Rule};
use super::words::Word;

/// What kind of question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Why is or was something slow, why did it fail or hang, or is it well.
    Why(Subject),
    /// The value of a metric over a window.
    Value,
    /// Entities ranked by a metric.
    TopK,
    /// When, whether or how long a metric was beyond a limit.
    Threshold,
    /// How many of something there are.
    Count,
    /// One metric in two windows or of two things.
    Compare,
    /// Log lines.
    Logs,
    /// Events.
    Events,
    /// Jobs by owner, state, size or time.
    FindJobs,
    /// What there is of a kind.
    List,
    /// GPUs that are held or there, and not used.
    Waste,
    /// Whether all is well, of nothing in particular.
    Health,
    /// What something means, or what to do about it.
    Meaning,
    /// What can be asked.
    Abilities,
    /// A command to change something.
    Write,
    /// Something that is nobody's to read, or words that order to forget the rules.
    Forbidden,
    /// SQL.
    Sql,
    /// Anything else.
    Other,
}

/// What is or may be unwell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

const NAMES: [(&str, Class); 21] = [
    ("why_job", Class::Why(Subject::Job)),
    ("why_service", Class::Why(Subject::Service)),
    ("why_host", Class::Why(Subject::Host)),
    ("why_anything", Class::Why(Subject::Anything)),
    ("value", Class::Value),
    ("top_k", Class::TopK),
    ("threshold", Class::Threshold),
    ("count", Class::Count),
    ("compare", Class::Compare),
    ("logs", Class::Logs),
    ("events", Class::Events),
    ("find_jobs", Class::FindJobs),
    ("list", Class::List),
    ("waste", Class::Waste),
    ("health", Class::Health),
    ("meaning", Class::Meaning),
    ("abilities", Class::Abilities),
    ("write", Class::Write),
    ("forbidden", Class::Forbidden),
    ("sql", Class::Sql),
    ("other", Class::Other),
];

impl Class {
    /// The class of that name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class)
    }

    /// Its name in rules and in what `--explain` prints.
    pub(super) fn as_str(self) -> &'static str {
        NAMES.iter().find(|(_, class)| *class == self).map_or("other", |(name, _)| name)
    }
}

/// A class with the best score that speaks for it, and the rule that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scored {
    pub(super) class: Class,
    pub(super) score: u32,
    pub(super) rule: String,
}

/// What is known of a question besides its words.
pub(super) type Features<'a> = BTreeSet<&'a str>;

/// The word lists that stand in a question, by name; with `^` behind the name where the question begins with one.
pub(super) fn of_words(words: &[Word<'_>], lexicon: &Lexicon) -> Features<'static> {
    // The few lists that rules ask for at the beginning.
    const BEGINNINGS: [(&str, &str); 8] = [
        ("off_topic", "off_topic^"),
        ("asks", "asks^"),
        ("shows", "shows^"),
        ("writes", "writes^"),
        ("logs", "logs^"),
        ("how_many", "how_many^"),
        ("yes_or_no", "yes_or_no^"),
        ("when", "when^"),
    ];
    let start = words.iter().position(|_| true).map_or(0, |_| begins(words, lexicon));
    let said = words.get(start..).unwrap_or_default();
    let mut features = Features::new();
    for (name, list) in lexicon.lists() {
        // `ok, and yesterday?` asks of nothing whether it is ok.
        if list.any(if name == "all_well" { said } else { words }) {
            features.insert(name);
        }
        if let Some((_, begin)) = BEGINNINGS.iter().find(|(list, _)| *list == name)
            && list.begin(said)
        {
            features.insert(begin);
        }
    }
    features
}

/// Where a question begins behind what is said to be polite.
pub(super) fn begins(words: &[Word<'_>], lexicon: &Lexicon) -> usize {
    let mut place = 0;
    while let Some(length) = lexicon.what.polite.at(words, place) {
        place += length;
    }
    if place < words.len() { place } else { 0 }
}

/// All classes that a rule speaks for, the best first.
pub(super) fn scored(features: &Features<'_>, rules: &[Rule]) -> Vec<Scored> {
    let mut best: Vec<Scored> = Vec::new();
    for rule in rules.iter().filter(|rule| rule.holds(features)) {
        match best.iter_mut().find(|scored| scored.class == rule.class) {
            Some(scored) if scored.score >= rule.score => {}
            Some(scored) => {
                scored.score = rule.score;
                scored.rule.clone_from(&rule.when);
            }
            None => best.push(Scored { class: rule.class, score: rule.score, rule: rule.when.clone() }),
        }
    }
    best.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.class.cmp(&b.class)));
    if best.is_empty() {
        best.push(Scored { class: Class::Other, score: 0, rule: "nothing else".to_owned() });
    }
    best
}
