//! Marking entities: things named by kind and name (`node atlas-n07`, `gpu 3`, `n07 g3`, `rank 12`), by somebody's name (`mkoch's jobs`),
//! and words that may be names, which only a look-up can tell.

use super::lexicon::Lexicon;
use super::time::TimeMention;
use super::words::{Word, at};

/// Something that is named, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// The canonical dimension, where the words say it.
    pub(super) kind: Option<&'static str>,
    /// The name, as typed.
    pub(super) name: String,
    /// Where it stands.
    pub(super) place: usize,
    /// Whether it is written as only names are; an ordinary word may be one too.
    pub(super) written: bool,
    /// Whether it was named in an earlier question.
    pub(super) inherited: bool,
    /// Whether it is left out: `all nodes except n05`.
    pub(super) excluded: bool,
}

/// Kinds that go with a number as their name, and with a name.
const NUMBERED: [&str; 4] = ["gpu", "rank", "node", "job"];

/// The canonical dimension of a kind of things, where it is one that things are named by.
fn dimension(kind: &str) -> Option<&'static str> {
    ["gpu", "node", "cluster", "job", "user", "service", "model", "rank", "rack", "pod"]
        .into_iter()
        .find(|known| *known == kind)
}

/// All that is named, in order.
pub(super) fn mentions(words: &[Word<'_>], times: &[TimeMention], lexicon: &Lexicon, taken: &[bool]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut used = vec![false; words.len()];
    let in_time = |place: usize| times.iter().any(|t| (t.first..t.first + t.length).contains(&place));
    for place in 0..words.len() {
        if used.get(place).copied().unwrap_or(true) || in_time(place) {
            continue;
        }
        for (mention, length) in at_place(words, place, lexicon) {
            for spot in place..place + length {
                if let Some(slot) = used.get_mut(spot) {
                    *slot = true;
                }
            }
            if !in_time(mention.place) {
                found.push(mention);
            }
        }
    }
    for (place, word) in words.iter().enumerate() {
        let free =
            !used.get(place).copied().unwrap_or(true) && !in_time(place) && !taken.get(place).copied().unwrap_or(false);
        if free && let Some(written) = like_a_name(word, place, lexicon) {
            found.push(Mention {
                kind: None,
                name: word.typed.to_owned(),
                place,
                written,
                inherited: false,
                excluded: false,
            });
        }
    }
    found.sort_by_key(|mention| mention.place);
    leave_out(&mut found, words, lexicon);
    found
}

/// `apart from n05 and n06`: all that is named behind the word, as far as nothing but names and `and` stand there.
fn leave_out(found: &mut [Mention], words: &[Word<'_>], lexicon: &Lexicon) {
    let Some((place, used)) = lexicon.what.excepts.find(words) else { return };
    let mut next = place + used;
    while let Some(word) = words.get(next) {
        let joins = matches!(
            word.folded.as_str(),
            "and" | "or" | "the" | "of" | "from" | "on" | "node" | "job" | "user" | "nodes" | "jobs" | "cluster"
        );
        match found.iter_mut().find(|mention| mention.place == next) {
            Some(mention) => mention.excluded = true,
            None if joins => {}
            None => return,
        }
        next += 1;
    }
}

/// What is named by the words that begin there, and how many words that takes.
fn at_place(words: &[Word<'_>], place: usize, lexicon: &Lexicon) -> Vec<(Mention, usize)> {
    let Some(word) = words.get(place) else { return Vec::new() };
    let made = |kind: Option<&'static str>, name: &str, at: usize| Mention {
        kind,
        name: name.to_owned(),
        place: at,
        written: true,
        inherited: false,
        excluded: false,
    };
    // `n07/g3`, `n07:3`
    if let Some((node, gpu)) = word.folded.split_once(['/', ':'])
        && let (Some(("node", node)), Some(gpu)) =
            (glued(node), glued(gpu).filter(|(kind, _)| *kind == "gpu").map(|(_, n)| n).or_else(|| digits(gpu)))
    {
        return vec![(made(Some("node"), &node, place), 1), (made(Some("gpu"), &gpu, place), 1)];
    }
    if let Some((kind, name)) = glued(&word.folded) {
        return vec![(made(Some(kind), &name, place), 1)];
    }
    // `mkoch's jobs` was split at its apostrophe; `jobs of mkoch`, `user mkoch`.
    let kind = lexicon.stands_for.kinds.get(&word.folded).and_then(|kind| dimension(kind));
    let Some(kind) = kind else { return Vec::new() };
    let mut next = place + 1;
    while words
        .get(next)
        .is_some_and(|w| matches!(w.folded.as_str(), "#" | "no" | "number" | "nr" | "id" | "called" | "named"))
    {
        next += 1;
    }
    let Some(named) = words.get(next) else { return Vec::new() };
    let plural = word.folded.ends_with('s') && word.folded != "us";
    let number = digits(named.folded.trim_start_matches('#'));
    let mut all = Vec::new();
    match number {
        Some(number) if NUMBERED.contains(&kind) => {
            // `top gpus 5`? no; `gpus 2 and 3`, `gpu 3`.
            all.push((made(Some(kind), &number, next), next + 1 - place));
            let mut more = next + 1;
            while plural && words.get(more).is_some_and(|w| w.folded == "and") {
                let Some(other) = words.get(more + 1).and_then(|w| digits(&w.folded)) else { break };
                all.push((made(Some(kind), &other, more + 1), more + 2 - place));
                more += 2;
            }
        }
        Some(_) => {}
        None => {
            let is_name = named.folded.chars().any(|c| c.is_ascii_digit()) || named.folded.contains(['-', '_', '.']);
            let plain = matches!(kind, "cluster" | "service" | "model" | "user")
                && !plural
                && !lexicon.knows(&named.folded)
                && !is_function(&named.folded);
            let glued_next = glued(&named.folded).is_some_and(|(other, _)| other != kind);
            if kind != "gpu" && kind != "rank" && !glued_next && (is_name || plain) {
                // `empty nodes atlas-b`: several of a kind have not that one name.
                let kind = (!plural).then_some(kind);
                all.push((made(kind, named.typed, next), next + 1 - place));
            }
        }
    }
    all
}

fn digits(text: &str) -> Option<String> {
    (!text.is_empty() && text.len() <= 7 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned())
}

/// `gpu3`, `g3`, `gpu-3`, `node7`, `n07`, `rank12`, `host-12`.
fn glued(word: &str) -> Option<(&'static str, String)> {
    let number = |rest: &str| digits(rest.trim_start_matches(['-', '_', '#', ':']));
    for (lead, kind) in [("gpu", "gpu"), ("rank", "rank"), ("node", "node"), ("host", "node"), ("card", "gpu")] {
        if let Some(number) = word.strip_prefix(lead).and_then(number) {
            return Some((kind, number));
        }
    }
    match word.split_at_checked(1)? {
        ("g", rest) => digits(rest).filter(|n| n.len() <= 2).map(|n| ("gpu", n)),
        ("n", rest) => digits(rest).map(|_| ("node", word.to_owned())),
        ("r", rest) => digits(rest).filter(|n| n.len() <= 4).map(|n| ("rank", n)),
        _ => None,
    }
}

fn is_function(word: &str) -> bool {
    matches!(
        word,
        "is" | "was"
            | "are"
            | "be"
            | "by"
            | "on"
            | "in"
            | "of"
            | "the"
            | "a"
            | "an"
            | "to"
            | "at"
            | "for"
            | "and"
            | "or"
            | "with"
            | "get"
            | "had"
            | "has"
            | "have"
    )
}

/// Whether a word may be a name: certainly, where nobody writes an ordinary word so.
fn like_a_name(word: &Word<'_>, place: usize, lexicon: &Lexicon) -> Option<bool> {
    let letters = || word.typed.chars().filter(|c| c.is_alphabetic());
    if word.mended || lexicon.names.like_names.has(&word.folded) {
        return None;
    }
    if is_plain_compound(&word.folded) {
        return None;
    }
    let joined = word.typed.contains(['-', '_', ':', '/', '.']) && letters().next().is_some();
    let mixed = word.typed.chars().any(|c| c.is_ascii_digit()) && letters().next().is_some();
    let is_amount = word.typed.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '<' | '>'))
        && !word.typed.contains(['-', '_']);
    let inner_capital = word.typed.chars().skip(1).any(char::is_uppercase) && letters().any(char::is_lowercase);
    if lexicon.knows(&word.folded) || is_function(&word.folded) {
        return None;
    }
    if (joined || mixed || inner_capital) && !is_amount {
        return Some(true);
    }
    let plain = letters().count() == word.typed.chars().count() && word.typed.chars().count() >= 3;
    let number = place > 0 && word.typed.len() >= 4 && word.typed.chars().all(|c| c.is_ascii_digit());
    match (number, plain) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// `longest-running`, `once-over`, `non-training`: words that are joined in plain English, and name nothing.
pub(super) fn is_plain_compound(folded: &str) -> bool {
    const BEGINNINGS: [&str; 44] = [
        "longest", "most", "least", "half", "once", "well", "low", "high", "long", "short", "non", "re", "pre", "self",
        "over", "under", "single", "double", "per", "on", "off", "up", "down", "in", "out", "so", "all", "any", "best",
        "worst", "ever", "never", "much", "more", "less", "mid", "early", "late", "day", "hour", "week", "minute",
        "right", "left",
    ];
    const ENDINGS: [&str; 12] =
        ["ish", "hungry", "heavy", "wise", "bound", "wide", "based", "related", "only", "free", "long", "over"];
    let Some((first, last)) = folded.split_once('-') else { return false };
    let letters = folded.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    letters && (BEGINNINGS.contains(&first) || ENDINGS.contains(&last))
}

/// Whether somebody's own things are asked for: `my jobs`.
pub(super) fn own(words: &[Word<'_>]) -> bool {
    [
        "my jobs",
        "my runs",
        "my job",
        "my run",
        "jobs of mine",
        "my training",
        "my trainings",
        "do i have",
        "my gpus",
        "our jobs",
    ]
    .into_iter()
    .any(|phrase| (0..words.len()).any(|place| at(words, place, phrase)))
}
