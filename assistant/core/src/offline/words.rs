//! Normalising: a question as a row of words, each as typed and as it is matched.

use std::borrow::Cow;

use sightline_model::is_invisible;

use super::lexicon::Lexicon;

/// The most words of a question that are read: a longer one is a paste, and what it asks stands at its beginning or its end.
const MAX_WORDS: usize = 240;

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// As typed, without the punctuation around it.
    pub(super) typed: &'a str,
    /// In lower case and well spelled, for matching.
    pub(super) folded: String,
    /// Whether it was read as another word than the one that was typed.
    pub(super) mended: bool,
    /// Whether a sentence ends with it.
    pub(super) ends: bool,
}

/// Splits a question into words. Punctuation at the edges goes; inside a word it stays (`2026-05-03`, `14:10`, `node-07`).
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let splits = |c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '[' | ']' | '"' | '“' | '”' | '„' | '?' | '!' | '…')
    };
    let mut all: Vec<Word<'_>> = Vec::new();
    for raw in text.split(splits) {
        let typed =
            raw.trim_matches(|c: char| matches!(c, '.' | ':' | '\'' | '’' | '‘' | '`' | '*' | '|') || is_invisible(c));
        let ends = raw.ends_with(['.', '!']);
        let folded = fold(typed);
        // What people write as one word and say as two.
        if let Some((_, (first, second))) = CONTRACTED.iter().find(|(short, _)| *short == folded) {
            all.push(Word { typed, folded: (*first).to_owned(), mended: false, ends: false });
            all.push(Word { typed, folded: (*second).to_owned(), mended: false, ends });
            continue;
        }
        // `J123's` speaks of `J123`.
        let typed = typed.strip_suffix("'s").or_else(|| typed.strip_suffix("’s")).unwrap_or(typed);
        if typed.is_empty() {
            continue;
        }
        all.push(Word { typed, folded: fold(typed), mended: false, ends });
    }
    if all.len() > MAX_WORDS {
        let tail = all.split_off(all.len() - MAX_WORDS / 2);
        all.truncate(MAX_WORDS / 2);
        all.extend(tail);
    }
    all
}

/// What people write as one word and say as two; with and without the apostrophe.
const CONTRACTED: &[(&str, (&str, &str))] = &[
    ("what's", ("what", "is")),
    ("whats", ("what", "is")),
    ("where's", ("where", "is")),
    ("wheres", ("where", "is")),
    ("who's", ("who", "is")),
    ("whos", ("who", "is")),
    ("how's", ("how", "is")),
    ("hows", ("how", "is")),
    ("isn't", ("is", "not")),
    ("isnt", ("is", "not")),
    ("doesn't", ("does", "not")),
    ("doesnt", ("does", "not")),
    ("didn't", ("did", "not")),
    ("didnt", ("did", "not")),
    ("wasn't", ("was", "not")),
    ("wasnt", ("was", "not")),
    ("aren't", ("are", "not")),
    ("arent", ("are", "not")),
];

/// A question's words with short forms written out and slips of the keyboard mended. Names are left as they are: a word that is written
/// like one is none of ours.
pub(super) fn normalised<'a>(text: &'a str, lexicon: &Lexicon) -> Vec<Word<'a>> {
    let mut all = words(text);
    for word in &mut all {
        if let Some(long) = lexicon.stands_for.short.get(&word.folded) {
            word.folded.clone_from(long);
        } else if let Some(meant) = lexicon.spelled(&word.folded)
            && !word.typed.chars().skip(1).any(char::is_uppercase) | is_shouted(word.typed)
        {
            meant.clone_into(&mut word.folded);
            word.mended = true;
        }
    }
    all
}

/// `TEMPRETURE`: a word in capitals is a word, where `PetSite` is a name.
fn is_shouted(typed: &str) -> bool {
    !typed.chars().any(char::is_lowercase)
}

/// Lower case, with what cannot be seen left out and the apostrophes and dashes of word processors as those of keyboards.
pub(super) fn fold(typed: &str) -> String {
    let plain = |c: char| match c {
        '’' | '‘' => Some('\''),
        '–' | '—' | '‑' | '−' => Some('-'),
        c if is_invisible(c) => None,
        c => Some(c),
    };
    let shown: Cow<'_, str> = typed.chars().filter_map(plain).collect::<String>().into();
    shown.to_lowercase()
}

/// Whether these words stand at that place.
pub(super) fn at(words: &[Word<'_>], place: usize, phrase: &str) -> bool {
    let here = words.iter().skip(place).map(|word| word.folded.as_str());
    phrase.split(' ').eq(here.take(length(phrase)))
}

/// How many words a phrase has.
pub(super) fn length(phrase: &str) -> usize {
    phrase.split(' ').count()
}

/// The first place of a phrase.
pub(super) fn find(words: &[Word<'_>], phrase: &str) -> Option<usize> {
    (0..words.len()).find(|place| at(words, *place, phrase))
}

/// Whether any of the phrases stands anywhere.
pub(super) fn any(words: &[Word<'_>], phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| find(words, phrase).is_some())
}
