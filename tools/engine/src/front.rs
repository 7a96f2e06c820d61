//! What `sightline engine` runs: libchdb behind the part of ClickHouse's HTTP interface that the client uses.
//!
//! Every request gets a connection of its own, so no setting of one can reach another: connecting and closing take 0.2
//! ms, a pool would save nothing worth the risk. Queries run in parallel on threads that may block.

pub(crate) mod credentials;
pub(crate) mod error;

mod blocks;
mod compression;
mod functions;
mod handle;
pub(crate) mod lexer;
mod prewhere;
mod reader;
mod request;
mod respond;
mod run;
mod running;
mod serve;
mod settings;
mod statement;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::embedded::ffi::{Chdb, Connection};
use crate::embedded::folder::DataFolder;

use credentials::EngineCredentials;
use error::QueryError;
use functions::FunctionRow;
use reader::Catalogue;
use running::Running;

pub use serve::{CredentialSource, EngineOptions, EngineProcessError, serve_engine};
pub(crate) use serve::{ParentLine, ReadyLine};

/// What the front lets through at once and in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontLimits {
    /// Queries that run at the same time; more wait for a while and are then refused.
    pub concurrent_queries: usize,
    /// Bytes of a response that is streamed.
    pub response_bytes: u64,
    /// Bytes of a response that is held whole: `wait_end_of_query=1`, or a format that cannot be streamed.
    pub buffered_bytes: u64,
    /// Bytes of a request that is held whole: everything but the data of an INSERT whose query is in the URL.
    pub request_bytes: u64,
}

impl Default for FrontLimits {
    fn default() -> Self {
        // 64 queries at once are what the contract tests ask for. The byte limits stop an accident on a laptop: a
        // question reads some megabytes, a bulk export is made of parts.
        Self { concurrent_queries: 64, response_bytes: 4 << 30, buffered_bytes: 256 << 20, request_bytes: 64 << 20 }
    }
}

/// The state that all requests share.
struct Front {
    chdb: Arc<Chdb>,
    folder: DataFolder,
    database: PathBuf,
    credentials: EngineCredentials,
    limits: FrontLimits,
    running: Arc<Running>,
    places: Arc<Semaphore>,
    closing: AtomicBool,
    requests: AtomicU64,
    catalogue: Mutex<KnownCatalogue>,
}

/// What the reader's statements are checked against.
#[derive(Default)]
struct KnownCatalogue {
    /// `None` after anything that may have changed it.
    current: Option<Arc<Catalogue>>,
    /// Counts those changes, so that a list read before one is not kept after it.
    changes: u64,
}

/// How long a request waits for a place before it is refused.
const WAIT_FOR_PLACE: Duration = Duration::from_secs(30);
/// How often a KILL is repeated until its query is gone, and for how long.
const KILL_INTERVAL: Duration = Duration::from_millis(100);
const KILL_ATTEMPTS: u32 = 100;

impl Front {
    fn connect(&self) -> Result<Connection, QueryError> {
        let refused = || QueryError::unavailable("the engine refused a connection; its own log on stderr says why");
        self.chdb.connect(&self.database).ok_or_else(refused)
    }

    /// 32 hex digits that nobody outside can guess, another for every call.
    fn fresh_token(&self, purpose: &str) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(purpose.as_bytes());
        hash.update(self.credentials.password(credentials::EngineUser::Writer).as_bytes());
        hash.update(std::process::id().to_le_bytes());
        hash.update(number.to_le_bytes());
        hex::encode(hash.finalize()).chars().take(32).collect()
    }

    /// What the engine holds now; blocks.
    fn catalogue(&self) -> Result<Arc<Catalogue>, QueryError> {
        let changes = {
            let known = self.known_catalogue();
            if let Some(current) = &known.current {
                return Ok(Arc::clone(current));
            }
            known.changes
        };
        let mut connection = self.connect()?;
        let tables = "SELECT database, name FROM system.tables WHERE NOT is_temporary \
                      AND lower(database) NOT IN ('system', 'information_schema')";
        let tables = connection.query(tables.as_bytes(), "JSONCompactEachRow", &[])?;
        let table_functions =
            connection.query(b"SELECT lower(name) FROM system.table_functions", "JSONCompactEachRow", &[])?;
        let functions = connection.query(functions::LIST.as_bytes(), "JSONCompactEachRow", &[])?;
        let catalogue = Arc::new(Catalogue {
            tables: json_rows::<(String, String)>(&tables.bytes)?.into_iter().collect(),
            table_functions: json_rows::<(String,)>(&table_functions.bytes)?.into_iter().map(|(name,)| name).collect(),
            impure_functions: functions::impure(&json_rows::<FunctionRow>(&functions.bytes)?),
        });
        let mut known = self.known_catalogue();
        if known.changes == changes {
            known.current = Some(Arc::clone(&catalogue));
        }
        Ok(catalogue)
    }

    fn forget_catalogue(&self) {
        let mut known = self.known_catalogue();
        known.current = None;
        known.changes += 1;
    }

    fn known_catalogue(&self) -> MutexGuard<'_, KnownCatalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a query and returns when the engine has nothing left of it, or after some seconds.
    ///
    /// KILL is repeated, since it finds nothing while the query is still being set up.
    async fn kill(self: &Arc<Self>, id: &str) {
        let Some(query) = self.running.cancel(id) else { return };
        for _ in 0..KILL_ATTEMPTS {
            let ended = self.running.any_ended();
            if !self.running.holds(id, &query) {
                return;
            }
            let (front, statement) = (Arc::clone(self), kill_statement(id));
            let killed = tokio::task::spawn_blocking(move || -> Result<(), QueryError> {
                front.connect()?.query(statement.as_bytes(), "Null", &[])?;
                Ok(())
            });
            if let Ok(Err(error)) = killed.await {
                tracing::warn!(%error, query_id = id, "KILL QUERY failed");
            }
            if !self.running.holds(id, &query) {
                return;
            }
            let _ = tokio::time::timeout(KILL_INTERVAL, ended).await;
        }
        tracing::error!(query_id = id, "a killed query is still running");
    }
}

/// The engine gives queries ids of its own, so a query is found by the log comment that carries the client's id.
fn kill_statement(id: &str) -> String {
    // INVARIANT: ids come from `checked_query_id` or `fresh_token`: no quote, no backslash.
    format!("KILL QUERY WHERE Settings['log_comment'] = '{id}' ASYNC")
}

fn json_rows<T: serde::de::DeserializeOwned>(lines: &[u8]) -> Result<Vec<T>, QueryError> {
    let rows: Result<Vec<T>, _> = serde_json::Deserializer::from_slice(lines).into_iter().collect();
    rows.map_err(|error| QueryError::unavailable(&format!("the engine's list of tables is unreadable: {error}")))
}
