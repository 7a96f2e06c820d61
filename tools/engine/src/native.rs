//! The product's own tables: one per dataset, in one database.
//!
//! The names of tables and columns are those of the guard's native mapping. Every table's key begins with the tenant, so that no
//! query reads past the rows it may see. `metrics` is sorted so that one metric of one GPU lies together.

use sightline_query::KEPT_STEP_MS;

use crate::client::{WriteError, Writer};

/// The version of these tables, kept as the database's comment. It changes with any of them.
pub const NATIVE_VERSION: u32 = 3;

/// The table that holds one row for proving that the second fence holds; no dataset is mapped to it.
pub const CANARY_TABLE: &str = "fence_canary";
/// Whose that row is: a tenant that no principal belongs to and no row of telemetry carries.
pub const CANARY_TENANT: &str = "sightline-canary";

/// What a database's comment begins with.
const COMMENT: &str = "sightline native";

/// The end of a job or interval that still runs: past any time that is asked about, so that overlap needs no special case.
pub(crate) const OPEN_END_MS: i64 = 4_102_444_800_000;

/// Values from a small vocabulary.
const WORD: &str = "LowCardinality(String)";
const LABELS: &str = "Map(LowCardinality(String), String)";
/// Times of one series rise by about the same step; values of one series resemble each other.
const METRIC_TIME: &str = "DateTime64(3, 'UTC') CODEC(DoubleDelta, LZ4)";
const METRIC_VALUE: &str = "Float64 CODEC(Gorilla, LZ4)";
const MILLIS: &str = "DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))";
const NANOS: &str = "DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1))";
const BODY: &str = "String CODEC(ZSTD(1))";

/// The name of a database, fit to be printed into a statement. Guaranteed: letters, digits and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatabaseName(String);

/// A name that would need quoting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a database name; use up to 64 letters, digits and underscores, not starting with a digit")]
pub struct BadDatabaseName(String);

impl DatabaseName {
    /// Checks the name.
    ///
    /// # Errors
    /// When it is not a plain identifier.
    pub fn new(name: &str) -> Result<Self, BadDatabaseName> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        let own = !["system", "information_schema", "default"].contains(&name.to_ascii_lowercase().as_str());
        if plain && starts && own && name.len() <= 64 {
            Ok(Self(name.to_owned()))
        } else {
            Err(BadDatabaseName(name.to_owned()))
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for DatabaseName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The statements that make the database and its tables. There is no TTL: a recorded incident stays as it is.
pub fn statements(database: &DatabaseName) -> Vec<String> {
    let create = |table: &str, columns: &[(&str, &str)], partition: &str, key: &str| {
        let columns: Vec<String> = columns.iter().map(|(name, ty)| format!("    {name} {ty}")).collect();
        let columns = columns.join(",\n");
        format!("CREATE TABLE {database}.{table}\n(\n{columns}\n)\nENGINE = MergeTree{partition}\nORDER BY ({key})")
    };
    let monthly = "\nPARTITION BY toYYYYMM(time)";
    let scope = [("tenant", WORD), ("cluster", WORD)];
    let series = [("metric", WORD), ("node", WORD), ("gpu", WORD), ("service", WORD), ("labels", LABELS)];
    let with_scope = |columns: &[(&'static str, &'static str)]| [scope.as_slice(), columns].concat();
    let tables = [
        format!("CREATE DATABASE {database} COMMENT '{COMMENT} {NATIVE_VERSION}'"),
        create(
            "metrics",
            &with_scope(&[series.as_slice(), &[("time", METRIC_TIME), ("value", METRIC_VALUE)]].concat()),
            monthly,
            "tenant, metric, cluster, node, gpu, time",
        ),
        create(
            "logs",
            &with_scope(&[
                ("node", WORD),
                ("gpu", WORD),
                ("service", WORD),
                ("severity", WORD),
                ("labels", LABELS),
                ("time", NANOS),
                ("body", BODY),
            ]),
            monthly,
            "tenant, cluster, time",
        ),
        create(
            "spans",
            &with_scope(&[
                ("node", WORD),
                ("service", WORD),
                ("pod", WORD),
                ("operation", WORD),
                ("labels", LABELS),
                ("time", NANOS),
                ("duration_us", "Int64 CODEC(ZSTD(1))"),
                ("trace_id", BODY),
                ("span_id", BODY),
                ("parent_id", BODY),
            ]),
            monthly,
            "tenant, cluster, service, time",
        ),
        create(
            "events",
            &with_scope(&[
                ("node", WORD),
                ("gpu", WORD),
                ("service", WORD),
                ("kind", WORD),
                ("labels", LABELS),
                ("time", MILLIS),
                ("body", BODY),
            ]),
            monthly,
            "tenant, cluster, time",
        ),
        create(
            "jobs",
            &with_scope(&[
                ("job_id", "String"),
                ("name", "String"),
                ("user", WORD),
                ("kind", WORD),
                ("state", WORD),
                ("labels", LABELS),
                ("submit", MILLIS),
                ("time", MILLIS),
                ("end_time", MILLIS),
            ]),
            "",
            "tenant, cluster, job_id, time",
        ),
        create(
            "job_gpus",
            &with_scope(&[
                ("job_id", "String"),
                ("attempt", "UInt32"),
                ("node", WORD),
                ("gpu", WORD),
                ("gpu_uuid", "String"),
                ("rank", "UInt32"),
                ("time", MILLIS),
                ("end_time", MILLIS),
            ]),
            "",
            "tenant, cluster, job_id, attempt, rank, node, gpu",
        ),
    ];
    tables.into_iter().chain(canary_statements(database)).collect()
}

/// The statements that make the canary's table and its row. They may run again: equal rows become one.
fn canary_statements(database: &DatabaseName) -> [String; 2] {
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {database}.{CANARY_TABLE}\n(\n    tenant {WORD}\n)\nENGINE = ReplacingMergeTree\nORDER BY tenant"
        ),
        format!("INSERT INTO {database}.{CANARY_TABLE} SELECT '{CANARY_TENANT}'"),
    ]
}

