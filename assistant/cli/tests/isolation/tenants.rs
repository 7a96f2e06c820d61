//! Five tenants, four roles, every tool, over real HTTP: nobody sees a name, a number or a count of another tenant, and a name that is
//! another's is answered, to the byte, like one that is nobody's.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use sightline_model::rows::Rows;

use crate::alike::{alike, read};
use crate::harness::Lab;
use crate::policies;
use crate::service::Service;
use crate::tenants_world::{NOBODY, NOW, TENANTS, add, digits, job, node, rows_of};

/// One of each role that reads one tenant, for each tenant, and the two that stand above them.
const ASKERS: [&str; 12] = [
    "viewer@xqaj",
    "operator@xqaj",
    "viewer@zvku",
    "operator@zvku",
    "viewer@wgpb",
    "operator@wgpb",
    "viewer@yhfc",
    "operator@yhfc",
    "viewer@rdtm",
    "operator@rdtm",
    "admin",
    "auditor",
];

fn principals() -> String {
    let entry = |id: &&str| {
        let role = id.split('@').next().unwrap_or(id);
        format!("[[principal]]\nid = \"{id}\"\nrole = \"{role}\"\n")
    };
    ASKERS.iter().map(entry).collect()
}

fn tenant_of(asker: &str) -> Option<&str> {
    asker.split_once('@').map(|(_, tenant)| tenant)
}

