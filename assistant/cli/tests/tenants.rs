//! Two tenants in the same tables: what one asks never tells of the other, not even whether it is there.

#![cfg(test)]

mod harness;
#[path = "harness/redact.rs"]
mod redact;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;

use harness::{Lab, canary};
use redact::{redacted, redacted_but_reads};
use serde_json::Value;
use worlds::CANARY;

fn ask(lab: &Lab, bundle: &Path, principal: &str, question: &str) -> Value {
    lab.ask(bundle, &["--as", principal, "--as-of", worlds::END], question)
}

/// Two questions at once.
fn both(lab: &Lab, bundle: &Path, principals: [&str; 2], questions: [String; 2]) -> [Value; 2] {
    let [first, second] = &questions;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| ask(lab, bundle, principals[1], second));
        [ask(lab, bundle, principals[0], first), other.join().unwrap()]
    })
}

/// The answer as bytes, with names taken out that the question itself brought in.
fn bytes(answer: &Value, names: &[&str]) -> String {
    without(serde_json::to_string(&redacted(answer)).unwrap(), names)
}

/// The same, with how much was read: that, too, must not tell whether a job is there.
fn bytes_with_reads(answer: &Value, names: &[&str]) -> String {
    without(serde_json::to_string(&redacted_but_reads(answer)).unwrap(), names)
}

