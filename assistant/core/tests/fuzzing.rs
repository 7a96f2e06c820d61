//! The fuzz targets of `tools/guard/fuzz` on bytes that these tests make up, so that they run without a fuzzer too. They stand here
//! because this is where guard, policies and tools come together.

#![cfg(test)]

#[path = "../../../tools/guard/fuzz/src/lib.rs"]
pub mod fuzz;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;

use fuzz::{CHECK_SQL, run, seeds, targets};

type Seeds = Vec<Vec<u8>>;

static SQL: LazyLock<Seeds> = LazyLock::new(|| seeds(CHECK_SQL));
static ARGUMENTS: LazyLock<Vec<(&str, Seeds)>> = LazyLock::new(|| {
    let tools = targets().into_iter().filter(|target| *target != CHECK_SQL);
    tools.map(|tool| (tool, seeds(tool))).collect()
});

/// One change of some bytes, as a fuzzer makes them.
#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Drop(usize, usize),
    Repeat(usize, usize),
    Put(usize, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let words = [
        " OR 1=1",
        "(",
        ")",
        " UNION ALL SELECT 1",
        "/*",
        "--",
        "'",
        "\\",
        "`",
        "{p0:",
        "{p1:String}",
        " AND ",
        " IN ",
        ";",
        "*",
        "\u{ff}",
        "\"",
        "null",
        "-1",
        "[]",
        "{}",
        "1e999",
        "9999999999999999999",
        "2026-05-03T14:00:00Z",
        "\n",
        "\0",
        "t.",
        " AS a0",
        "SELECT ",
    ];
    let put = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..4),
        prop::sample::select(words.to_vec()).prop_map(|w| w.as_bytes().to_vec())
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        (any::<usize>(), 1..20usize).prop_map(|(at, length)| Change::Drop(at, length)),
        (any::<usize>(), 1..60usize).prop_map(|(at, length)| Change::Repeat(at, length)),
        (any::<usize>(), put).prop_map(|(at, bytes)| Change::Put(at, bytes)),
    ]
}

fn changed(seed: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for change in changes {
        let place = |at: usize| at % (bytes.len() + 1);
        match change {
            Change::Flip(at, bits) => {
                let at = place(*at);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Change::Drop(at, length) => {
                let at = place(*at);
                bytes.drain(at..(at + length).min(bytes.len()));
            }
            Change::Repeat(at, length) => {
                let at = place(*at);
                let part = bytes[at..(at + length).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            Change::Put(at, put) => {
                let at = place(*at);
                bytes.splice(at..at, put.iter().copied());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_survives_changed_texts(at in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..4)) {
        run(CHECK_SQL, &changed(&SQL[at.index(SQL.len())], &changes));
    }

    #[test]
    fn the_checker_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        run(CHECK_SQL, &bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tool_survives_changed_arguments(at in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 0..4)) {
        for (tool, seeds) in ARGUMENTS.iter() {
            run(tool, &changed(&seeds[at.index(seeds.len())], &changes));
        }
    }

    #[test]
    fn every_tool_survives_any_arguments_and_rows(mut bytes in prop::collection::vec(any::<u8>(), 1..3000)) {
        bytes[0] |= 1;
        for (tool, _) in ARGUMENTS.iter() {
            run(tool, &bytes);
        }
    }
}

#[test]
fn every_seed_holds_and_many_of_them_are_texts_of_ours() {
    for seed in SQL.iter() {
        run(CHECK_SQL, seed);
    }
    // Those have parameters, which the attacks have not.
    let ours = SQL.iter().filter(|seed| seed.contains(&0xff)).count();
    assert!(ours >= 100, "{ours}");
    for (tool, seeds) in ARGUMENTS.iter() {
        seeds.iter().for_each(|seed| run(tool, seed));
    }
}

#[test]
fn every_target_has_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/guard/fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    assert_eq!(files, targets().into_iter().map(str::to_owned).collect(), "a tool needs a fuzz target");
}
