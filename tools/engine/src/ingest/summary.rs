//! What a database of the product's tables holds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sightline_model::Dataset;

use super::error::IngestError;
use super::load::check_version;
use crate::bundle::Bundle;
use crate::client::{WriteError, Writer};
use crate::native::{DatabaseName, OPEN_END_MS};

/// A loaded bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedBundle {
    /// The database it is in.
    pub database: String,
    /// The folder's name when it was first loaded.
    pub name: String,
    /// The tenants whose rows it holds, sorted.
    pub tenants: Vec<String>,
    /// The clusters, sorted.
    pub clusters: Vec<String>,
    /// The time of its latest row.
    pub latest: Timestamp,
    /// Rows of each dataset that has any.
    pub rows: BTreeMap<Dataset, u64>,
    /// What was dropped or not understood.
    pub warnings: Vec<String>,
    /// Further stored names of metrics, for `Catalogue::with_aliases`; those of the folder that was named last.
    #[serde(default)]
    pub metric_aliases: BTreeMap<String, Vec<String>>,
}

/// The bundles that are loaded, by name of their database.
///
/// # Errors
/// When the engine cannot be asked.
pub async fn list_bundles(writer: &Writer) -> Result<Vec<LoadedBundle>, IngestError> {
    let sql = "SELECT name FROM system.databases WHERE startsWith(name, 'incident_') ORDER BY name";
    let mut bundles = Vec::new();
    for name in texts(&writer.rows(sql, &[]).await?) {
        let Ok(database) = DatabaseName::new(&name) else { continue };
        bundles.extend(find(writer, &database).await?);
    }
    Ok(bundles)
}

/// The tenants that any row of the database belongs to, sorted.
///
/// # Errors
/// When the engine cannot be asked.
pub async fn tenants(writer: &Writer, database: &DatabaseName) -> Result<Vec<String>, WriteError> {
    distinct(writer, database, "tenant").await
}

/// The clusters that any row of the database belongs to, sorted.
///
/// # Errors
/// When the engine cannot be asked.
pub async fn clusters(writer: &Writer, database: &DatabaseName) -> Result<Vec<String>, WriteError> {
    distinct(writer, database, "cluster").await
}

/// The time of the latest sample, log line, span or event; without any, of the latest thing that happened to a job.
///
/// # Errors
/// When the engine cannot be asked.
pub async fn latest(writer: &Writer, database: &DatabaseName) -> Result<Option<Timestamp>, WriteError> {
    let max = |table: &str, column: &str| {
        format!("SELECT maxOrNull(toUnixTimestamp64Milli({column})) AS at FROM {database}.{table}")
    };
    let sampled = [
        max("metrics", "time"),
        max("logs", "toDateTime64(time, 3)"),
        max("spans", "toDateTime64(time, 3)"),
        max("events", "time"),
    ];
    let ended =
        |table: &str| format!("{} WHERE toUnixTimestamp64Milli(end_time) < {OPEN_END_MS}", max(table, "end_time"));
    let scheduled = [max("jobs", "time"), max("job_gpus", "time"), ended("jobs"), ended("job_gpus")];
    for selects in [sampled, scheduled] {
        let sql = format!("SELECT max(at) FROM ({})", selects.join(" UNION ALL "));
        let rows = writer.rows(&sql, &[]).await?;
        let at = rows.first().and_then(|row| row.first()).and_then(Value::as_i64);
        if let Some(at) = at {
            return Timestamp::from_millisecond(at).map(Some).map_err(|_| WriteError::Malformed);
        }
    }
    Ok(None)
}

/// The summary that a load left behind; none when the database does not exist.
pub(super) async fn find(writer: &Writer, database: &DatabaseName) -> Result<Option<LoadedBundle>, IngestError> {
    let sql = "SELECT count() FROM system.tables WHERE database = {name:String} AND name = 'bundle'";
    let rows = writer.rows(sql, &[("name", database.as_str())]).await?;
    let there = rows.first().and_then(|row| row.first()).and_then(Value::as_u64).unwrap_or(0) > 0;
    if !there {
        return Ok(None);
    }
    check_version(writer, database).await?;
    let rows = writer.rows(&format!("SELECT summary FROM {database}.bundle"), &[]).await?;
    let text = texts(&rows).into_iter().next().ok_or(WriteError::Malformed)?;
    Ok(Some(serde_json::from_str(&text).map_err(|_| WriteError::Malformed)?))
}

/// Looks through a database that was just filled; none when no row is in it.
pub(super) async fn summarise(
    writer: &Writer,
    database: &DatabaseName,
    bundle: &Bundle,
    warnings: &[String],
) -> Result<Option<LoadedBundle>, WriteError> {
    let mut rows = BTreeMap::new();
    for dataset in Dataset::ALL {
        let count = writer.number(&format!("SELECT count() FROM {database}.{dataset}")).await?;
        if count > 0 {
            rows.insert(dataset, count);
        }
    }
    let Some(latest) = latest(writer, database).await? else { return Ok(None) };
    Ok(Some(LoadedBundle {
        database: bundle.database.to_string(),
        name: bundle.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        tenants: tenants(writer, database).await?,
        clusters: clusters(writer, database).await?,
        latest,
        rows,
        warnings: warnings.to_vec(),
        metric_aliases: BTreeMap::new(),
    }))
}

/// Keeps the summary in the database it is about.
pub(super) async fn store(writer: &Writer, database: &DatabaseName, loaded: &LoadedBundle) -> Result<(), WriteError> {
    writer
        .execute(&format!("CREATE TABLE {database}.bundle (summary String) ENGINE = MergeTree ORDER BY tuple()"))
        .await?;
    let text = serde_json::to_string(loaded).map_err(|_| WriteError::Malformed)?;
    writer
        .execute_with(&format!("INSERT INTO {database}.bundle SELECT {{summary:String}}"), &[("summary", &text)])
        .await
}

async fn distinct(writer: &Writer, database: &DatabaseName, column: &str) -> Result<Vec<String>, WriteError> {
    let selects: Vec<String> = Dataset::ALL
        .into_iter()
        .map(|dataset| format!("SELECT DISTINCT toString({column}) AS name FROM {database}.{dataset}"))
        .collect();
    let sql = format!("SELECT DISTINCT name FROM ({}) ORDER BY name", selects.join(" UNION ALL "));
    Ok(texts(&writer.rows(&sql, &[]).await?))
}

fn texts(rows: &[Vec<Value>]) -> Vec<String> {
    rows.iter().filter_map(|row| row.first()).filter_map(Value::as_str).map(str::to_owned).collect()
}
