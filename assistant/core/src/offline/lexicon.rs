//! The words of the planner, as data: `lexicon/*.toml` holds what people say, by what it tells.

mod phrases;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(super) use phrases::Phrases;
pub(super) use rules::Rule;

use super::site_words::SiteWords;
use super::words::fold;

/// A file of words that cannot be read: a fault of the build, not of the question.
#[derive(Debug, thiserror::Error)]
#[error("the word list `{file}` cannot be read: {reason}")]
pub struct LexiconFault {
    file: &'static str,
    reason: String,
}

/// Declares a file of word lists: a struct with one field a list, each documented in the file itself.
macro_rules! lists {
    ($(#[doc = $doc:literal] $name:ident { $($list:ident,)* })*) => {
        $(
            #[doc = $doc]
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub(super) struct $name { $(pub(super) $list: Phrases,)* }

            impl $name {
                /// Each list with its name.
                pub(super) fn named(&self) -> Vec<(&'static str, &Phrases)> {
                    vec![$((stringify!($list), &self.$list),)*]
                }
            }
        )*
    };
}

lists! {
    /// What kind of question it is.
    What {
        shows, most, least, compare, before, value, logs, xid, events, writes, yes_or_no, asks, why, how_many, when, how_long, idle, held,
        all_well, abilities, exists, finds, trend, each_side, polite, logs_in, owner, larger, longer, occurred, other_release, faults,
        begs, command_leads, steps, excepts, held_against, newest, where_runs, went, runs_what, whole,
    }
    /// That something is not as it should be.
    Unwell { slow, unwell, seeks, moved, shown, pace_job, pace_service, }
    /// What a question may be about.
    Names { like_names, service, places, leads, plain, job, jobs, people, mine, common, percentiles, }
    /// What something means.
    Meaning { defines, means, how_can, what_to_do, field, of_something, explains, grave, }
    /// What is refused, and what is outside.
    Refused { secrets, others, orders, sql, off_topic, }
    /// What only an earlier question makes whole.
    Follows { leads_on, pronouns, others_of, }
}

/// Words that stand for something of the tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StandsFor {
    /// Ranking words that name their metric.
    pub(super) ranks_by: BTreeMap<String, String>,
    /// Aggregations.
    pub(super) aggregation: BTreeMap<String, String>,
    /// Kinds of events.
    pub(super) event_kinds: BTreeMap<String, String>,
    /// Words for more and less, by comparison.
    pub(super) limits: BTreeMap<String, String>,
    /// States of a job.
    pub(super) states: BTreeMap<String, String>,
    /// Kinds of things, in the singular and the plural.
    pub(super) kinds: BTreeMap<String, String>,
    /// Metrics by words that need a word beside them.
    pub(super) metrics: BTreeMap<String, String>,
    /// Words that several metrics go by.
    pub(super) several: BTreeMap<String, Vec<String>>,
    /// Severities of log lines.
    pub(super) severities: BTreeMap<String, String>,
    /// Log lines by what people call them.
    pub(super) lines: BTreeMap<String, String>,
    /// Short forms.
    pub(super) short: BTreeMap<String, String>,
    /// Words that tell one of several metrics, with what its id has in it.
    pub(super) tells: BTreeMap<String, String>,
    /// Steps of a series by what people call them, seconds.
    pub(super) steps: BTreeMap<String, u32>,
}

/// All words.
#[derive(Debug)]
pub(super) struct Lexicon {
    pub(super) what: What,
    pub(super) unwell: Unwell,
    pub(super) names: Names,
    pub(super) meaning: Meaning,
    pub(super) refused: Refused,
    pub(super) follows: Follows,
    pub(super) stands_for: StandsFor,
    pub(super) rules: Vec<Rule>,
    /// What a site calls metrics: phrases with a canonical id.
    pub(super) metrics_of_site: BTreeMap<String, String>,
    /// What a site calls things: phrases with a kind and a name.
    pub(super) names_of_site: BTreeMap<String, [String; 2]>,
    vocabulary: BTreeSet<String>,
}

