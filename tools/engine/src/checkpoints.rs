//! A second place for the audit log's checkpoints: a table in a database of its own, which nothing else writes and no
//! dataset is mapped to. What is kept is a signature over hashes; it tells nothing of what was asked or read.

use serde_json::Value;

use crate::client::{WriteError, Writer};

/// Where they are kept. Databases of telemetry come and go; this one stays.
const DATABASE: &str = "sightline_audit";
const TABLE: &str = "audit_checkpoint";

/// Makes the table where it is missing.
///
/// # Errors
/// When the engine refuses or cannot be asked.
pub async fn make_checkpoint_table(writer: &Writer) -> Result<(), WriteError> {
    writer.execute(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}")).await?;
    // Rows of one segment that differ are both kept: that they differ is what a reviewer looks for.
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {DATABASE}.{TABLE}\n(\n    log_id String,\n    segment UInt64,\n    checkpoint String\n)\nENGINE = MergeTree\nORDER BY (log_id, segment)"
    );
    writer.execute(&sql).await
}

/// Keeps a checkpoint, as JSON.
///
/// # Errors
/// When the engine refuses or cannot be asked.
pub async fn keep_checkpoint(writer: &Writer, log_id: &str, segment: u64, checkpoint: &str) -> Result<(), WriteError> {
    let sql =
        format!("INSERT INTO {DATABASE}.{TABLE} SELECT {{log_id:String}}, {{segment:UInt64}}, {{checkpoint:String}}");
    let segment = segment.to_string();
    writer.execute_with(&sql, &[("log_id", log_id), ("segment", &segment), ("checkpoint", checkpoint)]).await
}

/// The newest segment of this log that is kept; 0 when there is none.
///
/// # Errors
/// When the engine refuses or cannot be asked.
pub async fn newest_checkpoint(writer: &Writer, log_id: &str) -> Result<u64, WriteError> {
    let sql = format!("SELECT max(segment) FROM {DATABASE}.{TABLE} WHERE log_id = {{log_id:String}}");
    let rows = writer.rows(&sql, &[("log_id", log_id)]).await?;
    rows.first().and_then(|row| row.first()).and_then(Value::as_u64).ok_or(WriteError::Malformed)
}

/// Every checkpoint that is kept, of every log, as JSON.
///
/// # Errors
/// When the engine refuses or cannot be asked.
pub async fn kept_checkpoints(writer: &Writer) -> Result<Vec<String>, WriteError> {
    let rows = writer.rows(&format!("SELECT checkpoint FROM {DATABASE}.{TABLE} ORDER BY log_id, segment"), &[]).await?;
    rows.into_iter()
        .map(|row| match row.into_iter().next() {
            Some(Value::String(text)) => Ok(text),
            Some(_) | None => Err(WriteError::Malformed),
        })
        .collect()
}
