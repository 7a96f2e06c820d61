//! One file of a bundle on its way into its table.
//!
//! The engine reads the Parquet itself, into a staging table whose columns are those of the file format. The distinct label
//! sets are read back, their entities are told here (the rules are code and data of this side, not SQL), and one INSERT …
//! SELECT joins both into the dataset's table.

use std::path::Path;

use serde_json::Value;
use sightline_model::Dataset;
use sightline_model::rows::Labels;

use super::blank;
use super::entities::{Entities, Origin, Scope, entities};
use super::error::IngestError;
use super::row_binary as put;
use super::schema::{self, Staging};
use crate::bundle::{Bundle, file_name, parquet_ends};
use crate::client::{WriteError, Writer};
use crate::native::{DatabaseName, OPEN_END_MS};

/// Label sets are sent on when they come to this, bytes.
const SEND_AT: usize = 4 << 20;

/// Loads the file of one dataset into the tables of `database`, and says what was dropped.
pub(super) async fn load_file(
    writer: &Writer,
    database: &DatabaseName,
    bundle: &Bundle,
    dataset: Dataset,
    path: &Path,
) -> Result<Vec<String>, IngestError> {
    let file = file_name(dataset);
    let staging = inspect(writer, dataset, &file, path).await?;
    stage(writer, database, dataset, &file, path, &staging).await?;
    let scope = Scope { tenant: bundle.manifest.tenant.clone(), cluster: bundle.manifest.cluster.clone() };
    if sightline_query::schema::has_labels(dataset) {
        read_labels(writer, database, dataset, bundle, &scope).await?;
    }
    let dropped = dropped(writer, database, dataset, &file).await?;
    let defaults = [("tenant", scope.tenant.as_str()), ("cluster", scope.cluster.as_str())];
    let params: &[(&str, &str)] = if dataset == Dataset::JobGpus { &defaults } else { &[] };
    writer.execute_with(&insert_select(database, dataset), params).await?;
    for table in [format!("load_{dataset}"), format!("load_{dataset}_labels")] {
        writer.execute(&format!("DROP TABLE IF EXISTS {database}.{table}")).await?;
    }
    Ok(dropped)
}

/// Asks the engine for the file's columns, from its footer alone, and holds them against the format.
async fn inspect(writer: &Writer, dataset: Dataset, file: &str, path: &Path) -> Result<Staging, IngestError> {
    let ends = hex::encode(parquet_ends(path)?);
    let described = writer.rows("DESCRIBE TABLE format(Parquet, unhex({ends:String}))", &[("ends", &ends)]).await;
    let described = described.map_err(|error| match error {
        WriteError::Refused { code } => IngestError::BadFooter { file: file.to_owned(), code },
        other => other.into(),
    })?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let columns: Vec<(String, String)> = described.iter().map(|row| (text(row.first()), text(row.get(1)))).collect();
    schema::check(dataset, file, &columns)
}

/// Has the engine read the file into a table of its own.
async fn stage(
    writer: &Writer,
    database: &DatabaseName,
    dataset: Dataset,
    file: &str,
    path: &Path,
    staging: &Staging,
) -> Result<(), IngestError> {
    let mut columns: Vec<String> = staging.columns.iter().map(|(name, ty)| format!("`{name}` {ty}")).collect();
    if sightline_query::schema::has_labels(dataset) {
        columns.push("label_key FixedString(16) MATERIALIZED sipHash128(toString(labels))".to_owned());
    }
    let columns = columns.join(", ");
    writer
        .execute(&format!("CREATE TABLE {database}.load_{dataset} ({columns}) ENGINE = MergeTree ORDER BY tuple()"))
        .await?;
    let present: Vec<String> = staging.present.iter().map(|name| format!("`{name}`")).collect();
    let sql = format!("INSERT INTO {database}.load_{dataset} ({}) FORMAT Parquet", present.join(", "));
    writer.insert_file(sql, path).await.map_err(|error| match error {
        WriteError::Refused { code } => IngestError::BadRows { file: file.to_owned(), code },
        other => other.into(),
    })
}

