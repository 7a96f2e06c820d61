//! The log as the rest of the program holds it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use jiff::Timestamp;
use serde::Serialize;
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event};
use sightline_model::{AuditRef, BoxFuture};

use crate::copies::CheckpointCopy;
use crate::copying::{CopyState, Copying};
use crate::error::AuditError;
use crate::file::erase::{Erase, Erased};
use crate::file::retain::Retained;
use crate::file::{LogFile, Opening};
use crate::key::AuditKey;
use crate::record::{Kind, canonical};
use crate::tail::{Closes, Entry};
use crate::text::Salts;
use crate::writer::{Job, Outcome, Pending, Writer};

/// Finds the key with an id.
pub type KeyAgain = Box<dyn Fn(&str) -> Option<AuditKey> + Send>;

/// How a log is opened.
pub struct Settings {
    /// The key that signs.
    pub key: AuditKey,
    /// The id of the log if it is to be made: 16 random bytes.
    pub new_log_id: [u8; 16],
    /// Where the salts of commitments come from: 32 random bytes at each call.
    pub salts: Salts,
    /// A segment is closed with a checkpoint when it holds so many records; a heartbeat may close it earlier.
    pub checkpoint_every: u64,
    /// How long to wait for another process that writes.
    pub lock_wait: Duration,
    /// Which process this is, for each begin record: a question that never ended is told from one that still runs.
    pub process: Option<String>,
    /// Asked for the key with an id when another process has signed with it: it changed the key.
    pub key_again: Option<KeyAgain>,
    /// Where checkpoints are copied to.
    pub copies: Vec<Box<dyn CheckpointCopy>>,
}

impl Settings {
    /// The usual settings.
    pub fn new(key: AuditKey, new_log_id: [u8; 16], salts: Salts) -> Self {
        Self {
            key,
            new_log_id,
            salts,
            checkpoint_every: 1_000,
            lock_wait: Duration::from_secs(5),
            process: None,
            key_again: None,
            copies: Vec::new(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("key", &self.key).field("process", &self.process).finish_non_exhaustive()
    }
}

/// The audit log in a SQLite file. Dropping it writes what waits and ends the writer.
pub struct SqliteAudit {
    sender: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    transactions: Arc<AtomicU64>,
    salts: Salts,
    process: Option<String>,
    places: Vec<CopyState>,
}

/// The detail of a begin record that names the process.
pub(crate) const PROCESS: &str = "process";

impl SqliteAudit {
    /// Opens the log at this path, or makes it, and starts its writer.
    pub fn open(path: &Path, settings: Settings) -> Result<Self, AuditError> {
        let Settings { key, new_log_id, salts, checkpoint_every, lock_wait, process, key_again, copies } = settings;
        let file = LogFile::open(path, Opening { key, new_log_id, checkpoint_every, lock_wait, key_again })?;
        let (sender, waiting) = channel();
        let transactions = Arc::new(AtomicU64::new(0));
        let copies: Vec<Copying> =
            copies.into_iter().map(|copy| Copying::start(copy, path.to_owned())).collect::<Result<_, _>>()?;
        let places = copies.iter().map(Copying::state).collect();
        let writer = Writer { file, copies, transactions: Arc::clone(&transactions) };
        let writer = std::thread::Builder::new()
            .name("audit-writer".to_owned())
            .spawn(move || writer.run(&waiting))
            .map_err(|error| AuditError::Other { path: path.display().to_string(), what: error.to_string() })?;
        Ok(Self { sender: Some(sender), writer: Some(writer), transactions, salts, process, places })
    }

    /// Erases texts and records that it was done. What is erased cannot be brought back by anybody; that it was
    /// asked, when, by whom and what was read stays provable.
    ///
    /// # Errors
    /// When the log cannot be written; then nothing is erased.
    pub async fn erase(&self, what: Erase, at: Timestamp, by: String) -> Result<Erased, AuditError> {
        self.on_file(move |file| file.erase(&what, at, &by))?.await.map_err(|_canceled| AuditError::Ended)?
    }

    /// Takes out whole segments that ended before `until`, and records that it was done. None when there is none.
    ///
    /// # Errors
    /// When the log cannot be written; then nothing is taken out.
    pub async fn retain(&self, until: Timestamp, at: Timestamp, by: String) -> Result<Option<Retained>, AuditError> {
        self.on_file(move |file| file.retain(until, at, &by))?.await.map_err(|_canceled| AuditError::Ended)?
    }

    /// Signs with another key from here on. Whoever trusts either key can check the whole log.
    ///
    /// # Errors
    /// When the log cannot be written; then the old key goes on signing.
    pub async fn rotate(&self, new_key: AuditKey, at: Timestamp, by: String) -> Result<(), AuditError> {
        self.on_file(move |file| file.rotate(new_key, at, &by))?.await.map_err(|_canceled| AuditError::Ended)?
    }

    /// Lets the writer do this between two commits.
    fn on_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LogFile) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, AuditError> {
        let (done, receiver) = oneshot::channel();
        let job = Job::Other(Box::new(move |file| {
            let _gone = done.send(work(file));
        }));
        self.sender.as_ref().ok_or(AuditError::Ended)?.send(job).map_err(|_closed| AuditError::Ended)?;
        Ok(receiver)
    }

    /// How many transactions were committed since it was opened; each is one sync of the disk.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// The second places that do not take checkpoints now, each with why. Records are written all the same.
    pub fn copy_faults(&self) -> Vec<String> {
        self.places.iter().filter_map(|place| Some(format!("{}: {}", place.name(), place.fault()?))).collect()
    }

    /// Hands the record to the writer at once; the receiver hears when it is durable.
    fn hand_over(
        &self,
        kind: Kind,
        record: &impl Serialize,
        at: Timestamp,
    ) -> Result<oneshot::Receiver<Outcome>, AuditUnavailable> {
        let (body, text) = canonical(kind, record, &*self.salts).map_err(|error| error.unavailable())?;
        let just_now = match kind {
            Kind::Begin => true,
            Kind::Call | Kind::Complete | Kind::Event => false,
        };
        self.send(Entry { body, text, at, just_now, closes: Closes::Never })
    }

    fn send(&self, entry: Entry) -> Result<oneshot::Receiver<Outcome>, AuditUnavailable> {
        let (done, receiver) = oneshot::channel();
        let sender = self.sender.as_ref().ok_or_else(|| AuditError::Ended.unavailable())?;
        sender.send(Job::Record(Pending { entry, done })).map_err(|_closed| AuditError::Ended.unavailable())?;
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
    fn begin(&self, mut record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        if let Some(process) = &self.process {
            record.detail.insert(PROCESS.to_owned(), process.clone());
        }
        let handed_over = self.hand_over(Kind::Begin, &record, record.at);
        Box::pin(async move {
            let (seq, hash) = durable(handed_over).await?;
            Ok(AuditRef { question_id: record.question_id, seq: Some(seq), hash })
        })
    }

    fn call(&self, record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        let handed_over = self.hand_over(Kind::Call, &record, record.at);
        Box::pin(async move { durable(handed_over).await.map(|_place| ()) })
    }

    fn complete(&self, record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        let handed_over = self.hand_over(Kind::Complete, &record, record.at);
        Box::pin(async move { durable(handed_over).await.map(|_place| ()) })
    }

    fn event(&self, record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        let handed_over =
            Entry::of_event(&record).map_err(|error| error.unavailable()).and_then(|entry| self.send(entry));
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
