//! The user that may write: DDL, INSERT, and reading back what was ingested.

use std::path::Path;

use bytes::Bytes;
use clickhouse::Client;
use clickhouse::insert_formatted::InsertFormatted;
use clickhouse::query::BytesCursor;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::Endpoint;
use super::code::Failure;
use crate::native::DatabaseName;

/// How much of a file is read and sent at once.
const CHUNK: usize = 1 << 20;

/// Why a statement of the writer failed. Never carries text of the engine.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// No answer from it.
    #[error("the engine cannot be reached; try again in a moment, and run `sightline doctor` if it stays so")]
    Unreachable,
    /// The engine's user may not do it.
    #[error("the engine's writing user lacks a right that ingest needs; run `sightline doctor` to see which")]
    NotGranted,
    /// The disk is full.
    #[error("the engine's disk is full; free space under the data folder and load again")]
    DiskFull,
    /// It said no for another reason.
    #[error("the engine refused a statement of ingest (code {code})")]
    Refused {
        /// ClickHouse's error code.
        code: i32,
    },
    /// Its answer could not be read.
    #[error(
        "the engine's answer could not be read; check that the engine's version is a supported one with `sightline doctor`"
    )]
    Malformed,
    /// A file that is sent or written.
    #[error("cannot read or write `{path}`: {source}")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Code(497 | 516 | 164) | Failure::Status(401 | 403) => Self::NotGranted,
            // NOT_ENOUGH_SPACE
            Failure::Code(243) => Self::DiskFull,
            Failure::Code(code) => Self::Refused { code },
            Failure::Status(_) | Failure::Connection => Self::Unreachable,
            Failure::TooLong | Failure::Malformed => Self::Malformed,
        }
    }
}

impl From<clickhouse::error::Error> for WriteError {
    fn from(error: clickhouse::error::Error) -> Self {
        Failure::from(error).into()
    }
}

/// Writes to a ClickHouse. Its statements are this crate's own; values travel as parameters or as data.
#[derive(Clone)]
pub struct Writer {
    client: Client,
}

impl Writer {
    /// A writer there; the endpoint's user must be allowed to create databases and to insert.
    pub fn new(endpoint: &Endpoint) -> Self {
        Self { client: endpoint.client() }
    }

    /// Runs one statement without a result.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), WriteError> {
        self.execute_with(sql, &[]).await
    }

    /// Runs one statement without a result, with parameters.
    pub(crate) async fn execute_with(&self, sql: &str, params: &[(&str, &str)]) -> Result<(), WriteError> {
        let query = params.iter().fold(self.client.query_raw(sql), |query, (name, value)| query.param(name, *value));
        Ok(query.execute().with_subscriber(NoSubscriber::new()).await?)
    }

    /// The rows of a small SELECT or DESCRIBE, each a list of JSON values.
    pub(crate) async fn rows(&self, sql: &str, params: &[(&str, &str)]) -> Result<Vec<Vec<Value>>, WriteError> {
        let mut batches = self.select_with(sql, params)?;
        let mut rows = Vec::new();
        while let Some(batch) = batches.next().await? {
            rows.extend(batch);
        }
        Ok(rows)
    }

    /// The same user, with names that stand alone meant in this database.
    pub(crate) fn in_database(&self, database: &DatabaseName) -> Self {
        Self { client: self.client.clone().with_database(database.to_string()) }
    }

    /// The rows of a SELECT that may be large, in batches.
    pub(crate) fn select(&self, sql: &str) -> Result<RowBatches, WriteError> {
        self.select_with(sql, &[])
    }

    fn select_with(&self, sql: &str, params: &[(&str, &str)]) -> Result<RowBatches, WriteError> {
        let query = params.iter().fold(self.client.query_raw(sql), |query, (name, value)| query.param(name, *value));
        let query = query.with_setting("output_format_json_quote_64bit_integers", "0");
        Ok(RowBatches { cursor: query.fetch_bytes("JSONCompactEachRow")?, rest: Vec::new() })
    }

    /// One whole number out of a SELECT.
    pub(crate) async fn number(&self, sql: &str) -> Result<u64, WriteError> {
        let rows = self.rows(sql, &[]).await?;
        let number = rows.first().and_then(|row| row.first()).and_then(Value::as_u64);
        number.ok_or(WriteError::Malformed)
    }

    /// Begins an INSERT whose data follow in pieces.
    pub(crate) fn insert(&self, sql: String) -> Insert {
        Insert { inner: self.client.insert_formatted_with(sql) }
    }

    /// Sends a whole file as the data of an INSERT.
    pub(crate) async fn insert_file(&self, sql: String, path: &Path) -> Result<(), WriteError> {
        let mut file = tokio::fs::File::open(path).await.map_err(|source| file_error(path, source))?;
        let mut insert = self.insert(sql);
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            let read = (&mut file).take(CHUNK as u64).read_to_end(&mut chunk).await;
            if read.map_err(|source| file_error(path, source))? == 0 {
                return insert.end().await;
            }
            insert.send(chunk).await?;
        }
    }

    /// Writes the result of a SELECT to a file, in that format.
    pub(crate) async fn save(&self, sql: &str, format: &str, path: &Path) -> Result<(), WriteError> {
        let mut file = tokio::fs::File::create(path).await.map_err(|source| file_error(path, source))?;
        let mut cursor = self.client.query_raw(sql).with_setting("wait_end_of_query", "1").fetch_bytes(format)?;
        while let Some(chunk) = cursor.next().with_subscriber(NoSubscriber::new()).await? {
            file.write_all(&chunk).await.map_err(|source| file_error(path, source))?;
        }
        file.flush().await.map_err(|source| file_error(path, source))
    }
}

/// The rows of a SELECT as they come.
pub(crate) struct RowBatches {
    cursor: BytesCursor,
    /// The beginning of a line whose end has not come yet.
    rest: Vec<u8>,
}

impl RowBatches {
    /// The next rows, at least one; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Vec<Value>>>, WriteError> {
        while let Some(chunk) = self.cursor.next().with_subscriber(NoSubscriber::new()).await? {
            self.rest.extend_from_slice(&chunk);
            if let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') {
                let next = self.rest.split_off(end + 1);
                let lines = std::mem::replace(&mut self.rest, next);
                return parse_rows(&lines).map(Some);
            }
        }
        let last = std::mem::take(&mut self.rest);
        if last.is_empty() { Ok(None) } else { parse_rows(&last).map(Some) }
    }
}

/// An INSERT under way. Nothing of it is kept unless [`Self::end`] succeeds.
pub(crate) struct Insert {
    inner: InsertFormatted,
}

impl Insert {
    pub(crate) async fn send(&mut self, data: Vec<u8>) -> Result<(), WriteError> {
        Ok(self.inner.send(Bytes::from(data)).with_subscriber(NoSubscriber::new()).await?)
    }

    pub(crate) async fn end(self) -> Result<(), WriteError> {
        Ok(self.inner.end().with_subscriber(NoSubscriber::new()).await?)
    }
}

fn parse_rows(lines: &[u8]) -> Result<Vec<Vec<Value>>, WriteError> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(&String::from_utf8_lossy(line)).map_err(|_| WriteError::Malformed)).collect()
}

fn file_error(path: &Path, source: std::io::Error) -> WriteError {
    WriteError::File { path: path.display().to_string(), source }
}
