//! A site's own words: what its people call metrics and things. They are laid over the lexicon that ships.
//!
//! ```toml
//! [metrics]
//! "token speed" = "training_throughput_tokens"
//! [names]
//! "the big cluster" = "cluster atlas-a"
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use sightline_query::catalogue::Metric;
use sightline_query::{Catalogue, Resolution};

use super::lexicon::{Lexicon, LexiconFault};
use super::words::fold;

/// The longest phrase that can stand for something, words.
const MAX_WORDS: usize = 5;
/// So many phrases are taken: a site's vocabulary, and no dump of a database.
const MAX_PHRASES: usize = 2000;
/// The kinds of things that a name can stand for, as they are said in a question.
const KINDS: [&str; 9] = ["cluster", "node", "gpu", "job", "user", "service", "model", "rack", "pod"];

/// What a site's people call things. Guaranteed: every metric is in the catalogue, every name has a kind, and no phrase is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteWords {
    /// Phrases with the canonical id of a metric.
    metrics: BTreeMap<String, String>,
    /// Phrases with the words that they stand for: a kind and a name.
    names: BTreeMap<String, [String; 2]>,
}

/// Everything that is wrong with a site's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct SiteWordsFaults(pub Vec<String>);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    metrics: BTreeMap<String, String>,
    #[serde(default)]
    names: BTreeMap<String, String>,
}

impl SiteWords {
    /// Reads the file's text.
    ///
    /// # Errors
    /// All that is wrong with it, or where it is no TOML.
    pub fn parse(text: &str, catalogue: &Catalogue) -> Result<Self, SiteWordsFaults> {
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            SiteWordsFaults(vec![format!("line {line}: {}", error.message())])
        })?;
        let mut faults = Vec::new();
        let mut words = Self::default();
        if raw.metrics.len() + raw.names.len() > MAX_PHRASES {
            faults.push(format!("there are more than {MAX_PHRASES} phrases; keep those that people say"));
        }
        for (said, name) in raw.metrics {
            match (phrase(&said), catalogue.resolve(&name)) {
                (Err(fault), _) => faults.push(fault),
                (Ok(said), Resolution::Exact(metric)) => {
                    words.metrics.insert(said, Metric::id(metric).to_owned());
                }
                (Ok(_), Resolution::Ambiguous(_) | Resolution::Unknown { .. }) => {
                    faults
                        .push(format!("`{said}` stands for `{name}`, which is no metric; `find_entities` lists them"));
                }
            }
        }
        for (said, meant) in raw.names {
            let parts: Vec<&str> = meant.split_whitespace().collect();
            match (phrase(&said), parts.as_slice()) {
                (Err(fault), _) => faults.push(fault),
                (Ok(said), [kind, name]) if KINDS.contains(kind) => {
                    words.names.insert(said, [(*kind).to_owned(), (*name).to_owned()]);
                }
                (Ok(_), _) => faults.push(format!(
                    "`{said}` stands for `{meant}`; write a kind and a name, like `cluster atlas-a`, with one of the kinds {}",
                    KINDS.join(", ")
                )),
            }
        }
        if faults.is_empty() { Ok(words) } else { Err(SiteWordsFaults(faults)) }
    }

    /// How many phrases there are.
    pub fn phrases(&self) -> usize {
        self.metrics.len() + self.names.len()
    }

    pub(super) fn metrics(&self) -> &BTreeMap<String, String> {
        &self.metrics
    }

    pub(super) fn names(&self) -> &BTreeMap<String, [String; 2]> {
        &self.names
    }
}

/// A phrase as the words of a question are matched.
fn phrase(said: &str) -> Result<String, String> {
    let words: Vec<String> = said.split_whitespace().map(fold).filter(|word| !word.is_empty()).collect();
    if words.is_empty() || words.len() > MAX_WORDS {
        return Err(format!("`{said}` has {} words; a phrase has between 1 and {MAX_WORDS}", words.len()));
    }
    Ok(words.join(" "))
}

/// The words in force: those that ship with a site's own over them, replaced as a whole when these change.
#[derive(Debug)]
pub struct LiveWords {
    catalogue: Arc<Catalogue>,
    current: RwLock<Arc<Lexicon>>,
}

impl LiveWords {
    /// Begins with the words that ship.
    ///
    /// # Errors
    /// When a word list that ships cannot be read.
    pub fn new(catalogue: Arc<Catalogue>) -> Result<Self, LexiconFault> {
        let lexicon = Lexicon::builtin(catalogue.metrics().flat_map(Metric::words))?;
        Ok(Self { catalogue, current: RwLock::new(Arc::new(lexicon)) })
    }

    /// Lays these words over those that ship, in the place of former ones.
    ///
    /// # Errors
    /// When a word list that ships cannot be read.
    pub fn replace(&self, site: &SiteWords) -> Result<(), LexiconFault> {
        let lexicon = Lexicon::builtin(self.catalogue.metrics().flat_map(Metric::words))?.with_site(site);
        // A poisoned lock only means that a thread died between two whole lexicons.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(lexicon);
        Ok(())
    }

    /// The words in force now. Who takes them keeps them for its question.
    pub(super) fn now(&self) -> Arc<Lexicon> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::super::reading::{MetricMention, read};
    use super::*;

    #[test]
    fn a_sites_words_are_read_like_ours_and_a_question_keeps_those_it_began_with() {
        let catalogue = Arc::new(Catalogue::builtin().unwrap());
        let words = LiveWords::new(Arc::clone(&catalogue)).unwrap();
        let before = words.now();
        let text = "[metrics]\n\"Oomph\" = \"gpu_power\"\n[names]\n\"the big one\" = \"cluster atlas-a\"\n\"Bertha\" = \"job J123\"\n";
        words.replace(&SiteWords::parse(text, &catalogue).unwrap()).unwrap();
        let now = words.now();
        let asked = |text: &str, lexicon: &Lexicon| {
            let as_of = "2026-05-04T10:00:00Z".parse().unwrap();
            read(text, lexicon, &catalogue, as_of, &TimeZone::UTC).unwrap()
        };
        let read = asked("oomph of the big one over the last 2 hours", &now);
        assert_eq!(read.metric, MetricMention::One("gpu_power".to_owned()));
        let named: Vec<_> = read.mentions.iter().map(|m| (m.kind, m.name.as_str())).collect();
        assert_eq!(named, [(Some("cluster"), "atlas-a")]);
        assert_eq!(asked("why is bertha slow", &now).job.as_deref(), Some("J123"));
        assert!(matches!(asked("oomph of cluster atlas-a", &before).metric, MetricMention::None { .. }));
    }

    #[test]
    fn every_fault_of_a_sites_words_is_told() {
        let catalogue = Catalogue::builtin().unwrap();
        let faults = |text: &str| SiteWords::parse(text, &catalogue).unwrap_err().0;
        let told =
            faults("[metrics]\n\"speed\" = \"no_such_metric\"\n[names]\n\"prod\" = \"atlas-a\"\n\"\" = \"job J1\"\n");
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(faults("[metrics]\nspeed = 3\n")[0].starts_with("line 2"), "{:?}", faults("[metrics]\nspeed = 3\n"));
        assert_eq!(SiteWords::parse("", &catalogue).unwrap().phrases(), 0);
    }
}
