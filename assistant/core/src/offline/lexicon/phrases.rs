//! A list of phrases, and where they stand in a question.

use serde::Deserialize;

use super::super::words::Word;

/// Phrases that tell the same.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub(in crate::offline) struct Phrases(Vec<Vec<String>>);

impl From<Vec<String>> for Phrases {
    fn from(phrases: Vec<String>) -> Self {
        Self(phrases.iter().map(|phrase| phrase.split(' ').map(str::to_owned).collect()).collect())
    }
}

impl Phrases {
    /// How many words the longest phrase has that stands at that place.
    pub(in crate::offline) fn at(&self, words: &[Word<'_>], place: usize) -> Option<usize> {
        let here = words.get(place..)?;
        let stands = |phrase: &&Vec<String>| {
            phrase.len() <= here.len() && phrase.iter().zip(here).all(|(part, word)| word.folded == *part)
        };
        self.0.iter().filter(stands).map(Vec::len).max()
    }

    /// The first place of a phrase, and how many words it has.
    pub(in crate::offline) fn find(&self, words: &[Word<'_>]) -> Option<(usize, usize)> {
        (0..words.len()).find_map(|place| Some((place, self.at(words, place)?)))
    }

    /// Whether any of the phrases stands anywhere.
    pub(in crate::offline) fn any(&self, words: &[Word<'_>]) -> bool {
        self.find(words).is_some()
    }

    /// Whether the question begins with one of them.
    pub(in crate::offline) fn begin(&self, words: &[Word<'_>]) -> bool {
        self.at(words, 0).is_some()
    }

    /// Whether one word is one of them, whole.
    pub(in crate::offline) fn has(&self, folded: &str) -> bool {
        self.0.iter().any(|phrase| matches!(phrase.as_slice(), [only] if only == folded))
    }

    /// Whether a word is part of one of them: a phrase's words are vocabulary too (`root cause`).
    pub(in crate::offline) fn has_part(&self, folded: &str) -> bool {
        self.0.iter().flatten().any(|part| part == folded)
    }

    /// All the words of all phrases.
    pub(in crate::offline) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }
}
