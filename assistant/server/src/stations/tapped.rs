//! An audit log with an ear on it: what is recorded of the model is heard by whoever asked, and recorded all the same.

use std::sync::{Arc, Mutex, PoisonError};

use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event, ModelUse};
use sightline_model::{AuditRef, BoxFuture};

/// The log of one question.
pub(crate) struct Tapped {
    log: Arc<dyn AuditLog>,
    model: Mutex<Option<ModelUse>>,
}

impl Tapped {
    pub(crate) fn over(log: Arc<dyn AuditLog>) -> Self {
        Self { log, model: Mutex::default() }
    }

    /// What a model was asked for the question that was completed last.
    pub(crate) fn model(&self) -> Option<ModelUse> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AuditLog for Tapped {
    fn begin(&self, record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        self.log.begin(record)
    }

    fn call(&self, record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.log.call(record)
    }

    fn complete(&self, record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&record.model);
        self.log.complete(record)
    }

    fn event(&self, record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.log.event(record)
    }
}
