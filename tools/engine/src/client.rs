//! The client of a ClickHouse over HTTP: the embedded engine's front and a server of one's own alike.
//!
//! [`ClickHouseEngine`] runs what the guard admitted, as the user that may only read. [`Writer`] is for ingest and DDL. The
//! engine's own error text quotes rows of other tenants: it is reduced to its code in [`code`] and goes no further, not even
//! into a log.

mod code;
mod decode;
mod estimate;
mod kill;
mod proof;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clickhouse::query::BytesCursor;
use clickhouse::{Client, Compression};
use sightline_guard::{Engine, EngineError, Estimate, ExecutableQuery};
use sightline_model::evidence::Read;
use sightline_model::{BoxFuture, Cell, Column, QueryId, ResultSet};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use self::code::Failure;
use self::kill::KillOnDrop;

use crate::remote::role_name;

pub use self::proof::{FenceUnproved, Proof, ProofFault};
pub use self::writer::{WriteError, Writer};

/// What the engine is given after its own time limit before the query is killed from here: it checks its clock between blocks only.
const GRACE: Duration = Duration::from_secs(2);
/// JSON text per byte of a result in memory: a 64-bit number may take 24 characters for its 8 bytes. Four leaves room for keys
/// and escapes, and is still a cap.
const TEXT_PER_BYTE: u64 = 4;
/// A result's text may be this long whatever the bound in memory is, bytes.
const TEXT_FLOOR: u64 = 65_536;

/// Answers of so many bytes are decoded where they arrive; what is longer would hold up the others for milliseconds.
const DECODED_IN_PLACE: usize = 256 << 10;

/// What is sent with every query besides its bounds: 64-bit numbers as numbers, NaN and infinities as null.
pub(crate) const OWN_SETTINGS: [(&str, &str); 2] =
    [("output_format_json_quote_64bit_integers", "0"), ("output_format_json_quote_denormals", "0")];

/// Where a ClickHouse answers, and as whom to ask it.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    user: String,
    password: String,
}

impl Endpoint {
    /// An endpoint, for example `http://127.0.0.1:8123`.
    pub fn new(url: impl Into<String>, user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { url: url.into(), user: user.into(), password: password.into() }
    }

    fn client(&self) -> Client {
        let Self { url, user, password } = self;
        // Compressing what stays on this machine costs more than it saves.
        let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|host| url.starts_with(host));
        let compression = if local { Compression::None } else { Compression::Lz4 };
        Client::default().with_url(url).with_user(user).with_password(password).with_compression(compression)
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { url, user, password: _ } = self;
        write!(formatter, "Endpoint({user} at {url})")
    }
}

/// Where the second fence around rows stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondFence {
    /// In every request, as the setting `additional_table_filters`: the embedded engine, or a user that may change it.
    InRequest,
    /// At the server, as row policies of one role a tenant. A request takes on the roles of the tenants it may read and no other;
    /// `additional_table_filters` cannot be changed there.
    AtServer,
}

/// Runs admitted queries on a ClickHouse.
#[derive(Clone)]
pub struct ClickHouseEngine {
    client: Client,
    fence: SecondFence,
    /// How many estimates were asked for; a part of their ids.
    estimates: Arc<AtomicU64>,
}

impl ClickHouseEngine {
    /// An engine that asks there; the endpoint's user should be able to read and no more.
    pub fn new(endpoint: &Endpoint, fence: SecondFence) -> Self {
        Self { client: endpoint.client(), fence, estimates: Arc::default() }
    }

    async fn run_query(&self, query: &ExecutableQuery) -> Result<ResultSet, EngineError> {
        let bounds = query.bounds();
        let guard = KillOnDrop::new(self.client.clone(), query.query_id().clone());
        let deadline = Duration::from_secs(bounds.max_execution_seconds).saturating_add(GRACE);
        // The clickhouse crate logs the engine's error text; without a subscriber it has nobody to tell.
        let fetch = self.fetch(query).with_subscriber(NoSubscriber::new());
        let outcome = tokio::time::timeout(deadline, fetch).await;
        match outcome {
            Ok(Ok(result)) => {
                guard.disarm();
                Ok(result)
            }
            Ok(Err(failure)) => {
                // Where the engine itself ended the query there is nothing left to kill.
                if failure.engine_has_ended() {
                    guard.disarm();
                }
                tracing::debug!(query_id = %query.query_id(), failure = ?failure, "query failed");
                Err(failure.into_engine_error(bounds))
            }
            Err(_elapsed) => {
                guard.disarm();
                kill::kill_and_verify(&self.client, query.query_id()).await?;
                Err(EngineError::TimedOut { seconds: bounds.max_execution_seconds })
            }
        }
    }

