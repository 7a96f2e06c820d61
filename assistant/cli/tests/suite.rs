//! The suite that ships, asked through the binary; and what `eval run` says to a suite that is none.

#![cfg(test)]

mod harness;

use std::path::Path;

use harness::{Lab, stderr};
use serde_json::Value;

/// A rate of the report; none where nothing was asked.
fn rate(totals: &Value, name: &str) -> Option<f64> {
    let (hit, of) = (totals[name]["hit"].as_u64().unwrap(), totals[name]["of"].as_u64().unwrap());
    (of > 0).then(|| hit as f64 / of as f64)
}

#[test]
fn causes_and_culprits_are_named_as_often_as_promised_and_nobody_is_accused_of_nothing() {
    let lab = Lab::start();
    let file = lab.path("report.json");
    let output = lab.run(&["eval", "run", "--every", EVERY, "--no-keep", "--json", file.to_str().unwrap()]);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(!lab.data_dir().join("suite").exists(), "nothing is kept");
    for totals in [&report["totals"], &report["by_half"]["tuning"], &report["by_half"]["held-out"]] {
        let at_least = |name: &str, bound: f64| {
            let rate = rate(totals, name);
            assert!(rate.is_none_or(|rate| rate >= bound), "{name} is {rate:?}, below {bound}: {totals}");
        };
        assert!(totals["questions"].as_u64().unwrap() > 0);
        at_least("cause", BOUNDS.cause);
        at_least("cause_top3", BOUNDS.cause_top3);
        at_least("component", BOUNDS.component);
        at_least("controls", 1.0);
        at_least("abstained", 1.0);
        at_least("verified", 1.0);
    }
}

/// One in so many kinds: the whole suite takes a build without optimisation a quarter of an hour. `sightline eval run` asks it whole.
const EVERY: &str = "4";

struct Bounds {
    cause: f64,
    cause_top3: f64,
    component: f64,
}

/// What they are to reach is 0.90, 0.97 and 0.90; one in four kinds is few enough for one miss to weigh three of a hundred.
const BOUNDS: Bounds = Bounds { cause: 0.90, cause_top3: 0.90, component: 0.88 };

const INCIDENT: &str = "schema = 1\nid = \"a\"\n[[question]]\ntext = \"Why was job J1 slow?\"\nprincipal = \"operator@atlas\"\n[question.expect]\noutcome = \"answered\"\ncause = \"slow_worker\"\n";

fn write(dir: &Path, name: &str, text: &[u8]) {
    let file = dir.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

#[test]
fn a_suite_that_is_none_fails_and_says_why() {
    let lab = Lab::start();
    let run = |dir: &Path, more: &[&str]| {
        let mut arguments = vec!["eval", "run", "--suite", dir.to_str().unwrap()];
        arguments.extend(more);
        lab.run(&arguments)
    };
    let empty = lab.path("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let output = run(&empty, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is nothing to ask"), "{}", stderr(&output));

    let malformed = lab.path("malformed");
    write(&malformed, "a/incident.toml", INCIDENT.replace("\"answered\"", "\"perhaps\"").as_bytes());
    let output = run(&malformed, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a/incident.toml`, line 7: `perhaps` is no outcome"), "{}", stderr(&output));

    // The bundle cannot be read: the question counts as missed, the others are asked, and the exit code tells.
    let unreadable = lab.path("unreadable");
    write(&unreadable, "a/incident.toml", INCIDENT.as_bytes());
    write(&unreadable, "a/data/metrics.parquet", b"no Parquet at all");
    write(&unreadable, "b/incident.toml", INCIDENT.replace("\"a\"", "\"b\"").as_bytes());
    let file = lab.path("report.json");
    let output = run(&unreadable, &["--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["totals"]["errors"], 2);
    assert_eq!(report["totals"]["cause"], serde_json::json!({ "hit": 0, "of": 2 }));
    let error = |index: usize| report["questions"][index]["error"].as_str().unwrap().to_owned();
    assert!(error(0).contains("is no Parquet file") && error(1).contains("holds none of"), "{report}");

    // What fits no suite is a usage error.
    for wrong in [&["--stretch", "0.3"][..], &["--stretch", "2"], &["--half", "third"]] {
        assert_eq!(run(&unreadable, wrong).status.code(), Some(2), "{wrong:?}");
    }
}