fn window(more: Value) -> Value {
    let mut arguments = json!({ "from": "2025-06-02T08:00:00Z", "to": NOW });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// Every tool, asked about all that there is.
fn calls() -> Vec<(&'static str, Value)> {
    let by_gpu = json!(["node", "gpu"]);
    let mut calls = vec![
        ("metric_range", window(json!({ "metric": "gpu_temperature", "group_by": by_gpu }))),
        (
            "metric_range",
            window(json!({ "metric": "gpu_temperature", "aggregation": "sum", "step_seconds": 0, "align": "window" })),
        ),
        ("metric_range", window(json!({ "metric": "*", "aggregation": "count", "group_by": ["metric"] }))),
        ("metric_range", window(json!({ "metric": "gpu_power", "samples": "highest" }))),
        ("top_k", window(json!({ "metric": "gpu_temperature", "group_by": by_gpu }))),
        (
            "compare",
            window(
                json!({ "metric": "gpu_power", "base_from": "2025-06-02T07:00:00Z", "base_to": "2025-06-02T08:00:00Z" }),
            ),
        ),
        ("job_correlation", json!({ "job": "run-7" })),
        ("search_logs", window(json!({}))),
        ("search_logs", window(json!({ "count_by": ["node", "service"] }))),
        ("list_events", window(json!({}))),
        ("list_events", window(json!({ "count_by": ["kind"] }))),
        ("find_entities", window(json!({ "kind": "job", "count_by": ["user"] }))),
    ];
    for kind in KINDS {
        calls.push(("find_entities", window(json!({ "kind": kind }))));
    }
    for dataset in ["metrics", "logs", "spans", "events", "jobs"] {
        calls.push(("find_entities", window(json!({ "kind": "label_value", "label": "image", "dataset": dataset }))));
    }
    calls
}

const KINDS: [&str; 12] =
    ["cluster", "node", "gpu", "job", "user", "service", "model", "pod", "rack", "metric", "event_kind", "label"];

/// Every tool, asked about something of this name.
fn calls_about(name: &str) -> Vec<(&'static str, Value)> {
    let (job, node) = (job(name), node(name));
    let at = json!([{ "dim": "node", "values": [node] }]);
    let mut calls = vec![
        ("job_correlation", json!({ "job": job })),
        ("metric_range", window(json!({ "metric": "gpu_temperature", "job": job }))),
        ("metric_range", window(json!({ "metric": "gpu_temperature", "filters": at }))),
        ("metric_range", window(json!({ "metric": format!("{name}_metric") }))),
        ("top_k", window(json!({ "metric": "gpu_temperature", "job": job, "group_by": ["gpu"] }))),
        ("top_k", window(json!({ "metric": "gpu_temperature", "filters": at, "group_by": ["gpu"] }))),
        (
            "compare",
            window(
                json!({ "metric": "gpu_temperature", "job": job, "base_from": "2025-06-02T07:00:00Z", "base_to": "2025-06-02T08:00:00Z" }),
            ),
        ),
        (
            "compare",
            window(
                json!({ "metric": "gpu_temperature", "filters": at, "base_filters": [{ "dim": "rack", "values": [format!("{name}-rack")] }] }),
            ),
        ),
        ("search_logs", window(json!({ "contains": name }))),
        ("search_logs", window(json!({ "filters": at }))),
        ("list_events", window(json!({ "kind": format!("{name}-kind") }))),
        ("list_events", window(json!({ "filters": at }))),
    ];
    for kind in ["node", "gpu", "job", "user", "service", "metric"] {
        calls.push(("find_entities", window(json!({ "kind": kind, "search": name }))));
    }
    calls
}

async fn called(service: &Service, asker: &str, tool: &str, arguments: &Value) -> (u16, String) {
    read(service.call(asker, tool, arguments, NOW.parse().unwrap()).send().await.unwrap()).await
}

/// What this asker is told that it has used so far: queries, rows, bytes.
async fn used(service: &Service, asker: &str) -> [u64; 3] {
    let path = format!("/v1/usage?principal={asker}");
    let (status, text) = read(service.request(asker, Method::GET, &path).send().await.unwrap()).await;
    assert_eq!(status, 200, "{asker}: {text}");
    hold(asker, "usage", &text);
    let usage: Value = serde_json::from_str(&text).unwrap();
    let lines = usage["usage"].as_array().unwrap();
    ["queries", "rows_read", "bytes_read"].map(|name| lines.iter().map(|line| line[name].as_u64().unwrap()).sum())
}

/// Holds that nothing of another tenant stands there.
fn hold(asker: &str, place: &str, text: &str) {
    for other in TENANTS.into_iter().filter(|tenant| tenant_of(asker) != Some(tenant)) {
        for word in [other, digits(other)] {
            assert!(!text.replace(',', "").contains(word), "{asker}: {place}: {word}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_tenants_learn_nothing_of_each_other() {
    let lab = Lab::start();
    let mut rows = Rows::default();
    for tenant in TENANTS {
        add(&mut rows, rows_of(tenant, 1));
    }
    lab.fill_with_these_alone(&rows).await;
    let folder = policies::folder(lab.data_dir(), &principals());
    let environment = [("SIGHTLINE_POLICIES_DIR", folder.as_str())];
    let service = Service::start_for(lab.data_dir(), &ASKERS, &environment);

    let before = no_body_holds_anything_of_another_tenant(&service).await;
    a_name_of_another_tenant_is_answered_like_one_of_nobody(&service).await;
    a_question_that_names_another_tenants_job_is_answered_like_one_of_nobody(&service).await;

    // A neighbour grows: no body of anybody else says so.
    let grown = "rdtm";
    lab.fill_with_these_alone(&rows_of(grown, 3)).await;
    let mut changed = 0;
    for asker in ASKERS.into_iter().filter(|asker| asker.starts_with("operator")) {
        for (key, body) in bodies_of(&service, asker).await {
            if tenant_of(asker) == Some(grown) {
                changed += usize::from(before[&key] != body);
            } else {
                assert_eq!(before[&key], body, "{key:?}");
            }
        }
    }
    assert!(changed > 20, "the tenant's own answers changed: {changed}");
}

/// Every role of every tenant with every tool; gives back what was answered.
async fn no_body_holds_anything_of_another_tenant(service: &Service) -> BTreeMap<(&'static str, usize), String> {
    let mut bodies = BTreeMap::new();
    for pair in ASKERS.chunks(2) {
        let (first, second) = tokio::join!(bodies_of(service, pair[0]), bodies_of(service, pair[1]));
        bodies.extend(first);
        bodies.extend(second);
    }
    bodies
}

async fn bodies_of(service: &Service, asker: &'static str) -> BTreeMap<(&'static str, usize), String> {
    let mut bodies = BTreeMap::new();
    let mut own = 0;
    let used_before = used(service, asker).await;
    for (place, (tool, arguments)) in calls().into_iter().enumerate() {
        let (status, text) = called(service, asker, tool, &arguments).await;
        match asker.split('@').next() {
            Some("auditor") => assert_eq!(status, 403, "{text}"),
            Some("admin") => {}
            Some("viewer") if ["search_logs", "list_events"].contains(&tool) => assert_eq!(status, 403, "{text}"),
            _ => assert_eq!(status, 200, "{asker} {tool} {arguments}: {text}"),
        }
        if asker == "admin" {
            own += usize::from(TENANTS.iter().all(|tenant| text.contains(tenant)));
        } else {
            hold(asker, &format!("{tool} {arguments}"), &text);
            own += usize::from(tenant_of(asker).is_some_and(|tenant| text.contains(tenant)));
        }
        if asker != "auditor" {
            bodies.insert((asker, place), format!("{status} {}", alike(&text, "")));
        }
    }
    // The difference of two looks at one's own usage is what was read in between.
    let used_after = used(service, asker).await;
    if asker != "auditor" {
        assert!(used_after > used_before, "{asker}: {used_after:?}");
        let between: Vec<u64> = used_after.iter().zip(used_before).map(|(after, before)| after - before).collect();
        bodies.insert((asker, calls().len()), format!("{between:?}"));
    }
    // Without this the rest could hold because nothing was loaded.
    assert!(own >= 12 || asker == "auditor", "{asker}: only {own} bodies hold rows of its own");
    bodies
}

async fn a_name_of_another_tenant_is_answered_like_one_of_nobody(service: &Service) {
    for (place, asker) in ASKERS.into_iter().filter(|asker| tenant_of(asker).is_some()).enumerate() {
        let others: Vec<&str> = TENANTS.into_iter().filter(|tenant| tenant_of(asker) != Some(tenant)).collect();
        // Each asker about one other, so that every pair of tenants comes up between the roles.
        let other = others[place % others.len()];
        for ((tool, foreign), (_, nobodys)) in calls_about(other).into_iter().zip(calls_about(NOBODY)) {
            let ((status, there), (same, absent)) =
                tokio::join!(called(service, asker, tool, &foreign), called(service, asker, tool, &nobodys));
            assert_eq!((status, alike(&there, other)), (same, alike(&absent, NOBODY)), "{asker}: {tool} {foreign}");
            hold(asker, tool, &there.replace(other, ""));
        }
    }
}

async fn a_question_that_names_another_tenants_job_is_answered_like_one_of_nobody(service: &Service) {
    for asker in ["viewer@xqaj", "operator@wgpb"] {
        for question in [
            "Why was job NAME-run-7 slow?",
            "What was the GPU temperature of node NAME-n1 in the last hour?",
            "top 5 hottest GPUs of tenant NAME",
        ] {
            let asked = |name: &str| {
                service.chat(asker, &json!({ "question": question.replace("NAME", name), "as_of": NOW })).send()
            };
            let there = read(asked("zvku").await.unwrap()).await;
            let absent = read(asked(NOBODY).await.unwrap()).await;
            assert_eq!((there.0, alike(&there.1, "zvku")), (absent.0, alike(&absent.1, NOBODY)), "{asker}: {question}");
        }
    }
}
