//! `sightline policy`, and policies that change while the service runs.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;

use std::path::Path;
use std::process::Output;

use harness::{command, signal, stderr};
use serde_json::{Value, json};
use service::{Service, problem};

const HOTTEST: &str = "top 3 hottest GPUs in the last hour";

/// Runs `sightline policy` on a data folder that has nothing in it.
fn policy(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let arguments: Vec<&str> = ["policy"].into_iter().chain(arguments.iter().copied()).collect();
    command(folder.path(), &arguments).output().unwrap()
}

/// What it printed; it ended well.
fn printed(arguments: &[&str]) -> String {
    let output = policy(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A folder of a site with the shipped policies in it.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    printed(&["init", folder.path().to_str().unwrap()]);
    folder
}

#[test]
fn the_matrix_of_roles_tools_and_datasets_is_as_reviewed() {
    insta::assert_snapshot!("matrix", printed(&["matrix"]));
}

#[test]
fn a_decision_is_explained_by_its_rule_or_by_whom_to_ask() {
    let explain = |arguments: &str| {
        let arguments: Vec<&str> = ["explain", "--as"].into_iter().chain(arguments.split(' ')).collect();
        printed(&arguments)
    };
    let cases = [
        "viewer@atlas --tool search_logs --dataset logs",
        "operator@atlas --tool search_logs --dataset logs",
        "viewer@atlas --tool job_correlation",
        "viewer@atlas --tool metric_range --dataset metrics --tenant borealis",
        "viewer@atlas --tool metric_range --dataset metrics --tenant no-such-tenant",
        "admin --tool metric_range --dataset metrics --tenant borealis",
        "auditor --tool metric_range --dataset metrics",
        "auditor --action export_audit",
        "operator@atlas --action manage_tokens",
    ];
    let report: Vec<String> = cases.iter().map(|case| format!("--as {case}\n{}", explain(case))).collect();
    insta::assert_snapshot!("explained", report.join("\n"));
}

#[test]
fn who_may_read_own_jobs_only_is_explained_by_whose_job_it_is() {
    let site = site();
    let ann = "[[principal]]\nid = \"ann@atlas\"\nrole = \"viewer\"\nown_jobs_only = true\n";
    std::fs::write(site.path().join("principals.toml"), ann).unwrap();
    let dir = site.path().to_str().unwrap();
    let explain = |more: &[&str]| {
        let asked = ["explain", "--dir", dir, "--as", "ann@atlas", "--tool", "metric_range", "--dataset", "metrics"];
        printed(&[&asked[..], more].concat())
    };
    let allowed = "allowed by rule `viewer-reads-numbers-and-jobs`: a viewer reads metrics, jobs and their GPUs of its own tenants\n";
    let denied = "denied: it may read only its own jobs; ask about one of them by its id\n";
    assert_eq!(explain(&["--job-of", "ann"]), allowed);
    assert_eq!(explain(&["--job-of", "bob"]), denied);
    assert_eq!(explain(&[]), denied);
}

#[test]
fn asking_about_what_there_is_not_is_a_wrong_call_that_lists_what_there_is() {
    for (arguments, listed) in [
        (["--as", "root", "--tool", "metric_range"], "`viewer@atlas`"),
        (["--as", "admin", "--tool", "metric_rnage"], "`metric_range`"),
        (["--as", "admin", "--action", "read_logs"], "`export_audit`"),
    ] {
        let output = policy(&[&["explain"][..], &arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(listed), "{}", stderr(&output));
    }
    let output = policy(&["explain", "--as", "admin", "--tool", "metric_range", "--dataset", "log"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`logs`"), "{}", stderr(&output));
}

#[test]
fn a_new_site_checks_and_is_never_written_over() {
    let site = site();
    let dir = site.path().to_str().unwrap();
    let checked = printed(&["check", "--dir", dir]);
    assert_eq!(checked.lines().filter(|line| line.starts_with("ok  ")).count(), 4, "{checked}");
    assert!(checked.contains("rules/viewer.cedar") && checked.contains("limits.toml"), "{checked}");
    assert!(checked.contains("principals.toml, those of the demo"), "{checked}");
    let shipped = printed(&["check"]);
    assert!(shipped.contains("the shipped ones"), "{shipped}");
    let again = policy(&["init", dir]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("is there already"));
}

#[test]
fn a_check_names_every_fault_by_file_and_line() {
    let site = site();
    std::fs::write(site.path().join("limits.toml"), "[viewer]\nmax_point = 1\n").unwrap();
    std::fs::write(site.path().join("rules/zz.cedar"), "permit (principal, action, resource);\n").unwrap();
    let output = policy(&["check", "--dir", site.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let faults = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(faults.lines().count(), 2, "{faults}");
    assert!(faults.contains("limits.toml:2: ") && faults.contains("rules/zz.cedar:1: "), "{faults}");
    assert_eq!(stderr(&output), "sightline: 2 faults; nothing of it would be taken\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_change_while_the_service_runs_and_a_broken_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    let environment = [("SIGHTLINE_LOG", "info"), ("SIGHTLINE_POLICIES_DIR", site.path().to_str().unwrap())];
    let mut service = Service::start_with(folder.path(), &environment);
    assert_eq!(asked(&service, "viewer@atlas").await, 200);
    assert_eq!(asked(&service, "operator@borealis").await, 200);

    // One is taken out, at the next look at the files; the others stay.
    let principals = site.path().join("principals.toml");
    let before = std::fs::read_to_string(&principals).unwrap();
    std::fs::write(&principals, before.replace("\"viewer@atlas\"", "\"other@atlas\"")).unwrap();
    until(&service, "viewer@atlas", 401).await;
    assert_eq!(asked(&service, "operator@borealis").await, 200);

    // A rule forbids one more, at a signal.
    let rule = site.path().join("rules/freeze.cedar");
    let text = "@id(\"freeze\")\n@reason(\"borealis is being moved\")\n@deny(\"operator@borealis ask_question\")\nforbid (principal in Tenant::\"borealis\", action == Action::\"ask_question\", resource);\n";
    std::fs::write(&rule, text).unwrap();
    signal(service.process_id(), "HUP");
    until(&service, "operator@borealis", 403).await;
    let refused = service.chat("operator@borealis", &json!({ "question": HOTTEST })).send().await.unwrap();
    assert!(problem(refused, 403).await.contains("borealis is being moved"));

    // Everybody back, and one mistake: nobody is back, and the service says why while it goes on.
    std::fs::write(&principals, before).unwrap();
    std::fs::write(&rule, "permit (").unwrap();
    until_policies(&service, "not in force").await;
    assert_eq!(asked(&service, "viewer@atlas").await, 401);
    assert_eq!(asked(&service, "operator@borealis").await, 403);
    assert_eq!(asked(&service, "operator@atlas").await, 200);

    // Without the mistake both changes come at once.
    std::fs::remove_file(&rule).unwrap();
    until_policies(&service, "ok").await;
    assert_eq!(asked(&service, "viewer@atlas").await, 200);
    assert_eq!(asked(&service, "operator@borealis").await, 200);
    assert!(service.terminate().success(), "{}", service.log());
    service::hold_audit_log_whole(folder.path());
}

/// The status of a question.
async fn asked(service: &Service, principal: &str) -> u16 {
    service.chat(principal, &json!({ "question": HOTTEST })).send().await.unwrap().status().as_u16()
}

/// Asks until the status is this one.
async fn until(service: &Service, principal: &str, status: u16) {
    for _ in 0..300 {
        if asked(service, principal).await == status {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{principal} never gets {status}: {}", service.log());
}

/// Waits until `/readyz` says this of the policies. The service is ready all the while.
async fn until_policies(service: &Service, word: &str) {
    for _ in 0..300 {
        let response = service.client.get(format!("{}/readyz", service.url)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        if response.json::<Value>().await.unwrap()["policies"].as_str().unwrap().contains(word) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("it never says `{word}`: {}", service.log());
}

#[test]
fn a_service_does_not_start_on_broken_policies() {
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    std::fs::remove_file(site.path().join("principals.toml")).unwrap();
    let output = command(folder.path(), &["serve", "--listen", "127.0.0.1:0"])
        .env("SIGHTLINE_POLICIES_DIR", site.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("principals.toml:1: it is missing"), "{}", stderr(&output));
    assert!(!Path::new(&folder.path().join("audit.db")).exists());
}
