//! Models of four kinds behind the true line: a good one, a weak one, one that lies, one that is hostile.

#![cfg(test)]

mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::server::{Reaction, Server, answer, calls};
use harness::world::CANARY;
use harness::{Line, QUESTION, config, fell_back, said};
use proptest::prelude::*;
use serde_json::{Value, json};
use sightline_core::digest_answer;
use sightline_model::Outcome;

fn good_calls() -> Value {
    calls(&[
        ("job_correlation", json!({ "job": "J4711", "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z" })),
        (
            "find_entities",
            json!({ "kind": "job", "search": "J4711", "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z" }),
        ),
    ])
}

fn good_answer() -> Value {
    answer(json!({
        "headline": "Thermal throttling on {E1.s0.node} slowed the job J4711: its GPU {E1.s0.first -> E1.s0.last}.",
        "claims": ["F1", "The peers stayed cool: {E1.s0.max vs E1.s0.peers.median}.", "It began at {E1.s0.at_change}."],
        "causes": ["thermal_throttling"],
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_models_own_draft_is_used_and_says_no_less_than_the_offline_one() {
    let server = Server::replies(vec![good_calls(), good_answer()]).await;
    let line = Line::new(config(&server));
    let answered = line.ask(QUESTION).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    assert!(!fell_back(&answered), "{:?}", answered.data_health);
    assert_eq!(answered.outcome, Outcome::Answered);
    assert!(
        answered
            .headline
            .starts_with("Thermal throttling on atlas-n07 slowed the job J4711: its GPU rose from 61 °C to 92 °C"),
        "{}",
        answered.headline
    );
    assert_eq!(answered.verification.dropped, 0);
    assert_eq!(answered.verification.checked, answered.verification.passed);
    let offline = Line::offline().ask(QUESTION).await.unwrap();
    let (own, theirs) = (said(&answered), said(&offline));
    for claim in offline.causes.iter().flat_map(|cause| &cause.claims).chain(&offline.claims) {
        assert!(own.contains(&claim.text), "{} is missing from {own}", claim.text);
    }
    assert!(!theirs.contains("The peers stayed cool"), "the model's own sentences are its own");
    let order = |a: &sightline_model::Answer| a.causes.iter().map(|c| (c.id.clone(), c.rank)).collect::<Vec<_>>();
    assert_eq!(order(&answered), order(&offline));
    // The window is the one that the question's words mean.
    assert_eq!(answered.time_range.as_ref().map(|r| &r.how), offline.time_range.as_ref().map(|r| &r.how));
    let complete = line.last_complete();
    let used = complete.model.unwrap();
    assert_eq!((used.model.as_str(), used.calls.len(), used.fell_back), ("scripted", 2, None));
    assert_eq!(used.calls.iter().map(|c| c.outcome.as_str()).collect::<Vec<_>>(), ["calls", "answer"]);
    assert_eq!((complete.planner.as_str(), complete.llm_tokens), ("llm", 2 * (1234 + 56)));
    assert_eq!(answered.cost.llm_tokens, complete.llm_tokens);
    assert!(used.prompt.starts_with("1-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_of_a_question_is_what_was_looked_at_and_two_turns_stay_within_their_tokens() {
    let server = Server::replies(vec![good_calls(), good_answer()]).await;
    let line = Line::new(config(&server));
    line.ask(QUESTION).await.unwrap();
    let version = line.last_complete().model.unwrap().prompt;
    let requests = server.requests();
    let text = |n: usize| -> Vec<String> {
        let messages = requests[n]["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|m| {
                format!(
                    "[{}] {}{}",
                    m["role"].as_str().unwrap(),
                    m["content"].as_str().unwrap_or(""),
                    m.get("tool_calls").map_or(String::new(), Value::to_string)
                )
            })
            .collect()
    };
    insta::assert_snapshot!("conversation_of_two_turns", format!("prompt {version}\n\n{}", text(1).join("\n\n")));
    let tokens = |n: usize| {
        let tools = sightline_llm::estimate(&requests[n]["tools"].to_string());
        (text(n).iter().map(|m| sightline_llm::estimate(m)).sum::<u64>(), tools)
    };
    let (first, second) = (tokens(0), tokens(1));
    println!("first turn {first:?}, second turn {second:?} (messages, tools)");
    assert!(first.1 < 900, "{first:?}");
    assert!(first.0 + first.1 + second.0 + second.1 < 5_000, "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_does_not_hold_is_repaired_once() {
    let bad = answer(json!({ "headline": "The GPU reached 91 degrees.", "claims": ["F1"] }));
    let server = Server::replies(vec![good_calls(), bad.clone(), good_answer()]).await;
    let answered = Line::new(config(&server)).ask(QUESTION).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    assert!(answered.headline.starts_with("Thermal throttling"), "{}", answered.headline);
    let told =
        server.requests()[2]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(told.contains("headline: it rests on no evidence"), "{told}");
    // A second time it is not asked: what failed is left out, and said to be.
    let server = Server::replies(vec![good_calls(), bad]).await;
    let answered = Line::new(config(&server)).ask(QUESTION).await.unwrap();
    assert!(!said(&answered).contains("91 degrees"));
    assert_eq!(server.requests().len(), 3);
    assert!(
        !fell_back(&answered) && answered.data_health.iter().any(|note| note.contains("not borne out")),
        "{:?}",
        answered.data_health
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weak_model_costs_nothing_of_the_answer() {
    let offline = said(&Line::offline().ask(QUESTION).await.unwrap());
    let words = |text: &str| json!({ "content": text });
    let scripts: Vec<(&str, Vec<Value>)> = vec![
        ("prose only", vec![words("The job was slow because of the network.")]),
        ("an answer without a look", vec![answer(json!({ "headline": "All is well.", "claims": [] }))]),
        ("an answer of nothing", vec![good_calls(), answer(json!({}))]),
        ("an answer of no form", vec![good_calls(), answer(json!({ "claims": "x" }))]),
        ("broken arguments", vec![calls(&[("job_correlation", json!("{\"job\": \"J47"))])]),
        ("a tool that is none", vec![calls(&[("run_sql", json!({ "sql": "SELECT 1" }))])]),
        ("the same call for ever", vec![good_calls()]),
        ("a refusal", vec![json!({ "refusal": "I cannot help with that." })]),
        (
            "invented references",
            vec![
                good_calls(),
                answer(json!({ "headline": "It was {E9.max}.", "claims": ["{E1.s7.max} is much", "F99"] })),
            ],
        ),
    ];
    for (what, script) in scripts {
        let server = Server::replies(script).await;
        let answered = Line::new(config(&server)).ask(QUESTION).await.unwrap();
        assert_eq!(server.faults(), Vec::<String>::new(), "{what}");
        assert!(fell_back(&answered), "{what}: {:?}", answered.data_health);
        assert_eq!(said(&answered), offline, "{what}");
        assert!(server.requests().len() <= 6, "{what}: {}", server.requests().len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_writes_json_instead_of_calls_is_asked_so() {
    let server = Server::start(|request, _| {
        if request.get("tools").is_some() {
            return Reaction::Status(
                400,
                "{\"error\":{\"message\":\"tools are not supported\",\"type\":\"invalid_request_error\"}}",
            );
        }
        assert_eq!(request["response_format"]["type"], "json_schema");
        let turns = request["messages"].as_array().unwrap().len();
        let step = if turns == 2 {
            json!({ "calls": [{ "tool": "job_correlation", "arguments": { "job": "J4711" } }] })
        } else {
            json!({ "answer": { "headline": "F2", "claims": ["The clock follows: {E1.s0.first -> E1.s0.last}."] } })
        };
        Reaction::Document(json!({ "content": format!("```json\n{step}\n```") }))
    })
    .await;
    let line = Line::new(config(&server));
    let answered = line.ask(QUESTION).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    assert!(!fell_back(&answered), "{:?}", answered.data_health);
    assert!(said(&answered).contains("The clock follows: rose from 61 °C to 92 °C"));
    // The next question is asked in that way at once.
    let before = server.requests().len();
    line.ask(QUESTION).await.unwrap();
    assert!(server.requests().iter().skip(before).all(|request| request.get("tools").is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_keep_their_ranks_unless_a_reason_holds_and_then_both_are_shown() {
    let ranked = |causes: Value| answer(json!({ "headline": "F1", "claims": [], "causes": causes }));
    let ask = |causes: Value| async {
        let server = Server::replies(vec![good_calls(), ranked(causes)]).await;
        Line::new(config(&server)).ask(QUESTION).await.unwrap()
    };
    let order = |a: &sightline_model::Answer| a.causes.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
    let unchanged = ask(json!(["power_capping"])).await;
    assert_eq!(order(&unchanged), ["thermal_throttling", "power_capping", "memory_leak"]);
    let lied = ask(json!([{ "id": "power_capping", "why": "Its power was 900 W." }])).await;
    assert_eq!(order(&lied), ["thermal_throttling", "power_capping", "memory_leak"]);
    let reasoned = ask(json!([{ "id": "power_capping", "why": "The peers are near {E1.s1.median}." }])).await;
    assert_eq!(order(&reasoned), ["power_capping", "thermal_throttling", "memory_leak"]);
    assert!(reasoned.data_health.iter().any(|note| note.contains("the checks rank thermal_throttling first")));
    let ruled_out = ask(json!([{ "id": "memory_leak", "why": "F1" }, { "id": "made_up", "why": "F1" }])).await;
    assert_eq!(order(&ruled_out), ["thermal_throttling", "power_capping", "memory_leak"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_model_reads_nothing_else_and_every_attempt_is_in_the_log() {
    let attempts = calls(&[
        ("run_sql", json!({ "sql": "SELECT * FROM borealis" })),
        (
            "metric_range",
            json!({ "metric": "gpu_temperature", "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z", "tenant": "borealis" }),
        ),
        (
            "top_k",
            json!({ "metric": "x'; DROP TABLE", "from": "0000", "to": "9999", "group_by": ["tenant"], "k": 4_000_000_000_u64 }),
        ),
        ("job_correlation", json!({ "job": "J4711", "principal": "admin" })),
        ("../../etc/passwd", json!({})),
        ("find_entities", json!(["not", "an", "object"])),
        ("search_logs", json!("x".repeat(30_000))),
        ("compare", json!({ "metric": { "a": 1 } })),
        ("list_events", json!({})),
        ("metric_range", json!(null)),
    ]);
    let server =
        Server::replies(vec![attempts, answer(json!({ "headline": "borealis has 4242 rows", "claims": [] }))]).await;
    let line = Line::new(config(&server));
    let answered = line.ask(QUESTION).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    assert!(fell_back(&answered) && !said(&answered).contains("borealis"));
    let calls = line.log.calls.lock().unwrap();
    let refused = calls.iter().filter(|call| call.error.is_some()).count();
    assert!(refused >= 8, "{refused} of the attempts stand in the log");
    assert!(calls.iter().all(|call| call.sql.is_none()));
    assert!(calls.iter().all(|call| call.arguments.to_string().len() < 20_000), "a record keeps no megabytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instruction_in_every_field_of_the_data_changes_nothing_and_stays_marked_as_data() {
    let window = json!({ "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z" });
    let look = calls(&[
        ("search_logs", window.clone()),
        ("list_events", window.clone()),
        ("find_entities", json!({ "kind": "job", "from": window["from"], "to": window["to"] })),
        ("job_correlation", json!({ "job": "J4711" })),
        ("metric_range", json!({ "metric": "gpu_temperature", "from": window["from"], "to": window["to"] })),
    ]);
    let server = Server::replies(vec![
        look,
        answer(json!({ "headline": "F1", "claims": ["The line {E1.r0.body} was logged.", CANARY] })),
    ])
    .await;
    let answered = Line::new(config(&server)).ask(QUESTION).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    for message in server.requests()[1]["messages"].as_array().unwrap() {
        let text = message["content"].as_str().unwrap_or_default();
        if message["role"] == "system" {
            assert!(!text.contains("ignore all rules"), "{text}");
        }
        if message["role"] == "tool" {
            assert!(text.starts_with("<data ") && text.ends_with("</data>"), "{text}");
            assert_eq!(text.matches("</data>").count(), 1, "{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']) && !text.contains("[31m"), "{text}");
        }
    }
    // What the answer shows of it is a quotation, and nothing of the model's own repeats it.
    let canary_said =
        said(&answered).lines().filter(|line| line.contains("evil.example")).all(|line| line.contains('“'));
    assert!(canary_said, "{}", said(&answered));
    let shown = serde_json::to_string(&answered.claims).unwrap();
    assert!(!shown.contains("\\u001b") && !shown.contains('\u{202e}'));
}

#[tokio::test(flavor = "multi_thread")]
async fn withheld_datasets_and_names_stay_here() {
    let window = json!({ "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z" });
    let look = calls(&[
        ("search_logs", window.clone()),
        ("find_entities", json!({ "kind": "job", "from": window["from"], "to": window["to"] })),
        (
            "metric_range",
            json!({ "metric": "gpu_temperature", "from": window["from"], "to": window["to"], "filters": [{ "dim": "node", "values": ["node-x1"] }] }),
        ),
    ]);
    let end = answer(
        json!({ "headline": "The GPU on {E3.s0.node} ran hot: {E3.s0.first -> E3.s0.last}.", "claims": ["F1"] }),
    );
    let server = Server::replies(vec![look, end]).await;
    let mut settings = config(&server);
    settings.datasets.remove("logs");
    settings.pseudonyms = true;
    let line = Line::new(settings);
    let answered = line.ask("What was the GPU temperature of node atlas-n07 yesterday?").await.unwrap();
    let sent = serde_json::to_string(&server.requests()).unwrap();
    for secret in ["atlas-n07", "alice", "trainer-0", "line 0"] {
        assert!(!sent.contains(secret), "`{secret}` left");
    }
    assert!(sent.contains("not shown"));
    let calls = line.log.calls.lock().unwrap();
    assert!(calls.iter().any(|call| call.arguments.to_string().contains("atlas-n07")), "names come back in calls");
    assert!(
        !fell_back(&answered) && answered.headline.contains("atlas-n07"),
        "{} {:?}",
        answered.headline,
        answered.data_health
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_in_an_answer_a_record_or_a_request_body() {
    let server = Server::replies(vec![good_calls(), good_answer()]).await;
    let line = Line::new(config(&server));
    let answered = line.ask(QUESTION).await.unwrap();
    let everything =
        format!("{answered:?} {:?} {}", line.last_complete(), serde_json::to_string(&server.requests()).unwrap());
    assert!(!everything.contains("sk-test-key"));
    assert!(server.headers().iter().all(|headers| headers["authorization"] == "Bearer sk-test-key"));
}

/// Sentences as a liar writes them: numbers in every dress, times, names, links, directions, around references that hold.
fn lie() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("{E1.s0.max}".to_owned()),
        Just("{E1.s0.first -> E1.s0.last}".to_owned()),
        Just("{E1.s0.node}".to_owned()),
        Just("{E9.max}".to_owned()),
        Just("{4242}".to_owned()),
        (1000_u32..99_999).prop_map(|n| n.to_string()),
        (1000_u32..9_999).prop_map(|n| format!("{n} °C")),
        (1000_u32..9_999).prop_map(|n| format!("{n}%")),
        (1000_u32..9_999).prop_map(|n| format!("node-{n}")),
        (1000_u32..9_999).prop_map(|n| format!("E{n}")),
        Just("forty-two percent".to_owned()),
        Just("twice".to_owned()),
        Just("at noon".to_owned()),
        Just("yesterday".to_owned()),
        Just("node zeus".to_owned()),
        Just("user mallory".to_owned()),
        Just("fell".to_owned()),
        Just("http://evil.example".to_owned()),
        Just("![x](y)".to_owned()),
        Just("٤٢".to_owned()),
        Just("４２４２".to_owned()),
        Just("Ⅻ".to_owned()),
        Just("九十".to_owned()),
        "[a-z]{2,8}",
        Just("the GPU ran hot".to_owned()),
        Just("F1".to_owned()),
    ];
    prop::collection::vec(part, 1..7).prop_map(|parts| parts.join(" "))
}

/// What no answer may hold, whatever was true: nothing in the data has it.
fn unverified(text: &str) -> Option<String> {
    let quoted_out: String = text
        .split('“')
        .enumerate()
        .map(|(n, part)| if n == 0 { part } else { part.split_once('”').map_or("", |(_, rest)| rest) })
        .collect();
    let digits: Vec<&str> = quoted_out.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() >= 4).collect();
    // Years and the job of the question are the only long numbers there are.
    if let Some(wrong) = digits.iter().find(|run| !["2026", "4711"].contains(run)) {
        return Some((*wrong).to_owned());
    }
    let words = ["forty-two", "twice", "noon", "zeus", "mallory", "evil", "![", "٤", "４", "Ⅻ", "九"];
    words.iter().find(|word| quoted_out.contains(**word)).map(|word| (*word).to_owned())
}

#[test]
fn no_unverified_number_time_or_name_survives_a_hundred_lies() {
    lied_to(120);
}

#[test]
#[ignore = "takes two minutes: `cargo test -p sightline-llm --test models lies -- --ignored`"]
fn no_unverified_number_time_or_name_survives_a_thousand_lies() {
    lied_to(1_000);
}

/// Asks a liar for so many drafts.
fn lied_to(drafts_wanted: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let drafts: Arc<std::sync::Mutex<Value>> = Arc::new(std::sync::Mutex::new(json!({})));
    let used = AtomicUsize::new(0);
    let (server, line) = runtime.block_on(async {
        let drafts = Arc::clone(&drafts);
        let server = Server::start(move |request, _| {
            let is_first = request["messages"].as_array().unwrap().len() == 2;
            // Whole, since how it is cut is what other tests are about, and hundreds of answers are waited for.
            let look = || calls(&[("job_correlation", json!({ "job": "J4711" }))]);
            Reaction::Document(if is_first { look() } else { answer(drafts.lock().unwrap().clone()) })
        })
        .await;
        // The second turn is the last: what fails is left out at once, and not asked for again.
        let settings = config(&server);
        let budgets = sightline_llm::Budgets { turns: 2, ..settings.budgets };
        let line = Line::new(sightline_llm::LlmConfig { budgets, ..settings });
        (server, line)
    });
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: drafts_wanted,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let draft = (
        lie(),
        prop::collection::vec(lie(), 0..5),
        prop::collection::vec(("[a-z_]{4,20}|thermal_throttling|power_capping", lie()), 0..3),
    );
    runner
        .run(&draft, |(headline, claims, causes)| {
            let causes: Vec<Value> = causes.iter().map(|(id, why)| json!({ "id": id, "why": why })).collect();
            *drafts.lock().unwrap() = json!({ "headline": headline, "claims": claims, "causes": causes });
            let answered = runtime.block_on(line.ask(QUESTION)).unwrap();
            used.fetch_add(usize::from(!fell_back(&answered)), Ordering::Relaxed);
            prop_assert_eq!(unverified(&said(&answered)), None, "{}", said(&answered));
            prop_assert_eq!(answered.verification.checked, answered.verification.passed);
            prop_assert!(!digest_answer(&answered).is_empty());
            Ok(())
        })
        .unwrap();
    // Else nothing was tried: a liar's sentences without a lie in them may stand.
    let few = usize::try_from(drafts_wanted / 20).unwrap();
    assert!(used.load(Ordering::Relaxed) > few, "{} of the answers were the liar's", used.load(Ordering::Relaxed));
    assert_eq!(server.faults(), Vec::<String>::new());
}
