//! What single words say: the job, things named by kind and name, people, how many, what is ranked.

use super::super::lexicon::Lexicon;
use super::super::limits::Limit;
use super::super::subject;
use super::super::time::TimeMention;
use super::super::words::{Word, any, at, find, length, number_word};
use super::Named;

/// The job: the word after `job`, or a word that looks like a scheduler's id (`J123`, `job-88412`).
pub(super) fn job(words: &[Word<'_>], times: &[TimeMention], lexicon: &Lexicon) -> Option<String> {
    for (place, word) in words.iter().enumerate() {
        if !matches!(word.folded.as_str(), "job" | "run") {
            continue;
        }
        if let Some(next) = words.get(place + 1)
            && !is_filler(&next.folded)
            && !subject::is_vocabulary(next, lexicon)
            && !lexicon.stands_for.states.contains_key(&next.folded)
            && !in_time(times, place + 1)
            && entities_like(next)
        {
            return Some(next.typed.to_owned());
        }
    }
    let looks_like_id = |word: &&Word<'_>| {
        let rest = word.folded.strip_prefix("job").unwrap_or(&word.folded);
        let rest = rest.strip_prefix('j').unwrap_or(rest).trim_start_matches(['-', '_', '#']);
        word.folded.starts_with('j') && !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())
    };
    words.iter().find(looks_like_id).map(|word| word.typed.to_owned())
}

fn entities_like(word: &Word<'_>) -> bool {
    word.typed.contains(['-', '_']) || word.typed.chars().any(|c| c.is_ascii_digit())
}

/// `is llama-70b slow`: the word before the slow word, when it looks like a name and is not said to be anything else.
pub(super) fn guessed_job(words: &[Word<'_>], named: &Named, lexicon: &Lexicon) -> Option<String> {
    let slow = words.iter().position(|word| lexicon.unwell.slow.has(&word.folded))?;
    let before = words.get(slow.checked_sub(1)?)?;
    let is_name = before.folded.contains(['-', '_']) && before.folded.chars().any(char::is_alphanumeric);
    let is_other = named.iter().any(|(_, name)| name == before.typed);
    (is_name && !is_other && !lexicon.names.like_names.has(&before.folded)).then(|| before.typed.to_owned())
}

fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "is",
        "was",
        "so",
        "slow",
        "slower",
        "in",
        "on",
        "at",
        "of",
        "the",
        "a",
        "my",
        "with",
        "and",
        "that",
        "running",
        "run",
        "been",
        "being",
        "get",
        "gets",
        "go",
        "slowed",
        "have",
        "had",
        "has",
        "throughput",
        "step",
        "degraded",
        "now",
        "today",
        "yesterday",
        "take",
        "taking",
        "took",
        "to",
        "for",
        "from",
        "since",
        "lose",
        "by",
        "or",
        "got",
        "did",
        "does",
        "do",
        "it",
        "i",
        "we",
        "they",
        "who",
        "which",
        "what",
        "when",
        "will",
        "can",
        "should",
    ];
    FILLERS.contains(&word)
}

pub(super) fn in_time(times: &[TimeMention], place: usize) -> bool {
    times.iter().any(|t| (t.first..t.first + t.length).contains(&place))
}

