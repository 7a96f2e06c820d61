//! Where the log lies, and reading it away from the threads that serve requests.

use std::sync::Arc;

use jiff::Timestamp;
use sightline_audit::{AuditKey, AuditReader, Check, Copied, Liveness};
use sightline_core::Clock as _;
use sightline_engine::Writer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Remark, ReviewError, Verification};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::{audit_copies, audit_log, process};

/// The most that read the log at once: about what two cores can do while questions are answered.
const MOST_READERS: usize = 4;

/// The files of the audit log.
#[derive(Clone)]
pub struct AuditFiles {
    config: Arc<Config>,
    /// Reads the copy of the checkpoints that lies in the embedded engine.
    writer: Option<Writer>,
    /// Verifying reads every record; one at a time is enough work.
    verifying: Arc<Semaphore>,
    /// Searches and exports may read it all, too; more than a few wait for each other.
    reading: Arc<Semaphore>,
}

impl AuditFiles {
    /// Those that this configuration names, and the embedded engine where that runs.
    pub fn of(config: &Config, writer: Option<Writer>) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { config: Arc::new(config.clone()), writer, verifying: places(1), reading: places(MOST_READERS) }
    }

    /// Opens the log for reading and does this with it, on a thread that may wait.
    ///
    /// # Errors
    /// When it cannot be opened, or what is done with it fails.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AuditReader) -> Result<T, ReviewError> + Send + 'static,
    ) -> Result<T, ReviewError> {
        let place = Arc::clone(&self.reading).acquire_owned().await.map_err(|_| ReviewError::Busy)?;
        self.holding(place, work).await
    }

    /// The place goes with the work: a caller that goes away does not end it, and a further one would begin beside it.
    async fn holding<T: Send + 'static>(
        &self,
        place: OwnedSemaphorePermit,
        work: impl FnOnce(&AuditReader) -> Result<T, ReviewError> + Send + 'static,
    ) -> Result<T, ReviewError> {
        let path = audit_log::path(&self.config);
        let now = SystemClock::start().now();
        let reading = tokio::task::spawn_blocking(move || {
            let _held = place;
            let reader = AuditReader::open(&path)?.with_liveness(Liveness::new(now, Box::new(process::alive)));
            work(&reader)
        });
        reading.await.map_err(|error| ReviewError::Crashed(error.to_string()))?
    }

    /// Verifies the whole log against its key and the copies of its checkpoints.
    ///
    /// # Errors
    /// When somebody else does, or the log or its key cannot be read. A copy that cannot be read is a remark.
    pub async fn verify(&self) -> Result<Verification, ReviewError> {
        let one = Arc::clone(&self.verifying).try_acquire_owned().map_err(|_| ReviewError::Busy)?;
        let mut copies = Vec::new();
        let mut remarks = Vec::new();
        for copy in audit_copies::copied(&self.config, self.writer.as_ref()).await {
            match copy {
                Ok(copied) => copies.push(copied),
                Err(what) => remarks.push(Remark { seq: None, what }),
            }
        }
        let config = Arc::clone(&self.config);
        let now = SystemClock::start().now();
        let mut found = self.holding(one, move |reader| examine(&config, reader, &copies, now)).await?;
        found.notes.extend(remarks);
        Ok(found)
    }
}

fn examine(
    config: &Config,
    reader: &AuditReader,
    copies: &[Copied],
    now: Timestamp,
) -> Result<Verification, ReviewError> {
    let file = audit_log::key_file(config);
    let key = AuditKey::load(&file)?.ok_or_else(|| ReviewError::NoKey { file: file.display().to_string() })?;
    Ok(reader.examine(&Check { key: &key.public(), copies, now: Some(now) })?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;

    #[tokio::test]
    async fn a_place_is_free_again_when_the_work_has_ended_not_when_its_caller_left() {
        let folder = tempfile::tempdir().unwrap();
        let flags = Flags { data_dir: Some(folder.path().to_owned()), ..Flags::default() };
        let config = Config::load(&flags, &|_| None).unwrap();
        drop(audit_log::open(&config, None).unwrap());
        let files = AuditFiles::of(&config, None);
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let theirs = files.clone();
        let caller = tokio::spawn(async move {
            let place = Arc::clone(&theirs.verifying).try_acquire_owned().unwrap();
            let work = move |_: &AuditReader| {
                begun.send(()).unwrap();
                ends.recv().unwrap();
                Ok(())
            };
            theirs.holding(place, work).await
        });
        begins.await.unwrap();
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert!(matches!(files.verify().await, Err(ReviewError::Busy)));
        end.send(()).unwrap();
        drop(files.verifying.acquire().await.unwrap());
        assert!(files.verify().await.unwrap().whole);
    }
}
