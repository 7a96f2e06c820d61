//! `sightline ask --planner llm` over a real engine and a scripted server: what a good model adds, and that nothing is lost without one.

#![cfg(test)]

mod harness;
#[path = "../../llm/tests/harness/server.rs"]
mod server;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;
use std::process::Output;

use harness::{Lab, answer, command, stderr};
use serde_json::{Value, json};
use server::Server;

const QUESTION: &str = "Why was training job J4711 slow in the last 4 hours?";

/// Asks with a model at this address, as whoever set the variables that everybody uses.
async fn ask(lab: &Lab, bundle: &Path, url: String, options: &'static [&'static str]) -> Output {
    let mut all = vec!["ask", "--json", "--tz", "UTC", "--as", "operator@atlas", "--as-of", worlds::END];
    let bundle = bundle.to_str().unwrap().to_owned();
    all.extend(["--bundle", &bundle]);
    all.extend(options);
    all.push(QUESTION);
    let mut command = command(lab.data_dir(), &all);
    command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "sk-hunter2").env("SIGHTLINE_LLM_MODEL", "scripted");
    // The server runs in this process: it must not wait for the binary.
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn claims(answer: &Value) -> Vec<String> {
    let causes = answer["causes"].as_array().unwrap().iter().flat_map(|cause| cause["claims"].as_array().unwrap());
    causes.chain(answer["claims"].as_array().unwrap()).map(|claim| claim["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_plans_over_a_recorded_incident_and_its_words_are_checked() {
    let lab = Lab::start();
    let thermal = lab.bundle_of_these_alone("thermal", &worlds::thermal().0, "").await;
    let offline = lab.ask(&thermal, &["--as", "operator@atlas", "--as-of", worlds::END], QUESTION);

    let good = Server::replies(vec![
        server::calls(&[("job_correlation", json!({ "job": "J4711" }))]),
        server::answer(json!({
            "headline": "Thermal throttling slowed the job J4711; {E1.total} series were compared.",
            "claims": ["F1", "It is 4242 degrees."],
            "causes": ["thermal_throttling"],
        })),
    ])
    .await;
    let output = ask(&lab, &thermal, good.url(), &["--planner", "llm"]).await;
    let answered = answer(&output);
    assert_eq!(good.faults(), Vec::<String>::new());
    assert!(answered["headline"].as_str().unwrap().starts_with("Thermal throttling slowed"), "{answered}");
    assert_eq!(answered["causes"][0]["id"], offline["causes"][0]["id"]);
    assert_eq!(answered["causes"][0]["components"], offline["causes"][0]["components"]);
    assert_eq!(answered["verification"]["checked"], answered["verification"]["passed"]);
    assert!(answered["cost"]["llm_tokens"].as_u64().unwrap() > 0);
    let said = claims(&answered);
    assert!(!said.iter().any(|claim| claim.contains("4242")));
    for claim in claims(&offline) {
        assert!(said.contains(&claim), "{claim} is missing from {said:?}");
    }

    // The record has the model, the version of the prompt and every request; nothing has the key.
    let id = answered["audit"]["question_id"].as_str().unwrap();
    let shown = lab.run(&["audit", "--as", "admin", "show", id]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("model scripted, prompt 1-") && shown.contains("asked: 1234 tokens in, 56 out"), "{shown}");
    let everything = format!("{shown}{}{answered}", stderr(&output));
    assert!(!everything.contains("hunter2"), "{everything}");

    // Without anybody at the address, and with a server that only fails, the built-in planner answers.
    let failing = Server::start(|_, _| server::Reaction::Status(400, "{}")).await;
    for url in ["http://127.0.0.1:9/v1".to_owned(), failing.url()] {
        let fallen = answer(&ask(&lab, &thermal, url, &["--planner", "llm"]).await);
        assert_eq!(claims(&fallen), claims(&offline));
        let note = fallen["data_health"][0].as_str().unwrap();
        assert!(note.starts_with("the built-in planner answered in the model's place"), "{note}");
    }
    // Unless it is asked for, no model is asked.
    let before = good.requests().len();
    let plain = answer(&ask(&lab, &thermal, good.url(), &[]).await);
    assert_eq!((plain["cost"]["llm_tokens"].as_u64(), good.requests().len()), (Some(0), before));
}
