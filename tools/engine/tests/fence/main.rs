//! The second fence: what it keeps out when the guard is wrong, and that nothing is answered before it is proved.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail by panicking, as tests do")]

mod corpus;
#[path = "../ingest_engine/engine.rs"]
mod engine;
mod fake;
mod proof;