/// The statements that make the way in for rows of this process: one row per run of a series, which is a tenth of the bytes,
/// and a view that spreads it over `metrics`.
pub fn intake_statements(database: &DatabaseName) -> Vec<String> {
    let columns = "tenant, cluster, metric, node, gpu, service, labels";
    vec![
        format!(
            "CREATE TABLE {database}.metrics_in\n(\n    tenant {WORD},\n    cluster {WORD},\n    metric {WORD},\n    node {WORD},\n    gpu {WORD},\n    service {WORD},\n    labels {LABELS},\n    times Array(DateTime64(3, 'UTC')),\n    samples Array(Float64)\n)\nENGINE = Null"
        ),
        format!(
            "CREATE MATERIALIZED VIEW {database}.metrics_spread TO {database}.metrics AS\nSELECT {columns}, at AS time, sample AS value\nFROM {database}.metrics_in\nARRAY JOIN times AS at, samples AS sample"
        ),
    ]
}

/// The statements that make a table of samples keep aggregates of five minutes beside its rows, and make them of the rows that are there.
/// The engine reads them by itself where a query goes by whole kept steps: a day of samples every 15 s is read twenty times as fast.
/// They cost half as much again when rows are written, and some bytes a step; small tables need none.
///
/// What is kept is what the guard's queries ask for, to the letter: the engine compares expressions.
pub fn kept_steps(table: &str) -> [String; 2] {
    let keys = "tenant, metric, cluster, node, gpu, service, labels, isFinite(value)";
    let step = format!("toStartOfInterval(time, toIntervalMillisecond({KEPT_STEP_MS}))");
    let kept = "count(), min(value), max(value), avg(value), argMax(value, (time, value)), min(time), max(time)";
    [
        format!(
            "ALTER TABLE {table} ADD PROJECTION IF NOT EXISTS kept_steps\n(\n    SELECT {keys}, {step}, {kept}\n    GROUP BY {keys}, {step}\n)"
        ),
        format!("ALTER TABLE {table} MATERIALIZE PROJECTION kept_steps"),
    ]
}

/// Makes the table of samples keep steps.
///
/// # Errors
/// When the engine refuses.
pub async fn keep_steps(writer: &Writer, database: &DatabaseName) -> Result<(), WriteError> {
    for statement in kept_steps(&format!("{database}.metrics")) {
        writer.execute(&statement).await?;
    }
    Ok(())
}

/// Makes the database and its tables, with the way in for rows.
///
/// # Errors
/// When the engine refuses, for example because the database exists.
pub async fn create(writer: &Writer, database: &DatabaseName) -> Result<(), WriteError> {
    for statement in statements(database).into_iter().chain(intake_statements(database)) {
        writer.execute(&statement).await?;
    }
    Ok(())
}

/// Makes the database of a fleet that goes on where it is missing, and brings one of an earlier version up to this one. Rows stay as they
/// are, and its samples are kept by steps as well.
///
/// # Errors
/// When the engine refuses or cannot be asked.
pub async fn create_or_update(writer: &Writer, database: &DatabaseName) -> Result<(), WriteError> {
    match version(writer, database).await? {
        None => {
            create(writer, database).await?;
            keep_steps(writer, database).await
        }
        Some(found) if found < NATIVE_VERSION => {
            for statement in canary_statements(database) {
                writer.execute(&statement).await?;
            }
            keep_steps(writer, database).await?;
            writer.execute(&format!("ALTER DATABASE {database} MODIFY COMMENT '{COMMENT} {NATIVE_VERSION}'")).await
        }
        Some(_) => Ok(()),
    }
}

/// The version of the tables of a database; none when it does not exist or is not the product's.
///
/// # Errors
/// When the engine cannot be asked.
pub async fn version(writer: &Writer, database: &DatabaseName) -> Result<Option<u32>, WriteError> {
    let sql = "SELECT comment FROM system.databases WHERE name = {name:String}";
    let rows = writer.rows(sql, &[("name", database.as_str())]).await?;
    let comment = rows.first().and_then(|row| row.first()).and_then(serde_json::Value::as_str);
    Ok(comment.and_then(|comment| comment.strip_prefix(COMMENT)).and_then(|version| version.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::{BadDatabaseName, DatabaseName, intake_statements, statements};

    #[test]
    fn only_plain_names_are_databases() {
        for bad in ["", "7a", "a.b", "a`b", "a b", "system", "Default", &"x".repeat(65)] {
            assert_eq!(DatabaseName::new(bad), Err(BadDatabaseName(bad.to_owned())), "{bad}");
        }
        assert_eq!(DatabaseName::new("incident_0f").unwrap().as_str(), "incident_0f");
    }

    #[test]
    fn the_tables_are_these() {
        let database = DatabaseName::new("incident_0f").unwrap();
        let kept = super::kept_steps("incident_0f.metrics").to_vec();
        let all = [statements(&database), intake_statements(&database), kept].concat();
        insta::assert_snapshot!(all.join(";\n\n"));
    }
}
