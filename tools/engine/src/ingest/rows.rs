//! Inserting rows of this process.

use std::collections::BTreeMap;

use sightline_model::Dataset;
use sightline_model::rows::Rows;
use sightline_query::catalogue::LabelAliases;
use tokio::sync::mpsc::Receiver;

use super::encode::{EncodedRows, RowEncoder};
use super::entities::Scope;
use crate::client::{WriteError, Writer};
use crate::native::DatabaseName;

/// Rows of the intake table in one block. With at most 512 samples each, a block of samples stays near a million rows.
const RUNS_PER_BLOCK: u32 = 2048;
/// Samples in one part of `metrics`: fewer parts are less to merge. Measured with 12 labels a row on libchdb 26.5.3: 1.1 million
/// rows a second and core, against 0.9 in the engine's own blocks of 65,409 rows.
const SAMPLES_PER_BLOCK: u32 = 1 << 20;
/// A million samples with a dozen labels are some 300 MB in memory.
const BYTES_PER_BLOCK: u32 = 1 << 30;

/// Inserts rows into the tables of [`crate::native::create`].
///
/// # Errors
/// When the engine refuses or cannot be reached.
pub async fn insert_rows(
    writer: &Writer,
    database: &DatabaseName,
    rows: &Rows,
    aliases: &LabelAliases,
    defaults: &Scope,
) -> Result<BTreeMap<Dataset, u64>, WriteError> {
    let mut encoder = RowEncoder::new(aliases.clone(), defaults.clone());
    encoder.rows(rows);
    insert_encoded(writer, database, encoder.take()).await
}

/// Inserts encoded rows into the tables of [`crate::native::create`], and says how many of each dataset.
///
/// # Errors
/// When the engine refuses or cannot be reached.
pub async fn insert_encoded(
    writer: &Writer,
    database: &DatabaseName,
    rows: EncodedRows,
) -> Result<BTreeMap<Dataset, u64>, WriteError> {
    let counts = rows.rows().clone();
    for (dataset, data) in rows.parts {
        let (table, columns) = target(dataset);
        // A block that spans many months is fine here; the engine's own limit of 100 parts per block is for accidents.
        let mut settings = "max_partitions_per_insert_block = 0".to_owned();
        if dataset == Dataset::Metrics {
            settings.push_str(&format!(
                ", max_insert_block_size = {RUNS_PER_BLOCK}, min_insert_block_size_rows = {RUNS_PER_BLOCK}, max_block_size = {SAMPLES_PER_BLOCK}, min_insert_block_size_rows_for_materialized_views = {SAMPLES_PER_BLOCK}, min_insert_block_size_bytes_for_materialized_views = {BYTES_PER_BLOCK}"
            ));
        }
        let sql = format!("INSERT INTO {database}.{table} ({columns}) SETTINGS {settings} FORMAT RowBinary");
        let mut insert = writer.insert(sql);
        insert.send(data).await?;
        insert.end().await?;
    }
    Ok(counts)
}

/// Inserts encoded rows as they come, until the sender is gone: the encoder may run on a thread of its own meanwhile.
///
/// # Errors
/// When the engine refuses or cannot be reached.
pub async fn insert_stream(
    writer: &Writer,
    database: &DatabaseName,
    mut rows: Receiver<EncodedRows>,
) -> Result<BTreeMap<Dataset, u64>, WriteError> {
    let mut total: BTreeMap<Dataset, u64> = BTreeMap::new();
    while let Some(encoded) = rows.recv().await {
        for (dataset, count) in insert_encoded(writer, database, encoded).await? {
            let sum = total.entry(dataset).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Ok(total)
}

/// The table that encoded rows of a dataset go to, with its columns in the order they are encoded in.
fn target(dataset: Dataset) -> (&'static str, &'static str) {
    match dataset {
        Dataset::Metrics => ("metrics_in", "tenant, cluster, metric, node, gpu, service, labels, times, samples"),
        Dataset::Logs => ("logs", "tenant, cluster, node, gpu, service, severity, labels, time, body"),
        Dataset::Spans => (
            "spans",
            "tenant, cluster, node, service, pod, operation, labels, time, duration_us, trace_id, span_id, parent_id",
        ),
        Dataset::Events => ("events", "tenant, cluster, node, gpu, service, kind, labels, time, body"),
        Dataset::Jobs => ("jobs", "tenant, cluster, job_id, name, user, kind, state, labels, submit, time, end_time"),
        Dataset::JobGpus => ("job_gpus", "tenant, cluster, job_id, attempt, node, gpu, gpu_uuid, rank, time, end_time"),
    }
}
