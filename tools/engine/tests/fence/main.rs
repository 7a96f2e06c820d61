//! The second fence: what it keeps out when the guard is wrong, and that nothing is answered before it is proved.

#[cfg(test)]
mod admin_sql;
#[cfg(test)]
#[path = "../ingest_engine/admitted.rs"]
mod admitted;
#[cfg(test)]
mod corpus;
#[cfg(test)]
#[path = "../ingest_engine/engine.rs"]
mod engine;
#[cfg(test)]
mod fake;
#[cfg(test)]
#[path = "../ingest_engine/plain_http.rs"]
mod plain_http;
#[cfg(test)]
mod proof;
