//! Names in a question, held against those that were found.

use sightline_tools::ToolOutput;

use super::super::words::Word;

/// The names of a kind of thing in what a look-up brought.
pub(super) fn names(output: &ToolOutput, key: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in output.evidence.iter().flat_map(|evidence| &evidence.rows).filter_map(|row| row.entity.get(key)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The one of these names that the question is about: the one that was written out as a name, else the first that stands in it as words of
/// its own, the longest where several begin there.
pub(super) fn meant<'a>(words: &[Word<'_>], written: Option<&str>, names: &'a [String]) -> Option<&'a String> {
    let same = |name: &&String| written.is_some_and(|written| name.eq_ignore_ascii_case(written));
    if let Some(name) = names.iter().find(same) {
        return Some(name);
    }
    let place = |name: &String| {
        let name = name.to_lowercase();
        let parts: Vec<&str> = name.split_whitespace().collect();
        (0..words.len()).find(|place| {
            !parts.is_empty()
                && parts.iter().enumerate().all(|(n, part)| words.get(place + n).is_some_and(|w| w.folded == *part))
        })
    };
    let placed = names.iter().filter_map(|name| Some((place(name)?, name)));
    let whole = placed.min_by_key(|(place, name)| (*place, std::cmp::Reverse(name.len()))).map(|(_, name)| name);
    whole.or_else(|| begun(words, names))
}

/// Shorter beginnings of a name say too little: `api` begins many.
const MIN_BEGINNING: usize = 5;
/// Beside a word for a service a whole part of a name may be as short as this: `the chat service`.
const MIN_SAID: usize = 3;
/// Words for a service.
const SERVES: [&str; 7] = ["service", "api", "endpoint", "model", "deployment", "bot", "backend"];

/// The only name that a word of the question begins: `checkout` for `checkoutservice`.
fn begun<'a>(words: &[Word<'_>], names: &'a [String]) -> Option<&'a String> {
    let begins = |name: &&String| {
        let name = name.to_lowercase();
        words.iter().enumerate().any(|(place, word)| {
            // `the chat service`
            let said = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
            let said = said.filter_map(|place| words.get(place)).any(|beside| SERVES.contains(&beside.folded.as_str()));
            let least = if said { MIN_SAID } else { MIN_BEGINNING };
            let ends = name.as_bytes().get(word.folded.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
            word.folded.len() >= least
                && name.starts_with(&word.folded)
                && (ends || !said || word.folded.len() >= MIN_BEGINNING)
        })
    };
    let mut found = names.iter().filter(begins);
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        (Some(_), Some(_)) | (None, _) => None,
    }
}
