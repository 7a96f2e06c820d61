//! What every handler shares.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sightline_core::Assistant;
use sightline_model::audit::{AuditLog as _, AuditUnavailable, Event, EventKind, EventOutcome};
use tokio::sync::{Semaphore, watch};

use super::site::Site;
use crate::answers::Answers;
use crate::audit_watch::WatchedAudit;
use crate::identity::Identity;
use crate::review::Denials;

/// The most questions answered at once; more get a clear 503 with `Retry-After` instead of a queue that grows.
const MAX_QUESTIONS: usize = 256;

/// The running service. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    assistant: Arc<Assistant>,
    audit: Arc<WatchedAudit>,
    identity: Identity,
    denials: Denials,
    site: Site,
    answers: Arc<Answers>,
    running: Mutex<HashMap<String, Running>>,
    slots: Arc<Semaphore>,
}

/// A question under way: who asked it, and how to stop it.
struct Running {
    principal: String,
    stop: watch::Sender<bool>,
}

impl Service {
    /// A service over these stations.
    pub fn new(
        assistant: Arc<Assistant>,
        audit: Arc<WatchedAudit>,
        identity: Identity,
        site: Site,
        answers: Answers,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(MAX_QUESTIONS));
        let denials = Denials::default();
        let answers = Arc::new(answers);
        Self {
            inner: Arc::new(Inner {
                assistant,
                audit,
                identity,
                denials,
                site,
                answers,
                running: Mutex::default(),
                slots,
            }),
        }
    }

    /// The stations.
    pub fn assistant(&self) -> &Arc<Assistant> {
        &self.inner.assistant
    }

    /// Whether the audit log takes records.
    ///
    /// # Errors
    /// Why it does not.
    pub fn audit_health(&self) -> Result<(), String> {
        self.inner.audit.health()
    }

    /// Records something that a principal did over HTTP, durable.
    ///
    /// # Errors
    /// When the log could not take it: what it stands for is not done then.
    pub async fn record(
        &self,
        event: EventKind,
        principal: &str,
        outcome: EventOutcome,
        detail: BTreeMap<String, String>,
    ) -> Result<(), AuditUnavailable> {
        let at = self.assistant().clock.now();
        let principal = Some(principal.to_owned());
        self.inner.audit.event(Event { at, event, principal, entrance: "http".to_owned(), outcome, detail }).await
    }

    /// The audit log.
    pub fn audit(&self) -> &Arc<WatchedAudit> {
        &self.inner.audit
    }

    /// Who holds which credential.
    pub fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// Where denials are counted.
    pub(crate) fn denials(&self) -> &Denials {
        &self.inner.denials
    }

    /// Records failed credentials and denials that were counted and not recorded yet; called now and then.
    pub async fn record_counted(&self) {
        self.identity().record_failures().await;
        self.denials().record(self.audit().as_ref(), self.assistant().clock.as_ref(), false).await;
    }

    /// Records all of them, when the service ends.
    pub async fn record_last_counted(&self) {
        self.identity().record_last_failures().await;
        self.denials().record(self.audit().as_ref(), self.assistant().clock.as_ref(), true).await;
    }

    /// Under which address it is reached.
    pub(crate) fn site(&self) -> &Site {
        &self.inner.site
    }

    /// The answers whose evidence can still be looked at.
    pub fn answers(&self) -> &Arc<Answers> {
        &self.inner.answers
    }

    /// The places for questions.
    pub fn slots(&self) -> &Arc<Semaphore> {
        &self.inner.slots
    }

    /// Enters a question as running; the receiver turns true when it is to stop.
    pub fn enter(&self, question_id: &str, principal: &str) -> watch::Receiver<bool> {
        let (stop, stopped) = watch::channel(false);
        self.running().insert(question_id.to_owned(), Running { principal: principal.to_owned(), stop });
        stopped
    }

    /// Takes a question out.
    pub fn leave(&self, question_id: &str) {
        self.running().remove(question_id);
    }

    /// Stops a running question. False when this asker has none of that id running: the same for one that is not theirs.
    pub fn stop(&self, question_id: &str, principal: &str) -> bool {
        match self.running().get(question_id) {
            Some(running) if running.principal == principal => running.stop.send(true).is_ok(),
            Some(_) | None => false,
        }
    }

    /// A poisoned lock only means that a handler panicked between two whole states of the map.
    fn running(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