/// `node X`, `gpu N`, `cluster C`, `service S`, `model M`, `rank R`.
pub(super) fn named(words: &[Word<'_>], lexicon: &Lexicon) -> Named {
    let mut named = Vec::new();
    for kind in ["node", "gpu", "cluster", "service", "model", "rank", "pod"] {
        for place in 0..words.len() {
            let Some(word) = words.get(place) else { continue };
            if word.folded != kind {
                continue;
            }
            let Some(next) = words.get(place + 1) else { continue };
            let is_index = next.folded.chars().all(|c| c.is_ascii_digit());
            let is_name = next.folded.chars().any(|c| c.is_ascii_digit()) || next.folded.contains(['-', '_', '.']);
            let plain = matches!(kind, "cluster" | "service" | "model")
                && !is_filler(&next.folded)
                // `is the cluster fine` names none.
                && !lexicon.what.all_well.has(&next.folded)
                && !lexicon.unwell.unwell.has(&next.folded)
                && !lexicon.unwell.slow.has(&next.folded)
                && (!lexicon.knows(&next.folded) || lexicon.names.common.has(&next.folded) || next.folded == "chat");
            let fits = match kind {
                "gpu" | "rank" => is_index,
                _ => is_name || plain,
            };
            if fits {
                named.push((kind, next.typed.to_owned()));
            }
        }
    }
    named
}

/// `the borealis tenant`
pub(super) fn before_tenant(words: &[Word<'_>], lexicon: &Lexicon) -> Option<String> {
    let place = find(words, "tenant").or_else(|| find(words, "tenants"))?;
    let word = words.get(place.checked_sub(1)?)?;
    (!is_filler(&word.folded) && !lexicon.knows(&word.folded)).then(|| word.typed.to_owned())
}

/// The word after one of these phrases.
pub(super) fn after(words: &[Word<'_>], phrases: &[&str]) -> Option<String> {
    phrases.iter().find_map(|phrase| {
        let place = find(words, phrase)? + length(phrase);
        let word = words.get(place)?;
        (!is_filler(&word.folded)).then(|| word.typed.to_owned())
    })
}

/// `mkoch's jobs`, `jobs of mkoch`, `jobs by mkoch`, `user mkoch`.
pub(super) fn users(text: &str, words: &[Word<'_>], lexicon: &Lexicon) -> Vec<String> {
    let is_person = |word: &str| {
        word.chars().count() >= 3
            && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'))
            // Machines and jobs have numbers, people seldom: `n03's gpus`, `is moe-8x22b running`.
            && !word.chars().any(|c| c.is_ascii_digit())
            && !lexicon.knows(&word.to_lowercase())
    };
    let mut users: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if is_person(name) && !users.iter().any(|known| known == name) {
            users.push(name.to_owned());
        }
    };
    let raw: Vec<&str> = text.split_whitespace().collect();
    let job_word = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        lexicon.names.jobs.has(&word) || matches!(word.as_str(), "job" | "run" | "gpus" | "stuff")
    };
    for (place, word) in raw.iter().enumerate() {
        let owner = ["'s", "’s", "'", "’"].iter().find_map(|end| word.strip_suffix(end));
        let behind = raw.iter().skip(place + 1).take(3).any(|next| job_word(next));
        if let Some(owner) = owner.filter(|_| behind) {
            add(owner.trim_matches(|c: char| !c.is_alphanumeric()));
        }
    }
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1).map(|w| w.typed);
        let is_job_before = place > 0
            && words.get(place - 1).is_some_and(|w| {
                lexicon.names.jobs.has(&w.folded)
                    || matches!(w.folded.as_str(), "job" | "run" | "submitted" | "started" | "owned" | "launched")
            });
        match word.folded.as_str() {
            "user" | "owner" => next.into_iter().for_each(&mut add),
            "of" | "by" | "from" if is_job_before => next.into_iter().for_each(&mut add),
            // `what did petrov run`, `gpus does mkoch hold`
            "did" | "does" | "is"
                if words.get(place + 2).is_some_and(|w| {
                    matches!(
                        w.folded.as_str(),
                        "run"
                            | "hold"
                            | "have"
                            | "use"
                            | "running"
                            | "submit"
                            | "start"
                            | "launch"
                            | "own"
                            | "using"
                            | "holding"
                    )
                }) =>
            {
                next.into_iter().for_each(&mut add);
            }
            _ => {}
        }
    }
    users
}

