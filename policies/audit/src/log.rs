//! The log as the rest of the program holds it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use serde::Serialize;
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event};
use sightline_model::{AuditRef, BoxFuture};

use crate::error::AuditError;
use crate::file::LogFile;
use crate::key::AuditKey;
use crate::record::{Kind, canonical};
use crate::writer::{self, Outcome, Pending};

/// How a log is opened.
#[derive(Debug)]
pub struct Settings {
    /// The key that signs.
    pub key: AuditKey,
    /// The id of the log if it is to be made: 16 random bytes.
    pub new_log_id: [u8; 16],
    /// A checkpoint is kept at least every so many records; a log rewritten between two shows between them.
    pub checkpoint_every: u64,
    /// How long to wait for another process that writes.
    pub lock_wait: Duration,
}

impl Settings {
    /// The usual settings: a million records then carry 10,000 checkpoints, which verify in about half a second.
    pub fn new(key: AuditKey, new_log_id: [u8; 16]) -> Self {
        Self { key, new_log_id, checkpoint_every: 100, lock_wait: Duration::from_secs(5) }
    }
}

/// The audit log in a SQLite file. Dropping it writes what waits and ends the writer.
pub struct SqliteAudit {
    sender: Option<Sender<Pending>>,
    writer: Option<JoinHandle<()>>,
    transactions: Arc<AtomicU64>,
}

impl SqliteAudit {
    /// Opens the log at this path, or makes it, and starts its writer.
    pub fn open(path: &Path, settings: Settings) -> Result<Self, AuditError> {
        let Settings { key, new_log_id, checkpoint_every, lock_wait } = settings;
        let file = LogFile::open(path, key, new_log_id, checkpoint_every, lock_wait)?;
        let (sender, waiting) = channel();
        let transactions = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&transactions);
        let writer = std::thread::Builder::new()
            .name("audit-writer".to_owned())
            .spawn(move || writer::run(file, &waiting, &counted))
            .map_err(|error| AuditError::Other { path: path.display().to_string(), what: error.to_string() })?;
        Ok(Self { sender: Some(sender), writer: Some(writer), transactions })
    }

    /// How many transactions were committed since it was opened; each is one sync of the disk.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Hands the record to the writer at once; the receiver hears when it is durable.
    fn hand_over(&self, kind: Kind, record: &impl Serialize) -> Result<oneshot::Receiver<Outcome>, AuditUnavailable> {
        let body = canonical(kind, record).map_err(|error| error.unavailable())?;
        let (done, receiver) = oneshot::channel();
        let sender = self.sender.as_ref().ok_or_else(|| AuditError::Ended.unavailable())?;
        sender.send(Pending { body, done }).map_err(|_closed| AuditError::Ended.unavailable())?;
        Ok(receiver)
    }
}

/// Waits until the record is durable and says where it stands.
async fn durable(
    handed_over: Result<oneshot::Receiver<Outcome>, AuditUnavailable>,
) -> Result<(u64, String), AuditUnavailable> {
    match handed_over?.await {
        Ok(Ok(place)) => Ok((place.seq, place.hash.to_string())),
        Ok(Err(error)) => Err(error.unavailable()),
        Err(_canceled) => Err(AuditError::Ended.unavailable()),
    }
}

impl AuditLog for SqliteAudit {
    fn begin(&self, record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        let handed_over = self.hand_over(Kind::Begin, &record);
        Box::pin(async move {
            let (seq, hash) = durable(handed_over).await?;
            Ok(AuditRef { question_id: record.question_id, seq: Some(seq), hash })
        })
    }

    fn call(&self, record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        let handed_over = self.hand_over(Kind::Call, &record);
        Box::pin(async move { durable(handed_over).await.map(|_place| ()) })
    }

    fn complete(&self, record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        let handed_over = self.hand_over(Kind::Complete, &record);
        Box::pin(async move { durable(handed_over).await.map(|_place| ()) })
    }

    fn event(&self, record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        let handed_over = self.hand_over(Kind::Event, &record);
        Box::pin(async move { durable(handed_over).await.map(|_place| ()) })
    }
}

impl Drop for SqliteAudit {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the audit writer ended in disorder; run `sightline audit verify`");
        }
    }
}

impl fmt::Debug for SqliteAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteAudit").field("transactions", &self.transactions()).finish_non_exhaustive()
    }
}