    /// Sends the text as it is, with parameters, bounds and fence beside it, and reads the whole answer.
    async fn fetch(&self, query: &ExecutableQuery) -> Result<ResultSet, Failure> {
        let started = Instant::now();
        let mut request = self
            .client
            .query_raw(query.sql())
            .with_setting("query_id", query.query_id().as_str())
            // The summary is whole, and an error comes as an error and not in the middle of rows.
            .with_setting("wait_end_of_query", "1");
        for (name, value) in OWN_SETTINGS {
            request = request.with_setting(name, value);
        }
        for (name, value) in query.bounds().settings() {
            request = request.with_setting(name, value);
        }
        match self.fence {
            SecondFence::InRequest => request = request.with_setting(query.fence().setting(), query.fence().value()),
            SecondFence::AtServer => request = request.with_roles(query.tenants().iter().map(|t| role_name(t))),
        }
        for param in query.params() {
            request = request.with_setting(format!("param_{}", param.name()), param.text());
        }
        let cap = query.bounds().max_result_bytes.saturating_mul(TEXT_PER_BYTE).max(TEXT_FLOOR);
        let mut cursor = request.fetch_bytes("JSONCompactEachRow")?;
        let text = read_capped(&mut cursor, cap).await?;
        let (columns, keys) = (query.columns().to_vec(), query.tied_keys());
        let mut rows = if text.len() < DECODED_IN_PLACE {
            in_order(&text, &columns, keys)?
        } else {
            // Other answers arrive meanwhile.
            let decoded = tokio::task::spawn_blocking(move || in_order(&text, &columns, keys)).await;
            decoded.map_err(|_stopped| Failure::Malformed)??
        };
        let limit = usize::try_from(query.row_limit()).unwrap_or(usize::MAX);
        let truncated = rows.len() > limit;
        cut(&mut rows, limit, keys);
        Ok(ResultSet {
            columns: query.columns().to_vec(),
            rows,
            read: read_of(&cursor, started),
            query_id: query.query_id().clone(),
            truncated,
        })
    }

    async fn check_ready(&self) -> Result<(), EngineError> {
        // The one question the reader may ask without a tenant filter; it proves address, password and engine at once.
        kill::is_running(&self.client, &QueryId::new("readiness")).await.map(|_| ())
    }
}

impl Engine for ClickHouseEngine {
    fn run<'a>(&'a self, query: &'a ExecutableQuery) -> BoxFuture<'a, Result<ResultSet, EngineError>> {
        Box::pin(self.run_query(query))
    }

    fn estimate<'a>(&'a self, query: &'a ExecutableQuery) -> BoxFuture<'a, Result<Estimate, EngineError>> {
        let number = self.estimates.fetch_add(1, Ordering::Relaxed);
        Box::pin(estimate::estimate(&self.client, self.fence, query, number))
    }

    fn cancel<'a>(&'a self, id: &'a QueryId) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(kill::kill_and_verify(&self.client, id))
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(self.check_ready())
    }
}

/// The rows of an answer, in their whole order.
fn in_order(text: &[u8], columns: &[Column], keys: usize) -> Result<Vec<Vec<Cell>>, Failure> {
    let mut rows = decode::rows(text, columns)?;
    decode::order_ties(&mut rows, keys);
    Ok(rows)
}

/// Drops what is past the limit. Of tied rows the engine gives any: the step in which a result was cut goes as a whole, unless it is all there
/// is, so that the same question has the same answer.
fn cut(rows: &mut Vec<Vec<Cell>>, limit: usize, keys: usize) {
    if keys > 0
        && let Some(cut_in) = rows.get(limit).and_then(|row| row.first()).cloned()
        && rows.first().and_then(|row| row.first()) != Some(&cut_in)
    {
        rows.retain(|row| row.first() != Some(&cut_in));
    }
    rows.truncate(limit);
}

/// Reads the answer to its end, or stops past the cap.
async fn read_capped(cursor: &mut BytesCursor, cap: u64) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    while let Some(chunk) = cursor.next().await? {
        let length = u64::try_from(text.len().saturating_add(chunk.len())).unwrap_or(u64::MAX);
        if length > cap {
            return Err(Failure::TooLong);
        }
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

/// What was read, from `X-ClickHouse-Summary`; the time is the engine's own where it says so.
fn read_of(cursor: &BytesCursor, started: Instant) -> Read {
    let summary = cursor.summary();
    let own_ms =
        summary.and_then(|summary| summary.elapsed_ns()).filter(|nanos| *nanos > 0).map(|nanos| nanos as f64 / 1e6);
    Read {
        rows: summary.and_then(|summary| summary.read_rows()).unwrap_or(0),
        bytes: summary.and_then(|summary| summary.read_bytes()).unwrap_or(0),
        wall_ms: own_ms.unwrap_or_else(|| started.elapsed().as_secs_f64() * 1e3),
    }
}
