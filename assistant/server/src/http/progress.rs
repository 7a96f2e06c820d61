//! How far a question has come, for the complete record of one that does not come to its end by itself.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use sightline_core::{Cancelled, Event, Events, ReadSoFar, record_cancelled};
use sightline_model::audit::ModelUse;
use sightline_model::{QuestionId, Read};

use super::service::Service;

/// What the complete record of a crash says.
const CRASHED: &str = "it failed inside Sightline; the service's own log says where";

/// How far it has come.
#[derive(Default)]
pub(super) struct Progress {
    closing: AtomicBool,
    so_far: Mutex<ReadSoFar>,
    model: Mutex<Option<ModelUse>>,
}

impl Progress {
    /// Whether its complete record is being written: from then on it is let end.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// What it has read.
    pub(super) fn so_far(&self) -> ReadSoFar {
        *self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where nobody waits for events.
impl Events for Progress {
    fn emit(&self, _: Event) {}

    fn closing(&self) {
        self.closing.store(true, Ordering::Release);
    }

    fn read(&self, exactly: Read) {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner).add(exactly);
    }

    fn asked_model(&self, used: &ModelUse) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(used.clone());
    }
}

/// What runs: a question, a typed call or a replay.
#[derive(Clone, Copy)]
pub(super) struct Running<'a> {
    pub(super) service: &'a Service,
    pub(super) id: &'a QuestionId,
    /// Whether a planner is at work.
    pub(super) is_planned: bool,
    pub(super) progress: &'a Progress,
}

impl Running<'_> {
    /// Writes its complete record as cancelled, with what it has read so far.
    pub(super) async fn cancelled(self, reason: &str) {
        let Self { service, id, is_planned, progress } = self;
        let model = progress.model.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let so_far = progress.so_far();
        let cancelled = Cancelled { question_id: id, is_planned, so_far, model: model.as_ref(), reason };
        record_cancelled(service.assistant(), cancelled).await;
    }

    /// Does the work. None when it panicked: then it is no longer entered as running and has a complete record all the same.
    pub(super) async fn work<T>(self, work: impl Future<Output = T>) -> Option<T> {
        // Nothing that the work changes is looked at after a panic but what is whole at any time.
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        if ended.is_err() && !self.progress.is_closing() {
            self.cancelled(CRASHED).await;
        }
        self.service.leave(self.id.as_str());
        ended.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_service::TestService;

    #[tokio::test]
    async fn a_crash_leaves_a_complete_record_with_what_was_read_and_nothing_that_runs() {
        let test = TestService::start();
        let (service, id) = (&test.service, QuestionId::new("q1"));
        let recorded = || {
            let completes = test.log.completes();
            completes.iter().map(|c| (c.outcome.clone(), c.planner.clone(), c.queries, c.rows_read)).collect::<Vec<_>>()
        };
        let progress = Progress::default();
        progress.read(Read { rows: 5, bytes: 70, wall_ms: 1.0 });
        for (is_planned, planner) in [(false, "none"), (true, "offline")] {
            let _stopped = service.enter("q1", "ann");
            assert!(service.stop("q1", "ann"));
            let running = Running { service, id: &id, is_planned, progress: &progress };
            assert_eq!(running.work(async { panic!("a panic of a test") }).await, None::<()>);
            assert!(!service.stop("q1", "ann"), "it runs no more");
            assert_eq!(recorded().pop().unwrap(), ("cancelled".to_owned(), planner.to_owned(), 1, 5));
        }
        // What was about to end by itself is not recorded twice.
        progress.closing();
        let running = Running { service, id: &id, is_planned: true, progress: &progress };
        assert_eq!(running.work(async { panic!("a panic of a test") }).await, None::<()>);
        assert_eq!(running.work(async { 7 }).await, Some(7));
        assert_eq!(recorded().len(), 2);
    }
}
