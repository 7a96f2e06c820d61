//! The one thread that uses the ledger. SQLite makes its caller wait while another process holds the file's lock, and while the disk
//! takes what has gathered; the threads that serve questions have no time for that.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::ledger::{Ledger, LedgerError};

type Job = Box<dyn FnOnce(&Ledger) + Send>;

/// Takes jobs for the ledger and does them one by one, in the order in which they came. Dropping it does what waits and ends the thread.
pub(super) struct Desk {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Desk {
    pub(super) fn open(ledger: Ledger) -> Result<Self, LedgerError> {
        let (jobs, waiting) = channel::<Job>();
        let work = move || waiting.into_iter().for_each(|job| job(&ledger));
        let thread = std::thread::Builder::new().name("budget-ledger".to_owned()).spawn(work);
        Ok(Self { jobs: Some(jobs), thread: Some(thread.map_err(LedgerError::Thread)?) })
    }

    /// Leaves a job that nobody waits for.
    pub(super) fn leave(&self, job: impl FnOnce(&Ledger) + Send + 'static) -> Result<(), LedgerError> {
        let jobs = self.jobs.as_ref().ok_or(LedgerError::Ended)?;
        jobs.send(Box::new(job)).map_err(|_closed| LedgerError::Ended)
    }

    /// Leaves a job and waits for what it gives. Where the asker is gone by then, that is dropped.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Ledger) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (done, answer) = oneshot::channel();
        self.leave(move |ledger| {
            if !done.is_closed() {
                // Dropped where nobody takes it: a reservation settles itself then.
                drop(done.send(job(ledger)));
            }
        })?;
        answer.await.unwrap_or(Err(LedgerError::Ended))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.jobs = None;
        let Some(thread) = self.thread.take() else { return };
        // The last who held it may be a job; the thread then ends by itself.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            tracing::error!("the thread of the daily budgets ended in disorder");
        }
    }
}
