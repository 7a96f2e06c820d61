//! `GET /v1/tools` and `POST /v1/tools/{name}`: what they answer, what they refuse, and what the audit log has of it.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use sightline_audit::{AuditReader, QuestionFile};
use sightline_model::QuestionId;

use crate::harness::Lab;
use crate::service::{Service, problem};
use crate::worlds;

fn end() -> Timestamp {
    worlds::END.parse().unwrap()
}

fn window() -> Value {
    json!({ "from": "2025-06-02T08:00:00Z", "to": worlds::END })
}

/// Arguments over the last two hours.
fn over_two_hours(more: Value) -> Value {
    let mut arguments = window();
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// Every tool with arguments that find something in atlas.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("metric_range", over_two_hours(json!({ "metric": "gpu_temperature", "group_by": ["node", "gpu"] }))),
        ("top_k", over_two_hours(json!({ "metric": "gpu_temperature", "group_by": ["node", "gpu"] }))),
        (
            "compare",
            over_two_hours(
                json!({ "metric": "gpu_power", "base_from": "2025-06-02T06:00:00Z", "base_to": "2025-06-02T08:00:00Z" }),
            ),
        ),
        ("job_correlation", json!({ "job": "J4711" })),
        ("search_logs", window()),
        ("list_events", window()),
        ("find_entities", over_two_hours(json!({ "kind": "node" }))),
    ]
}

