//! Times told by what happened: `since the deploy`, `the hour before the GpuHot alert`, `before and after the driver upgrade`, `since it
//! started`, `the same time yesterday`. When it happened has to be looked up.

use jiff::{Span, ToSpan as _};

use super::lexicon::Lexicon;
use super::time::length_at;
use super::words::{Word, at, length};

/// How the window lies to what happened.
#[derive(Clone, Debug)]
pub(super) enum Lies {
    /// From then until now.
    Since,
    /// So long before it.
    Before(Span),
    /// So long after it.
    After(Span),
    /// From so long before it until so long after it.
    Between(Span, Span),
    /// About then.
    Around,
}

/// What a time is told by.
#[derive(Clone, Debug)]
pub(super) struct Anchor {
    /// The kind of event, by wire name; `start` for the start of the job that is talked about; none where only its words are known.
    pub(super) kind: Option<String>,
    /// Words that tell it from others of its kind.
    pub(super) words: Vec<String>,
    /// How the window lies to it.
    pub(super) lies: Lies,
    /// Whether both sides of it are asked for.
    pub(super) both_sides: bool,
    /// The first word.
    pub(super) first: usize,
    /// How many words it takes.
    pub(super) length: usize,
    /// As typed.
    pub(super) typed: String,
}

/// How many words may tell an event from others.
const MAX_TOLD: usize = 6;

