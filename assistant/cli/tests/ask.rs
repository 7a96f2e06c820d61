//! `sightline ask` on a recorded incident: what it prints, who may ask, as of when, in which zone.

#![cfg(test)]

mod harness;
#[path = "harness/redact.rs"]
mod redact;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::{Path, PathBuf};

use harness::{Lab, answer, stderr};
use redact::{redacted_text, shortened};
use serde_json::Value;

const QUESTION: &str = "Why was training job J4711 slow in the last 4 hours?";

/// A lab with the thermal world and the two-tenant world as bundles.
async fn lab() -> (Lab, PathBuf, PathBuf) {
    let lab = Lab::start();
    let thermal = lab.bundle_of_these_alone("thermal", &worlds::thermal().0, "").await;
    let two = lab.bundle("two", &worlds::two_tenants(), "").await;
    (lab, thermal, two)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_line_from_a_recorded_incident_to_a_printed_answer_holds() {
    let (lab, thermal, two) = lab().await;
    the_answer_names_cause_gpu_and_onset_and_every_row_of_evidence_can_be_run_again(&lab, &thermal);
    the_text_says_the_same_for_a_person(&lab, &thermal);
    stdout_holds_one_document_and_the_latest_sample_is_said_on_stderr(&lab, &thermal);
    without_as_only_the_only_tenants_operator_asks(&lab, &thermal, &two);
    wrong_options_are_usage_errors_of_one_line(&lab, &thermal);
    a_conversation_goes_on_by_its_id_for_its_asker_alone(&lab, &thermal);
}

fn a_conversation_goes_on_by_its_id_for_its_asker_alone(lab: &Lab, bundle: &Path) {
    let hot = "gpu temperature of n1 over the last 2 hours";
    let first = lab.ask(bundle, &["--as", "operator@atlas", "--as-of", worlds::END], hot);
    let id = first["conversation_id"].as_str().unwrap();
    let second =
        lab.ask(bundle, &["--as", "operator@atlas", "--as-of", worlds::END, "--conversation", id], "and power?");
    assert_eq!(second["conversation_id"], first["conversation_id"]);
    assert_eq!(second["time_range"]["from"], first["time_range"]["from"], "the window is that of the question before");
    let path = bundle.to_str().unwrap();
    for (who, id) in [("viewer@atlas", id), ("operator@atlas", "0190-unknown")] {
        let output = lab.run(&["ask", "--bundle", path, "--as", who, "--conversation", id, "and power?"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("`{who}` has no conversation with the id of --conversation")));
    }
}

fn the_answer_names_cause_gpu_and_onset_and_every_row_of_evidence_can_be_run_again(lab: &Lab, bundle: &Path) {
    let truth = worlds::thermal().1;
    let answer = lab.ask(bundle, &["--as", "operator@atlas", "--as-of", worlds::END], QUESTION);
    let cause = &answer["causes"][0];
    assert_eq!(cause["id"], "thermal_throttling", "{answer}");
    let (node, gpu) = truth.components[0].split_once(',').unwrap();
    assert_eq!(cause["components"][0]["node"], node.trim_start_matches("node="));
    assert_eq!(cause["components"][0]["gpu"], gpu.trim_start_matches("gpu="));
    let onset: jiff::Timestamp = cause["onset"].as_str().unwrap().parse().unwrap();
    assert!(onset.duration_since(truth.onset.unwrap()).abs().as_secs() <= 60, "{onset}");
    assert_eq!(answer["verification"]["checked"], answer["verification"]["passed"]);
    assert!(answer["verification"]["checked"].as_u64().unwrap() > 0);
    for evidence in answer["evidence"].as_array().unwrap() {
        if evidence["dataset"] == "knowledge" {
            assert!(evidence["entry_id"].is_string() && evidence["sql"].is_null(), "{evidence}");
        } else {
            assert!(evidence["sql"].is_string() && evidence["query_id"].is_string(), "{evidence}");
            assert!(!evidence["params"].as_object().unwrap().is_empty(), "{evidence}");
        }
    }
    insta::assert_json_snapshot!("a_thermal_incident", shortened(&answer));
}

fn the_text_says_the_same_for_a_person(lab: &Lab, bundle: &Path) {
    let bundle = bundle.to_str().unwrap();
    let output = lab.run(&["ask", "--bundle", bundle, "--as", "operator@atlas", "--tz", "Europe/Berlin", QUESTION]);
    assert!(output.status.success(), "{}", stderr(&output));
    insta::assert_snapshot!("a_thermal_incident_as_text", redacted_text(&String::from_utf8(output.stdout).unwrap()));
}

fn stdout_holds_one_document_and_the_latest_sample_is_said_on_stderr(lab: &Lab, bundle: &Path) {
    let bundle = bundle.to_str().unwrap();
    let output = lab.run(&["ask", "--json", "--bundle", bundle, "--tz", "Asia/Tokyo", QUESTION]);
    let mut documents = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let answer = documents.next().unwrap().unwrap();
    assert!(documents.next().is_none(), "more than one document");
    let as_of = answer["as_of"].as_str().unwrap();
    assert!(as_of.starts_with("2025-06-02T09:59:") || as_of.starts_with("2025-06-02T10:00:00"), "{as_of}");
    assert_eq!(
        stderr(&output),
        format!("asked as of {as_of}, the bundle's latest sample; name another instant with --as-of\n")
    );
    assert_eq!(answer["time_range"]["time_zone"], "Asia/Tokyo");
}

fn without_as_only_the_only_tenants_operator_asks(lab: &Lab, one: &Path, two: &Path) {
    let alone = lab.ask(one, &["--as-of", worlds::END], QUESTION);
    assert_eq!(alone["outcome"], "answered");
    let output = lab.run(&["ask", "--json", "--bundle", two.to_str().unwrap(), QUESTION]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = stderr(&output);
    let line = said.lines().last().unwrap();
    assert_eq!(
        line,
        "sightline: say who asks with --as; there are `admin`, `auditor`, `operator@atlas`, `operator@borealis`, `viewer@atlas`, `viewer@borealis`"
    );
    // Without a bundle nobody is assumed either.
    assert_eq!(lab.run(&["ask", "--json", QUESTION]).status.code(), Some(2));
}

fn wrong_options_are_usage_errors_of_one_line(lab: &Lab, bundle: &Path) {
    let bundle = bundle.to_str().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--as", "nobody@nowhere"], "there is no principal `nobody@nowhere`"),
        (&["--as", "root@atlas"], "there is no principal `root@atlas`"),
        (&["--tz", "Mars/Olympus"], "`Mars/Olympus` is no IANA time zone"),
        (&["--as-of", "yesterday"], "`yesterday` is no instant"),
        (&["--planner", "clairvoyant"], "--planner"),
        (&["--bundel", "x"], "--bundel"),
    ];
    for (options, expected) in cases {
        // A principal that only the policy can have made up is no matter of the bundle here.
        let mut arguments = vec!["ask", "--json"];
        if options[0] != "--as" || options[1] != "nobody@nowhere" {
            arguments.extend(["--bundle", bundle]);
        }
        arguments.extend(options);
        arguments.push(QUESTION);
        let output = lab.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{options:?}");
        assert!(stderr(&output).contains(expected), "{options:?}: {}", stderr(&output));
    }
    // A role at a tenant of its own is made up for a bundle, and sees nothing of another's rows.
    let stranger = answer(&lab.run(&["ask", "--json", "--bundle", bundle, "--as", "viewer@cygnus", QUESTION]));
    assert_eq!((stranger["outcome"].as_str(), stranger["cost"]["queries"].is_u64()), (Some("insufficient_data"), true));
}
