//! What a question about something unwell is about: a job, a service, a place in the cluster, or a name that may be any of them.

use super::lexicon;
use super::reading::{Named, Subject};
use super::time::TimeMention;
use super::words::{Word, any, at, length};

/// Whether the question says that something is wrong, or asks whether it is.
pub(super) fn is_symptom(words: &[Word<'_>]) -> bool {
    let why = any(words, &["why", "root cause"]);
    // `show the latency of chat` asks for a number, whatever it did.
    let shows = words.first().is_some_and(|word| lexicon::SHOWS.contains(&word.folded.as_str()));
    if shows && !why {
        return false;
    }
    // Who asks why of something that has a name, or of a service or a job, asks for a cause.
    why || is_unwell(words) || any(words, lexicon::SEEKS)
}

/// Whether words say that something is not as it should be.
pub(super) fn is_unwell(words: &[Word<'_>]) -> bool {
    any(words, lexicon::SLOW)
        || any(words, lexicon::UNWELL)
        || ((any(words, lexicon::SERVICE) || any(words, lexicon::PERCENTILES)) && any(words, lexicon::MOVED))
}

/// What it is about; none when nothing says so.
pub(super) fn subject(words: &[Word<'_>], job: bool, named: &Named, written: Option<&str>) -> Option<Subject> {
    let names = |kinds: &[&str]| named.iter().any(|(kind, _)| kinds.contains(kind));
    if job {
        return Some(Subject::Job);
    }
    if names(&["service", "model", "pod"]) {
        return Some(Subject::Service);
    }
    if any(words, lexicon::JOB) {
        return Some(Subject::Job);
    }
    if any(words, lexicon::SERVICE) {
        return Some(Subject::Service);
    }
    if names(&["node", "gpu", "cluster"]) {
        return Some(Subject::Host);
    }
    // `is summarizer short of GPU capacity` is about what it names; `which GPU is slow` names nothing.
    match written {
        Some(_) => Some(Subject::Anything),
        None => any(words, lexicon::PLACES).then_some(Subject::Host),
    }
}

/// `ev-211`, `mig_job_3`: nobody writes an ordinary word so.
pub(super) fn is_joined_name(name: &str) -> bool {
    name.contains(['-', '_']) && name.chars().any(char::is_alphanumeric)
}

/// The name that was written for what is unwell: said to be a service or a model, else a word that is written like a name, else the word
/// that stands where the subject does.
pub(super) fn written_name(words: &[Word<'_>], times: &[TimeMention], named: &Named) -> Option<String> {
    if let Some((_, name)) = named.iter().find(|(kind, _)| matches!(*kind, "service" | "model")) {
        return Some(name.clone());
    }
    let in_time = |place: usize| times.iter().any(|t| (t.first..t.first + t.length).contains(&place));
    let is_of_another = |word: &Word<'_>| named.iter().any(|(_, name)| name == word.typed);
    let free = |place: usize, word: &Word<'_>| !in_time(place) && !is_of_another(word) && !is_vocabulary(word);
    let mut like_names =
        words.iter().enumerate().filter(|(place, word)| free(*place, word) && is_written_like_a_name(word, *place));
    // `GPU utilisation is 100 % …, why did train-7b-0412 drop`: what nobody writes but as a name comes before what may be one.
    let joined = like_names.clone().find(|(_, word)| is_joined_name(word.typed));
    if let Some((_, word)) = joined.or_else(|| like_names.next()) {
        return Some(word.typed.to_owned());
    }
    let names_at = |place: usize| words.get(place).filter(|word| free(place, word)).map(|word| word.typed.to_owned());
    for lead in lexicon::LEADS {
        for place in (0..words.len()).filter(|place| at(words, *place, lead)) {
            let next = place + length(lead);
            let next = if at(words, next, "the") { next + 1 } else { next };
            if let Some(name) = names_at(next) {
                return Some(name);
            }
        }
    }
    // `make storefront slower`
    let slow = words.iter().position(|word| lexicon::SLOW.contains(&word.folded.as_str()))?;
    names_at(slow.checked_sub(1)?)
}

/// `PetSite`, `llama-70b`, `chat_v2`, `80609`, `Checkout` inside of a sentence; not `TTFT`.
fn is_written_like_a_name(word: &Word<'_>, place: usize) -> bool {
    let letters = || word.typed.chars().filter(|c| c.is_alphabetic());
    let has_small = letters().any(char::is_lowercase);
    let joined = word.typed.contains(['-', '_', ':', '/', '.']) && word.typed.chars().any(char::is_alphanumeric);
    let mixed = word.typed.chars().any(|c| c.is_ascii_digit()) && letters().next().is_some();
    let number = word.typed.len() >= 4 && word.typed.chars().all(|c| c.is_ascii_digit());
    let inner_capital = word.typed.chars().skip(1).any(char::is_uppercase);
    let capital = place > 0 && word.typed.chars().next().is_some_and(char::is_uppercase);
    number || (has_small && (joined || mixed || inner_capital || capital))
}

/// Words that the question is made of, and that name nothing.
pub(super) fn is_vocabulary(word: &Word<'_>) -> bool {
    let lists = [
        lexicon::SLOW,
        lexicon::UNWELL,
        lexicon::SERVICE,
        lexicon::MOVED,
        lexicon::JOB,
        lexicon::PLACES,
        lexicon::ASKS,
        lexicon::PLAIN,
        lexicon::SEEKS,
        lexicon::LIKE_NAMES,
    ];
    // A phrase's words are vocabulary too: `root cause`, `time to first token`.
    lists.iter().any(|list| list.iter().any(|phrase| phrase.split(' ').any(|part| part == word.folded)))
}
