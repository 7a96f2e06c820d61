//! Admitted queries over ingested rows, through a real engine: values, scope, bounds, cancellation.

use std::sync::Arc;
use std::time::Duration;

use crate::admitted::{METRIC, admit, at, limits, samples};
use crate::engine::TestEngine;
use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{ClickHouseEngine, Endpoint, Scope, SecondFence, insert_rows};
use sightline_guard::{Engine, EngineError, Estimate};
use sightline_model::rows::{JobRow, Labels, MetricRow, Rows};
use sightline_model::{Cell, Dataset, QueryId};
use sightline_policies::Limits;
use sightline_query::catalogue::LabelAliases;
use sightline_query::{Order, Shape};

fn hot() -> Rows {
    let row = |second: u32, tenant: &str, value: f64| MetricRow {
        time: at(&format!("2026-05-03T14:10:{second:02}.250Z")),
        metric: METRIC.to_owned(),
        labels: [("tenant", tenant), ("cluster", "west"), ("Hostname", "n'07"), ("UUID", "GPU-\\9"), ("gpu", "3")]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<Labels>(),
        value,
    };
    let job = JobRow {
        job_id: "J123".to_owned(),
        name: "llama".to_owned(),
        tenant: "atlas".to_owned(),
        cluster: "west".to_owned(),
        user: "mia".to_owned(),
        kind: "training".to_owned(),
        state: "running".to_owned(),
        submit: at("2026-05-03T13:00:00Z"),
        start: at("2026-05-03T13:05:00Z"),
        end: None,
        labels: Labels::new(),
    };
    Rows {
        metrics: vec![
            row(0, "atlas", 0.1 + 0.2),
            row(10, "atlas", 88.0),
            row(0, "borealis", 1.0),
            row(20, "atlas", 89.0),
        ],
        jobs: vec![job],
        ..Rows::default()
    }
}

async fn with_hot_gpu() -> (TestEngine, ClickHouseEngine) {
    let engine = TestEngine::start().await;
    let (writer, database) = (engine.writer(), DatabaseName::new("fleet").unwrap());
    native::create(&writer, &database).await.unwrap();
    let scope = Scope { tenant: "default".to_owned(), cluster: "default".to_owned() };
    insert_rows(&writer, &database, &hot(), &LabelAliases::builtin().unwrap(), &scope).await.unwrap();
    let client = ClickHouseEngine::new(&engine.reader(), SecondFence::InRequest);
    (engine, client)
}

#[tokio::test]
async fn an_admitted_query_reads_the_rows_of_its_tenant_to_the_last_bit() {
    let (_engine, client) = with_hot_gpu().await;
    let query = admit("q-1", "atlas", &limits(), Dataset::Metrics, samples(100));
    let result = client.run(&query).await.unwrap();
    let row = |second: u32, value: f64| {
        vec![
            Cell::Time(at(&format!("2026-05-03T14:10:{second:02}.250Z"))),
            Cell::Text("n'07".into()),
            Cell::Text("GPU-\\9".into()),
            Cell::Float(value),
        ]
    };
    assert_eq!(result.rows, [row(0, 0.1 + 0.2), row(10, 88.0), row(20, 89.0)]);
    assert!(!result.truncated);
    assert_eq!(result.query_id, QueryId::new("q-1"));
    assert_eq!(result.read.rows, 4);
    assert!(result.read.bytes > 0 && result.read.wall_ms > 0.0, "{:?}", result.read);
}

#[tokio::test]
async fn the_row_limit_cuts_and_says_so() {
    let (_engine, client) = with_hot_gpu().await;
    let cut = client.run(&admit("q-1", "atlas", &limits(), Dataset::Metrics, samples(2))).await.unwrap();
    assert_eq!((cut.rows.len(), cut.truncated), (2, true));
    let whole = client.run(&admit("q-2", "atlas", &limits(), Dataset::Metrics, samples(3))).await.unwrap();
    assert_eq!((whole.rows.len(), whole.truncated), (3, false));
}

#[tokio::test]
async fn an_estimate_is_told_without_reading_also_of_a_query_that_may_not_run() {
    let (_engine, client) = with_hot_gpu().await;
    let tight = Limits { max_rows_read: 1, max_bytes_read: 1, ..limits() };
    let query = admit("q-1", "atlas", &tight, Dataset::Metrics, samples(100));
    let estimate = client.estimate(&query).await.unwrap();
    // The index knows granules: this one holds a row of the other tenant too, as it would be read.
    assert_eq!(estimate, Estimate { rows: 4, bytes: 4 * query.row_bytes() });
    assert!(matches!(client.run(&query).await, Err(EngineError::TooManyRows { limit: 1 })));
    let nothing = admit("q-2", "nobody", &limits(), Dataset::Metrics, samples(100));
    assert_eq!(client.estimate(&nothing).await, Ok(Estimate { rows: 0, bytes: 0 }));
}