/// Tells the entities of every distinct label set.
async fn read_labels(
    writer: &Writer,
    database: &DatabaseName,
    dataset: Dataset,
    bundle: &Bundle,
    scope: &Scope,
) -> Result<(), WriteError> {
    let table = format!("{database}.load_{dataset}_labels");
    let columns = "label_key FixedString(16), tenant String, cluster String, node String, gpu String, service String, pod String, labels Map(LowCardinality(String), String)";
    writer.execute(&format!("CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY label_key")).await?;
    let origin = if dataset == Dataset::Metrics { Origin::Scraped } else { Origin::Written };
    let sql = format!("SELECT hex(label_key), any(labels) FROM {database}.load_{dataset} GROUP BY label_key");
    let mut rows = writer.select(&sql)?;
    let mut insert = writer.insert(format!("INSERT INTO {table} FORMAT RowBinary"));
    let mut encoded = Vec::new();
    let mut any = false;
    while let Some(batch) = rows.next().await? {
        for row in batch {
            let (key, stored) = label_row(row)?;
            encoded.extend_from_slice(&key);
            let Entities { tenant, cluster, node, gpu, service, pod, labels } =
                entities(&bundle.aliases, scope, &stored, origin);
            for column in [&tenant, &cluster, &node, &gpu, &service, &pod] {
                put::text(&mut encoded, column);
            }
            put::labels(&mut encoded, &labels);
        }
        if encoded.len() >= SEND_AT {
            insert.send(std::mem::take(&mut encoded)).await?;
        }
        any = true;
    }
    if any {
        insert.send(encoded).await?;
        insert.end().await?;
    }
    Ok(())
}

/// A key of 16 bytes and a label set; an absent label is null.
fn label_row(row: Vec<Value>) -> Result<(Vec<u8>, Labels), WriteError> {
    let mut values = row.into_iter();
    let (Some(Value::String(key)), Some(Value::Object(stored))) = (values.next(), values.next()) else {
        return Err(WriteError::Malformed);
    };
    let key = hex::decode(key).map_err(|_| WriteError::Malformed)?;
    let mut labels = Labels::new();
    for (name, value) in stored {
        match value {
            Value::String(text) => labels.insert(name, text),
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err(WriteError::Malformed);
            }
        };
    }
    Ok((key, labels))
}

/// Counts the rows that cannot be used, by reason.
async fn dropped(
    writer: &Writer,
    database: &DatabaseName,
    dataset: Dataset,
    file: &str,
) -> Result<Vec<String>, WriteError> {
    let blank = blank::condition("s.metric", "s.value");
    let reasons: Vec<(String, &str)> = match dataset {
        Dataset::Metrics => vec![
            ("s.time IS NULL OR s.metric = ''".to_owned(), "rows without a time or a metric"),
            ("NOT isFinite(s.value)".to_owned(), "samples that are no number (NaN or infinite)"),
            (blank, "samples by which DCGM says that it has no value"),
        ],
        Dataset::Logs | Dataset::Spans | Dataset::Events => {
            vec![("s.time IS NULL".to_owned(), "rows without a time")]
        }
        Dataset::Jobs => vec![(
            "s.job_id = '' OR (s.start IS NULL AND s.submit IS NULL)".to_owned(),
            "jobs without an id, or without a start and a submit time",
        )],
        Dataset::JobGpus => vec![
            ("s.job_id = '' OR s.start IS NULL".to_owned(), "rows without a job or a start"),
            (
                format!(
                    "(s.tenant = '' OR s.cluster = '') AND s.job_id IN (SELECT job_id FROM {database}.jobs GROUP BY job_id HAVING uniqExact(tenant, cluster) > 1)"
                ),
                "rows whose job id belongs to several jobs; add columns `tenant` and `cluster`",
            ),
        ],
    };
    let mut warnings = Vec::new();
    for (condition, what) in reasons {
        let count =
            writer.number(&format!("SELECT count() FROM {database}.load_{dataset} AS s WHERE {condition}")).await?;
        if count > 0 {
            warnings.push(format!("`{file}`: dropped {count} {what}"));
        }
    }
    Ok(warnings)
}

