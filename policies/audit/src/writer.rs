//! The writer's thread: it gathers the records that wait and commits them together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use futures::channel::oneshot;
use sightline_model::audit::{Event, EventKind, EventOutcome};

use crate::chain::Head;
use crate::copying::Copying;
use crate::error::AuditError;
use crate::file::LogFile;
use crate::tail::Entry;

#[cfg(test)]
mod settle_tests;

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

/// A writer that has had nothing to do for so long settles what it wrote.
const IDLE: Duration = Duration::from_secs(1);
/// The longest wait between two tries while a reader holds it back.
const IDLE_AT_MOST: Duration = Duration::from_secs(60);

/// The file, where its checkpoints are copied to, and how often was committed.
pub(crate) struct Writer {
    pub(crate) file: LogFile,
    pub(crate) copies: Vec<Copying>,
    pub(crate) transactions: Arc<AtomicU64>,
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
            next = next.or_else(|| self.next(waiting));
        }
        self.file.settle();
        for place in &mut self.copies {
            place.finish();
        }
        self.tell_of_copies();
    }

    /// Waits for the next job. A quiet log settles meanwhile: what was recorded must not lie for days in a file that
    /// is not copied with the database.
    fn next(&mut self, waiting: &Receiver<Job>) -> Option<Job> {
        let mut idle = IDLE;
        loop {
            match waiting.recv_timeout(idle) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.file.settle() => return waiting.recv().ok(),
                Err(RecvTimeoutError::Timeout) => idle = idle.saturating_mul(2).min(IDLE_AT_MOST),
            }
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

    /// Wakes those who copy. Whoever waited for a record has been answered, and nobody waits for a second place.
    fn copy_checkpoints(&mut self) {
        if let Some(newest) = self.file.take_checkpoints().last() {
            self.copies.iter().for_each(|place| place.made(newest));
            self.file.settle();
        }
        self.tell_of_copies();
    }

    /// What is wrong with a second place stands in the log, once for each fault.
    fn tell_of_copies(&mut self) {
        let Some(at) = self.file.last_at() else { return };
        for place in &self.copies {
            let Some(what) = place.news() else { continue };
            let name = place.state().name().to_owned();
            let event = Event {
                at,
                event: EventKind::CopyFailed,
                principal: None,
                entrance: "service".to_owned(),
                outcome: EventOutcome::Failed,
                detail: BTreeMap::from([("copy".to_owned(), name), ("what".to_owned(), what)]),
            };
            let recorded = Entry::of_event(&event).and_then(|entry| self.file.append([&entry]));
            if let Err(error) = recorded {
                tracing::error!(%error, "that the copy failed cannot be recorded");
            }
        }
    }
}