/// `top 5`, `5 hottest`, `the three worst`, `last 10 lines`, `which two nodes`, `ten gpus with the highest …`.
pub(super) fn count(words: &[Word<'_>], limits: &[Limit], lexicon: &Lexicon) -> Option<u32> {
    let number = |place: usize| {
        let word = words.get(place)?;
        let said = number_word(&word.folded).filter(|n| n.fract() == 0.0 && *n >= 2.0).map(|n| n as u32);
        word.folded.parse::<u32>().ok().or(said).filter(|n| (1..=1000).contains(n))
    };
    let ranks = |word: &Word<'_>| {
        lexicon.what.most.has(&word.folded)
            || lexicon.what.least.has(&word.folded)
            || matches!(word.folded.as_str(), "top" | "bottom" | "worst" | "best" | "first" | "longest" | "shortest")
    };
    let things = |word: Option<&Word<'_>>| {
        word.is_some_and(|w| {
            lexicon.stands_for.kinds.contains_key(&w.folded)
                || matches!(w.folded.as_str(), "lines" | "log" | "events" | "alerts" | "entries" | "messages")
        })
    };
    let limited = |place: usize| limits.iter().any(|limit| (limit.first..limit.first + limit.length).contains(&place));
    let plural = |place: usize| words.get(place).filter(|word| word.folded.ends_with('s'));
    let counted = |place: usize| {
        (!limited(place) && things(plural(place + 1)) && !before_number(words, place)).then(|| number(place)).flatten()
    };
    let told = words.iter().enumerate().find_map(|(place, word)| {
        // `tail -5`, `tail -n 20`
        if matches!(word.folded.as_str(), "tail" | "head") {
            let amounts = words.iter().skip(place + 1).take(2).map(|word| word.folded.trim_start_matches('-'));
            return amounts.filter_map(|amount| amount.parse::<u32>().ok()).find(|n| (1..=1000).contains(n));
        }
        if ranks(word) {
            return number(place + 1).or_else(|| place.checked_sub(1).and_then(number));
        }
        // `lowest peak power of atlas-n01, 2 of them`
        if at(words, place, "of them") || at(words, place, "of those") || at(words, place, "of these") {
            return place.checked_sub(1).and_then(number);
        }
        let last = matches!(word.folded.as_str(), "last" | "latest" | "which" | "newest" | "show" | "list");
        (last && things(words.get(place + 2))).then(|| number(place + 1)).flatten()
    });
    told.or_else(|| (0..words.len()).find_map(counted))
}

