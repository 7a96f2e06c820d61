//! Servers that misbehave: whatever comes back, the question is answered, in time and within memory.

#![cfg(test)]

mod harness;

use std::time::Duration;

use harness::server::{Reaction, Server, answer, calls, events};
use harness::{Line, QUESTION, config, fell_back, said};
use serde_json::{Value, json};
use sightline_llm::Budgets;

fn look() -> Value {
    calls(&[("job_correlation", json!({ "job": "J4711" }))])
}

async fn falls_back(reaction: Reaction, code: &str) {
    falls_back_within(reaction, code, Duration::from_secs(300)).await;
}

/// The same, with so much patience for a pause and ten times that for the whole.
async fn falls_back_within(reaction: Reaction, code: &str, pause: Duration) {
    let server = Server::start(move |_, _| reaction.clone()).await;
    let settings = sightline_llm::LlmConfig { pause, timeout: pause * 10, ..config(&server) };
    let line = Line::new(settings);
    let answered = line.ask(QUESTION).await.unwrap();
    assert!(fell_back(&answered), "{code}: {:?}", answered.data_health);
    let used = line.last_complete().model.unwrap();
    assert_eq!(used.calls.last().unwrap().outcome, code);
    // No word of the server's reaches anybody.
    assert!(!format!("{answered:?}{used:?}").contains("SECRET"), "{code}");
}

fn raw(kind: &'static str, text: &str) -> Reaction {
    pieces(kind, vec![text.as_bytes().to_vec()], Duration::ZERO, false)
}

