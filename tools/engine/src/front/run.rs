//! Runs one request on a connection of its own, on a thread that may block.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::embedded::ffi::{Connection, Counters, Output, Parameter};
use crate::embedded::folder::SpoolFile;

use super::Front;
use super::blocks::BlockJoiner;
use super::compression::Encoder;
use super::error::QueryError;
use super::respond::exception_block;
use super::running::RunningGuard;

/// Everything that a worker needs to run a statement.
pub(super) struct Job {
    pub(super) guard: RunningGuard,
    pub(super) database: String,
    /// SET statements, in order.
    pub(super) settings: Vec<Vec<u8>>,
    pub(super) sql: Vec<u8>,
    pub(super) format: String,
    pub(super) parameters: Vec<Parameter>,
    /// The data that `sql` reads, kept until the engine has read them.
    pub(super) _data: Option<SpoolFile>,
    /// The place among the queries that may run at once.
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) started: Instant,
}

/// What a worker says before the rows of a stream.
pub(super) type StreamHead = Result<(Counters, Duration), QueryError>;

impl Job {
    fn connect(&self, front: &Front) -> Result<Connection, QueryError> {
        self.guard.check()?;
        let mut connection = front.connect()?;
        if self.database != "default" {
            let name = self.database.replace('\\', "\\\\").replace('`', "\\`");
            connection.query(format!("USE `{name}`").as_bytes(), "Null", &[])?;
        }
        for statement in &self.settings {
            connection.query(statement, "Null", &[])?;
        }
        self.guard.check()?;
        Ok(connection)
    }

    /// Runs the statement to its end.
    pub(super) fn run_whole(self, front: &Front) -> Result<(Output, Duration), QueryError> {
        let limit = front.limits.buffered_bytes;
        let output = self.connect(front)?.query(&self.sql, &self.format, &self.parameters)?;
        if output.bytes.len() as u64 > limit {
            return Err(QueryError::response_too_large(limit));
        }
        Ok((output, self.started.elapsed()))
    }

    /// Runs the statement and hands on its rows block by block. A receiver that has gone ends it.
    pub(super) fn run_stream(
        self,
        front: &Front,
        tag: &str,
        lz4: bool,
        head: oneshot::Sender<StreamHead>,
        body: mpsc::Sender<Bytes>,
    ) {
        let mut connection = match self.connect(front) {
            Ok(connection) => connection,
            Err(error) => return drop(head.send(Err(error))),
        };
        let mut stream = match connection.stream(&self.sql, &self.format, &self.parameters) {
            Ok(stream) => stream,
            Err(error) => return drop(head.send(Err(error.into()))),
        };
        let first = match stream.next() {
            Ok(first) => first.unwrap_or_default(),
            Err(error) => return drop(head.send(Err(error.into()))),
        };
        if head.send(Ok((first.counters, self.started.elapsed()))).is_err() {
            return;
        }
        let mut encoder = Encoder::new(lz4);
        let mut joiner = BlockJoiner::new(&self.format);
        let mut sent = 0;
        let mut next = Ok(Some(first));
        let failure = loop {
            let block = match next {
                Ok(Some(output)) => output.bytes,
                Ok(None) => break None,
                Err(error) => break Some(QueryError::from(error)),
            };
            let block = match joiner.join(block) {
                Ok(block) => block,
                Err(error) => break Some(error),
            };
            sent += block.len() as u64;
            if sent > front.limits.response_bytes {
                break Some(QueryError::response_too_large(front.limits.response_bytes));
            }
            if !block.is_empty() && body.blocking_send(Bytes::from(encoder.part(block))).is_err() {
                return;
            }
            if let Err(error) = self.guard.check() {
                break Some(error);
            }
            next = stream.next();
        };
        let mut tail = match failure {
            Some(error) => encoder.part(exception_block(&error, tag)),
            None => Vec::new(),
        };
        tail.extend(encoder.end());
        if !tail.is_empty() {
            // A receiver that has gone needs no end.
            let _ = body.blocking_send(Bytes::from(tail));
        }
    }
}
