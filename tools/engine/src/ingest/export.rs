//! Writing a bundle: the six Parquet files and `bundle.toml`.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sightline_model::Dataset;
use sightline_model::rows::Rows;

use super::row_binary as put;
use crate::bundle::file_name;
use crate::client::{WriteError, Writer};
use crate::native::{DatabaseName, OPEN_END_MS};

/// Tells the exports of this process apart.
static EXPORTS: AtomicU64 = AtomicU64::new(0);

/// Writes rows as the bundle's data files, labels as they are. Datasets without rows get no file; files that are there are
/// replaced.
///
/// # Errors
/// When the engine refuses or cannot be reached, or a file cannot be written.
pub async fn export_rows(writer: &Writer, rows: &Rows, dir: &Path, manifest: &str) -> Result<(), WriteError> {
    let name = format!("exporting_{}_{}", std::process::id(), EXPORTS.fetch_add(1, Ordering::Relaxed));
    let database = DatabaseName::new(&name).map_err(|_| WriteError::Malformed)?;
    writer.execute(&format!("CREATE DATABASE {database}")).await?;
    let written = write_rows(writer, &database, rows, dir, manifest).await;
    writer.execute(&format!("DROP DATABASE IF EXISTS {database}")).await?;
    written
}

async fn write_rows(
    writer: &Writer,
    database: &DatabaseName,
    rows: &Rows,
    dir: &Path,
    manifest: &str,
) -> Result<(), WriteError> {
    prepare(dir, manifest).await?;
    for dataset in Dataset::ALL {
        let encoded = encode(rows, dataset);
        if encoded.is_empty() {
            continue;
        }
        let columns = file_columns(dataset);
        writer
            .execute(&format!("CREATE TABLE {database}.{dataset} ({columns}) ENGINE = MergeTree ORDER BY tuple()"))
            .await?;
        let mut insert = writer.insert(format!("INSERT INTO {database}.{dataset} FORMAT RowBinary"));
        insert.send(encoded).await?;
        insert.end().await?;
        let file = dir.join("data").join(file_name(dataset));
        writer.save(&format!("SELECT * FROM {database}.{dataset}"), "Parquet", &file).await?;
    }
    Ok(())
}

/// Writes a database of the product's tables as a bundle. Its labels carry the canonical names beside the stored ones.
///
/// # Errors
/// When the engine refuses or cannot be reached, or a file cannot be written.
pub async fn export_database(
    writer: &Writer,
    database: &DatabaseName,
    dir: &Path,
    manifest: &str,
) -> Result<(), WriteError> {
    prepare(dir, manifest).await?;
    for dataset in Dataset::ALL {
        if writer.number(&format!("SELECT count() FROM {database}.{dataset}")).await? == 0 {
            continue;
        }
        let sql = format!("SELECT {} FROM {database}.{dataset} AS t", table_columns(dataset));
        writer.save(&sql, "Parquet", &dir.join("data").join(file_name(dataset))).await?;
    }
    Ok(())
}

async fn prepare(dir: &Path, manifest: &str) -> Result<(), WriteError> {
    let error = |source| WriteError::File { path: dir.display().to_string(), source };
    tokio::fs::create_dir_all(dir.join("data")).await.map_err(error)?;
    tokio::fs::write(dir.join("bundle.toml"), manifest).await.map_err(error)
}

/// The columns of a dataset's file, in the order [`encode`] writes them.
fn file_columns(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Metrics => "time DateTime64(3, 'UTC'), metric String, labels Map(String, String), value Float64",
        Dataset::Logs => {
            "time DateTime64(9, 'UTC'), severity String, service String, labels Map(String, String), body String"
        }
        Dataset::Spans => {
            "time DateTime64(9, 'UTC'), duration_us Int64, trace_id String, span_id String, parent_id String, service String, pod String, operation String, labels Map(String, String)"
        }
        Dataset::Events => "time DateTime64(3, 'UTC'), kind String, labels Map(String, String), body String",
        Dataset::Jobs => {
            "job_id String, name String, tenant String, cluster String, user String, kind String, state String, submit DateTime64(3, 'UTC'), start DateTime64(3, 'UTC'), end Nullable(DateTime64(3, 'UTC')), labels Map(String, String)"
        }
        Dataset::JobGpus => {
            "job_id String, tenant String, cluster String, attempt UInt32, node String, gpu String, gpu_uuid String, rank UInt32, start DateTime64(3, 'UTC'), end Nullable(DateTime64(3, 'UTC'))"
        }
    }
}