async fn called(service: &Service, principal: &str, tool: &str, arguments: &Value) -> Value {
    let response = service.call(principal, tool, arguments, end()).send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{tool}: {text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_calls_are_answered_refused_and_audited() {
    let lab = Lab::start();
    lab.fill(&worlds::two_tenants()).await;
    let folder = lab.into_folder();
    let mut service = Service::start(folder.path());

    the_list_holds_the_tools_of_the_asker(&service).await;
    let answers = every_tool_answers_with_evidence_and_grounded_claims(&service).await;
    points_are_served_to_the_caller_alone(&service, &answers[0]).await;
    a_viewer_diagnoses_without_logs_and_events_and_is_told(&service).await;
    what_cannot_be_done_is_refused_in_the_words_of_the_failure(&service).await;
    calls_count_as_questions(&service).await;
    assert!(service.terminate().success());

    let reader = AuditReader::open(&folder.path().join("audit.db")).unwrap();
    let file = |id: &str| reader.question(&QuestionId::new(id)).unwrap().unwrap();
    for answer in &answers {
        hold_record(&file(answer["question_id"].as_str().unwrap()), answer);
    }
    drop(service);
}

async fn the_list_holds_the_tools_of_the_asker(service: &Service) {
    // This world has no service to ask about, and what is known needs no rows: both have tests of their own.
    let elsewhere = ["service_correlation", "search_runbooks"];
    let all: Vec<&str> = calls().into_iter().map(|(tool, _)| tool).chain(elsewhere).collect();
    let numbers = [
        "metric_range",
        "top_k",
        "compare",
        "job_correlation",
        "find_entities",
        "service_correlation",
        "search_runbooks",
    ];
    for (principal, expected) in
        [("operator@atlas", all.as_slice()), ("viewer@atlas", numbers.as_slice()), ("auditor", &[])]
    {
        let response = service.request(principal, Method::GET, "/v1/tools").send().await.unwrap();
        assert_eq!(response.status(), 200);
        let list: Value = response.json().await.unwrap();
        let tools = list["tools"].as_array().unwrap();
        let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let mut expected = expected.to_vec();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{principal}");
        for tool in tools {
            assert!(tool["schema"]["properties"].is_object() && tool["description"].is_string(), "{tool}");
        }
    }
}

async fn every_tool_answers_with_evidence_and_grounded_claims(service: &Service) -> Vec<Value> {
    let mut answers = Vec::new();
    for (tool, arguments) in calls() {
        let answer = called(service, "operator@atlas", tool, &arguments).await;
        let evidence = answer["evidence"].as_array().unwrap();
        assert_eq!(evidence[0]["id"], "E1", "{tool}: {answer}");
        let ids: Vec<&Value> = evidence.iter().map(|one| &one["id"]).collect();
        let claims = answer["claims"].as_array().unwrap().iter();
        let of_causes =
            answer["causes"].as_array().unwrap().iter().flat_map(|cause| cause["claims"].as_array().unwrap());
        for claim in claims.chain(of_causes) {
            let citations = claim["citations"].as_array().unwrap();
            assert!(!citations.is_empty() && citations.iter().all(|id| ids.contains(&id)), "{tool}: {claim}");
            assert_eq!(claim["verified"], true);
        }
        assert!(answer["headline"]["text"].is_string(), "{tool}: {answer}");
        assert!(answer["verification"]["checked"].as_u64().unwrap() > 0, "{tool}: {answer}");
        assert_eq!(answer["verification"]["checked"], answer["verification"]["passed"]);
        assert!(answer["data_health"].is_array() && answer["audit"]["hash"].is_string());
        // What counts everybody's records and everybody's rows does not show.
        assert!(answer["audit"].get("seq").is_none(), "{}", answer["audit"]);
        let rows = answer["cost"]["rows_read"].as_u64().unwrap();
        assert!(rows > 0 && rows.is_multiple_of(8_192), "{tool}: {rows}");
        for one in evidence.iter().filter(|one| one["query_id"].is_string()) {
            assert!(one["read"]["rows"].as_u64().unwrap().is_multiple_of(8_192), "{one}");
            assert!(one["read"]["bytes"].as_u64().unwrap().is_power_of_two(), "{one}");
        }
        answers.push(answer);
    }
    let causes = |answer: &Value| answer["causes"][0]["id"].clone();
    assert_eq!(causes(&answers[3]), "thermal_throttling");
    answers
}

async fn points_are_served_to_the_caller_alone(service: &Service, answer: &Value) {
    let path = format!("/v1/evidence/{}.E1", answer["answer_id"].as_str().unwrap());
    let found = service.request("operator@atlas", Method::GET, &path).send().await.unwrap();
    assert_eq!(found.status(), 200);
    let evidence: Value = found.json().await.unwrap();
    assert!(!evidence["series"].as_array().unwrap().is_empty());
    for other in ["viewer@atlas", "operator@borealis"] {
        problem(service.request(other, Method::GET, &path).send().await.unwrap(), 404).await;
    }
}

async fn a_viewer_diagnoses_without_logs_and_events_and_is_told(service: &Service) {
    let answer = called(service, "viewer@atlas", "job_correlation", &json!({ "job": "J4711" })).await;
    let read: Vec<&str> =
        answer["evidence"].as_array().unwrap().iter().map(|one| one["dataset"].as_str().unwrap()).collect();
    assert!(!read.iter().any(|dataset| ["logs", "events", "spans"].contains(dataset)), "{read:?}");
    assert_eq!(answer["causes"][0]["id"], "thermal_throttling", "{answer}");
    let health = answer["data_health"].to_string();
    assert!(health.contains("logs and events were not looked at: your role may not read them"), "{health}");
}

async fn what_cannot_be_done_is_refused_in_the_words_of_the_failure(service: &Service) {
    let backwards = json!({ "metric": "gpu_power", "from": worlds::END, "to": "2025-06-02T08:00:00Z" });
    let unknown_field = over_two_hours(json!({ "metric": "gpu_power", "tenant": "borealis" }));
    let no_fit = over_two_hours(json!({ "metric": "gpu_temperature", "aggregation": "rate" }));
    let too_long = json!({ "metric": "gpu_power", "from": "2020-01-01T00:00:00Z", "to": worlds::END });
    for (who, tool, arguments, status, words, outcome) in [
        ("operator@atlas", "drop_table", json!({}), 404, "there is no tool `drop_table`", "error"),
        ("operator@atlas", "metric_range", json!([1]), 422, "the arguments of `metric_range` cannot be used", "error"),
        ("operator@atlas", "metric_range", unknown_field, 422, "unknown field `tenant`", "error"),
        ("operator@atlas", "metric_range", backwards, 422, "the window is reversed", "error"),
        ("operator@atlas", "metric_range", no_fit, 422, "rate", "error"),
        ("operator@atlas", "metric_range", too_long, 422, "over your limit", "refused"),
        ("viewer@atlas", "search_logs", window(), 403, "no rule lets role `viewer` read logs", "refused"),
        (
            "auditor",
            "find_entities",
            over_two_hours(json!({ "kind": "node" })),
            403,
            "no rule lets role `auditor`",
            "refused",
        ),
    ] {
        let response = service.call(who, tool, &arguments, end()).send().await.unwrap();
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(body["status"], status, "{tool} {arguments}: {body}");
        assert!(body["detail"].as_str().unwrap().contains(words), "{tool} {arguments}: {body}");
        let id = body["question_id"].as_str().unwrap();
        let file = file_of(service, id);
        assert_eq!((file.begin.record.entrance.as_str(), file.begin.record.question.as_str()), ("http", tool));
        let complete = file.complete.unwrap().record;
        assert_eq!((complete.outcome.as_str(), complete.planner.as_str()), (outcome, "none"), "{body}");
        assert_eq!(complete.error.as_deref(), body["detail"].as_str());
        // Who may not call at all is stopped before the call; every other attempt stands there with its arguments.
        let calls: Vec<_> = file.calls.iter().map(|call| &call.record).collect();
        assert_eq!(calls.is_empty(), who == "auditor", "{tool}: {calls:?}");
        for call in calls {
            assert_eq!((call.tool.as_str(), &call.arguments), (tool, &arguments));
            assert!(!call.decision.allowed && call.sql.is_none() && call.error.is_some(), "{call:?}");
        }
    }
    let not_json = service.request("operator@atlas", Method::POST, "/v1/tools/top_k").body("SELECT 1");
    let detail = problem(not_json.send().await.unwrap(), 415).await;
    assert!(detail.contains("send the tool's arguments as JSON"), "{detail}");
    let future = service.call("operator@atlas", "top_k", &json!({}), "2999-01-01T00:00:00Z".parse().unwrap());
    let detail = problem(future.send().await.unwrap(), 422).await;
    assert!(detail.contains("lies in the future"), "{detail}");
}

async fn calls_count_as_questions(service: &Service) {
    // An auditor's limit is one a minute, and that one was made above.
    let response = service.call("auditor", "find_entities", &json!({}), end()).send().await.unwrap();
    let wait = response.headers().get("retry-after").is_some();
    let detail = problem(response, 429).await;
    assert!(wait && detail.contains("1 questions within a minute"), "{detail}");
}

fn file_of(service: &Service, id: &str) -> QuestionFile {
    let reader = AuditReader::open(&service.data_dir().join("audit.db")).unwrap();
    reader.question(&QuestionId::new(id)).unwrap().unwrap()
}

/// The record of an answered call: begun before, each query with its arguments, the exact numbers, and the answer's digest.
fn hold_record(file: &QuestionFile, answer: &Value) {
    let complete = file.complete.as_ref().unwrap();
    assert_eq!(complete.record.outcome, answer["outcome"].as_str().unwrap());
    assert_eq!(file.begin.hash.to_string(), answer["audit"]["hash"].as_str().unwrap());
    let calls: Vec<_> = file.calls.iter().map(|call| &call.record).collect();
    assert_eq!(calls.len() as u64, answer["cost"]["queries"].as_u64().unwrap());
    assert!(calls.iter().all(|call| call.tool == answer["tool"].as_str().unwrap() && call.sql.is_some()));
    let exact: u64 = calls.iter().map(|call| call.rows_read).sum();
    assert_eq!(complete.record.rows_read, exact);
    assert!(exact > 0 && exact <= answer["cost"]["rows_read"].as_u64().unwrap(), "{exact}");
    assert!(complete.record.answer_digest.is_some());
}
