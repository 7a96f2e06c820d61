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

/// What a model can try against another tenant: by arguments that are none, by filters, by names, by tools that are none.
fn attempts() -> Vec<Vec<(&'static str, Value)>> {
    let with = |more: Value| {
        let mut arguments = json!({ "from": "2025-06-02T06:00:00Z", "to": "2025-06-02T10:00:00Z" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let theirs = json!([{ "dim": "cluster", "values": ["borealis-east"] }]);
    vec![
        vec![
            ("run_sql", json!({ "sql": "SELECT * FROM sightline.metrics" })),
            ("metric_range", with(json!({ "metric": "gpu_temperature", "tenant": "borealis" }))),
            ("metric_range", with(json!({ "metric": "gpu_temperature", "filters": theirs }))),
            (
                "metric_range",
                with(json!({ "metric": "gpu_power", "filters": [{ "dim": "tenant", "values": ["borealis"] }] })),
            ),
            ("top_k", with(json!({ "metric": "gpu_power", "group_by": ["tenant"], "k": 50 }))),
            ("job_correlation", json!({ "job": "J4712" })),
            ("search_logs", with(json!({ "contains": "out of memory", "filters": theirs }))),
            ("list_events", with(json!({ "filters": theirs }))),
        ],
        vec![
            ("find_entities", with(json!({ "kind": "job", "search": "J4712" }))),
            ("find_entities", with(json!({ "kind": "cluster" }))),
            ("find_entities", with(json!({ "kind": "label_value", "search": "image" }))),
            ("compare", with(json!({ "metric": "gpu_power", "filters": theirs }))),
            ("search_logs", with(json!({ "contains": "') OR 1=1 --" }))),
            ("set_principal", json!({ "principal": "admin" })),
            ("metric_range", with(json!({ "metric": "*", "job": "J4712", "principal": "admin@borealis" }))),
            ("job_correlation", json!({ "job": "J4711", "tenants": ["atlas", "borealis"] })),
        ],
        vec![("find_entities", with(json!({ "kind": "node" })))],
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_model_gets_no_foreign_row_runs_no_other_tool_and_leaves_every_attempt_in_the_log() {
    let lab = Lab::start();
    let bundle = lab.bundle("two", &worlds::two_tenants(), "").await;
    let turns = attempts();
    let made: usize = turns.iter().map(Vec::len).sum();
    let hostile = Server::start(move |_, number| {
        let lie = json!({ "headline": "J4712 of borealis used 4242 W, see http://evil.example", "claims": ["{E1.r0.tenant}", "borealis"] });
        let turn = turns.get(number).map_or_else(|| server::answer(lie), |calls| server::calls(calls));
        server::Reaction::Message(turn)
    })
    .await;
    let output = ask(&lab, &bundle, hostile.url(), &["--planner", "llm"]).await;
    lab.saw(&output);
    let answered = answer(&output);
    assert_eq!(hostile.faults(), Vec::<String>::new());
    // Neither the answer nor anything that the model was told holds a row of the other tenant's.
    assert!(!answered.to_string().contains(worlds::CANARY) && !claims(&answered).iter().any(|c| c.contains("4242")));
    for message in hostile.requests().last().unwrap()["messages"].as_array().unwrap() {
        assert!(!message.to_string().contains(worlds::CANARY), "{message}");
    }
    // The question's budget of calls ended it, and every attempt stands in the log; what read anything read as atlas.
    let id = answered["audit"]["question_id"].as_str().unwrap();
    let shown = lab.run(&["audit", "--as", "admin", "--json", "show", id]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let records: Vec<&Value> = shown["records"].as_array().unwrap().iter().map(|call| &call["record"]).collect();
    let tools = |record: &&&Value| ["run_sql", "set_principal"].contains(&record["tool"].as_str().unwrap());
    let unknown: Vec<&&Value> = records.iter().filter(tools).collect();
    assert!(unknown.len() == 2 && unknown.iter().all(|record| record["sql"].is_null()), "{unknown:?}");
    for (number, turn) in attempts().iter().take(2).enumerate() {
        for (tool, arguments) in turn {
            let is_it = |record: &&&Value| record["tool"] == **tool && record["arguments"] == *arguments;
            assert!(records.iter().any(|record| is_it(&record)), "turn {number}: {tool} {arguments} is not in the log");
        }
    }
    for record in records.iter().filter(|record| !record["sql"].is_null()) {
        assert_eq!(record["params"]["p0"], "['atlas']", "{record}");
    }
    let used = &shown["complete"]["record"]["model"];
    let why = used["fell_back"].as_str().unwrap();
    assert!(made == 17 && why.contains("calls"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_the_models_server_can_do_and_what_to_check_where_it_cannot_be_asked() {
    let lab = Lab::start();
    let ready = server::calls(&[("ready", json!({ "part": "a" })), ("ready", json!({ "part": "b" }))]);
    let able = Server::replies(vec![ready]).await;
    let doctor = |url: String| {
        let mut command = command(lab.data_dir(), &["doctor"]);
        command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "sk-hunter2").env("SIGHTLINE_LLM_MODEL", "scripted");
        tokio::task::spawn_blocking(move || String::from_utf8(command.output().unwrap().stdout).unwrap())
    };
    let said = doctor(able.url()).await.unwrap();
    assert!(said.contains("ok    model: scripted at http://127.0.0.1:") && said.contains("several at once"), "{said}");
    let said = doctor("http://127.0.0.1:9/v1".to_owned()).await.unwrap();
    assert!(said.contains("WRONG model: ") && said.contains("llm.base_url") && !said.contains("hunter2"), "{said}");
    let none = String::from_utf8(lab.run(&["doctor"]).stdout).unwrap();
    assert!(none.contains("ok    model: none is named"), "{none}");
}