fn encode(rows: &Rows, dataset: Dataset) -> Vec<u8> {
    let mut out = Vec::new();
    let out_ref = &mut out;
    match dataset {
        Dataset::Metrics => rows.metrics.iter().for_each(|row| {
            put::millis(out_ref, row.time);
            put::text(out_ref, &row.metric);
            put::labels(out_ref, &row.labels);
            put::float64(out_ref, row.value);
        }),
        Dataset::Logs => rows.logs.iter().for_each(|row| {
            put::nanos(out_ref, row.time);
            put::text(out_ref, &row.severity);
            put::text(out_ref, &row.service);
            put::labels(out_ref, &row.labels);
            put::text(out_ref, &row.body);
        }),
        Dataset::Spans => rows.spans.iter().for_each(|row| {
            put::nanos(out_ref, row.time);
            put::int64(out_ref, row.duration_us);
            for text in [&row.trace_id, &row.span_id, &row.parent_id, &row.service, &row.pod, &row.operation] {
                put::text(out_ref, text);
            }
            put::labels(out_ref, &row.labels);
        }),
        Dataset::Events => rows.events.iter().for_each(|row| {
            put::millis(out_ref, row.time);
            put::text(out_ref, &row.kind);
            put::labels(out_ref, &row.labels);
            put::text(out_ref, &row.body);
        }),
        Dataset::Jobs => rows.jobs.iter().for_each(|row| {
            for text in [&row.job_id, &row.name, &row.tenant, &row.cluster, &row.user, &row.kind, &row.state] {
                put::text(out_ref, text);
            }
            put::millis(out_ref, row.submit);
            put::millis(out_ref, row.start);
            put::optional_millis(out_ref, row.end);
            put::labels(out_ref, &row.labels);
        }),
        Dataset::JobGpus => rows.job_gpus.iter().for_each(|row| {
            for text in [&row.job_id, &row.tenant, &row.cluster] {
                put::text(out_ref, text);
            }
            put::uint32(out_ref, row.attempt);
            for text in [&row.node, &row.gpu, &row.gpu_uuid] {
                put::text(out_ref, text);
            }
            put::uint32(out_ref, row.rank);
            put::millis(out_ref, row.start);
            put::optional_millis(out_ref, row.end);
        }),
    }
    out
}

/// The columns of a dataset's file, read from the product's table.
fn table_columns(dataset: Dataset) -> String {
    let labels = "CAST(mapUpdate(CAST(t.labels, 'Map(String, String)'), map('tenant', toString(t.tenant), 'cluster', toString(t.cluster))), 'Map(String, String)') AS labels";
    let end = format!("if(toUnixTimestamp64Milli(t.end_time) >= {OPEN_END_MS}, NULL, t.end_time) AS end");
    let text = |columns: &[&str]| {
        columns.iter().map(|column| format!("toString(t.{column}) AS {column}")).collect::<Vec<String>>().join(", ")
    };
    match dataset {
        Dataset::Metrics => format!("t.time AS time, {}, {labels}, t.value AS value", text(&["metric"])),
        Dataset::Logs => format!("t.time AS time, {}, {labels}, t.body AS body", text(&["severity", "service"])),
        Dataset::Spans => format!(
            "t.time AS time, t.duration_us AS duration_us, {}, {labels}",
            text(&["trace_id", "span_id", "parent_id", "service", "pod", "operation"])
        ),
        Dataset::Events => format!("t.time AS time, {}, {labels}, t.body AS body", text(&["kind"])),
        Dataset::Jobs => format!(
            "{}, t.submit AS submit, t.time AS start, {end}, {labels}",
            text(&["job_id", "name", "tenant", "cluster", "user", "kind", "state"])
        ),
        Dataset::JobGpus => format!(
            "{}, t.attempt AS attempt, {}, t.rank AS rank, t.time AS start, {end}",
            text(&["job_id", "tenant", "cluster"]),
            text(&["node", "gpu", "gpu_uuid"])
        ),
    }
}