/// The statement that joins a staged file and its label sets into the dataset's table.
fn insert_select(database: &DatabaseName, dataset: Dataset) -> String {
    let open_end = format!("fromUnixTimestamp64Milli({OPEN_END_MS}, 'UTC')");
    let whole = |column: &str, ty: &str| format!("ifNull(accurateCastOrNull(s.{column}, '{ty}'), 0)");
    let own = |column: &str, other: &str| format!("if(s.{column} != '', s.{column}, {other})");
    let text = |columns: &[&str]| {
        columns.iter().map(|column| ((*column).to_owned(), format!("s.{column}"))).collect::<Vec<_>>()
    };
    let labelled = |columns: &[&str]| {
        columns.iter().map(|column| ((*column).to_owned(), format!("r.{column}"))).collect::<Vec<_>>()
    };
    let one = |column: &str, expression: String| vec![(column.to_owned(), expression)];
    let time = || one("time", "assumeNotNull(s.time)".to_owned());
    let (columns, condition) = match dataset {
        Dataset::Metrics => (
            [
                labelled(&["tenant", "cluster", "node", "gpu", "service", "labels"]),
                text(&["metric"]),
                time(),
                one("value", "assumeNotNull(s.value)".to_owned()),
            ]
            .concat(),
            format!(
                "s.time IS NOT NULL AND s.metric != '' AND isFinite(s.value) AND NOT {}",
                blank::condition("s.metric", "s.value")
            ),
        ),
        Dataset::Logs => (
            [
                labelled(&["tenant", "cluster", "node", "gpu", "labels"]),
                one("service", own("service", "r.service")),
                text(&["severity", "body"]),
                time(),
            ]
            .concat(),
            "s.time IS NOT NULL".to_owned(),
        ),
        Dataset::Spans => (
            [
                labelled(&["tenant", "cluster", "node", "labels"]),
                one("service", own("service", "r.service")),
                one("pod", own("pod", "r.pod")),
                text(&["operation", "trace_id", "span_id", "parent_id"]),
                one("duration_us", whole("duration_us", "Int64")),
                time(),
            ]
            .concat(),
            "s.time IS NOT NULL".to_owned(),
        ),
        Dataset::Events => (
            [labelled(&["tenant", "cluster", "node", "gpu", "service", "labels"]), text(&["kind", "body"]), time()]
                .concat(),
            "s.time IS NOT NULL".to_owned(),
        ),
        Dataset::Jobs => (
            [
                one("tenant", own("tenant", "r.tenant")),
                one("cluster", own("cluster", "r.cluster")),
                text(&["job_id", "name", "kind", "state"]),
                one("user", own("user", "r.labels['user']")),
                labelled(&["labels"]),
                one("submit", "assumeNotNull(coalesce(s.submit, s.start))".to_owned()),
                // A job that waits has no start yet; it is known from when it was submitted.
                one("time", "assumeNotNull(coalesce(s.start, s.submit))".to_owned()),
                one("end_time", format!("ifNull(s.end, {open_end})")),
            ]
            .concat(),
            "s.job_id != '' AND (s.start IS NOT NULL OR s.submit IS NOT NULL)".to_owned(),
        ),
        Dataset::JobGpus => (
            [
                one("tenant", own("tenant", "if(r.jobs > 0, r.tenant, {tenant:String})")),
                one("cluster", own("cluster", "if(r.jobs > 0, r.cluster, {cluster:String})")),
                text(&["job_id", "node", "gpu", "gpu_uuid"]),
                one("attempt", whole("attempt", "UInt32")),
                one("rank", whole("rank", "UInt32")),
                one("time", "assumeNotNull(s.start)".to_owned()),
                one("end_time", format!("ifNull(s.end, {open_end})")),
            ]
            .concat(),
            "s.job_id != '' AND s.start IS NOT NULL AND (r.jobs <= 1 OR (s.tenant != '' AND s.cluster != ''))"
                .to_owned(),
        ),
    };
    let source = if dataset == Dataset::JobGpus {
        format!(
            "LEFT JOIN (SELECT job_id, uniqExact(j.tenant, j.cluster) AS jobs, any(j.tenant) AS tenant, any(j.cluster) AS cluster FROM {database}.jobs AS j GROUP BY job_id) AS r ON s.job_id = r.job_id"
        )
    } else {
        format!("INNER JOIN {database}.load_{dataset}_labels AS r ON s.label_key = r.label_key")
    };
    let (names, expressions): (Vec<String>, Vec<String>) = columns.into_iter().unzip();
    format!(
        "INSERT INTO {database}.{dataset} ({}) SELECT {} FROM {database}.load_{dataset} AS s {source} WHERE {condition} SETTINGS max_partitions_per_insert_block = 0",
        names.join(", "),
        expressions.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use sightline_model::Dataset;

    use super::insert_select;
    use crate::native::DatabaseName;

    #[test]
    fn the_joins_are_these() {
        let database = DatabaseName::new("loading_0f").unwrap();
        let all: Vec<String> = Dataset::ALL.into_iter().map(|dataset| insert_select(&database, dataset)).collect();
        insta::assert_snapshot!(all.join(";\n\n"));
    }
}
