//! Normalising: a question as a row of words, each as typed and as it is matched.

use std::borrow::Cow;

use sightline_model::is_invisible;

use super::lexicon::Lexicon;

/// The most words of a question that are read: a longer one is a paste, and what it asks stands at its beginning or its end.
pub(super) const MAX_WORDS: usize = 240;

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
        // `14:00+05:30`: the offset is a word of its own.
        if let Some((clock, offset)) = with_offset(typed) {
            all.push(Word { typed: clock, folded: clock.to_owned(), mended: false, ends: false });
            all.push(Word { typed: offset, folded: offset.to_owned(), mended: false, ends });
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

/// A clock time with the offset that is written to it.
fn with_offset(typed: &str) -> Option<(&str, &str)> {
    let (clock, offset) = typed.split_at_checked(typed.find(['+', '-', 'Z'])?)?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let is_clock = clock.len() >= 4 && clock.contains(':') && digits(clock);
    // `14:00-16:00` is a range.
    let is_offset = match offset.split_at_checked(1) {
        Some(("Z", rest)) => rest.is_empty(),
        Some(("+", rest)) => !rest.is_empty() && digits(rest),
        _ => false,
    };
    (is_clock && is_offset).then_some((clock, offset))
}

/// Numbers in words.
pub(super) const NUMBERS: &[(&str, f64)] = &[
    ("a", 1.0),
    ("an", 1.0),
    ("one", 1.0),
    ("two", 2.0),
    ("both", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("eleven", 11.0),
    ("twelve", 12.0),
    ("fifteen", 15.0),
    ("sixteen", 16.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("forty-five", 45.0),
    ("fifty", 50.0),
    ("sixty", 60.0),
    ("ninety", 90.0),
    ("hundred", 100.0),
    ("couple", 2.0),
    ("few", 3.0),
    ("dozen", 12.0),
    ("half", 0.5),
    ("quarter", 0.25),
];

/// The number that a word says.
pub(super) fn number_word(folded: &str) -> Option<f64> {
    NUMBERS.iter().find(|(word, _)| *word == folded).map(|(_, number)| *number)
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
    ("howmany", ("how", "many")),
    ("howmuch", ("how", "much")),
    ("when's", ("when", "is")),
    ("whens", ("when", "is")),
    ("why's", ("why", "is")),
    ("whys", ("why", "is")),
    ("there's", ("there", "is")),
    ("theres", ("there", "is")),
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
pub(super) fn normalised<'a>(text: &'a str, lexicon: &'a Lexicon) -> Vec<Word<'a>> {
    let mut all = words(text);
    as_named(&mut all, lexicon);
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

/// What a site calls a thing stands for its kind and its name, as if they had been typed.
fn as_named<'a>(all: &mut Vec<Word<'a>>, lexicon: &'a Lexicon) {
    if lexicon.names_of_site.is_empty() {
        return;
    }
    let mut place = 0;
    while place < all.len() {
        let stands = lexicon.names_of_site.iter().filter(|(phrase, _)| at(all, place, phrase));
        let Some((phrase, meant)) = stands.max_by_key(|(phrase, _)| length(phrase)) else {
            place += 1;
            continue;
        };
        let end = place + length(phrase);
        let ends = all.get(end - 1).is_some_and(|word| word.ends);
        let word = |typed: &'a String, ends: bool| Word { typed, folded: fold(typed), mended: false, ends };
        let [kind, name] = meant;
        all.splice(place..end, [word(kind, false), word(name, ends)]);
        place += 2;
    }
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
