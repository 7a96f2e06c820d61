use std::sync::LazyLock;

use jiff::tz::TimeZone;
use proptest::prelude::*;
use sightline_model::Role;
use sightline_query::Catalogue;
use sightline_query::catalogue::Metric;

use super::follow;
use super::lexicon::Lexicon;
use super::reading::{Class, MetricMention, Reading, Subject};
use crate::ports::{Ask, Earlier};

struct Words {
    catalogue: Catalogue,
    lexicon: Lexicon,
}

/// Read once: the fuzzed test asks a great many times.
static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

impl Words {
    fn new() -> Self {
        let catalogue = Catalogue::builtin().unwrap();
        let lexicon = Lexicon::builtin(catalogue.metrics().flat_map(Metric::words)).unwrap();
        Self { catalogue, lexicon }
    }

    /// The last of these questions, in the light of the others.
    fn read(&self, turns: &[&str]) -> Reading {
        let (text, before) = turns.split_last().unwrap();
        let earlier = |text: &&str| Earlier { text: (*text).to_owned(), focus: Vec::new() };
        self.ask(text, before.iter().map(earlier).collect())
    }

    fn ask(&self, text: &str, before: Vec<Earlier>) -> Reading {
        let ask = Ask {
            text: text.to_owned(),
            before,
            as_of: "2026-05-04T10:00:00Z".parse().unwrap(),
            time_zone: "Europe/Berlin".to_owned(),
            principal: sightline_policies::bundle_principal(Role::Operator, "atlas"),
        };
        follow::read(&ask, &self.lexicon, &self.catalogue, &TimeZone::get("Europe/Berlin").unwrap()).unwrap()
    }
}

fn names(reading: &Reading, kind: &str) -> Vec<String> {
    reading.mentions.iter().filter(|m| m.kind == Some(kind)).map(|m| m.name.clone()).collect()
}

#[test]
fn a_name_alone_behind_a_word_that_leads_on_asks_what_was_asked_before() {
    let words = &*WORDS;
    for (turns, class) in [
        (&["top 3 gpus by power last hour", "only atlas-b"][..], Class::TopK),
        (&["avg gpu util in atlas-a since midnight", "and atlas-b?"], Class::Value),
        (&["top 3 gpus by power last hour", "only atlas-b", "lowest instead"], Class::TopK),
    ] {
        let read = words.read(turns);
        assert_eq!(read.class, class, "{turns:?}");
        assert!(read.mentions.iter().any(|mention| mention.name == "atlas-b"), "{turns:?} {:?}", read.mentions);
    }
    // Whoever says that it is unwell asks why.
    assert!(matches!(words.read(&["top 3 gpus by power last hour", "and is n05 broken?"]).class, Class::Why(_)));
}

#[test]
fn what_a_question_leaves_out_is_taken_from_the_one_before() {
    let words = &*WORDS;
    let read = words.read(&["temp of gpu 5 on n03 over the last 2 hours", "and gpu 4?"]);
    assert_eq!(
        (read.class, names(&read, "gpu"), names(&read, "node")),
        (Class::Value, vec!["4".to_owned()], vec!["n03".to_owned()])
    );
    assert_eq!(read.metric, MetricMention::One("gpu_temperature".to_owned()));
    assert_eq!(read.times[0].range.seconds(), 7200.0);
    let read = words.read(&["top 5 hottest gpus right now", "by node"]);
    assert_eq!((read.class, read.ranked.clone(), read.count), (Class::TopK, vec!["node"], Some(5)));
    let read = words.read(&["top 3 gpus by power last hour", "lowest instead"]);
    assert_eq!((read.class, read.ascending, read.count), (Class::TopK, true, Some(3)));
    let read = words.read(&["min sm clock of gpu 5 on n03 yesterday", "and the others?"]);
    assert_eq!((names(&read, "gpu"), names(&read, "node")), (Vec::new(), vec!["n03".to_owned()]));
    let read = words.read(&["Why was job J123 slow yesterday?", "and the day before?"]);
    assert_eq!((read.class, read.job.as_deref()), (Class::Why(Subject::Job), Some("J123")));
    assert_eq!(read.times[0].range.to().to_string(), "2026-05-02T22:00:00Z");
}

#[test]
fn a_question_that_stands_alone_takes_nothing() {
    let words = &*WORDS;
    let read = words.read(&["temp of gpu 5 on n03 over the last 2 hours", "top 5 hottest gpus in the last 10 minutes"]);
    assert!(names(&read, "node").is_empty(), "{:?}", read.mentions);
    let read = words.read(&["why is job J123 slow", "restart job J123"]);
    assert_eq!(read.class, Class::Write);
}

#[test]
fn why_is_asked_of_what_the_last_answer_was_about() {
    let words = &*WORDS;
    let focus = vec![("node".to_owned(), "atlas-n03".to_owned()), ("gpu".to_owned(), "5".to_owned())];
    let read = words.ask("why?", vec![Earlier { text: "top 5 hottest gpus right now".to_owned(), focus }]);
    assert_eq!((read.class, names(&read, "node")), (Class::Why(Subject::Host), vec!["atlas-n03".to_owned()]));
}

