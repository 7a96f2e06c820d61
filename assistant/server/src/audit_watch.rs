//! The audit log as the service uses it: complete records are retried, and a failing log shows at `/readyz`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sightline_audit::SqliteAudit;
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event};
use sightline_model::{AuditRef, BoxFuture};

use crate::review::AuditFiles;

/// Waits between tries of a complete record. After the last one the failure stands at `/readyz`; the answer was sent anyway.
const WAITS: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];

/// An audit log that remembers whether it works.
pub struct WatchedAudit {
    log: Arc<dyn AuditLog>,
    failing: Mutex<Option<String>>,
    files: Option<Arc<AuditFiles>>,
    copies: Option<Arc<SqliteAudit>>,
}

impl WatchedAudit {
    /// Watches a log.
    pub fn new(log: Arc<dyn AuditLog>) -> Self {
        Self { log, failing: Mutex::new(None), files: None, copies: None }
    }

    /// The same, which says where its files lie, so that they can be reviewed.
    #[must_use]
    pub fn with_files(self, files: AuditFiles) -> Self {
        Self { files: Some(Arc::new(files)), ..self }
    }

    /// The same, which says whether the second places take its checkpoints.
    #[must_use]
    pub fn with_copies(self, log: Arc<SqliteAudit>) -> Self {
        Self { copies: Some(log), ..self }
    }

    /// Whether every second place takes the log's checkpoints. One that does not makes the log prove less; questions are answered.
    ///
    /// # Errors
    /// How many do not. Which they are and why is for whoever may read the log.
    pub fn copies_health(&self) -> Result<(), String> {
        match self.copies.as_ref().map_or(0, |log| log.copy_faults().len()) {
            0 => Ok(()),
            failing => Err(format!(
                "{failing} of the places that checkpoints are copied to take none; `sightline audit list --kind copy_failed` says why"
            )),
        }
    }

    /// Where its files lie; none for a log that is kept elsewhere.
    pub fn files(&self) -> Option<Arc<AuditFiles>> {
        self.files.clone()
    }

    /// Whether the last write worked.
    ///
    /// # Errors
    /// Why it did not.
    pub fn health(&self) -> Result<(), String> {
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        failing.clone().map_or(Ok(()), Err)
    }

    fn note<T>(&self, result: Result<T, AuditUnavailable>) -> Result<T, AuditUnavailable> {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        *failing = result.as_ref().err().map(ToString::to_string);
        result
    }
}

impl AuditLog for WatchedAudit {
    fn begin(&self, record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        Box::pin(async move { self.note(self.log.begin(record).await) })
    }

    fn call(&self, record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(async move { self.note(self.log.call(record).await) })
    }

    fn event(&self, record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(async move { self.note(self.log.event(record).await) })
    }

    fn complete(&self, record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(async move {
            for wait in WAITS {
                if self.log.complete(record.clone()).await.is_ok() {
                    return self.note(Ok(()));
                }
                tokio::time::sleep(wait).await;
            }
            self.note(self.log.complete(record).await)
        })
    }
}
