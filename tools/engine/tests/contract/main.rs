//! What Sightline relies on in a ClickHouse, embedded or not.
//!
//! Without `SIGHTLINE_TEST_CLICKHOUSE_URL` every test starts an embedded engine of its own. With it (and
//! `SIGHTLINE_TEST_CLICKHOUSE_USER` and `_PASSWORD`) the tests of what any server must do run against that server; those
//! of the front, the second fence and the process need the embedded engine and pass over.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail by panicking, as tests do")]

mod cancel;
mod fence;
mod http;
mod limits;
mod parameters;
#[path = "../ingest_engine/plain_http.rs"]
mod plain_http;
mod process;
mod results;
mod target;
