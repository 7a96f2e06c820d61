//! Where the log lies, and reading it away from the threads that serve requests.

use std::path::Path;
use std::sync::Arc;

use sightline_audit::{AuditError, AuditKey, AuditReader, Check, Copied, Liveness, PublicKey};
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

    /// Verifies the whole log against its key and the copies of its checkpoints: those of the configuration, and those
    /// in the engine of the data folder where one lives. Nothing is made or changed.
    ///
    /// # Errors
    /// When somebody else does, or the log or its key cannot be read. A copy that cannot be read leaves a whole log
    /// unproved.
    pub async fn verify(&self) -> Result<Verification, ReviewError> {
        let one = Arc::clone(&self.verifying).try_acquire_owned().map_err(|_| ReviewError::Busy)?;
        let (mut copies, mut unreadable) = (Vec::new(), Vec::new());
        let living = match &self.writer {
            Some(writer) => Some(writer.clone()),
            None => audit_copies::living_engine(&self.config).unwrap_or_else(|what| {
                unreadable.push(what);
                None
            }),
        };
        for copy in audit_copies::copied(&self.config, living.as_ref()).await {
            match copy {
                Ok(copied) => copies.push(copied),
                Err(what) => unreadable.push(what),
            }
        }
        let config = Arc::clone(&self.config);
        let work = move || {
            // Held until the work has ended, whoever waits for it.
            let _one = one;
            let key = || {
                let file = audit_log::key_file(&config);
                AuditKey::load(&file)?.ok_or_else(|| ReviewError::NoKey { file: file.display().to_string() })
            };
            verify_files(&audit_log::path(&config), || Ok(key()?.public()), &copies, unreadable)
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| ReviewError::Crashed(error.to_string()))?
    }
}

/// Verifies a log against a public key and these copies, wherever they lie.
///
/// # Errors
/// When the log is not there and no copy knows of one, or it cannot be read.
pub fn verify_files(
    log: &Path,
    key: impl FnOnce() -> Result<PublicKey, ReviewError>,
    copies: &[Copied],
    unreadable: Vec<String>,
) -> Result<Verification, ReviewError> {
    if !log.exists()
        && let Some(copied) = copies.iter().find(|copied| !copied.checkpoints.is_empty())
    {
        let (name, count) = (&copied.name, copied.checkpoints.len());
        let what = format!("`{}` is gone, and copy `{name}` holds {count} checkpoints of a log", log.display());
        return Ok(Verification::broken(&what));
    }
    let reader = match AuditReader::open(log) {
        Ok(reader) => reader,
        Err(AuditError::Damaged { path }) => {
            return Ok(Verification::broken(&format!("`{path}` is damaged or no audit log; keep it as it is")));
        }
        Err(error) => return Err(error.into()),
    };
    let now = SystemClock::start().now();
    let report = reader.examine(&Check { key: &key()?, copies, now: Some(now) })?;
    let mut found = Verification::of(report, unreadable);
    if copies.is_empty() {
        let what = "no copy of the checkpoints was compared: an end that was cut off together with them does not show";
        found.notes.push(Remark { seq: None, what: what.to_owned() });
    }
    Ok(found)
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
        assert_ne!(files.verify().await.unwrap().whole, Some(false));
    }
}
