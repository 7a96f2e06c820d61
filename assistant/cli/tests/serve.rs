//! `sightline serve` over real HTTP: chat, events, evidence, refusals, and how it ends.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;

use harness::{Lab, command, signal, stderr, wait_until};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use service::{Service, accepted, audited, events, hold_audit_log_whole, problem};

const WHY: &str = "Why was training job J4711 slow in the last 4 hours?";
const HOTTEST: &str = "top 3 hottest GPUs in the last hour";

fn end() -> Timestamp {
    worlds::END.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_answers_refuses_and_ends_as_it_should() {
    let lab = Lab::start();
    lab.fill(&worlds::two_tenants()).await;
    let folder = lab.into_folder();
    let mut service = Service::start(folder.path());

    it_is_alive_and_ready(&service).await;
    a_question_is_answered_as_json(&service).await;
    events_come_in_order_and_every_claim_stands_in_the_answer(&service).await;
    evidence_is_served_with_points_to_its_asker_alone(&service).await;
    expired_evidence_is_gone(&service, folder.path()).await;
    what_cannot_be_taken_is_refused_with_a_problem_document(&service).await;
    a_question_can_be_stopped_by_its_asker_alone(&service).await;
    a_client_that_goes_away_stops_its_question(&service).await;
    clients_that_go_away_at_any_moment_leave_one_ending_each(&service, folder.path()).await;
    thirty_questions_at_once_are_all_answered(&service).await;
    a_second_service_on_the_folder_shares_the_engine(&service, folder.path()).await;
    a_taken_port_is_told_in_one_line(&service);
    asked_to_end_it_lets_a_running_answer_finish_and_ends_its_engine(&mut service).await;

    the_log_holds_no_question_and_no_token(&service);
    every_question_is_recorded_whole(folder.path());
}

async fn it_is_alive_and_ready(service: &Service) {
    for (path, expected) in [
        ("/healthz", json!({ "status": "ok" })),
        (
            "/readyz",
            json!({ "status": "ready", "engine": "ok", "audit": "ok", "audit_copies": "ok", "policies": "ok" }),
        ),
    ] {
        let response = service.client.get(format!("{}{path}", service.url)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.json::<Value>().await.unwrap(), expected);
    }
    for path in ["/", "/healthz", "/nowhere"] {
        let response = service.client.get(format!("{}{path}", service.url)).send().await.unwrap();
        let headers = response.headers();
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none';"), "{path}");
    }
}

async fn a_question_is_answered_as_json(service: &Service) {
    let answer = service.answer("operator@atlas", WHY, end()).await;
    assert_eq!(answer["outcome"], "answered");
    assert_eq!(answer["causes"][0]["id"], "thermal_throttling");
    assert_eq!(answer["verification"]["checked"], answer["verification"]["passed"]);
    // Two tenants lie in the same tables; a credential alone decides which of them is asked about.
    let other = service.answer("operator@borealis", WHY, end()).await;
    assert_ne!(other["outcome"], "answered", "{other}");
}

async fn events_come_in_order_and_every_claim_stands_in_the_answer(service: &Service) {
    let text = service.stream("operator@atlas", WHY, end()).await.text().await.unwrap();
    let events = events(&text);
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names[..4], ["accepted", "plan", "tool_call", "tool_result"], "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "answer").count(), 1);
    assert_eq!(names.last(), Some(&"answer"));
    let plan = |name: &str| names.iter().position(|n| *n == name).unwrap();
    assert!(plan("plan") < plan("tool_call") && plan("tool_result") < plan("claim"), "{names:?}");
    let answer = &events.last().unwrap().data;
    let in_answer = answer.to_string();
    let mut claims = 0;
    for event in events.iter().filter(|event| event.name == "claim") {
        assert_eq!(event.data["verified"], true);
        let sentence = serde_json::to_string(&event.data["text"]).unwrap();
        assert!(in_answer.contains(&sentence), "not in the answer: {sentence}");
        claims += 1;
    }
    assert!(claims > 0, "{names:?}");
    // The evidence is there as soon as the answer is.
    let id = format!("/v1/evidence/{}.E1", answer["answer_id"].as_str().unwrap());
    assert_eq!(service.request("operator@atlas", Method::GET, &id).send().await.unwrap().status(), 200);
}

async fn evidence_is_served_with_points_to_its_asker_alone(service: &Service) {
    let question = "What was the GPU temperature of node atlas-n01 in the last 2 hours?";
    let answer = service.answer("viewer@atlas", question, end()).await;
    let id = format!("/v1/evidence/{}.E1", answer["answer_id"].as_str().unwrap());
    let evidence: Value = service.request("viewer@atlas", Method::GET, &id).send().await.unwrap().json().await.unwrap();
    assert_eq!(evidence["query_id"], answer["evidence"][0]["query_id"]);
    let series = evidence["series"].as_array().unwrap();
    let points: usize = series.iter().map(|series| series["points"].as_array().unwrap().len()).sum();
    assert_eq!(Some(points as u64), answer["evidence"][0]["points"].as_u64());
    assert!(points > 0);
    for principal in ["operator@atlas", "operator@borealis"] {
        problem(service.request(principal, Method::GET, &id).send().await.unwrap(), 404).await;
    }
}

async fn expired_evidence_is_gone(service: &Service, data_dir: &Path) {
    let answer = service.answer("viewer@atlas", HOTTEST, end()).await;
    let id = format!("{}.E1", answer["answer_id"].as_str().unwrap());
    let store = rusqlite::Connection::open(data_dir.join("answers.db")).unwrap();
    assert_eq!(store.execute("UPDATE evidence SET kept_until = 0 WHERE id = ?1", [&id]).unwrap(), 1);
    let response = service.request("viewer@atlas", Method::GET, &format!("/v1/evidence/{id}")).send().await.unwrap();
    assert!(problem(response, 410).await.contains("ask the question again"));
}

async fn what_cannot_be_taken_is_refused_with_a_problem_document(service: &Service) {
    let url = format!("{}/v1/chat", service.url);
    let client = &service.client;
    let question = json!({ "question": HOTTEST });
    let nobody = problem(client.post(&url).json(&question).send().await.unwrap(), 401).await;
    let stranger = client.post(&url).bearer_auth("sl_00").json(&question).send().await.unwrap();
    assert_eq!(stranger.headers()["www-authenticate"], "Bearer realm=\"sightline\"");
    assert_eq!(problem(stranger, 401).await, nobody);
    problem(service.chat("auditor", &question).send().await.unwrap(), 403).await;
    for path in ["/v1/nothing", "/v1/evidence/x.E1", "/v1/evidence/..%2f..%2faudit.db"] {
        problem(service.request("viewer@atlas", Method::GET, path).send().await.unwrap(), 404).await;
    }
    problem(service.request("viewer@atlas", Method::DELETE, "/v1/chat/unknown").send().await.unwrap(), 404).await;
    problem(service.request("viewer@atlas", Method::GET, "/v1/chat").send().await.unwrap(), 405).await;
    let plain = service.request("viewer@atlas", Method::POST, "/v1/chat").body(question.to_string());
    assert!(problem(plain.send().await.unwrap(), 415).await.contains("Content-Type: application/json"));
    for body in ["{", "", "[]", "\"why\"", "{\"question\": 7}", "\u{0}"] {
        let request = service.request("viewer@atlas", Method::POST, "/v1/chat").body(body);
        let response = request.header("Content-Type", "application/json").send().await.unwrap();
        let status = response.status().as_u16();
        assert!(matches!(status, 400 | 422), "{body}: {status}");
        assert!(problem(response, status).await.contains("send, for example"), "{body}");
    }
    let refused: [(Value, u16, &str); 8] = [
        (json!({ "question": "x".repeat(8 * 1024 + 1) }), 413, "at most 8192"),
        (json!({ "question": "x".repeat(1024 * 1024) }), 413, "at most 8192 bytes"),
        (json!({ "question": "  " }), 422, "the question is empty"),
        (json!({ "question": HOTTEST, "principal": "admin" }), 422, "unknown field `principal`"),
        (json!({ "question": HOTTEST, "as_of": "2999-01-01T00:00:00Z" }), 422, "lies in the future"),
        (json!({ "question": HOTTEST, "as_of": "yesterday" }), 422, "as_of"),
        (json!({ "question": HOTTEST, "time_zone": "Mars/Olympus" }), 422, "no IANA time zone"),
        (json!({ "question": HOTTEST, "conversation_id": "../x" }), 422, "`conversation_id` is not one of ours"),
    ];
    for (body, status, expected) in refused {
        let detail = problem(refusal(service, &body).await, status).await;
        assert!(detail.contains(expected), "{detail}");
        assert!(!detail.contains(&"x".repeat(200)), "the detail holds what was sent");
    }
    // Just short enough.
    let longest = json!({ "question": "x".repeat(8 * 1024), "as_of": end() });
    assert_eq!(service.chat("viewer@atlas", &longest).send().await.unwrap().status(), 200);
    it_is_alive_and_ready(service).await;
}

/// The answer to a body that is refused. A body that is far too long is refused while it is being sent, and the connection closes:
/// a client that still writes may see the close before the answer, and asks again.
async fn refusal(service: &Service, body: &Value) -> reqwest::Response {
    for _ in 0..9 {
        if let Ok(response) = service.chat("viewer@atlas", body).send().await {
            return response;
        }
    }
    service.chat("viewer@atlas", body).send().await.unwrap()
}

/// Stops the engine's process while a question waits for it, so that the question is surely under way.
async fn a_question_can_be_stopped_by_its_asker_alone(service: &Service) {
    let engine = service.engine_pid();
    signal(engine, "STOP");
    let mut response = service.stream("viewer@atlas", "top 7 hottest GPUs in the last hour", end()).await;
    let id = format!("/v1/chat/{}", accepted(&mut response).await);
    let delete = |principal: &'static str| service.request(principal, Method::DELETE, &id).send();
    problem(delete("operator@atlas").await.unwrap(), 404).await;
    assert_eq!(delete("viewer@atlas").await.unwrap().status(), 202);
    let rest = response.text().await.unwrap();
    let last = events(&rest).pop().unwrap();
    assert_eq!((last.name.as_str(), last.data["detail"].as_str()), ("error", Some("the question was stopped")));
    signal(engine, "CONT");
    problem(delete("viewer@atlas").await.unwrap(), 404).await;
    assert_eq!(service.audited("top 7 hottest")[0].outcome(), "cancelled");
}

async fn a_client_that_goes_away_stops_its_question(service: &Service) {
    let engine = service.engine_pid();
    signal(engine, "STOP");
    let mut streamed = service.stream("viewer@atlas", "top 8 hottest GPUs in the last hour", end()).await;
    accepted(&mut streamed).await;
    let body = json!({ "question": "top 9 hottest GPUs in the last hour", "as_of": end() });
    let waiting = tokio::spawn(service.chat("viewer@atlas", &body).send());
    wait_until("both questions have begun", || service.audited("top 9 hottest").len() == 1);
    drop(streamed);
    waiting.abort();
    for question in ["top 8 hottest", "top 9 hottest"] {
        wait_until(question, || service.audited(question)[0].outcome() == "cancelled");
    }
    signal(engine, "CONT");
    assert_eq!(service.answer("viewer@atlas", HOTTEST, end()).await["outcome"], "answered");
}

/// Waits a little longer each time, so that questions are left while they begin, read, and are written down.
async fn clients_that_go_away_at_any_moment_leave_one_ending_each(service: &Service, data_dir: &Path) {
    let question = "top 11 hottest GPUs in the last hour";
    let body = json!({ "question": question, "as_of": end() });
    for step in 0..60 {
        // The operator's: a viewer's minute has no room for them.
        let waiting = tokio::spawn(service.chat("operator@atlas", &body).send());
        tokio::time::sleep(std::time::Duration::from_millis(step * 2)).await;
        waiting.abort();
    }
    wait_until("all of them have ended", || service.audited(question).iter().all(|line| line.complete.is_some()));
    let log = rusqlite::Connection::open(data_dir.join("audit.db")).unwrap();
    let twice: u64 = log
        .query_row(
            "SELECT count() FROM (SELECT question_id FROM record WHERE kind = 'complete' GROUP BY question_id HAVING count() > 1)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(twice, 0, "questions that ended twice");
}

async fn thirty_questions_at_once_are_all_answered(service: &Service) {
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..30 {
        let question =
            [HOTTEST, "What was the GPU temperature in the last 2 hours?", "lowest 3 GPUs by SM clock"][number % 3];
        let body = json!({ "question": question, "as_of": end() });
        asked.spawn(service.chat(["viewer@atlas", "operator@atlas"][number % 2], &body).send());
    }
    let responses = asked.join_all().await;
    assert_eq!(responses.len(), 30);
    for response in responses {
        let answer: Value = response.unwrap().json().await.unwrap();
        assert_eq!(answer["outcome"], "answered", "{answer}");
    }
}

async fn a_second_service_on_the_folder_shares_the_engine(first: &Service, data_dir: &Path) {
    let mut second = Service::start(data_dir);
    assert_eq!(second.answer("viewer@atlas", HOTTEST, end()).await["outcome"], "answered");
    assert!(second.terminate().success());
    // The engine belongs to the first one and goes on.
    assert_eq!(first.answer("viewer@atlas", HOTTEST, end()).await["outcome"], "answered");
}

fn a_taken_port_is_told_in_one_line(service: &Service) {
    let elsewhere = tempfile::tempdir().unwrap();
    let address = service.url.trim_start_matches("http://");
    let output = command(elsewhere.path(), &["serve", "--listen", address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        format!(
            "sightline: {address} is already in use; stop what listens there, or choose another with `--listen 127.0.0.1:0`\n"
        )
    );
}

async fn asked_to_end_it_lets_a_running_answer_finish_and_ends_its_engine(service: &mut Service) {
    let engine = service.engine_pid();
    signal(engine, "STOP");
    let mut response = service.stream("viewer@atlas", "top 6 hottest GPUs in the last hour", end()).await;
    accepted(&mut response).await;
    signal(service.process_id(), "TERM");
    wait_until("it says that it stops", || service.log().contains("stopping"));
    signal(engine, "CONT");
    let rest = events(&response.text().await.unwrap());
    assert_eq!(rest.last().map(|event| event.name.as_str()), Some("answer"));
    assert!(service.wait().success(), "{}", service.log());
    wait_until("the engine has ended", || !Path::new(&format!("/proc/{engine}")).exists());
}

fn the_log_holds_no_question_and_no_token(service: &Service) {
    let log = service.log().to_lowercase();
    assert!(log.contains("listens on"));
    for word in ["hottest", "j4711", "sm clock", "xxxx", service.token("viewer@atlas"), "password"] {
        assert!(!log.contains(word), "`{word}` stands in the log:\n{log}");
    }
}

fn every_question_is_recorded_whole(data_dir: &Path) {
    hold_audit_log_whole(data_dir);
    let all = audited(data_dir, "");
    assert!(all.len() > 40, "{}", all.len());
    for question in &all {
        let text = &question.begin.record.question;
        assert!(question.complete.is_some(), "no complete record: {text}");
        match question.outcome() {
            "answered" => assert!(question.calls > 0, "no call: {text}"),
            "cancelled" | "refused" | "insufficient_data" | "clarify" => {}
            other => panic!("`{text}` ended as {other}"),
        }
    }
}