fn without(mut text: String, names: &[&str]) -> String {
    for name in names {
        text = text.replace(name, "[name]").replace(&name.to_lowercase(), "[name]");
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_learns_nothing_of_the_other() {
    let lab = Lab::start();
    let bundle = lab.bundle("two", &worlds::two_tenants(), "").await;
    the_rows_of_the_other_tenant_are_there_for_who_may_see_them(&lab, &bundle);
    a_job_of_the_other_tenant_is_answered_like_one_that_does_not_exist(&lab, &bundle);
    other_names_of_the_other_tenant_are_answered_like_ones_that_do_not_exist(&lab, &bundle);
    no_answer_holds_text_of_the_other_tenants_rows(&lab, &bundle);
    a_tenant_that_is_named_is_refused_in_the_same_words_whether_it_exists_or_not(&lab, &bundle);
    a_viewer_gets_no_logs_and_no_events_and_is_told(&lab, &bundle);
}

/// Without this the others could hold because nothing was loaded.
fn the_rows_of_the_other_tenant_are_there_for_who_may_see_them(lab: &Lab, bundle: &Path) {
    let answer = ask(lab, bundle, "operator@borealis", "Why was training job J4712 slow in the last 4 hours?");
    assert_eq!(answer["outcome"], "answered", "{answer}");
    assert!(answer.to_string().contains(CANARY));
    let both = ask(lab, bundle, "admin", "top 16 hottest GPUs in the last hour").to_string();
    assert!(both.contains(CANARY) && both.contains("atlas-n"), "{both}");
    // The tenant of every lab that nobody asks as is there too, and would be noticed.
    assert!(both.contains(canary::TENANT), "{both}");
    assert!(std::panic::catch_unwind(|| canary::hold("an admin's answer", both.as_bytes())).is_err());
}

fn a_job_of_the_other_tenant_is_answered_like_one_that_does_not_exist(lab: &Lab, bundle: &Path) {
    for question in [
        "Why was training job JOB slow in the last 4 hours?",
        "Why is JOB slow?",
        "What was the GPU temperature of job JOB in the last 2 hours?",
        "top 3 hottest GPUs of job JOB in the last hour",
        "Compare GPU power of job JOB in the last hour and the hour before",
    ] {
        // As near to a visible name as the other's, so that near names are the same.
        let [there, absent] =
            both(lab, bundle, ["viewer@atlas"; 2], ["J4712", "J4713"].map(|job| question.replace("JOB", job)));
        assert_ne!(there["outcome"], "answered", "{question}: {there}");
        assert_eq!(bytes_with_reads(&there, &["J4712"]), bytes_with_reads(&absent, &["J4713"]), "{question}");
    }
}

fn other_names_of_the_other_tenant_are_answered_like_ones_that_do_not_exist(lab: &Lab, bundle: &Path) {
    let (there, absent) = (format!("{CANARY}01"), "qwertyu01".to_owned());
    for question in [
        "What was the GPU temperature of node NAME in the last 2 hours?",
        "top 3 hottest GPUs of node NAME in the last hour",
        "Compare GPU power of node NAME in the last hour and the hour before",
        "Why was job NAME slow?",
    ] {
        let [first, second] =
            both(lab, bundle, ["viewer@atlas"; 2], [&there, &absent].map(|name| question.replace("NAME", name)));
        assert_eq!(bytes(&first, &[&there]), bytes(&second, &[&absent]), "{question}");
    }
    let question = "What was the GPU temperature of cluster NAME in the last 2 hours?";
    let first = ask(lab, bundle, "viewer@atlas", &question.replace("NAME", "borealis-east"));
    let second = ask(lab, bundle, "viewer@atlas", &question.replace("NAME", "cygnusab-east"));
    assert_eq!(bytes(&first, &["borealis-east"]), bytes(&second, &["cygnusab-east"]));
}

fn no_answer_holds_text_of_the_other_tenants_rows(lab: &Lab, bundle: &Path) {
    for question in [
        "Why was training job J4711 slow in the last 4 hours?",
        "Why was training job J471 slow?",
        "Why was job J4799 slow?",
        "Why was the training job slow?",
        "Why was job zyzzyv slow?",
        "Why was job run-7 slow?",
        "What was the GPU temperature in the last 2 hours?",
        "What was the GPU temperature by node in the last 2 hours?",
        "top 20 hottest GPUs in the last hour",
        "top 20 nodes by GPU power in the last hour",
        "lowest 20 GPUs by SM clock in the last hour",
        "Compare GPU power in the last hour and the hour before",
        "show Xid errors in the last 4 hours",
        "which alerts and events were there in the last 4 hours?",
    ] {
        for answer in both(lab, bundle, ["viewer@atlas", "operator@atlas"], [question; 2].map(str::to_owned)) {
            // What the question itself says is echoed.
            let said = serde_json::to_string(&answer).unwrap().replace(question, "");
            assert!(question.contains("zyzzyv") || !said.contains(CANARY), "{question}: {said}");
            for theirs in ["J4712", "borealis", "zyzzyva01", "zyzzyva-run-7", "zyzzyva-pretrain"] {
                assert!(!said.contains(theirs), "{question}: {theirs}: {said}");
            }
        }
    }
}

fn a_tenant_that_is_named_is_refused_in_the_same_words_whether_it_exists_or_not(lab: &Lab, bundle: &Path) {
    for question in [
        "Why was job J4712 of tenant NAME slow?",
        "What was the GPU temperature of tenant NAME in the last hour?",
        "top 5 hottest GPUs of tenant NAME",
        "Compare GPU power of tenant NAME today and yesterday",
    ] {
        let [there, absent] =
            both(lab, bundle, ["viewer@atlas"; 2], ["borealis", "cygnusab"].map(|name| question.replace("NAME", name)));
        assert_eq!(there["outcome"], "refused", "{there}");
        assert_eq!(there["cost"]["queries"], 0, "{there}");
        assert_eq!(bytes(&there, &["borealis"]), bytes(&absent, &["cygnusab"]), "{question}");
    }
}

fn a_viewer_gets_no_logs_and_no_events_and_is_told(lab: &Lab, bundle: &Path) {
    let question = "Why was training job J4711 slow in the last 4 hours?";
    let datasets = |answer: &Value| -> Vec<String> {
        let rows = answer["evidence"].as_array().unwrap().iter();
        rows.map(|evidence| evidence["dataset"].as_str().unwrap().to_owned()).collect()
    };
    let viewer = ask(lab, bundle, "viewer@atlas", question);
    let operator = ask(lab, bundle, "operator@atlas", question);
    for dataset in ["logs", "events"] {
        assert!(!datasets(&viewer).contains(&dataset.to_owned()), "{viewer}");
    }
    assert!(datasets(&operator).iter().any(|d| d == "logs" || d == "events"), "{:?}", datasets(&operator));
    let health = viewer["data_health"].to_string();
    assert!(health.contains("log") && health.contains("event"), "{health}");
    assert_eq!(viewer["causes"][0]["id"], operator["causes"][0]["id"]);
}
