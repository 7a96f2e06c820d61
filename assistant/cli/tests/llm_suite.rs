//! A good model over recorded incidents, beside the built-in planner: it says no less, and its words are its own. Its transcripts are asked again
//! with no network.

#![cfg(test)]

mod harness;
#[path = "../../llm/tests/harness/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use harness::{Lab, command, stderr};
use serde_json::{Value, json};
use server::{Reaction, Server};
use sightline_audit::{AuditReader, Filter};

/// Kinds of training and of serving, one of each: all are asked three times. The whole suite is asked on demand.
const SAMPLE: [&str; 4] = ["--every", "53", "--half", "tuning"];

type Calls = Vec<(String, Value)>;

/// The calls that were made for each question, by its words and its instant.
fn made(data_dir: &Path) -> BTreeMap<(String, String), Calls> {
    let reader = AuditReader::open(&data_dir.join("audit.db")).unwrap();
    let page = reader.list(&Filter { limit: Some(1000), ..Filter::default() }).unwrap();
    let mut made: BTreeMap<(String, String), Calls> = BTreeMap::new();
    for question in page.questions {
        let file = reader.question(&question.begin.record.question_id).unwrap().unwrap();
        let begun = &file.begin.record;
        let calls = made.entry((begun.question.clone(), begun.detail["as_of"].clone())).or_default();
        for call in file.calls.iter().map(|call| (call.record.tool.clone(), call.record.arguments.clone())) {
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
    }
    made
}

/// A model that looks where the built-in planner looks, prefers findings, and adds a sentence of its own.
fn good(request: &Value, made: &BTreeMap<(String, String), Calls>) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let text = |n: usize| messages[n]["content"].as_str().unwrap().to_owned();
    if messages.len() == 2 {
        let now = text(0).split("Now it is ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let calls = made.iter().find(|((asked, as_of), _)| *asked == text(1) && as_of.get(..19) == now.get(..19));
        let calls: Vec<(&str, Value)> = calls
            .iter()
            .flat_map(|(_, calls)| calls.iter())
            .map(|(tool, args)| (tool.as_str(), args.clone()))
            .collect();
        return server::calls(&calls);
    }
    let results: String = messages
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap().to_owned() + "\n")
        .collect();
    let starts = |prefix: char| {
        let names = results.lines().filter_map(move |line| line.split([':', ' ']).next());
        names
            .filter(move |name| name.strip_prefix(prefix).is_some_and(|n| n.parse::<u32>().is_ok()))
            .collect::<Vec<_>>()
    };
    let findings = starts('F');
    // What moved, where something was measured over time; else how much was found.
    let mut evidence = "";
    let mut own = None;
    for line in results.lines() {
        match line.split(' ').next() {
            Some(name) if name.strip_prefix('E').is_some_and(|n| n.parse::<u32>().is_ok()) => {
                evidence = name;
                own = own.or(Some(format!("{{{evidence}.total}} were looked at.")));
            }
            Some("s0") if !line.contains("no samples") => {
                own = Some(format!("It went this way: {{{evidence}.s0.first -> {evidence}.s0.last}}."));
                break;
            }
            Some(_) | None => {}
        }
    }
    let causes: Vec<&str> = results.lines().filter_map(|line| line.strip_prefix("cause ")?.split(' ').next()).collect();
    server::answer(json!({
        "headline": findings.first().copied().unwrap_or(own.as_deref().unwrap_or("")),
        "claims": findings.iter().skip(1).take(4).map(|name| (*name).to_owned()).chain(own.clone()).collect::<Vec<_>>(),
        "causes": causes,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_model_says_no_less_than_the_built_in_planner_and_its_transcripts_replay() {
    let lab = Lab::start();
    let report = |name: &str, more: &[&str], url: Option<String>| {
        let file = lab.path(name);
        let mut all = vec!["eval", "run", "--json", file.to_str().unwrap()];
        all.extend(SAMPLE);
        all.extend(more);
        let mut command = command(lab.data_dir(), &all);
        if let Some(url) = url {
            command.env("OPENAI_BASE_URL", url).env("SIGHTLINE_LLM_MODEL", "scripted");
        }
        async move {
            let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            (report, String::from_utf8(output.stdout).unwrap())
        }
    };
    let (offline, _) = report("offline.json", &[], None).await;
    let made = Arc::new(made(lab.data_dir()));
    let model = Server::start(move |request, _| Reaction::Message(good(request, &made))).await;
    let transcripts = lab.path("transcripts");
    let folder = transcripts.to_str().unwrap();
    let before = lab.path("offline.json");
    let asked = ["--planner", "llm", "--record", folder, "--baseline", before.to_str().unwrap()];
    let (own, said) = report("model.json", &asked, Some(model.url())).await;
    println!("{said}");
    assert_eq!(model.faults(), Vec::<String>::new());
    assert!(said.contains("Model scripted, prompt 1-") && said.contains("Beside the earlier run"), "{said}");
    let share = &own["model"]["own"];
    let (hit, of) = (share["hit"].as_u64().unwrap(), share["of"].as_u64().unwrap());
    assert!(hit * 10 >= of * 9 && of > 5, "own drafts {hit} of {of}: {said}");
    let questions = |report: &Value| report["questions"].as_array().unwrap().clone();
    for (theirs, ours) in questions(&offline).iter().zip(questions(&own)) {
        let id = theirs["id"].as_str().unwrap();
        assert_eq!(theirs["id"], ours["id"]);
        assert!(ours["right"] == true || theirs["right"] == false, "{id} is no longer right: {said}");
        assert_eq!(theirs["said"]["causes"], ours["said"]["causes"], "{id}");
        assert_eq!(theirs["said"]["components"], ours["said"]["components"], "{id}");
        assert_eq!(theirs["said"]["outcome"], ours["said"]["outcome"], "{id}");
        let checked = |question: &Value| question["said"]["checked"].as_u64().unwrap();
        assert!(checked(&ours) >= checked(theirs), "{id}: {} statements, not {}", checked(&ours), checked(theirs));
    }
    // The same again, from the transcripts alone: no model is named and nothing listens.
    drop(model);
    let (again, _) = report("again.json", &["--replay", folder], None).await;
    for (ours, again) in questions(&own).iter().zip(questions(&again)) {
        for part in ["id", "right", "said", "score", "planned"] {
            assert_eq!(ours[part], again[part], "{part} of {}", ours["id"]);
        }
    }
}