impl Lexicon {
    /// The words that ship, with these more: the words by which metrics go.
    pub(super) fn builtin<'a>(more: impl Iterator<Item = &'a str>) -> Result<Self, LexiconFault> {
        let mut lexicon = Self {
            what: file("what.toml", include_str!("lexicon/what.toml"))?,
            unwell: file("unwell.toml", include_str!("lexicon/unwell.toml"))?,
            names: file("names.toml", include_str!("lexicon/names.toml"))?,
            meaning: file("meaning.toml", include_str!("lexicon/meaning.toml"))?,
            refused: file("refused.toml", include_str!("lexicon/refused.toml"))?,
            follows: file("follows.toml", include_str!("lexicon/follows.toml"))?,
            stands_for: file("stands_for.toml", include_str!("lexicon/stands_for.toml"))?,
            rules: rules::parse(include_str!("lexicon/rules.toml"))
                .map_err(|reason| LexiconFault { file: "rules.toml", reason })?,
            metrics_of_site: BTreeMap::new(),
            names_of_site: BTreeMap::new(),
            vocabulary: BTreeSet::new(),
        };
        let mut vocabulary: BTreeSet<String> = super::time::VOCABULARY.iter().map(|word| (*word).to_owned()).collect();
        vocabulary.extend(lexicon.lists().flat_map(|(_, list)| list.words().map(str::to_owned)));
        let short = &lexicon.stands_for;
        for table in [&short.ranks_by, &short.event_kinds, &short.limits, &short.states, &short.kinds, &short.metrics] {
            vocabulary.extend(table.keys().flat_map(|phrase| phrase.split(' ')).map(str::to_owned));
        }
        vocabulary.extend(super::words::NUMBERS.iter().map(|(word, _)| (*word).to_owned()));
        vocabulary.extend(short.several.keys().flat_map(|phrase| phrase.split(' ')).map(str::to_owned));
        vocabulary.extend(more.flat_map(|phrase| fold(phrase).split(' ').map(str::to_owned).collect::<Vec<_>>()));
        lexicon.vocabulary = vocabulary;
        Ok(lexicon)
    }

    /// The same with a site's own words: its names for metrics win over ours, and no slip is read into any of them.
    pub(super) fn with_site(mut self, site: &SiteWords) -> Self {
        for (phrase, metric) in site.metrics() {
            self.vocabulary.extend(phrase.split(' ').map(str::to_owned));
            self.metrics_of_site.insert(phrase.clone(), metric.clone());
        }
        self.vocabulary.extend(site.names().keys().flat_map(|phrase| phrase.split(' ')).map(str::to_owned));
        self.names_of_site.clone_from(site.names());
        self
    }

    /// Every list with its name; a rule may ask for any of them.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&'static str, &Phrases)> {
        let files = [
            self.what.named(),
            self.unwell.named(),
            self.names.named(),
            self.meaning.named(),
            self.refused.named(),
            self.follows.named(),
        ];
        files.into_iter().flatten()
    }

    /// Whether a word is one of the words that questions are made of.
    pub(super) fn knows(&self, folded: &str) -> bool {
        self.vocabulary.contains(folded)
    }

    /// The word that was meant by one that is no word: the only one so close to it. Short words are left alone, and so are first letters,
    /// which people rarely miss.
    pub(super) fn spelled(&self, folded: &str) -> Option<&str> {
        let letters = folded.chars().count();
        let slips = match letters {
            0..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        if self.knows(folded) || !folded.chars().all(|c| c.is_ascii_lowercase()) {
            return None;
        }
        let first = folded.get(..1)?;
        let near = self.vocabulary.range(first.to_owned()..).take_while(|word| word.starts_with(first));
        let near = near.filter(|word| word.len() >= 4 && word.len().abs_diff(folded.len()) <= slips);
        let mut near: Vec<(usize, &str)> = near
            .map(|word| (strsim::osa_distance(folded, word), word.as_str()))
            .filter(|(distance, word)| *distance <= slips && (letters > 4 || !is_another_letter(folded, word)))
            .collect();
        near.sort_unstable();
        match near.as_slice() {
            [(_, only)] => Some(only),
            [(best, word), (second, _), ..] if best < second => Some(word),
            _ => None,
        }
    }
}

/// `cook` is no slip of `cool`: in a short word a letter is missed or exchanged with its neighbour, and seldom another one.
fn is_another_letter(folded: &str, word: &str) -> bool {
    let sorted = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    folded.len() == word.len() && sorted(folded) != sorted(word)
}

fn file<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, LexiconFault> {
    toml::from_str(text).map_err(|error| LexiconFault { file, reason: error.to_string() })
}
