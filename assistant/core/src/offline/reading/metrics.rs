//! Metrics by meaning: names, aliases, everyday words; a word that means several is told by what stands beside it, or asked about.

use sightline_query::catalogue::{EntityLevel, Metric};
use sightline_query::{Catalogue, Resolution};

use super::super::classify::Subject;
use super::super::lexicon::Lexicon;
use super::super::time::TimeMention;
use super::super::words::{Word, any, find};

/// Longest phrase of everyday words that can name a metric.
const MAX_WORDS: usize = 5;
/// So many metrics are read for one question.
const MAX_METRICS: usize = 3;

/// The metric that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::offline) enum MetricMention {
    /// One metric, by canonical id.
    One(String),
    /// Several could be meant.
    Several {
        /// The words.
        typed: String,
        /// Canonical ids.
        candidates: Vec<String>,
    },
    /// None was recognised; these are close.
    None {
        /// Close names, for words that look like a metric's.
        near: Vec<String>,
        /// The word they are close to.
        typed: Option<String>,
    },
}

/// What was found, and which words it took.
pub(super) struct Found {
    pub(super) metric: MetricMention,
    pub(super) typed: Option<String>,
    pub(super) also: Vec<String>,
    pub(super) taken: Vec<bool>,
}

/// The metrics of a question: the longest runs of words that the catalogue knows, in the order in which they stand.
pub(super) fn find_metrics(
    words: &[Word<'_>],
    times: &[TimeMention],
    about: Option<Subject>,
    lexicon: &Lexicon,
    catalogue: &Catalogue,
) -> Found {
    let mut taken = vec![false; words.len()];
    let in_time = |place: usize| times.iter().any(|t| (t.first..t.first + t.length).contains(&place));
    let mut found: Vec<(usize, usize, Vec<String>, String)> = Vec::new();
    for size in (1..=MAX_WORDS).rev() {
        for place in 0..words.len().saturating_sub(size - 1) {
            if size == 1 && is_no_metric(words, place) {
                continue;
            }
            if size > 1 && begins_inside(words, place, size, lexicon, catalogue) {
                continue;
            }
            if (place..place + size).any(|p| in_time(p) || taken.get(p).copied().unwrap_or(true)) {
                continue;
            }
            let here = || words.iter().skip(place).take(size);
            let typed = here().map(|w| w.typed).collect::<Vec<_>>().join(" ");
            let folded = here().map(|w| w.folded.as_str()).collect::<Vec<_>>().join(" ");
            // `tokens per second` of a service are not those of a training job, which the catalogue knows by the same words.
            let open = matches!(about, Some(Subject::Service | Subject::Anything));
            let several = lexicon.stands_for.several.get(&folded).filter(|_| open);
            let mut ids: Vec<String> =
                several.into_iter().flatten().filter(|id| catalogue.get(id).is_some()).cloned().collect();
            if ids.is_empty() {
                ids = meant(&typed, lexicon, catalogue);
            }
            if ids.is_empty() {
                ids = meant(&folded, lexicon, catalogue);
            }
            if ids.is_empty() {
                continue;
            }
            taken.iter_mut().skip(place).take(size).for_each(|slot| *slot = true);
            found.push((place, size, ids, typed));
        }
    }
    found.sort_by_key(|(place, size, _, _)| (*place, *size));
    // A word that stands for a metric only by what it does (`hot`, `drawing`) gives way to one that names it.
    let strong: Vec<_> =
        found.iter().filter(|(place, size, _, _)| !is_weak(words, *place, *size, lexicon)).cloned().collect();
    let mut found = if strong.is_empty() { found } else { strong };
    if let Some(written) =
        found.iter().position(|(place, _, _, _)| words.get(*place).is_some_and(|w| w.folded.contains('_')))
    {
        found.swap(0, written);
    }
    let ranks_by = lexicon.stands_for.ranks_by.iter().find(|(word, _)| find(words, word).is_some());
    let mut metrics: Vec<Vec<String>> =
        found.iter().map(|(_, _, ids, typed)| narrowed(ids, typed, words, about, lexicon, catalogue)).collect();
    let typed = found.first().map(|(_, _, _, typed)| typed.clone());
    let first = if metrics.is_empty() { Vec::new() } else { metrics.remove(0) };
    let mut also: Vec<String> = Vec::new();
    for more in metrics {
        if let [only] = more.as_slice()
            && first.first() != Some(only)
            && !also.contains(only)
            && also.len() + 1 < MAX_METRICS
        {
            also.push(only.clone());
        }
    }
    let metric = match (first.as_slice(), ranks_by) {
        ([only], _) => MetricMention::One(only.clone()),
        ([], Some((_, id))) => MetricMention::One(id.clone()),
        (several, _) if !several.is_empty() => {
            MetricMention::Several { typed: typed.clone().unwrap_or_default(), candidates: first }
        }
        _ => none(words, catalogue),
    };
    Found { metric, typed, also, taken }
}

/// `prompt tokens per second`: a run whose first word ends another metric's name is the unit of that one.
fn begins_inside(words: &[Word<'_>], place: usize, size: usize, lexicon: &Lexicon, catalogue: &Catalogue) -> bool {
    let run = |from: usize, count: usize| -> String {
        words.iter().skip(from).take(count).map(|word| word.folded.as_str()).collect::<Vec<_>>().join(" ")
    };
    let Some(before) = place.checked_sub(1) else { return false };
    let own = meant(&run(place, size), lexicon, catalogue);
    let other = meant(&run(before, 2), lexicon, catalogue);
    let whole = meant(&run(before, size + 1), lexicon, catalogue);
    !own.is_empty() && other.len() == 1 && whole.is_empty() && !own.contains(other.first().unwrap_or(&String::new()))
}

/// What a run of words means: in the catalogue, or by the planner's own words.
fn meant(run: &str, lexicon: &Lexicon, catalogue: &Catalogue) -> Vec<String> {
    if let Some(own) = lexicon.metrics_of_site.get(&run.to_lowercase()) {
        return vec![own.clone()];
    }
    let known: Vec<String> = catalogue.meant(run).iter().map(|metric| metric.id().to_owned()).collect();
    if !known.is_empty() {
        return known;
    }
    let run = run.to_lowercase();
    if let Some(several) = lexicon.stands_for.several.get(&run) {
        return several.iter().filter(|id| catalogue.get(id).is_some()).cloned().collect();
    }
    lexicon.stands_for.metrics.get(&run).filter(|id| catalogue.get(id).is_some()).cloned().into_iter().collect()
}

/// `what is up`, `went up`: a word that names a metric only where it stands alone.
fn is_no_metric(words: &[Word<'_>], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|before| words.get(before));
    words.get(place).is_some_and(|word| word.folded == "up") && before.is_some()
}

/// Whether a word says something else first: `idle`, `hot`, `drawing`.
fn is_weak(words: &[Word<'_>], place: usize, size: usize, lexicon: &Lexicon) -> bool {
    size == 1 && words.get(place).is_some_and(|word| lexicon.stands_for.metrics.contains_key(&word.folded))
}

/// Of several metrics the ones that fit what is talked about.
fn narrowed(
    ids: &[String],
    typed: &str,
    words: &[Word<'_>],
    about: Option<Subject>,
    lexicon: &Lexicon,
    catalogue: &Catalogue,
) -> Vec<String> {
    if let [only] = ids {
        return vec![turned(only, typed, words, lexicon, catalogue)];
    }
    // `which node wrote the most to disk`
    let told = lexicon.stands_for.tells.iter().filter(|(word, _)| find(words, word).is_some());
    for (_, part) in told {
        let told: Vec<String> = ids.iter().filter(|id| id.contains(part.as_str())).cloned().collect();
        if !told.is_empty() && told.len() < ids.len() {
            return told;
        }
    }
    let level = |id: &String| catalogue.get(id).map(Metric::entity);
    let of = |levels: &[EntityLevel]| -> Vec<String> {
        ids.iter().filter(|id| level(id).is_some_and(|level| levels.contains(&level))).cloned().collect()
    };
    let typed = typed.to_lowercase();
    let beside = |names: &[&str]| names.iter().any(|name| any(words, &[name])) && !names.contains(&typed.as_str());
    let gpu = words.iter().any(|word| {
        word.folded.starts_with("gpu")
            || word.folded == "vram"
            || word.folded.starts_with('g')
                && word.folded.len() <= 3
                && word.folded.bytes().skip(1).all(|b| b.is_ascii_digit())
                && word.folded.len() > 1
    });
    let host = beside(&["host", "hosts", "cpu", "ram", "system", "machine", "machines", "server"]);
    let training = about == Some(Subject::Job) || beside(&["training", "rank", "ranks", "step", "steps"]);
    let serving =
        about == Some(Subject::Service) || beside(&["service", "model", "requests", "inference", "engine", "replica"]);
    let mut best: Vec<String> = Vec::new();
    for (holds, levels) in [
        (host, &[EntityLevel::Node, EntityLevel::Device][..]),
        (gpu, &[EntityLevel::Gpu, EntityLevel::Link][..]),
        (serving, &[EntityLevel::Model, EntityLevel::Service, EntityLevel::Pod][..]),
        (training, &[EntityLevel::Job, EntityLevel::Rank][..]),
    ] {
        if holds && best.is_empty() {
            best = of(levels);
        }
    }
    match best.as_slice() {
        [] => ids.to_vec(),
        // Of several that fit, the list's own order says which is meant most often.
        [first, ..] if serving || training => vec![first.clone()],
        _ => best,
    }
}

/// `who pushes the most over infiniband`: where a metric has two directions and its name says none, another word may.
fn turned(id: &str, typed: &str, words: &[Word<'_>], lexicon: &Lexicon, catalogue: &Catalogue) -> String {
    let typed = typed.to_lowercase();
    let says =
        ["receive", "transmit", "read", "writ", "rx", "tx", " in", " out", "_"].iter().any(|part| typed.contains(part));
    let told = lexicon.stands_for.tells.iter().filter(|(word, _)| find(words, word).is_some()).map(|(_, part)| part);
    for part in told.filter(|_| !says) {
        let other = match part.as_str() {
            "_transmit" => "_receive",
            "_receive" => "_transmit",
            "_written" => "_read",
            _ => "_written",
        };
        let turned = id.replace(other, part);
        if turned != id && catalogue.get(&turned).is_some() {
            return turned;
        }
    }
    id.to_owned()
}

/// A word written like a metric's name is one that was meant, if misspelt.
fn none(words: &[Word<'_>], catalogue: &Catalogue) -> MetricMention {
    let like_a_name = words.iter().find(|w| {
        w.folded.contains(['_', ':'])
            && w.folded.len() > 3
            && !w.folded.starts_with(|c: char| c.is_ascii_digit())
            && !w.folded.contains("::")
    });
    match like_a_name.map(|word| (word, catalogue.resolve(word.typed))) {
        Some((word, Resolution::Unknown { near })) => MetricMention::None { near, typed: Some(word.typed.to_owned()) },
        Some((_, Resolution::Exact(_) | Resolution::Ambiguous(_))) | None => {
            MetricMention::None { near: Vec::new(), typed: None }
        }
    }
}
