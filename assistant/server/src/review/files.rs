//! Where the log lies, and reading it away from the threads that serve requests.

use std::path::PathBuf;
use std::sync::Arc;

use sightline_audit::AuditReader;
use tokio::sync::Semaphore;

use super::{ReviewError, Verification};
use crate::config::Config;

/// The files of the audit log.
#[derive(Clone, Debug)]
pub struct AuditFiles {
    config: Arc<Config>,
    /// Verifying reads every record; one at a time is enough work.
    verifying: Arc<Semaphore>,
}

impl AuditFiles {
    /// Those that this configuration names.
    pub fn of(config: &Config) -> Self {
        Self { config: Arc::new(config.clone()), verifying: Arc::new(Semaphore::new(1)) }
    }

    /// The log's file.
    pub fn path(&self) -> PathBuf {
        self.config.data_dir.join("audit.db")
    }

    /// Opens the log for reading and does this with it, on a thread that may wait.
    ///
    /// # Errors
    /// When it cannot be opened, or what is done with it fails.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AuditReader) -> Result<T, ReviewError> + Send + 'static,
    ) -> Result<T, ReviewError> {
        let path = self.path();
        let reading = tokio::task::spawn_blocking(move || work(&crate::audit_log::reader(&path)?));
        reading.await.map_err(|error| ReviewError::Crashed(error.to_string()))?
    }

    /// Verifies the whole log against its key and the copies of its checkpoints.
    ///
    /// # Errors
    /// When somebody else does, or the log, its key or a copy cannot be read.
    pub async fn verify(&self) -> Result<Verification, ReviewError> {
        let _one = Arc::clone(&self.verifying).try_acquire_owned().map_err(|_| ReviewError::Busy)?;
        let config = Arc::clone(&self.config);
        self.read(move |reader| Ok(crate::audit_log::examine(&config, reader)?.into())).await
    }
}
