//! The writer's thread: it gathers the records that wait and commits them together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use futures::channel::oneshot;

use crate::chain::Head;
use crate::error::AuditError;
use crate::file::LogFile;

/// What the asker of one record is told.
pub(crate) type Outcome = Result<Head, Arc<AuditError>>;

/// A record that waits to become durable.
pub(crate) struct Pending {
    pub(crate) body: String,
    pub(crate) done: oneshot::Sender<Outcome>,
}

/// The most records of one transaction: it bounds how long the first of them waits behind the rest.
const MAX_BATCH: usize = 1024;

/// Writes until every sender is gone. While one commit waits for the disk the next batch gathers by itself, so
/// one sync serves all who ask meanwhile, and a lone asker waits for nobody.
pub(crate) fn run(mut file: LogFile, waiting: &Receiver<Pending>, transactions: &AtomicU64) {
    while let Ok(first) = waiting.recv() {
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH {
            match waiting.try_recv() {
                Ok(next) => batch.push(next),
                Err(_empty_or_closed) => break,
            }
        }
        match file.append(batch.iter().map(|pending| pending.body.as_str())) {
            Ok(places) => {
                transactions.fetch_add(1, Ordering::Relaxed);
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
}