#[tokio::test]
async fn a_job_that_runs_has_no_end() {
    let (_engine, client) = with_hot_gpu().await;
    let rows = Shape::Rows { order: Order::Ascending, limit: 10 };
    let result = client.run(&admit("q-1", "atlas", &limits(), Dataset::Jobs, rows)).await.unwrap();
    let named = |name: &str| result.cell(0, name).cloned();
    assert_eq!(named("job_id"), Some(Cell::Text("J123".into())));
    let ends: Vec<&Cell> = result.rows[0].iter().filter(|cell| **cell == Cell::Null).collect();
    assert_eq!(ends.len(), 1, "{result:?}");
}

#[tokio::test]
async fn a_bound_that_is_passed_is_told_in_our_words() {
    let (_engine, client) = with_hot_gpu().await;
    let tight = Limits { max_rows_read: 1, ..limits() };
    let error = client.run(&admit("q-1", "atlas", &tight, Dataset::Metrics, samples(10))).await.unwrap_err();
    assert_eq!(error, EngineError::TooManyRows { limit: 1 });
}

#[tokio::test]
async fn an_engine_that_is_gone_or_does_not_know_us_is_told() {
    let (engine, client) = with_hot_gpu().await;
    assert_eq!(client.ready().await, Ok(()));
    let stranger = ClickHouseEngine::new(&Endpoint::new(engine.url(), "reader", "wrong"), SecondFence::InRequest);
    assert_eq!(stranger.ready().await, Err(EngineError::NotGranted));
    drop(engine);
    assert_eq!(client.ready().await, Err(EngineError::Unreachable));
    let query = admit("q-1", "atlas", &limits(), Dataset::Metrics, samples(10));
    assert_eq!(client.run(&query).await, Err(EngineError::Unreachable));
}

/// A table in which every value takes a second to read.
async fn with_slow_table() -> (TestEngine, ClickHouseEngine) {
    let engine = TestEngine::start().await;
    let word = "LowCardinality(String)";
    engine.ask("CREATE DATABASE fleet").await;
    engine
        .ask(&format!(
            "CREATE TABLE fleet.metrics (tenant {word}, cluster {word}, metric {word}, node {word}, gpu {word}, service {word}, \
             labels Map({word}, String), time DateTime64(3, 'UTC'), value Float64 ALIAS toFloat64(sleepEachRow(1))) \
             ENGINE = MergeTree PARTITION BY cluster ORDER BY (tenant, metric)"
        ))
        .await;
    engine
        .ask(&format!(
            "INSERT INTO fleet.metrics (tenant, cluster, metric, time) SELECT 'atlas', toString(number), '{METRIC}', \
             '2026-05-03 14:00:00' FROM numbers(40)"
        ))
        .await;
    let client = ClickHouseEngine::new(&engine.reader(), SecondFence::InRequest);
    (engine, client)
}

async fn wait_until_running(engine: &TestEngine, id: &str, running: bool) {
    let sql = format!("SELECT count() FROM system.processes WHERE query_id = '{id}'");
    let expected = if running { "1\n" } else { "0\n" };
    while engine.ask(&sql).await != expected {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_cancelled_query_is_gone_when_cancel_comes_back() {
    let (engine, client) = with_slow_table().await;
    let running = {
        let client = client.clone();
        let query = admit("q-slow", "atlas", &limits(), Dataset::Metrics, samples(100));
        tokio::spawn(async move { client.run(&query).await })
    };
    wait_until_running(&engine, "q-slow", true).await;
    client.cancel(&QueryId::new("q-slow")).await.unwrap();
    let left = engine.ask("SELECT count() FROM system.processes WHERE query_id = 'q-slow'").await;
    assert_eq!(left, "0\n");
    assert_eq!(running.await.unwrap(), Err(EngineError::Cancelled));
    assert_eq!(client.cancel(&QueryId::new("q-never")).await, Ok(()));
}

#[tokio::test]
async fn a_query_whose_asker_goes_away_is_stopped() {
    let (engine, client) = with_slow_table().await;
    let query = Arc::new(admit("q-left", "atlas", &limits(), Dataset::Metrics, samples(100)));
    let asking = tokio::spawn(async move { client.run(&query).await });
    wait_until_running(&engine, "q-left", true).await;
    asking.abort();
    wait_until_running(&engine, "q-left", false).await;
}

#[tokio::test]
async fn a_query_past_its_time_is_stopped() {
    let (engine, client) = with_slow_table().await;
    let short = Limits { max_seconds: 1, ..limits() };
    let error = client.run(&admit("q-long", "atlas", &short, Dataset::Metrics, samples(100))).await.unwrap_err();
    assert_eq!(error, EngineError::TimedOut { seconds: 1 });
    wait_until_running(&engine, "q-long", false).await;
}
