//! What a query would read, told by the engine from its index.

use std::time::Duration;

use clickhouse::Client;
use sightline_guard::{EngineError, Estimate, ExecutableQuery};
use sightline_model::QueryId;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::SecondFence;
use super::code::Failure;
use super::kill::KillOnDrop;
use super::read_capped;
use crate::remote::role_name;

/// How long an estimate may take: it looks at marks only, which takes milliseconds even for a year of a large fleet.
const PATIENCE: Duration = Duration::from_secs(10);
/// One line for each table, about a hundred bytes.
const LONGEST_ANSWER: u64 = 65_536;
/// The bounds on reading: they would refuse the estimate of just those queries that it is asked for. A server of one's own has them
/// in the user's profile all the same, so there such an estimate may be refused; whoever asks for it takes that as an answer too.
const NOT_SENT: [&str; 2] = ["max_rows_to_read", "max_bytes_to_read"];

/// Asks for the estimate of the very text that was checked, with its parameters and behind its fence, under an id of its own. An
/// estimate that nobody waits for any more is killed like a query.
pub(super) async fn estimate(
    client: &Client,
    fence: SecondFence,
    query: &ExecutableQuery,
    number: u64,
) -> Result<Estimate, EngineError> {
    // Numbered: the engine refuses an id that still runs, and a search for what fits estimates many times for one query.
    let id = QueryId::new(format!("{}-estimate-{number}", query.query_id()));
    let guard = KillOnDrop::new(client.clone(), id.clone());
    let asked = ask(client, fence, query, &id).with_subscriber(NoSubscriber::new());
    let rows = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(rows)) => {
            guard.disarm();
            rows
        }
        Ok(Err(failure)) => {
            if failure.engine_has_ended() {
                guard.disarm();
            }
            return Err(failure.into_engine_error(query.bounds()));
        }
        Err(_elapsed) => return Err(EngineError::TimedOut { seconds: PATIENCE.as_secs() }),
    };
    Ok(Estimate { rows, bytes: rows.saturating_mul(query.row_bytes()) })
}

async fn ask(client: &Client, fence: SecondFence, query: &ExecutableQuery, id: &QueryId) -> Result<u64, Failure> {
    let text = format!("EXPLAIN ESTIMATE {}", query.sql());
    let mut request = client
        .query_raw(&text)
        .with_setting("query_id", id.as_str())
        .with_setting("output_format_json_quote_64bit_integers", "0");
    for (name, value) in query.bounds().settings() {
        if !NOT_SENT.contains(&name) {
            request = request.with_setting(name, value);
        }
    }
    match fence {
        SecondFence::InRequest => request = request.with_setting(query.fence().setting(), query.fence().value()),
        SecondFence::AtServer => request = request.with_roles(query.tenants().iter().map(|t| role_name(t))),
    }
    for param in query.params() {
        request = request.with_setting(format!("param_{}", param.name()), param.text());
    }
    let mut cursor = request.fetch_bytes("JSONCompactEachRow")?;
    rows_of(&read_capped(&mut cursor, LONGEST_ANSWER).await?)
}

/// The rows of every line: database, table, parts, rows, marks. No line is nothing to read.
fn rows_of(text: &[u8]) -> Result<u64, Failure> {
    let mut rows = 0_u64;
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let (_, _, _, of_table, _): (String, String, u64, u64, u64) =
            serde_json::from_slice(line).map_err(|_| Failure::Malformed)?;
        rows = rows.saturating_add(of_table);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::rows_of;
    use crate::client::code::Failure;

    #[test]
    fn rows_are_added_up_and_nothing_to_read_is_nothing() {
        assert_eq!(rows_of(b""), Ok(0));
        assert_eq!(rows_of(b"[\"db\",\"metrics\",3,16384,2]\n[\"db\",\"metrics\",1,5,1]\n"), Ok(16_389));
        assert_eq!(rows_of(b"[\"db\",\"metrics\",3]\n"), Err(Failure::Malformed));
    }
}
