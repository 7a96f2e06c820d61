//! Ranking entries by words: BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009) over
//! fields of different weight. A few thousand words are ranked faster than an index could be read from disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sightline_diagnosis::{Entry, EntryKind, Section};

/// How soon more of the same word stops counting; the usual value.
const K1: f64 = 1.2;
/// How much a long entry is held against it; less than the usual 0.75, as a runbook is long because it says more.
const B: f64 = 0.5;
/// A word of a title or name counts as much as so many in a text.
const TITLE: f64 = 4.0;
/// A word by which an entry is found counts as much as so many in a text.
const KEYWORD: f64 = 3.0;

/// An entry that has words of the question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    /// Its place among the entries.
    pub(super) place: usize,
    /// Its score.
    pub(super) score: f64,
    /// The share of the question's words it has, weighed by how rare they are; from 0 to 1.
    pub(super) covered: f64,
    /// Whether a word of the question stands in its title or among the words by which it is found, not in passing only.
    pub(super) named: bool,
}

/// What a question says when it wants to know what to do rather than what something is.
const WANTS_RUNBOOK: [&str; 9] = [
    "runbook",
    "playbook",
    "what to do",
    "what should i do",
    "what do i do",
    "what now",
    "how to",
    "how do i",
    "how should i",
];
/// How much a runbook is then preferred.
const RUNBOOK_WANTED: f64 = 1.6;

/// An entry's words with their weighed number.
#[derive(Debug)]
struct Counted {
    words: HashMap<String, f64>,
    length: f64,
    kind: EntryKind,
}

/// The entries by word.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Counted>,
    /// In how many entries a word stands.
    spread: HashMap<String, usize>,
    mean_length: f64,
}

impl Index {
    pub(super) fn new(entries: &[&Entry]) -> Self {
        let counted: Vec<Counted> = entries.iter().map(|entry| count(entry)).collect();
        let mut spread: HashMap<String, usize> = HashMap::new();
        for entry in &counted {
            for word in entry.words.keys() {
                *spread.entry(word.clone()).or_default() += 1;
            }
        }
        let mean_length = counted.iter().map(|entry| entry.length).sum::<f64>() / counted.len().max(1) as f64;
        Self { entries: counted, spread, mean_length }
    }

