//! Normalising: a question as a row of words, each with its place in the typed text.

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// As typed, without the punctuation around it.
    pub(super) typed: &'a str,
    /// In lower case, for matching.
    pub(super) folded: String,
}

/// Splits a question into words. Punctuation at the edges goes; inside a word it stays (`2026-05-03`, `14:10`, `node-07`).
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"' | '“' | '”' | '?' | '!'))
        .map(|raw| raw.trim_matches(|c: char| matches!(c, '.' | ':' | '\'' | '’' | '`' | '*')))
        .map(|raw| if is_contracted(raw) { raw } else { possessor(raw) })
        .filter(|typed| !typed.is_empty())
        .flat_map(|typed| {
            let folded = typed.to_lowercase();
            let (first, second) = match CONTRACTED.iter().find(|(short, _)| *short == folded) {
                Some((_, (first, second))) => ((*first).to_owned(), Some((*second).to_owned())),
                None => (folded, None),
            };
            std::iter::once(first).chain(second).map(move |folded| Word { typed, folded })
        })
        .collect()
}

/// What people write as one word and say as two; with and without the apostrophe.
const CONTRACTED: &[(&str, (&str, &str))] = &[
    ("what's", ("what", "is")),
    ("what’s", ("what", "is")),
    ("whats", ("what", "is")),
    ("where's", ("where", "is")),
    ("wheres", ("where", "is")),
    ("who's", ("who", "is")),
    ("whos", ("who", "is")),
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

fn is_contracted(raw: &str) -> bool {
    CONTRACTED.iter().any(|(short, _)| raw.eq_ignore_ascii_case(short))
}

/// `J123's` speaks of `J123`.
fn possessor(raw: &str) -> &str {
    raw.strip_suffix("'s").or_else(|| raw.strip_suffix("’s")).unwrap_or(raw)
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
