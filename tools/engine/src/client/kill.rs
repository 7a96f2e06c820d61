//! Ending a query: KILL, then a look whether it is gone.

use std::time::Duration;

use clickhouse::Client;
use sightline_guard::EngineError;
use sightline_model::QueryId;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::code::Failure;

/// First pause between two looks whether a killed query is gone; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How long a killed query may take to go. A query looks whether it was killed between blocks, so within a second or so.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills the query when it is dropped before [`Self::disarm`]: the asker went away, or the way to the engine broke.
pub(super) struct KillOnDrop {
    armed: Option<(Client, QueryId)>,
}

impl KillOnDrop {
    pub(super) fn new(client: Client, id: QueryId) -> Self {
        Self { armed: Some((client, id)) }
    }

    pub(super) fn disarm(mut self) {
        self.armed = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some((client, id)) = self.armed.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            match kill_and_verify(&client, &id).await {
                Ok(()) => {}
                // The question itself has told of it already, and the query ends with the engine or at its own time limit.
                Err(EngineError::Unreachable) => {
                    tracing::debug!(query_id = %id, "the engine of an abandoned query is gone")
                }
                Err(error) => tracing::warn!(query_id = %id, %error, "an abandoned query could not be stopped"),
            }
        });
    }
}

/// Kills the query of that id and comes back once the engine has it no more; at once when it never had it.
pub(super) async fn kill_and_verify(client: &Client, id: &QueryId) -> Result<(), EngineError> {
    // SYNC hangs on the embedded engine.
    let kill = client.query_raw("KILL QUERY WHERE query_id = {p0:String} ASYNC").param("p0", id.as_str());
    kill.execute().with_subscriber(NoSubscriber::new()).await.map_err(|error| plain(Failure::from(error)))?;
    let gone = async {
        let mut pause = FIRST_PAUSE;
        while is_running(client, id).await? {
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap_or(Err(EngineError::Busy))
}

/// Whether the engine still runs the query of that id.
pub(super) async fn is_running(client: &Client, id: &QueryId) -> Result<bool, EngineError> {
    let query = client.query_raw("SELECT count() FROM system.processes WHERE query_id = {p0:String}");
    let query = query.param("p0", id.as_str());
    let count = async { query.fetch_bytes("TabSeparated")?.collect().await };
    let count = count.with_subscriber(NoSubscriber::new()).await.map_err(|error| plain(Failure::from(error)))?;
    let count = std::str::from_utf8(&count).ok().and_then(|text| text.trim().parse::<u64>().ok());
    count.map(|running| running > 0).ok_or(EngineError::Malformed)
}

/// The error of a request that runs under no bounds.
fn plain(failure: Failure) -> EngineError {
    match failure {
        Failure::Code(497 | 516 | 164) | Failure::Status(401 | 403) => EngineError::NotGranted,
        Failure::Code(202 | 201 | 745) => EngineError::Busy,
        Failure::Code(code) => EngineError::Rejected { code },
        Failure::Status(_) | Failure::Connection => EngineError::Unreachable,
        Failure::TooLong | Failure::Malformed => EngineError::Malformed,
    }
}