    /// The entries that have words of the question, best first.
    pub(super) fn search(&self, question: &str) -> Vec<Hit> {
        let asked: BTreeSet<String> = terms(question).into_iter().collect();
        let rarity: BTreeMap<&String, f64> = asked.iter().map(|word| (word, self.rarity(word))).collect();
        let all: f64 = rarity.values().sum();
        let folded = question.to_lowercase();
        let wants_runbook = WANTS_RUNBOOK.iter().any(|words| folded.contains(words));
        let mut hits: Vec<Hit> = Vec::new();
        for (place, Counted { words, length, kind }) in self.entries.iter().enumerate() {
            let prior = if wants_runbook && *kind == EntryKind::Runbook { RUNBOOK_WANTED } else { prior(*kind) };
            let (mut score, mut covered, mut named) = (0.0, 0.0, false);
            for (word, rare) in &rarity {
                let Some(times) = words.get(*word) else { continue };
                let norm = K1 * (1.0 - B + B * length / self.mean_length.max(1.0));
                score += rare * times * (K1 + 1.0) / (times + norm);
                covered += rare;
                named |= *times >= KEYWORD;
            }
            if score > 0.0 && all > 0.0 {
                let covered = covered / all;
                // An entry that has all words is about the question; one that has a single rare one often is not.
                hits.push(Hit { place, score: score * prior * (0.5 + covered), covered, named });
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        hits
    }

    /// How much a word tells: the inverse of in how many entries it stands. A word that stands nowhere tells as much as one that
    /// stands once, so that a question about something else is not answered by the one word it shares.
    fn rarity(&self, word: &str) -> f64 {
        let all = self.entries.len() as f64;
        let with = self.spread.get(word).copied().unwrap_or(1) as f64;
        ((all - with + 0.5) / (with + 0.5) + 1.0).ln()
    }
}

/// The words of an entry by weight.
fn count(entry: &Entry) -> Counted {
    let mut words: HashMap<String, f64> = HashMap::new();
    // A word that many names share is still one name.
    let names = std::iter::once((&entry.title, TITLE)).chain(entry.keywords.iter().map(|word| (word, KEYWORD)));
    for (text, weight) in names {
        for term in terms(text) {
            let there = words.entry(term).or_default();
            *there = there.max(weight);
        }
    }
    let mut in_text: HashMap<String, f64> = HashMap::new();
    for passage in entry.passages.iter().filter(|passage| passage.section != Section::Source) {
        for term in terms(&passage.text) {
            *in_text.entry(term).or_default() += 1.0;
        }
    }
    for (term, times) in in_text {
        // What stands in the text alone never counts as a name does.
        let times = if words.contains_key(&term) { times } else { f64::min(times, KEYWORD - 0.5) };
        *words.entry(term).or_default() += times;
    }
    let length = words.values().sum();
    Counted { words, length, kind: entry.kind }
}

/// How much a kind of entry is preferred where words tell nothing apart.
fn prior(kind: EntryKind) -> f64 {
    match kind {
        // How a metric misleads answers a question better than what it is.
        EntryKind::Pitfall => 1.2,
        EntryKind::Runbook | EntryKind::Throttle => 1.0,
        EntryKind::Metric | EntryKind::Compat | EntryKind::Xid | EntryKind::Sxid => 0.9,
        EntryKind::Line | EntryKind::Cause => 0.8,
    }
}

/// Words that every question has.
const STOP: [&str; 84] = [
    "a",
    "about",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "can",
    "could",
    "define",
    "definition",
    "did",
    "do",
    "does",
    "doing",
    "explain",
    "for",
    "from",
    "get",
    "give",
    "had",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "indicate",
    "is",
    "it",
    "its",
    "know",
    "look",
    "may",
    "me",
    "mean",
    "meaning",
    "means",
    "measure",
    "might",
    "my",
    "of",
    "on",
    "or",
    "our",
    "please",
    "say",
    "see",
    "should",
    "show",
    "so",
    "some",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "to",
    "use",
    "was",
    "we",
    "were",
    "what",
    "when",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "would",
    "you",
];

/// Words that are one in this field.
const SAME: [(&str, &str); 18] = [
    ("utilization", "util"),
    ("utilisation", "util"),
    ("temp", "temperature"),
    ("mem", "memory"),
    ("vram", "memory"),
    ("hung", "hang"),
    ("stuck", "hang"),
    ("deadlock", "hang"),
    ("neighbor", "neighbour"),
    ("infiniband", "ib"),
    ("ram", "memory"),
    ("slowness", "slow"),
    ("slower", "slow"),
    ("hotter", "hot"),
    ("latencies", "latency"),
    ("percent", "share"),
    ("crashed", "crash"),
    ("throttl", "throttle"),
];

/// The words of a text as they are compared: small letters, without endings; names with underscores as a whole and in parts.
pub(super) fn terms(text: &str) -> Vec<String> {
    let folded = text.to_lowercase();
    let mut terms = Vec::new();
    for name in folded.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
        if name.contains('_') {
            terms.push(name.to_owned());
        }
        for word in name.split('_').filter(|word| !word.is_empty() && !STOP.contains(word)) {
            terms.push(stem(word));
        }
    }
    terms
}

fn stem(word: &str) -> String {
    let same = |word: &str| SAME.iter().find(|(from, _)| *from == word).map(|(_, to)| (*to).to_owned());
    if let Some(known) = same(word) {
        return known;
    }
    if word.chars().any(|c| c.is_ascii_digit()) {
        return word.to_owned();
    }
    let cut = |ending: &str, least: usize| word.strip_suffix(ending).filter(|rest| rest.chars().count() >= least);
    let stem = cut("ing", 4)
        .or_else(|| cut("ed", 4))
        .or_else(|| word.strip_suffix('s').filter(|rest| rest.chars().count() >= 3 && !rest.ends_with('s')))
        .unwrap_or(word);
    let stem = stem.strip_suffix('e').filter(|rest| rest.chars().count() >= 4).unwrap_or(stem);
    same(stem).unwrap_or_else(|| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_endings_and_names_in_parts() {
        assert_eq!(terms("Why does the job hang?"), ["job", "hang"]);
        assert_eq!(terms("utilisation utilization util"), ["util", "util", "util"]);
        assert_eq!(
            terms("errors error throttled throttling hangs"),
            ["error", "error", "throttle", "throttle", "hang"]
        );
        assert_eq!(terms("DCGM_FI_PROF"), ["dcgm_fi_prof", "dcgm", "fi", "prof"]);
        assert_eq!(terms("0x40, Xid 79"), ["0x40", "xid", "79"]);
    }

    #[test]
    fn a_rare_word_in_a_name_counts_most() {
        let about = |id: &str, text: &str| Entry::new(EntryKind::Runbook, id, id).say(Section::When, text);
        let entries = [about("storage", "slow reads"), about("network", "slow links"), about("clock", "slow clock")];
        let index = Index::new(&entries.iter().collect::<Vec<_>>());
        let hits = index.search("why is the network slow");
        assert_eq!(hits[0].place, 1);
        assert!(hits[0].covered > 0.99 && hits[1].covered < 0.5);
        assert_eq!(index.search("zebra"), []);
    }
}
