//! Issues injected into a web shop and recorded by others, asked about in words as a person would: the root service must be named, more
//! often than by an alert on robust z-scores, which is printed beside. Skipped where the files are not at hand.

#![cfg(test)]

mod harness;

use std::path::Path;

use harness::{Lab, stderr};
use serde_json::Value;

/// How many of what was scored are right, and how many were scored.
fn tally(totals: &Value, what: &str) -> (u64, u64) {
    let number = |key: &str| totals[what][key].as_u64().unwrap();
    (number("hit"), number("of"))
}

#[test]
fn the_root_service_of_a_recorded_shop_is_named_more_often_than_by_z_scores() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/petshop");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return;
    }
    let lab = Lab::start();
    let file = lab.path("petshop.json");
    let arguments = ["eval", "run", "--suite", folder.to_str().unwrap(), "--json", file.to_str().unwrap()];
    let output = lab.run(&arguments);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for question in report["questions"].as_array().unwrap() {
        let score = &question["score"];
        assert!(score["wrong_cause"].is_null(), "a cause that it is not comes first: {question}");
        assert_ne!(score["cause"], Value::Bool(false), "no cause of those that it may be comes first: {question}");
        assert_eq!(score["verified"], Value::Bool(true), "a sentence is not borne out: {question}");
    }
    let totals = &report["totals"];
    let (ours, all) = tally(totals, "component_top3");
    let (theirs, _) = tally(totals, "baseline_component_top3");
    assert!(all > 0, "nothing was asked");
    assert!(ours > theirs, "{ours} are not more than {theirs}");
    assert_eq!(ours, all);
}
