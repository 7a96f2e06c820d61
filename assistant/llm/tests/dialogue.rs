//! What is kept between questions and what is not: follow-ups, and what one refusal says about the next question.

#![cfg(test)]

mod harness;

use harness::server::{Reaction, Server, answer, calls};
use harness::{Line, QUESTION, config, fell_back, said};
use serde_json::{Value, json};
use sightline_core::Earlier;

fn first() -> Value {
    calls(&[("job_correlation", json!({ "job": "J4711" }))])
}

fn end() -> Value {
    answer(json!({ "headline": "F1", "claims": ["The GPU was hot: {E1.s0.first -> E1.s0.last}."] }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_is_asked_with_the_questions_before_it_and_what_they_were_about() {
    let server = Server::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let asked = messages[1]["content"].as_str().unwrap();
        let is_first = messages.len() == 2;
        let day_before = asked.contains("the day before").then(|| {
            assert!(asked.starts_with("Asked before: Why was training job J4711 slow yesterday? (about "), "{asked}");
            assert!(asked.contains("node=atlas-n07") && asked.ends_with("and the day before?"), "{asked}");
            // What the words mean was read by code, from the questions before.
            let system = messages[0]["content"].as_str().unwrap();
            assert!(system.contains("from 2026-05-02T00:00:00Z to 2026-05-03T00:00:00Z"), "{system}");
            json!({ "job": "J4711", "from": "2026-05-02T00:00:00Z", "to": "2026-05-03T00:00:00Z" })
        });
        Reaction::Message(match (is_first, day_before) {
            (true, Some(window)) => calls(&[("job_correlation", window)]),
            (true, None) => first(),
            (false, _) => end(),
        })
    })
    .await;
    let line = Line::new(config(&server));
    let before = line.ask(QUESTION).await.unwrap();
    let after = line.ask_after("and the day before?", vec![Earlier::of(&before)]).await.unwrap();
    assert_eq!(server.faults(), Vec::<String>::new());
    assert!(!fell_back(&before) && !fell_back(&after), "{:?}", after.data_health);
    assert!(said(&after).contains("The GPU was hot: rose from 61 °C to 92 °C"), "{}", said(&after));
    assert_eq!(after.time_range.unwrap().from.to_string(), "2026-05-02T00:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_request_does_not_change_how_the_next_question_is_asked() {
    // A filter of the provider's refuses what it was asked, in either form; then all is well again.
    let server = Server::start(|request, number| match number {
        0 | 1 => Reaction::Status(400, "{\"error\":{\"code\":\"content_filter\"}}"),
        _ if request["messages"].as_array().unwrap().len() == 2 => Reaction::Message(first()),
        _ => Reaction::Message(end()),
    })
    .await;
    let line = Line::new(config(&server));
    assert!(fell_back(&line.ask(QUESTION).await.unwrap()));
    let asked = server.requests();
    assert_eq!((asked.len(), asked[0].get("tools").is_some(), asked[1].get("tools").is_some()), (2, true, false));
    let again = line.ask(QUESTION).await.unwrap();
    assert!(!fell_back(&again), "{:?}", again.data_health);
    assert!(server.requests()[2].get("tools").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_tools_may_talk_once() {
    let talks = json!({ "content": "Let me think about that." });
    let step = json!({ "calls": [{ "tool": "job_correlation", "arguments": { "job": "J4711" } }] });
    let script = vec![first(), end(), talks, json!({ "content": step.to_string() }), end(), first(), end()];
    let server = Server::replies(script).await;
    let line = Line::new(config(&server));
    for _ in 0..3 {
        let answered = line.ask(QUESTION).await.unwrap();
        assert!(!fell_back(&answered), "{:?}", answered.data_health);
    }
    // It was asked for JSON within the question in which it talked, and for calls again after that.
    let with_tools: Vec<bool> = server.requests().iter().map(|request| request.get("tools").is_some()).collect();
    assert_eq!(with_tools, [true, true, true, false, false, true, true]);
}