fn pieces(kind: &str, pieces: Vec<Vec<u8>>, pause: Duration, hangs: bool) -> Reaction {
    Reaction::Raw { status: 200, kind: kind.to_owned(), pieces, pause, hangs }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_chat_completion_is_told_apart_and_answered_all_the_same() {
    let sse = "text/event-stream";
    falls_back(raw("text/html", "<h1>SECRET</h1>"), "malformed").await;
    falls_back(raw(sse, "data: {SECRET broken\n\n"), "malformed").await;
    falls_back(raw(sse, "data: {\"error\":{\"message\":\"SECRET\"}}\n\n"), "malformed").await;
    falls_back(raw(sse, "data: [1,2]\n\n"), "malformed").await;
    falls_back(raw(sse, ""), "cut").await;
    falls_back(raw(sse, "data: {\"choices\":[{\"delta\":{\"content\":\"The\"}}]}\n\n"), "cut").await;
    falls_back(raw("application/json", "{\"choices\":[]}"), "cut").await;
    falls_back(Reaction::Status(401, "{\"error\":\"SECRET\"}"), "unauthorized").await;
    falls_back(Reaction::Status(404, "SECRET"), "rejected").await;
    falls_back(Reaction::Status(307, "SECRET"), "rejected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_drips_endless_answers_and_silence_end_in_time() {
    let short = Duration::from_millis(300);
    let drip = events(&look()).into_bytes().into_iter().map(|byte| vec![byte]).collect();
    let drip = pieces("text/event-stream", drip, Duration::from_millis(50), false);
    falls_back_within(drip, "timed_out", short).await;
    let silence = pieces("text/event-stream", Vec::new(), Duration::ZERO, true);
    falls_back_within(silence, "timed_out", short).await;
    // Half a reply, and then nothing more.
    let half = events(&look());
    let half = vec![half.as_bytes()[..half.len() / 2].to_vec()];
    let half = pieces("text/event-stream", half, Duration::ZERO, true);
    falls_back_within(half, "timed_out", short).await;
    // One event of many megabytes.
    let endless = vec![vec![b'x'; 1 << 20]; 32];
    let endless = pieces("text/event-stream", endless, Duration::ZERO, false);
    falls_back(endless, "cut").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again_and_what_lasts_is_not() {
    let server = Server::start(|request, number| match number {
        0 => Reaction::Status(429, "{}"),
        1 => Reaction::Status(503, "SECRET"),
        _ if request["messages"].as_array().unwrap().len() == 2 => Reaction::Message(look()),
        _ => {
            Reaction::Message(answer(json!({ "headline": "F1", "claims": ["The GPU: {E1.s0.first -> E1.s0.last}."] })))
        }
    })
    .await;
    let answered = Line::new(config(&server)).ask(QUESTION).await.unwrap();
    assert!(!fell_back(&answered), "{:?}", answered.data_health);
    assert_eq!(server.requests().len(), 4);
    let server = Server::start(|_, _| Reaction::Status(429, "{}")).await;
    assert!(fell_back(&Line::new(config(&server)).ask(QUESTION).await.unwrap()));
    assert_eq!(server.requests().len(), 3);
    let server = Server::start(|_, _| Reaction::Status(401, "{}")).await;
    assert!(fell_back(&Line::new(config(&server)).ask(QUESTION).await.unwrap()));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_at_the_address_is_no_lost_question() {
    let server = Server::replies(vec![look()]).await;
    let settings =
        sightline_llm::LlmConfig { base_url: "http://127.0.0.1:9/v1".to_owned(), tries: 1, ..config(&server) };
    let answered = Line::new(settings).ask(QUESTION).await.unwrap();
    assert!(fell_back(&answered));
    assert!(answered.data_health[0].contains("llm.base_url"), "{:?}", answered.data_health);
    assert_eq!(said(&answered), said(&Line::offline().ask(QUESTION).await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_calls_are_cut_and_the_model_is_told() {
    let many: Vec<(&str, Value)> = (0..10_000)
        .map(|n| ("top_k", json!({ "metric": "gpu_temperature", "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z", "group_by": ["gpu"], "k": n + 1 })))
        .collect();
    let many = calls(&many);
    let server = Server::start(move |_, _| Reaction::Document(many.clone())).await;
    let line = Line::new(config(&server));
    let answered = line.ask(QUESTION).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    assert!(fell_back(&answered));
    let made = line.log.calls.lock().unwrap().iter().filter(|call| call.tool == "top_k").count();
    assert_eq!(made, 8, "the same calls came again and were not made again");
    assert!(server.requests()[1].to_string().contains("9992 were left out"));
    let used = line.last_complete().model.unwrap();
    assert_eq!(used.calls[0].calls, 10_000, "the record says how many were asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_budget_holds_and_is_named() {
    let search = |n: usize| {
        let text = format!("{n}");
        calls(&[
            ("search_runbooks", json!({ "query": text })),
            ("search_logs", json!({ "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z", "contains": text })),
        ])
    };
    let ask = |budgets: Budgets, context: u64| async move {
        let server = Server::start(move |_, number| Reaction::Message(search(number))).await;
        let settings = sightline_llm::LlmConfig { budgets, context_tokens: context, ..config(&server) };
        let line = Line::new(settings);
        let answered = line.ask(QUESTION).await.unwrap();
        assert!(fell_back(&answered));
        (answered.data_health[0].clone(), server.requests().len(), line.last_complete().llm_tokens)
    };
    let (why, requests, _) = ask(Budgets { turns: 3, ..Budgets::default() }, 12_000).await;
    assert!(why.contains("turns") && requests == 3, "{why} {requests}");
    let (why, requests, _) = ask(Budgets { calls: 3, ..Budgets::default() }, 12_000).await;
    assert!(why.contains("calls") && requests == 3, "{why} {requests}");
    // The scripted server counts 1,234 tokens in a request.
    let (why, _, tokens) = ask(Budgets { tokens_in: 4_000, ..Budgets::default() }, 12_000).await;
    assert!(why.contains("tokens") && tokens <= 4_000 + 200, "{why} {tokens}");
    let (why, requests, _) = ask(Budgets::default(), 300).await;
    assert!(why.contains("tokens") && requests == 0, "{why} {requests}");
    let (why, requests, _) = ask(Budgets { time: Duration::ZERO, ..Budgets::default() }, 12_000).await;
    assert!(why.contains("seconds") && requests == 0, "{why} {requests}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_probed_for_what_it_can_do() {
    use std::sync::Arc;
    let tools = calls(&[("ready", json!({ "part": "a" })), ("ready", json!({ "part": "b" }))]);
    let server = Server::start(move |request, _| match request.get("tools") {
        Some(_) => Reaction::Message(tools.clone()),
        None => Reaction::Document(json!({ "content": "{\"ready\":true}" })),
    })
    .await;
    let planner = |server: &Server| {
        let catalogue = Arc::new(sightline_query::Catalogue::builtin().unwrap());
        sightline_llm::LlmPlanner::new(
            config(server),
            sightline_llm::Parts {
                offline: sightline_core::offline::OfflinePlanner::new(Arc::clone(&catalogue)).unwrap(),
                catalogue,
                policies: Arc::new(sightline_policies::LivePolicies::new(
                    sightline_policies::Policies::builtin().unwrap(),
                )),
                tools: sightline_tools::tools(),
                quota: Arc::new(sightline_core::quota::Unmetered),
                clock: Arc::clone(&Line::offline().assistant.clock),
            },
        )
        .unwrap()
    };
    let can = planner(&server).probe().await.unwrap();
    assert_eq!((can.tools, can.parallel_calls, can.json_schema), (true, true, true));
    let words = Server::replies(vec![json!({ "content": "I am ready." })]).await;
    let can = planner(&words).probe().await.unwrap();
    assert_eq!((can.tools, can.parallel_calls, can.json_schema), (false, false, false));
    let none = Server::start(|_, _| Reaction::Status(401, "{}")).await;
    assert!(planner(&none).probe().await.is_err());
}
