//! From what a person or a planner typed to a metric.

use std::collections::BTreeMap;

use super::{Catalogue, Metric};

/// How many names a "did you mean" offers: more is a list to search, not a hint.
const MAX_NEAR: usize = 3;
/// Similarity from 0 to 1 below which a name is no hint. One wrong letter in a word of four gives 0.75, two in a name of eight
/// the same; unrelated names of this catalogue stay under 0.6.
const MIN_SIMILARITY: f64 = 0.65;
/// Longest text that is compared letter by letter, bytes: twice the longest name, and a bound on the work for hostile input.
const MAX_COMPARED: usize = 120;

/// What some words mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution<'a> {
    /// Exactly this metric.
    Exact(&'a Metric),
    /// More than one metric goes by these words.
    Ambiguous(Vec<&'a Metric>),
    /// Nothing goes by these words.
    Unknown {
        /// Names that are close, best first, as they would have to be typed.
        near: Vec<String>,
    },
}

impl Catalogue {
    /// The metric that is called by these words: a canonical id, a stored name or what people say, in any case of letters.
    pub fn resolve(&self, words: &str) -> Resolution<'_> {
        let meant = self.meant(words);
        match meant.as_slice() {
            [] => Resolution::Unknown { near: self.near(&normalise(words)) },
            [metric] => Resolution::Exact(metric),
            [_, _, ..] => Resolution::Ambiguous(meant),
        }
    }

    /// The metrics that go by exactly these words, without hints for words that mean none: cheap enough to try every run of words
    /// of a question.
    pub fn meant(&self, words: &str) -> Vec<&Metric> {
        let said = normalise(words);
        if let Some(metric) = self.get(&said.replace(' ', "_")) {
            return vec![metric];
        }
        let mut meant: Vec<&Metric> = self.by_stored(words.trim()).into_iter().collect();
        let by_word = self.by_word.get(&said).map(Vec::as_slice).unwrap_or_default();
        for metric in by_word.iter().filter_map(|index| self.metrics.get(*index)) {
            if !meant.iter().any(|other| other.id() == metric.id()) {
                meant.push(metric);
            }
        }
        meant
    }

    /// The closest names, one a metric, best first.
    fn near(&self, said: &str) -> Vec<String> {
        if said.is_empty() || said.len() > MAX_COMPARED {
            return Vec::new();
        }
        let mut best: Vec<(f64, &str)> = Vec::new();
        for metric in &self.metrics {
            let names = metric.stored().chain(metric.words());
            let closest = names.map(|name| (similarity(said, &normalise(name)), name)).fold(None, better);
            best.extend(closest.filter(|(score, _)| *score >= MIN_SIMILARITY));
        }
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        best.into_iter().take(MAX_NEAR).map(|(_, name)| name.to_owned()).collect()
    }
}

fn better<'a>(best: Option<(f64, &'a str)>, next: (f64, &'a str)) -> Option<(f64, &'a str)> {
    match best {
        Some(best) if best.0 >= next.0 => Some(best),
        Some(_) | None => Some(next),
    }
}

/// Similarity from 0 to 1 by letters, where swapped neighbours count as one slip. Lengths that differ too much end it early: each
/// letter too many is a slip, and comparing letter by letter is what costs.
fn similarity(said: &str, name: &str) -> f64 {
    let (a, b) = (said.chars().count(), name.chars().count());
    let longest = a.max(b).max(1) as f64;
    let of_slips = |slips: usize| 1.0 - slips as f64 / longest;
    let at_best = of_slips(a.abs_diff(b));
    if at_best < MIN_SIMILARITY { at_best } else { of_slips(strsim::osa_distance(said, name)) }
}

/// Lower case, with `_` and `-` as spaces and single spaces between words: `SM-clock`, `sm_clock` and `sm clock` are one.
pub(super) fn normalise(words: &str) -> String {
    let spaced: String = words.chars().map(|c| if c == '_' || c == '-' { ' ' } else { c }).collect();
    spaced.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Catalogue {
    /// Everyday words that more than one metric goes by, with those metrics' ids.
    pub fn ambiguous_words(&self) -> BTreeMap<&str, Vec<&str>> {
        self.by_word
            .keys()
            .filter_map(|word| match self.resolve(word) {
                Resolution::Ambiguous(meant) => Some((word.as_str(), meant.iter().map(|m| m.id()).collect())),
                Resolution::Exact(_) | Resolution::Unknown { .. } => None,
            })
            .collect()
    }
}
