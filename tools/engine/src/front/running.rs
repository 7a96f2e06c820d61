//! The queries that are running, by the ids that their clients gave them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::credentials::EngineUser;
use super::error::QueryError;

/// The registry of running queries.
#[derive(Default)]
pub(super) struct Running {
    queries: Mutex<HashMap<String, Arc<RunningQuery>>>,
    ended: Notify,
}

/// One running query.
pub(super) struct RunningQuery {
    user: EngineUser,
    cancelled: AtomicBool,
}

/// Holds a query's place in the registry; dropping it says that the engine has nothing left of the query.
pub(super) struct RunningGuard {
    running: Arc<Running>,
    id: String,
    query: Arc<RunningQuery>,
}

impl Running {
    /// Enters a query. Two queries of one id cannot run at once, else a KILL would not know which is meant.
    pub(super) fn enter(self: &Arc<Self>, id: &str, user: EngineUser) -> Result<RunningGuard, QueryError> {
        let query = Arc::new(RunningQuery { user, cancelled: AtomicBool::new(false) });
        match self.lock().entry(id.to_owned()) {
            Entry::Occupied(_) => return Err(QueryError::same_id(id)),
            Entry::Vacant(place) => place.insert(Arc::clone(&query)),
        };
        Ok(RunningGuard { running: Arc::clone(self), id: id.to_owned(), query })
    }

    /// Marks a query as cancelled, so that it does not start if it has not yet. Gives it while it runs.
    pub(super) fn cancel(&self, id: &str) -> Option<Arc<RunningQuery>> {
        let query = self.lock().get(id).cloned()?;
        query.cancelled.store(true, Ordering::SeqCst);
        Some(query)
    }

    /// Whose query it is, while it runs.
    pub(super) fn user_of(&self, id: &str) -> Option<EngineUser> {
        self.lock().get(id).map(|query| query.user)
    }

    /// Whether this very query, and not a later one of the same id, still runs.
    pub(super) fn holds(&self, id: &str, query: &Arc<RunningQuery>) -> bool {
        self.lock().get(id).is_some_and(|running| Arc::ptr_eq(running, query))
    }

    /// The ids of all running queries.
    pub(super) fn ids(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// How many queries are running.
    pub(super) fn number(&self) -> usize {
        self.lock().len()
    }

    /// Resolves when any query has ended after this call.
    pub(super) fn any_ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<RunningQuery>>> {
        // The map is whole between any two statements here, so a panic elsewhere leaves nothing half done.
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningGuard {
    /// Fails when the query has been cancelled.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        if self.query.cancelled.load(Ordering::SeqCst) { Err(QueryError::cancelled()) } else { Ok(()) }
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.running.lock().remove(&self.id);
        self.running.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{EngineUser, Running};

    #[test]
    fn an_id_is_free_again_when_its_query_has_ended() {
        let running = Arc::new(Running::default());
        let first = running.enter("a", EngineUser::Reader).unwrap();
        assert!(running.enter("a", EngineUser::Writer).is_err());
        assert_eq!(running.user_of("a"), Some(EngineUser::Reader));
        let query = running.cancel("a").unwrap();
        assert!(first.check().is_err());
        drop(first);
        let second = running.enter("a", EngineUser::Reader).unwrap();
        assert!(!running.holds("a", &query), "the first query has ended");
        assert!(second.check().is_ok());
    }
}
