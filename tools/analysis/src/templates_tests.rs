use proptest::prelude::*;

use super::*;

fn mine(lines: &[&str]) -> (TemplateMiner, Vec<usize>) {
    let mut miner = TemplateMiner::default();
    let places = lines.iter().map(|line| miner.add("", line)).collect();
    (miner, places)
}

#[test]
fn lines_that_differ_in_values_are_one_message() {
    let (miner, places) = mine(&[
        "Accepted connection from 10.0.0.1:5000 for job alpha",
        "Accepted connection from 10.0.0.9:5001 for job beta",
        "Refused connection from 10.0.0.9:5001 for job beta",
        "step 17 took 0.51 s",
        "step 18 took 0.49 s",
        "step 19 took 30.2 s",
    ]);
    assert_eq!(places, [0, 0, 1, 2, 2, 2]);
    let texts: Vec<String> = (0..miner.len()).filter_map(|place| miner.template(place)).collect();
    assert_eq!(
        texts,
        [
            "Accepted connection from <address> for job <*>",
            "Refused connection from <address> for job beta",
            "step <num> took <num> s",
        ]
    );
}

#[test]
fn groups_and_lengths_are_kept_apart() {
    let mut miner = TemplateMiner::default();
    let places =
        [miner.add("79", "Xid (x): 79, a"), miner.add("31", "Xid (x): 31, a"), miner.add("79", "Xid (x): 79, a b")];
    assert_eq!(places, [0, 1, 2]);
    assert_eq!(miner.template(0).as_deref(), Some("Xid (x): <num>, a"));
    assert!(!miner.is_empty() && miner.template(9).is_none());
}

#[test]
fn a_first_word_that_is_a_value_does_not_part_lines() {
    let (_, places) = mine(&["17 blocks freed", "18 blocks freed"]);
    assert_eq!(places, [0, 0]);
}

#[test]
fn a_flood_of_different_lines_ends_in_a_rest() {
    let mut miner = TemplateMiner::new(TemplateOptions { max_alike: 5, ..TemplateOptions::default() });
    // Ten messages with one first word and no other in common.
    for a in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"] {
        miner.add("", &format!("say {a}a {a}b {a}c {a}d"));
    }
    assert_eq!(miner.len(), 5);
    let long = "word ".repeat(500);
    let place = miner.add("", &long);
    assert!(miner.template(place).is_some_and(|text| text.ends_with(GAP) && text.len() < 400));
}

proptest! {
    #[test]
    fn any_lines_are_survived_and_the_same_lines_give_the_same_templates(
        lines in proptest::collection::vec("\\PC{0,60}", 0..30),
    ) {
        let run = || {
            let mut miner = TemplateMiner::default();
            let places: Vec<usize> = lines.iter().map(|line| miner.add("g", line)).collect();
            let texts: Vec<Option<String>> = places.iter().map(|place| miner.template(*place)).collect();
            (places, texts)
        };
        let (first, again) = (run(), run());
        prop_assert_eq!(&first, &again);
        prop_assert!(first.1.iter().all(Option::is_some));
    }

    #[test]
    fn numbers_never_part_a_message(a in 0_u32..1_000_000, b in 0_u32..1_000_000) {
        let (_, places) = mine(&[&format!("rank {a} waits for peer {b}"), &format!("rank {b} waits for peer {a}")]);
        prop_assert_eq!(places, vec![0, 0]);
    }
}
