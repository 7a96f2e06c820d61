//! The writer's thread: it gathers the records that wait and commits them together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use futures::channel::oneshot;
use sightline_model::audit::{Event, EventKind, EventOutcome};

use crate::chain::Head;
use crate::checkpoint::Checkpoint;
use crate::copies::CheckpointCopy;
use crate::error::AuditError;
use crate::file::LogFile;
use crate::tail::Entry;

/// What the asker of one record is told.
pub(crate) type Outcome = Result<Head, Arc<AuditError>>;

/// A record that waits to become durable.
pub(crate) struct Pending {
    pub(crate) entry: Entry,
    pub(crate) done: oneshot::Sender<Outcome>,
}

/// What waits for the writer.
pub(crate) enum Job {
    /// A record; those that wait together are committed together.
    Record(Pending),
    /// Anything else that is done to the file, between two commits.
    Other(Box<dyn FnOnce(&mut LogFile) + Send>),
}

/// The most records of one transaction: it bounds how long the first of them waits behind the rest.
const MAX_BATCH: usize = 1024;

/// Checkpoints that wait for a copy whose place cannot be written; older ones are let go, the chain covers them.
const MAX_WAITING_COPIES: usize = 1024;

/// The file, where its checkpoints are copied to, and how often was committed.
pub(crate) struct Writer {
    pub(crate) file: LogFile,
    pub(crate) copies: Vec<CopyPlace>,
    pub(crate) transactions: Arc<AtomicU64>,
}

/// A second place for checkpoints, with those it has not taken yet.
pub(crate) struct CopyPlace {
    copy: Box<dyn CheckpointCopy>,
    waiting: Vec<Checkpoint>,
}

impl CopyPlace {
    pub(crate) fn new(copy: Box<dyn CheckpointCopy>) -> Self {
        Self { copy, waiting: Vec::new() }
    }

    /// Copies what waits, the oldest first. What fails is tried again with the next checkpoint.
    fn copy(&mut self, new: &[Checkpoint]) -> Result<(), String> {
        self.waiting.extend_from_slice(new);
        let too_many = self.waiting.len().saturating_sub(MAX_WAITING_COPIES);
        self.waiting.drain(..too_many);
        let mut taken = 0;
        let mut outcome = Ok(());
        for checkpoint in &self.waiting {
            outcome = self.copy.put(checkpoint);
            if outcome.is_err() {
                break;
            }
            taken += 1;
        }
        self.waiting.drain(..taken);
        outcome
    }
}

impl Writer {
    /// Writes until every sender is gone. While one commit waits for the disk the next batch gathers by itself, so
    /// one sync serves all who ask meanwhile, and a lone asker waits for nobody.
    pub(crate) fn run(mut self, waiting: &Receiver<Job>) {
        let mut next = waiting.recv().ok();
        while let Some(job) = next.take() {
            match job {
                Job::Record(first) => {
                    let mut batch = vec![first];
                    while batch.len() < MAX_BATCH {
                        match waiting.try_recv() {
                            Ok(Job::Record(record)) => batch.push(record),
                            Ok(other @ Job::Other(_)) => {
                                next = Some(other);
                                break;
                            }
                            Err(_empty_or_closed) => break,
                        }
                    }
                    self.commit(batch);
                }
                Job::Other(work) => work(&mut self.file),
            }
            self.copy_checkpoints();
            next = next.or_else(|| waiting.recv().ok());
        }
    }

    fn commit(&mut self, batch: Vec<Pending>) {
        match self.file.append(batch.iter().map(|pending| &pending.entry)) {
            Ok(places) => {
                self.transactions.fetch_add(1, Ordering::Relaxed);
                for (pending, place) in batch.into_iter().zip(places) {
                    // An asker that has gone away needs no answer; its record stands.
                    let _gone = pending.done.send(Ok(place));
                }
            }
            Err(error) => {
                tracing::error!(%error, records = batch.len(), "the audit log cannot be written");
                let error = Arc::new(error);
                for pending in batch {
                    let _gone = pending.done.send(Err(Arc::clone(&error)));
                }
            }
        }
    }

    /// Whoever waited for a record has been answered: a slow or broken second place holds up nobody's commit but the next.
    fn copy_checkpoints(&mut self) {
        let made = self.file.take_checkpoints();
        let Some(newest) = made.last() else { return };
        for place in &mut self.copies {
            let Err(what) = place.copy(&made) else { continue };
            let name = place.copy.name().to_owned();
            tracing::error!(copy = name, what, "a checkpoint of the audit log cannot be copied; it is tried again");
            let event = Event {
                at: newest.at,
                event: EventKind::CopyFailed,
                principal: None,
                entrance: "service".to_owned(),
                outcome: EventOutcome::Failed,
                detail: BTreeMap::from([
                    ("copy".to_owned(), name),
                    ("segment".to_owned(), newest.segment.to_string()),
                    ("what".to_owned(), what),
                ]),
            };
            let recorded = Entry::of_event(&event).and_then(|entry| self.file.append([&entry]));
            if let Err(error) = recorded {
                tracing::error!(%error, "that the copy failed cannot be recorded");
            }
        }
    }
}
