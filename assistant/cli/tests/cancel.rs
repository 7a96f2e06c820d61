//! A question that nobody waits for any more: its query ends at the engine, seen in the engine's own process list.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::time::{Duration, Instant};

use harness::{Lab, wait_until};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::json;
use service::{Service, accepted, events};

/// Rows of one metric in two hours, added until a quantile over all of them is under way for as long as a test needs to stop it.
const ROWS: u64 = 8_000_000;
/// How long that is: a stop takes some tens of milliseconds.
const LONG_ENOUGH: Duration = Duration::from_millis(400);
/// How often rows are added; with all of them a query is at work for a second on any machine.
const MOST_FILLS: u32 = 5;
const LONG: &str = "What was the p99 GPU temperature in the last 2 hours?";
const SHORT: &str = "lowest 3 GPUs by SM clock in the last hour";

fn end() -> Timestamp {
    worlds::END.parse().unwrap()
}

/// The ids of the questions' queries that the engine runs now. The process list cannot tell of a query that this one does not name.
async fn running(lab: &Lab) -> Vec<String> {
    let sql = "SELECT query_id FROM system.processes WHERE query LIKE '%sightline.metrics AS t%' AND query NOT LIKE '%processes%' AND query NOT LIKE 'EXPLAIN%'";
    lab.write(sql).await.lines().map(str::to_owned).collect()
}

/// Waits until the engine runs a query of a question.
async fn seen_running(lab: &Lab) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let ids = running(lab).await;
        if !ids.is_empty() {
            return ids;
        }
        assert!(Instant::now() < deadline, "no query of the question was seen");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// How many queries the engine has broken off because someone stopped them.
async fn broken_off(lab: &Lab) -> u64 {
    let sql =
        "SELECT sum(value) FROM system.errors WHERE name IN ('QUERY_WAS_CANCELLED', 'QUERY_WAS_CANCELLED_BY_CLIENT')";
    lab.write(sql).await.trim().parse().unwrap()
}

/// Waits until the engine has none of these any more.
async fn wait_until_gone(lab: &Lab, ids: &[String]) {
    let started = Instant::now();
    while running(lab).await.iter().any(|id| ids.contains(id)) {
        assert!(started.elapsed() < Duration::from_secs(60), "a query outlives its question");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_with_its_question() {
    let lab = Lab::start();
    lab.fill(&worlds::two_tenants()).await;
    let service = Service::start(lab.data_dir());
    fill_until_it_takes_long(&lab, &service).await;
    stopped_by_its_asker(&lab, &service).await;
    left_by_a_reader_of_events(&lab, &service).await;
    left_by_one_who_waits_for_the_answer(&lab, &service).await;
    assert!(running(&lab).await.is_empty());
}

async fn fill_until_it_takes_long(lab: &Lab, service: &Service) {
    for _ in 0..MOST_FILLS {
        lab.write(&format!(
            "INSERT INTO sightline.metrics SELECT 'atlas', 'atlas-east', 'DCGM_FI_DEV_GPU_TEMP', 'atlas-n01', toString(number % 4), '', \
             map(), toDateTime64('2025-06-02 10:00:00', 3, 'UTC') - (number % 7200), (number * 7919) % 1000003 FROM numbers({ROWS})"
        ))
        .await;
        let body = json!({ "question": LONG, "as_of": end() });
        let asking = tokio::spawn(service.chat("operator@atlas", &body).send());
        let first = seen_running(lab).await;
        let seen = Instant::now();
        let answer: serde_json::Value = asking.await.unwrap().unwrap().json().await.unwrap();
        assert_eq!(answer["outcome"], "answered", "{answer}");
        let ran = seen.elapsed();
        println!("undisturbed: {first:?} seen, answered {ran:?} after that");
        if ran > LONG_ENOUGH {
            return;
        }
    }
    panic!("the query is over too soon to be stopped");
}

/// That it was broken off and did not come to its end by itself, that the log says how, and that the service goes on.
async fn hold(lab: &Lab, service: &Service, how: &str, ids: &[String], before: u64) {
    wait_until_gone(lab, ids).await;
    assert!(broken_off(lab).await > before, "{how}: it ended by itself");
    wait_until(how, || service.audited(LONG)[0].complete.is_some());
    assert_eq!(service.audited(LONG)[0].outcome(), "cancelled", "{how}");
    assert_eq!(service.answer("operator@atlas", SHORT, end()).await["outcome"], "answered", "{how}");
}

async fn stopped_by_its_asker(lab: &Lab, service: &Service) {
    let before = broken_off(lab).await;
    let mut response = service.stream("operator@atlas", LONG, end()).await;
    let id = accepted(&mut response).await;
    let ids = seen_running(lab).await;
    let stop = service.request("operator@atlas", Method::DELETE, &format!("/v1/chat/{id}")).send().await.unwrap();
    assert_eq!(stop.status(), 202);
    hold(lab, service, "stopped by its asker", &ids, before).await;
    let last = events(&response.text().await.unwrap()).pop().unwrap();
    assert_eq!((last.name.as_str(), last.data["detail"].as_str()), ("error", Some("the question was stopped")));
}

async fn left_by_a_reader_of_events(lab: &Lab, service: &Service) {
    let before = broken_off(lab).await;
    let mut response = service.stream("operator@atlas", LONG, end()).await;
    accepted(&mut response).await;
    let ids = seen_running(lab).await;
    drop(response);
    hold(lab, service, "left by a reader of events", &ids, before).await;
}

async fn left_by_one_who_waits_for_the_answer(lab: &Lab, service: &Service) {
    let before = broken_off(lab).await;
    let body = json!({ "question": LONG, "as_of": end() });
    let asking = tokio::spawn(service.chat("operator@atlas", &body).send());
    let ids = seen_running(lab).await;
    asking.abort();
    hold(lab, service, "left by one who waits for the answer", &ids, before).await;
}
