//! The corpus' own tables in the same engine: the originals run there as they were written, by the engine's writer.

use jiff::Timestamp;
use serde_json::{Value, json};
use sightline_engine::{EngineAddress, EngineUser};

use crate::world::World;

const TABLES: [&str; 5] = [
    "CREATE DATABASE obs",
    "CREATE TABLE obs.metrics (tenant String, cluster String, node String, gpu UInt16, job_id String, metric String, \
     ts DateTime64(3, 'UTC'), value Float64, labels Map(String, String)) ENGINE = MergeTree ORDER BY (tenant, metric, node, gpu, ts)",
    "CREATE TABLE obs.logs (tenant String, cluster String, node String, ts DateTime64(3, 'UTC'), severity String, body String, \
     attrs Map(String, String)) ENGINE = MergeTree ORDER BY (tenant, ts)",
    "CREATE TABLE obs.events (tenant String, cluster String, node String, ts DateTime64(3, 'UTC'), kind String, xid UInt16, \
     message String) ENGINE = MergeTree ORDER BY (tenant, ts)",
    "CREATE TABLE obs.jobs (tenant String, cluster String, job_id String, user String, queue String, state String, gpus UInt32, \
     ts DateTime64(3, 'UTC'), end_ts Nullable(DateTime64(3, 'UTC'))) ENGINE = MergeTree ORDER BY (tenant, job_id)",
];

fn stamp(at: i64) -> String {
    Timestamp::from_millisecond(at).unwrap().strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// The engine as its writer sees it.
pub(crate) struct Obs<'a> {
    address: &'a EngineAddress,
    client: reqwest::Client,
}

impl<'a> Obs<'a> {
    pub(crate) fn new(address: &'a EngineAddress) -> Self {
        Self { address, client: crate::harness::http() }
    }

    async fn send(&self, sql: &str, data: String) -> String {
        let response = self
            .client
            .post(self.address.url())
            .query(&[("query", sql), ("default_format", "JSONCompact")])
            .basic_auth(EngineUser::Writer.name(), Some(self.address.credentials.password(EngineUser::Writer)))
            .body(data)
            .send()
            .await
            .unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{sql}: {text}");
        text
    }

    /// Makes the tables.
    pub(crate) async fn create(&self) {
        for sql in TABLES {
            self.send(sql, String::new()).await;
        }
    }

    /// Fills them.
    pub(crate) async fn fill(&self, world: &World) {
        let labels = |pairs: &[(&str, String)]| -> Value {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
        };
        let metrics = world.samples.iter().map(|s| {
            json!([
                s.tenant,
                s.place.cluster,
                s.place.node,
                s.gpu,
                s.job,
                s.metric,
                stamp(s.at),
                s.value,
                labels(&s.labels)
            ])
        });
        let logs = world.lines.iter().map(|l| {
            json!([l.tenant, l.place.cluster, l.place.node, stamp(l.at), l.severity, l.body, labels(&l.attrs)])
        });
        let events = world
            .happenings
            .iter()
            .map(|h| json!([h.tenant, h.place.cluster, h.place.node, stamp(h.at), h.kind, h.xid, h.message]));
        let jobs = world.jobs.iter().map(|j| {
            json!([j.tenant, "east", j.id, j.user, j.queue, j.state, j.gpus, stamp(j.start), j.end.map(stamp)])
        });
        self.insert("metrics", metrics).await;
        self.insert("logs", logs).await;
        self.insert("events", events).await;
        self.insert("jobs", jobs).await;
    }

    async fn insert(&self, table: &str, rows: impl Iterator<Item = Value>) {
        let data: Vec<String> = rows.map(|row| row.to_string()).collect();
        let sql = format!("INSERT INTO obs.{table} FORMAT JSONCompactEachRow");
        if !data.is_empty() {
            self.send(&sql, data.join("\n")).await;
        }
    }

    /// The rows of an original.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let document: Value = serde_json::from_str(&self.send(sql, String::new()).await).unwrap();
        document["data"].as_array().unwrap().iter().map(|row| row.as_array().unwrap().clone()).collect()
    }
}