#[test]
fn slips_of_the_keyboard_are_mended_and_names_are_not() {
    let words = &*WORDS;
    let read = words.read(&["what was the tempreture of gpu 5 on n03 yestreday"]);
    assert_eq!(read.metric, MetricMention::One("gpu_temperature".to_owned()));
    assert_eq!((read.times.len(), read.mended.len()), (1, 2));
    assert!(words.read(&["power of atlas-n03"]).mended.is_empty());
}

/// How many texts the long fuzz reads unless `SIGHTLINE_FUZZ_CASES` says otherwise.
const LONG: u32 = 100_000;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Words that the rules know in an odd order, and whatever else a keyboard, a paste or an attacker brings.
fn odd_text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "why",
        "gpu",
        "3",
        "node",
        "since",
        "between",
        "and",
        "the",
        "hour",
        "before",
        "alert",
        "over",
        "85C",
        "top",
        "é",
        "\u{202e}",
        "\u{200d}",
        "😀",
        "14:10",
        "03/04",
        "last",
        "-5",
        "job",
        "J1",
        "2026-05-03",
        "yesterday's",
        "in",
        "UTC",
        "longer",
        "than",
        "a",
        "day",
        "14:00+05:30",
        "1777809600",
        "2-4pm",
        "'",
        "\u{feff}",
        "what",
        "mean",
        "xid",
        "79",
    ]);
    let part = prop_oneof![
        ".{0,12}",
        known.prop_map(str::to_owned),
        // Right to left, joined, and what cannot be seen.
        "[\\u{0590}-\\u{06ff}]{0,8}",
        "[\\u{1f300}-\\u{1faff}\\u{200d}\\u{fe0f}]{0,6}",
        "[\\u{200b}-\\u{200f}\\u{202a}-\\u{202e}\\u{2060}-\\u{2064}\\u{feff}]{0,6}",
        any::<String>(),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.join(" "))
}

/// Reads a text as a question, behind another. A fault of a time expression is an answer too.
fn read_odd(text: String, earlier: String) -> Result<(), TestCaseError> {
    let words = &*WORDS;
    let ask = Ask {
        text,
        before: vec![Earlier { text: earlier, focus: Vec::new() }],
        as_of: "2026-05-04T10:00:00Z".parse().unwrap(),
        time_zone: "UTC".to_owned(),
        principal: sightline_policies::bundle_principal(Role::Operator, "atlas"),
    };
    if let Ok(reading) = follow::read(&ask, &words.lexicon, &words.catalogue, &TimeZone::UTC) {
        prop_assert!(reading.times.iter().all(|time| time.range.to() <= ask.as_of));
    }
    Ok(())
}

#[test]
fn no_text_is_too_odd_to_be_read() {
    let both = (odd_text(), "[a-z0-9 ?]{0,40}");
    proptest::test_runner::TestRunner::new(config(500)).run(&both, |(text, earlier)| read_odd(text, earlier)).unwrap();
}

#[test]
#[ignore = "takes minutes: `SIGHTLINE_FUZZ_CASES=100000 cargo test -p sightline-core --release --lib odd_texts -- --ignored`"]
fn a_hundred_thousand_odd_texts_are_read() {
    #[expect(clippy::disallowed_methods, reason = "how long a fuzz runs is for whoever starts it to say")]
    let cases = std::env::var("SIGHTLINE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(LONG);
    // One text in a thousand is as long as a paste of a whole log.
    let long = (odd_text(), 1_usize..20_000).prop_map(|(text, times)| {
        let mut text = text.repeat(times);
        let end = (0..=text.len().min(100_000)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text
    });
    let both = (prop_oneof![999 => odd_text().boxed(), 1 => long.boxed()], odd_text());
    proptest::test_runner::TestRunner::new(config(cases))
        .run(&both, |(text, earlier)| read_odd(text, earlier))
        .unwrap();
}

#[test]
fn a_line_of_a_hundred_kilobytes_is_cut_before_it_is_read() {
    let words = &*WORDS;
    for text in
        ["why is J123 slow ".repeat(6_000), "x".repeat(100_000), "\u{202e}😀 ".repeat(12_500), "a-".repeat(50_000)]
    {
        assert!(text.len() >= 100_000);
        let ask = |text: String| Ask {
            text,
            before: Vec::new(),
            as_of: "2026-05-04T10:00:00Z".parse().unwrap(),
            time_zone: "UTC".to_owned(),
            principal: sightline_policies::bundle_principal(Role::Operator, "atlas"),
        };
        assert!(super::words::words(&text).len() <= super::words::MAX_WORDS);
        let read = follow::read(&ask(text), &words.lexicon, &words.catalogue, &TimeZone::UTC).unwrap();
        // What is looked at follows the words that are kept, and not the line.
        assert!(read.mentions.len() <= super::words::MAX_WORDS && read.times.len() <= super::words::MAX_WORDS);
        assert!(read.mentions.iter().map(|mention| mention.name.len()).sum::<usize>() <= 100_000);
    }
}