/// `node 17 gpus`: the number is a name there.
fn before_number(words: &[Word<'_>], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|place| words.get(place)).map(|word| word.folded.as_str());
    matches!(before, Some("node" | "host" | "gpu" | "rank" | "job" | "all" | "of" | "than" | "least" | "most"))
}

pub(super) fn ascending(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    lexicon.what.least.any(words) && !any(words, &["at least"])
        || any(words, &["shortest", "odd one out", "laggard", "straggler", "black sheep"])
            && !lexicon.what.most.any(words)
        || any(words, &["which", "what"]) && any(words, &["low", "lower", "cold"]) && !lexicon.what.most.any(words)
}

/// What is ranked, from the plural or `which …`.
pub(super) fn ranked(words: &[Word<'_>], lexicon: &Lexicon) -> Vec<&'static str> {
    let dims: [(&[&str], &[&'static str]); 10] = [
        (&["by gpu", "per gpu", "each gpu", "every gpu"], &["node", "gpu"]),
        (&["by pod", "per pod", "each pod", "pods", "which pod", "replicas", "which replica"], &["pod"]),
        (
            &["by node", "per node", "by host", "per host", "each node", "every node", "by machine", "per machine"],
            &["node"],
        ),
        (&["by cluster", "per cluster", "each cluster"], &["cluster"]),
        (
            &[
                "by job",
                "per job",
                "each job",
                "which job",
                "what job",
                "whose job",
                "rank the jobs",
                "jobs by",
                "jobs with",
                "top jobs",
                "jobs",
            ],
            &["job"],
        ),
        (&["rank has", "which rank", "slowest rank", "ranks", "by rank", "per rank"], &["rank"]),
        (
            &[
                "gpus",
                "which gpu",
                "hottest gpu",
                "coolest gpu",
                "busiest gpu",
                "cards",
                "which card",
                "gpu has",
                "gpu had",
                "what gpu",
            ],
            &["node", "gpu"],
        ),
        (
            &[
                "nodes",
                "which node",
                "hosts",
                "machines",
                "which host",
                "which machine",
                "what node",
                "boxes",
                "servers",
            ],
            &["node"],
        ),
        (&["clusters", "which cluster"], &["cluster"]),
        (
            &[
                "services",
                "which service",
                "components",
                "which component",
                "by service",
                "per service",
                "models",
                "which model",
                "by model",
                "per model",
            ],
            &["service"],
        ),
    ];
    // `jobs by GPU memory`: the GPU is part of the metric.
    let measures = [
        "memory",
        "temperature",
        "temperatures",
        "utilization",
        "power",
        "clock",
        "load",
        "usage",
        "hours",
        "count",
        "energy",
        "util",
    ];
    let of_metric = |phrase: &str| {
        let next = find(words, phrase).and_then(|place| words.get(place + length(phrase)));
        let by = phrase.starts_with("by ") || phrase.starts_with("per ") || phrase.starts_with("each ");
        by && next.is_some_and(|word| measures.contains(&word.folded.as_str()))
    };
    let stands = |phrase: &&str| find(words, phrase).is_some() && !of_metric(phrase);
    let said = dims.iter().find(|(phrases, _)| phrases.iter().any(stands)).map(|(_, dims)| dims.to_vec());
    said.or_else(|| ranked_one(words, lexicon)).unwrap_or_default()
}

/// `lowest drawing card of J124`, `the busiest box`: one of a kind, told by where it stands among them. The GPU of `highest GPU power` is none.
fn ranked_one(words: &[Word<'_>], lexicon: &Lexicon) -> Option<Vec<&'static str>> {
    const ENDS: [&str; 16] =
        ["of", "in", "on", "at", "by", "among", "for", "with", "has", "had", "is", "was", "does", "did", "and", "over"];
    let ranks = |place: usize| lexicon.what.most.at(words, place).or_else(|| lexicon.what.least.at(words, place));
    let (place, used) = (0..words.len()).find_map(|place| Some((place, ranks(place)?)))?;
    let kind_at = |at: usize| {
        let kind = lexicon.stands_for.kinds.get(&words.get(at)?.folded)?;
        let next = words.get(at + 1).map(|word| word.folded.as_str());
        let whole = words.get(at).is_some_and(|word| word.ends) || next.is_none_or(|next| ENDS.contains(&next));
        whole.then_some(kind.as_str())
    };
    match (place + used..place + used + 3).find_map(kind_at)? {
        "gpu" => Some(vec!["node", "gpu"]),
        "node" => Some(vec!["node"]),
        "job" => Some(vec!["job"]),
        "service" | "model" => Some(vec!["service"]),
        "pod" => Some(vec!["pod"]),
        "rank" => Some(vec!["rank"]),
        "cluster" => Some(vec!["cluster"]),
        _ => None,
    }
}

/// A kind of things that is asked for in the plural: `which nodes`, `how many users`.
pub(super) fn kind_many(words: &[Word<'_>], lexicon: &Lexicon) -> Option<&'static str> {
    const KINDS: [&str; 10] = ["gpu", "node", "cluster", "job", "user", "service", "model", "rack", "pod", "metric"];
    words.iter().enumerate().find_map(|(place, word)| {
        let kind = lexicon.stands_for.kinds.get(&word.folded)?;
        // `node count by cluster`
        let counted = words.get(place + 1).is_some_and(|next| matches!(next.folded.as_str(), "count" | "counts"));
        let plural = word.folded.ends_with('s') || counted;
        KINDS.into_iter().find(|known| known == kind && plural)
    })
}
