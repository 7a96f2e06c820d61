//! Who may ask about own jobs only, over real HTTP: every tool, every way to name a job.

use reqwest::Method;
use serde_json::{Value, json};

use crate::alike::{alike, read};
use crate::harness::Lab;
use crate::own_jobs_world::{BOBS_JOB, FOREIGN, FOREIGN_DIGITS, NO_JOB, NOW, OWN, OWN_JOB, OWN_SAMPLES, rows};
use crate::policies;
use crate::service::Service;

const ANN: &str = "ann@atlas";
const BOB: &str = "bob@atlas";
const VIEWER: &str = "carol@atlas";

const PRINCIPALS: &str = r#"
[[principal]]
id = "ann@atlas"
role = "operator"
own_jobs_only = true

[[principal]]
id = "bob@atlas"
role = "operator"
own_jobs_only = true

[[principal]]
id = "carol@atlas"
role = "viewer"
own_jobs_only = true
user = "ann"

[[principal]]
id = "dave@atlas"
role = "operator"
"#;

fn window(more: Value) -> Value {
    let mut arguments = json!({ "from": "2025-06-02T07:00:00Z", "to": NOW });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

fn by_filter(job: &str) -> Value {
    json!([{ "dim": "job", "values": [job] }])
}

/// Every tool, asked about this job in every way there is.
fn calls(job: &str) -> Vec<(&'static str, Value)> {
    let temperature = "gpu_temperature";
    let by_gpu = json!(["node", "gpu"]);
    let mut calls = vec![
        ("job_correlation", json!({ "job": job })),
        ("job_correlation", window(json!({ "job": job }))),
        ("metric_range", window(json!({ "metric": temperature, "job": job, "group_by": by_gpu }))),
        (
            "metric_range",
            window(
                json!({ "metric": temperature, "job": job, "aggregation": "count", "step_seconds": 0, "align": "window" }),
            ),
        ),
        ("metric_range", window(json!({ "metric": temperature, "job": job, "samples": "highest", "per": by_gpu }))),
        ("metric_range", window(json!({ "metric": "*", "job": job, "aggregation": "max", "group_by": ["metric"] }))),
        ("metric_range", window(json!({ "metric": "node_memory_MemAvailable", "job": job }))),
        (
            "metric_range",
            window(json!({ "metric": temperature, "job": job, "filters": [{ "dim": "gpu", "values": ["2"] }] })),
        ),
        ("metric_range", window(json!({ "metric": temperature, "job": job, "filters": by_filter(BOBS_JOB) }))),
        ("top_k", window(json!({ "metric": temperature, "job": job, "group_by": by_gpu }))),
        ("top_k", window(json!({ "metric": temperature, "filters": by_filter(job), "group_by": by_gpu }))),
        (
            "compare",
            json!({ "metric": temperature, "job": job, "from": "2025-06-02T08:30:00Z", "to": NOW, "base_from": "2025-06-02T07:00:00Z", "base_to": "2025-06-02T08:30:00Z" }),
        ),
        (
            "compare",
            window(
                json!({ "metric": temperature, "job": job, "filters": [{ "dim": "gpu", "values": ["0"] }], "base_filters": [{ "dim": "gpu", "values": ["2"] }] }),
            ),
        ),
        ("search_logs", window(json!({ "filters": by_filter(job) }))),
        ("search_logs", window(json!({ "filters": by_filter(job), "count_by": ["node", "gpu", "service"] }))),
        ("list_events", window(json!({ "filters": by_filter(job) }))),
        ("list_events", window(json!({ "filters": by_filter(job), "count_by": ["kind"] }))),
    ];
    for kind in ["cluster", "node", "gpu", "job", "user", "service", "pod", "metric", "event_kind", "label"] {
        calls.push(("find_entities", window(json!({ "kind": kind, "filters": by_filter(job) }))));
    }
    for dataset in ["metrics", "logs", "spans", "events", "jobs"] {
        let arguments =
            json!({ "kind": "label_value", "label": "image", "dataset": dataset, "filters": by_filter(job) });
        calls.push(("find_entities", window(arguments)));
    }
    calls
}

/// Calls that name no job, or none in a way that settles which.
fn calls_without_a_job() -> Vec<(&'static str, Value)> {
    vec![
        ("metric_range", window(json!({ "metric": "gpu_temperature" }))),
        ("top_k", window(json!({ "metric": "gpu_temperature", "group_by": ["gpu"] }))),
        (
            "top_k",
            window(
                json!({ "metric": "gpu_temperature", "group_by": ["gpu"], "filters": [{ "dim": "job", "values": [OWN_JOB, BOBS_JOB] }] }),
            ),
        ),
        ("compare", window(json!({ "metric": "gpu_power", "base_filters": by_filter(OWN_JOB) }))),
        ("search_logs", window(json!({}))),
        ("list_events", window(json!({}))),
        ("find_entities", window(json!({ "kind": "node" }))),
        ("find_entities", window(json!({ "kind": "metric" }))),
    ]
}

async fn called(service: &Service, principal: &str, tool: &str, arguments: &Value) -> (u16, String) {
    read(service.call(principal, tool, arguments, NOW.parse().unwrap()).send().await.unwrap()).await
}

fn hold(place: &str, text: &str) {
    for word in [FOREIGN, FOREIGN_DIGITS, "\"west\"", "J1000", "J1003"] {
        assert!(!text.contains(word), "{place}: {word}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read_own_jobs_only_sees_nothing_of_a_neighbour() {
    let lab = Lab::start();
    lab.fill(&rows()).await;
    let folder = lab.into_folder();
    let environment = policies::folder(folder.path(), PRINCIPALS);
    let environment = [("SIGHTLINE_POLICIES_DIR", environment.as_str())];
    let service = Service::start_for(folder.path(), &[ANN, BOB, VIEWER, "dave@atlas"], &environment);

    the_rows_of_the_others_are_there_for_who_may_see_them(&service).await;
    every_tool_shows_the_rows_of_the_own_job_alone(&service).await;
    a_job_of_somebody_else_is_answered_like_one_that_does_not_exist(&service).await;
    without_a_job_only_the_own_jobs_are_listed(&service).await;
    a_question_is_bound_like_a_call(&service).await;
}

/// Without this the others could hold because nothing was loaded.
async fn the_rows_of_the_others_are_there_for_who_may_see_them(service: &Service) {
    let mut seen = String::new();
    let jobs = ("find_entities", window(json!({ "kind": "job" })));
    for (tool, arguments) in calls(BOBS_JOB).into_iter().chain(calls_without_a_job()).chain([jobs]) {
        seen.push_str(&called(service, "dave@atlas", tool, &arguments).await.1);
        seen.push_str(&called(service, BOB, tool, &arguments).await.1);
    }
    for word in [FOREIGN, FOREIGN_DIGITS, "\"west\"", "J1000", "J1003"] {
        assert!(seen.contains(word), "{word}");
    }
}

async fn every_tool_shows_the_rows_of_the_own_job_alone(service: &Service) {
    for (tool, arguments) in calls(OWN_JOB) {
        for who in [ANN, VIEWER] {
            let (status, text) = called(service, who, tool, &arguments).await;
            // What the call itself names comes back in it.
            hold(&format!("{tool} {arguments}"), &text.replace(BOBS_JOB, ""));
            let logs_and_events = ["search_logs", "list_events"].contains(&tool);
            if who == VIEWER && logs_and_events {
                assert_eq!(status, 403, "{text}");
            }
            assert!(status == 200 || who == VIEWER, "{tool} {arguments}: {text}");
        }
    }
    let own = |tool, more: Value| async move {
        let (status, text) = called(service, ANN, tool, &window(more)).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let range =
        own("metric_range", json!({ "metric": "gpu_temperature", "job": OWN_JOB, "group_by": ["node", "gpu"] })).await;
    let evidence = range["evidence"].as_array().unwrap().iter().find(|one| one["dataset"] == "metrics").unwrap();
    assert_eq!(evidence["stats"]["count"], OWN_SAMPLES, "{evidence}");
    assert_eq!(evidence["stats"]["max"], 60.0);
    assert!(range["data_health"].to_string().contains("compared with your job's own GPUs only"), "{range}");
    let logs = own("search_logs", json!({ "filters": by_filter(OWN_JOB) })).await;
    assert!(logs.to_string().contains(OWN), "{logs}");
    let points = format!("/v1/evidence/{}.E1", range["answer_id"].as_str().unwrap());
    let kept = service.request(ANN, Method::GET, &points).send().await.unwrap();
    hold("kept evidence", &read(kept).await.1);
}

async fn a_job_of_somebody_else_is_answered_like_one_that_does_not_exist(service: &Service) {
    for (place, ((tool, bobs), (_, nobodys))) in calls(BOBS_JOB).into_iter().zip(calls(NO_JOB)).enumerate() {
        let (status, there) = called(service, ANN, tool, &bobs).await;
        let (same, absent) = called(service, ANN, tool, &nobodys).await;
        assert_eq!(
            (status, alike(&there, BOBS_JOB)),
            (same, alike(&absent, NO_JOB).replace(BOBS_JOB, "[name]")),
            "{place} {tool} {bobs}"
        );
        assert!(there.contains("there is no job"), "{tool}: {there}");
        hold(tool, &there);
    }
}

async fn without_a_job_only_the_own_jobs_are_listed(service: &Service) {
    for (tool, arguments) in calls_without_a_job() {
        let (status, text) = called(service, ANN, tool, &arguments).await;
        assert_eq!(status, 403, "{tool} {arguments}: {text}");
        assert!(text.contains("own jobs"), "{text}");
    }
    for (kind, theirs, others) in [("job", OWN_JOB, BOBS_JOB), ("user", "ann", "bob")] {
        let arguments = window(json!({ "kind": kind }));
        let (status, text) = called(service, ANN, "find_entities", &arguments).await;
        assert!(status == 200 && text.contains(theirs) && !text.contains(others), "{text}");
        hold(kind, &text);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["evidence"][0]["total"], 1, "{answer}");
        assert!(answer["data_health"].to_string().contains("only your own jobs"), "{answer}");
        let (_, bobs) = called(service, BOB, "find_entities", &arguments).await;
        assert!(bobs.contains(others) && !bobs.contains("\"ann\""), "{bobs}");
    }
    // Near names are those of own jobs.
    let searched = |name: &str| window(json!({ "kind": "job", "search": name }));
    let (_, there) = called(service, ANN, "find_entities", &searched(BOBS_JOB)).await;
    let (_, absent) = called(service, ANN, "find_entities", &searched(NO_JOB)).await;
    assert_eq!(alike(&there, BOBS_JOB), alike(&absent, NO_JOB));
}

async fn a_question_is_bound_like_a_call(service: &Service) {
    for question in [
        "Why was training job JOB slow?",
        "What was the GPU temperature of job JOB in the last 3 hours?",
        "top 3 hottest GPUs of job JOB in the last 3 hours",
        "Compare GPU power of job JOB in the last hour and the hour before",
        "What was the GPU temperature of node n1 in the last 3 hours?",
        "show Xid errors in the last 3 hours",
        "which jobs are running?",
    ] {
        let asked = |job: &str| {
            let question = question.replace("JOB", job);
            service.chat(ANN, &json!({ "question": question, "as_of": NOW })).send()
        };
        let (status, own) = read(asked(OWN_JOB).await.unwrap()).await;
        assert_eq!(status, 200, "{own}");
        hold(question, &own);
        let (_, there) = read(asked(BOBS_JOB).await.unwrap()).await;
        let (_, absent) = read(asked(NO_JOB).await.unwrap()).await;
        assert_eq!(alike(&there, BOBS_JOB), alike(&absent, NO_JOB), "{question}");
        hold(question, &there);
    }
    let answer = service.answer(ANN, &format!("Why was training job {OWN_JOB} slow?"), NOW.parse().unwrap()).await;
    assert_ne!(answer["outcome"], "insufficient_data", "{answer}");
}
