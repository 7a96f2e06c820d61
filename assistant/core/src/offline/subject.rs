//! What a question about something unwell is about: a job, a service, a place in the cluster, or a name that may be any of them.

use super::lexicon::Lexicon;
use super::reading::{Named, Subject};
use super::time::TimeMention;
use super::words::{Word, any};

/// Whether the question says that something is wrong, or asks whether it is.
pub(super) fn is_symptom(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    let why = any(words, &["why", "root cause"]);
    // `show the latency of chat` asks for a number, whatever it did.
    let shows = words.first().is_some_and(|word| lexicon.what.shows.has(&word.folded));
    if shows && !why {
        return false;
    }
    // Who asks why of something that has a name, or of a service or a job, asks for a cause.
    why || is_unwell(words, lexicon) || lexicon.unwell.seeks.any(words)
}

/// Whether words say that something is not as it should be.
pub(super) fn is_unwell(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    lexicon.unwell.slow.any(words)
        || lexicon.unwell.unwell.any(words)
        || ((lexicon.names.service.any(words) || lexicon.names.percentiles.any(words))
            && lexicon.unwell.moved.any(words))
}

/// What it is about; none when nothing says so.
pub(super) fn subject(
    words: &[Word<'_>],
    job: bool,
    named: &Named,
    written: Option<&str>,
    lexicon: &Lexicon,
) -> Option<Subject> {
    let names = |kinds: &[&str]| named.iter().any(|(kind, _)| kinds.contains(kind));
    if job {
        return Some(Subject::Job);
    }
    if names(&["service", "model", "pod"]) {
        return Some(Subject::Service);
    }
    if lexicon.names.job.any(words) {
        return Some(Subject::Job);
    }
    if lexicon.names.service.any(words) {
        return Some(Subject::Service);
    }
    if names(&["node", "gpu", "cluster"]) {
        return Some(Subject::Host);
    }
    // `is summarizer short of GPU capacity` is about what it names; `which GPU is slow` names nothing.
    match written {
        Some(_) => Some(Subject::Anything),
        None => lexicon.names.places.any(words).then_some(Subject::Host),
    }
}

/// `ev-211`, `mig_job_3`: nobody writes an ordinary word so.
pub(super) fn is_joined_name(name: &str) -> bool {
    name.contains(['-', '_']) && name.chars().any(char::is_alphanumeric)
}

/// The name that was written for what is unwell: said to be a service or a model, else a word that is written like a name, else the word
/// that stands where the subject does.
pub(super) fn written_name(
    words: &[Word<'_>],
    times: &[TimeMention],
    named: &Named,
    lexicon: &Lexicon,
) -> Option<String> {
    if let Some((_, name)) = named.iter().find(|(kind, _)| matches!(*kind, "service" | "model")) {
        return Some(name.clone());
    }
    let in_time = |place: usize| times.iter().any(|t| (t.first..t.first + t.length).contains(&place));
    let is_of_another = |word: &Word<'_>| named.iter().any(|(_, name)| name == word.typed);
    let free = |place: usize, word: &Word<'_>| !in_time(place) && !is_of_another(word) && !is_vocabulary(word, lexicon);
    let mut like_names =
        words.iter().enumerate().filter(|(place, word)| free(*place, word) && is_written_like_a_name(word, *place));
    // `GPU utilisation is 100 % …, why did train-7b-0412 drop`: what nobody writes but as a name comes before what may be one.
    let joined = like_names.clone().find(|(_, word)| is_joined_name(word.typed));
    if let Some((_, word)) = joined.or_else(|| like_names.next()) {
        return Some(word.typed.to_owned());
    }
    let names_at = |place: usize| words.get(place).filter(|word| free(place, word)).map(|word| word.typed.to_owned());
    for place in 0..words.len() {
        let Some(length) = lexicon.names.leads.at(words, place) else { continue };
        let next = place + length;
        let next = if words.get(next).is_some_and(|word| word.folded == "the") { next + 1 } else { next };
        if let Some(name) = names_at(next) {
            return Some(name);
        }
    }
    // `make storefront slower`
    let slow = words.iter().position(|word| lexicon.unwell.slow.has(&word.folded))?;
    names_at(slow.checked_sub(1)?)
}

/// `PetSite`, `llama-70b`, `chat_v2`, `80609`, `Checkout` inside of a sentence; not `TTFT`.
fn is_written_like_a_name(word: &Word<'_>, place: usize) -> bool {
    if super::entities::is_plain_compound(&word.folded) {
        return false;
    }
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
pub(super) fn is_vocabulary(word: &Word<'_>, lexicon: &Lexicon) -> bool {
    let lists = [
        &lexicon.unwell.slow,
        &lexicon.unwell.unwell,
        &lexicon.names.service,
        &lexicon.unwell.moved,
        &lexicon.names.job,
        &lexicon.names.places,
        &lexicon.what.asks,
        &lexicon.names.plain,
        &lexicon.unwell.seeks,
        &lexicon.names.like_names,
    ];
    if super::entities::is_plain_compound(&word.folded) {
        return true;
    }
    // Plain English names nothing, unless it is written as a name.
    if lexicon.names.common.has(&word.folded) && !word.typed.chars().any(char::is_uppercase) {
        return true;
    }
    // A phrase's words are vocabulary too: `root cause`, `time to first token`.
    lists.iter().any(|list| list.has_part(&word.folded))
}