/// The anchor of a question.
pub(super) fn anchor(words: &[Word<'_>], lexicon: &Lexicon) -> Option<Anchor> {
    (0..words.len()).find_map(|place| {
        first_of_it(words, place)
            .or_else(|| either_side(words, place, lexicon))
            .or_else(|| both(words, place, lexicon))
            .or_else(|| lead(words, place).and_then(|(lies, used)| named(words, place, used, lies, lexicon)))
    })
}

/// `in its first 3 hours`, `the first 20 minutes of the run`: told by the start of the job.
fn first_of_it(words: &[Word<'_>], place: usize) -> Option<Anchor> {
    let its = ["in its first", "during its first", "over its first", "its first", "in the first", "the first"]
        .into_iter()
        .find(|lead| at(words, place, lead))?;
    let lead = length(its);
    let (span, used) = length_at(words, place + lead)?;
    let mut end = place + lead + used;
    if !its.contains("its") {
        let of = ["of the job", "of the run", "of the training", "of training", "of it", "after it started"]
            .into_iter()
            .find(|of| at(words, end, of));
        let of_id = at(words, end, "of")
            && words.get(end + 1).is_some_and(|word| {
                word.folded.len() > 1 && word.folded.trim_start_matches('j').bytes().all(|b| b.is_ascii_digit())
            });
        match of {
            Some(of) => end += length(of),
            None if of_id => {}
            None => return None,
        }
    }
    let typed: Vec<&str> = words.iter().skip(place).take(end - place).map(|word| word.typed).collect();
    Some(Anchor {
        kind: Some("start".to_owned()),
        words: Vec::new(),
        lies: Lies::After(span),
        both_sides: false,
        first: place,
        length: end - place,
        typed: typed.join(" "),
    })
}

/// `from half an hour before the alert to half an hour after it`, `20 minutes around the deploy`.
fn either_side(words: &[Word<'_>], place: usize, lexicon: &Lexicon) -> Option<Anchor> {
    let from = ["from", "between", "in the", "the", "within"]
        .into_iter()
        .find(|lead| at(words, place, lead))
        .map_or(0, length);
    let (before, used) = length_at(words, place + from)?;
    let joint = place + from + used;
    let around = ["on either side of", "either side of", "around", "of", "before and after"]
        .into_iter()
        .find(|phrase| at(words, joint, phrase) && (*phrase != "of" || at(words, place, "within")));
    if let Some(around) = around {
        let lies = Lies::Between(before, before);
        return named(words, place, joint + length(around) - place, lies, lexicon);
    }
    if !at(words, joint, "before") {
        return None;
    }
    let found = named(words, place, joint + 1 - place, Lies::Before(before), lexicon)?;
    let end = place + found.length;
    let to = ["up to", "to", "until", "till", "and"].into_iter().find(|to| at(words, end, to)).map(length)?;
    let (after, more) = length_at(words, end + to)?;
    let mut end = end + to + more;
    if !["after", "afterwards", "later", "past"].iter().any(|word| at(words, end, word)) {
        return None;
    }
    end += 1;
    if ["it", "that", "this"].iter().any(|word| at(words, end, word)) {
        end += 1;
    }
    let typed: Vec<&str> = words.iter().skip(place).take(end - place).map(|word| word.typed).collect();
    Some(Anchor { lies: Lies::Between(before, after), length: end - place, typed: typed.join(" "), ..found })
}

/// What stands before the event.
fn lead(words: &[Word<'_>], place: usize) -> Option<(Lies, usize)> {
    for (phrase, lies) in [
        ("ever since", Lies::Since),
        ("since", Lies::Since),
        ("after", Lies::Since),
        ("following", Lies::Since),
        ("at the time of", Lies::Around),
        ("around", Lies::Around),
        ("during", Lies::Around),
        ("when", Lies::Around),
    ] {
        if at(words, place, phrase) {
            return Some((lies, length(phrase)));
        }
    }
    // `the hour before the alert`, `30 minutes after the deploy`, `in the hour before`
    let the = ["in the", "over the", "the", "in"]
        .into_iter()
        .filter(|lead| at(words, place, lead))
        .map(length)
        .max()
        .unwrap_or(0);
    let (span, used) = match words.get(place + the)?.folded.as_str() {
        "hour" => (1.hour(), 1),
        "day" => (1.day(), 1),
        "minutes" => (15.minutes(), 1),
        "hours" => (3.hours(), 1),
        _ => length_at(words, place + the)?,
    };
    let next = place + the + used;
    let used = the + used + 1;
    if at(words, next, "before") || at(words, next, "until") {
        Some((Lies::Before(span), used))
    } else if at(words, next, "after") || at(words, next, "following") {
        Some((Lies::After(span), used))
    } else {
        None
    }
}

/// `before and after the deploy`, `did the driver upgrade change`, `better than the previous version`.
fn both(words: &[Word<'_>], place: usize, lexicon: &Lexicon) -> Option<Anchor> {
    if let (Some(length), true) = (lexicon.what.other_release.at(words, place), lexicon.what.compare.any(words)) {
        let typed: Vec<&str> = words.iter().skip(place).take(length).map(|word| word.typed).collect();
        return Some(Anchor {
            kind: Some("deploy".to_owned()),
            words: Vec::new(),
            lies: Lies::Since,
            both_sides: true,
            first: place,
            length,
            typed: typed.join(" "),
        });
    }
    let phrase =
        ["before and after", "before vs after", "before versus after", "before/after", "did", "since", "after"]
            .into_iter()
            .find(|phrase| at(words, place, phrase))?;
    let found = named(words, place, length(phrase), Lies::Since, lexicon)?;
    let plain = matches!(phrase, "did" | "since" | "after");
    // `did the deploy change the latency`
    let changes = words.get(found.first + found.length..).unwrap_or_default().iter().any(|w| {
        matches!(
            w.folded.as_str(),
            "change"
                | "changed"
                | "affect"
                | "affected"
                | "improve"
                | "improved"
                | "reduce"
                | "reduced"
                | "raise"
                | "increase"
                | "lower"
                | "hurt"
                | "slow"
                | "speed"
                | "worsen"
                | "move"
        )
    });
    // `since the driver upgrade compared to before it`
    let held = phrase != "did" && lexicon.what.compare.any(words) && words.iter().any(|word| word.folded == "before");
    ((!plain || held || (phrase == "did" && changes)) && found.kind.as_deref() != Some("start"))
        .then_some(Anchor { both_sides: true, ..found })
}

/// The event that is named from `used` words behind `place` on.
fn named(words: &[Word<'_>], place: usize, used: usize, lies: Lies, lexicon: &Lexicon) -> Option<Anchor> {
    let start = place + used;
    let made = |kind: Option<&str>, told: Vec<String>, end: usize| {
        let typed: Vec<&str> = words.iter().skip(place).take(end - place).map(|word| word.typed).collect();
        Some(Anchor {
            kind: kind.map(str::to_owned),
            words: told,
            lies: lies.clone(),
            both_sides: false,
            first: place,
            length: end - place,
            typed: typed.join(" "),
        })
    };
    for phrase in [
        "it started",
        "it began",
        "the start",
        "the beginning",
        "it was started",
        "the job started",
        "the run started",
        "its start",
        "launch",
        "it launched",
        "it was kicked off",
        "it got kicked off",
        "it kicked off",
        "it was launched",
        "it was submitted",
        "it got started",
        "it got going",
        "it has been running",
        "it is running",
        "it runs",
        "its launch",
        "its beginning",
        "kick-off",
        "kickoff",
        "the launch",
        "the job began",
        "the run began",
        "the training started",
        "the training began",
        "training started",
        "day one of the run",
    ] {
        if at(words, start, phrase) {
            return made(Some("start"), Vec::new(), start + length(phrase));
        }
    }
    let mut told = Vec::new();
    for next in start..(start + MAX_TOLD).min(words.len()) {
        let kinds = &lexicon.stands_for.event_kinds;
        let kind = kinds.iter().filter(|(phrase, _)| at(words, next, phrase)).max_by_key(|(phrase, _)| length(phrase));
        if let Some((phrase, kind)) = kind {
            return made(Some(kind), told, next + length(phrase));
        }
        let word = words.get(next)?;
        // `since the fan tray was reseated`: told by its words alone.
        if matches!(word.folded.as_str(), "was" | "were" | "got")
            && !told.is_empty()
            && words.get(next + 1).is_some_and(|w| w.folded.ends_with("ed") || w.folded.ends_with("en"))
        {
            told.extend(words.get(next + 1).map(|w| w.folded.clone()));
            return made(None, told, next + 2);
        }
        match word.folded.as_str() {
            "the" | "a" | "an" | "last" | "latest" | "that" | "this" | "of" | "my" | "our" | "first" | "most"
            | "recent" => {}
            _ if word.ends => return None,
            _ => told.push(word.folded.clone()),
        }
    }
    None
}

/// `the same half hour`, `same three hours`, `the same stretch`.
fn same_stretch(words: &[Word<'_>], place: usize) -> Option<usize> {
    let lead = ["the same", "same", "those same", "these same", "the very same"]
        .into_iter()
        .find(|lead| at(words, place, lead))?;
    let stretch = [
        "hour",
        "hours",
        "minutes",
        "half",
        "stretch",
        "slot",
        "span",
        "interval",
        "time",
        "morning",
        "night",
        "evening",
        "afternoon",
        "part",
        "clock",
    ];
    let is_part = |word: &Word<'_>| {
        stretch.contains(&word.folded.as_str())
            || super::words::number_word(&word.folded).is_some()
            || word.folded.bytes().all(|b| b.is_ascii_digit())
    };
    let more = words.iter().skip(place + length(lead)).take(3).take_while(|word| is_part(word)).count();
    (more > 0).then_some(length(lead) + more)
}

/// `the same time yesterday`, `this time last week`: how far back, and its words.
pub(super) fn shifted(words: &[Word<'_>]) -> Option<(Span, usize, usize)> {
    (0..words.len()).find_map(|place| {
        let lead = [
            "at the same time",
            "the same time",
            "same time",
            "this time",
            "the same hour",
            "same hour",
            "the same period",
            "same period",
            "the same window",
            "same window",
            "the same hours",
            "same hours",
        ]
        .into_iter()
        .filter(|lead| at(words, place, lead))
        .map(length)
        .max()
        .or_else(|| same_stretch(words, place))?;
        let next = place + lead;
        let next = if at(words, next, "on") || at(words, next, "of") { next + 1 } else { next };
        let days = [
            ("the day before yesterday", 2_i64),
            ("yesterday", 1),
            ("the day before", 1),
            ("a day earlier", 1),
            ("a day ago", 1),
            ("one day earlier", 1),
            ("the previous day", 1),
            ("two days ago", 2),
            ("2 days ago", 2),
            ("last week", 7),
            ("a week ago", 7),
            ("the week before", 7),
            ("a week earlier", 7),
        ];
        let day =
            days.into_iter().filter(|(phrase, _)| at(words, next, phrase)).max_by_key(|(phrase, _)| length(phrase));
        if let Some((phrase, days)) = day {
            return Some((days.days(), place, next + length(phrase) - place));
        }
        // `the same hour 24h ago`
        let (back, used) = length_at(words, next)?;
        let ago = ["ago", "earlier", "before", "back"].iter().any(|word| at(words, next + used, word));
        ago.then_some((back, place, next + used + 1 - place))
    })
}
