//! The policies in force: read by every request, replaced as a whole.

use std::sync::{Arc, PoisonError, RwLock};

use crate::policies::Policies;

/// The policy set in force. Who takes it keeps the set of that moment; the next request takes the next one.
#[derive(Debug)]
pub struct LivePolicies {
    current: RwLock<Arc<Policies>>,
    refused: RwLock<Option<String>>,
}

impl LivePolicies {
    /// Begins with this set.
    pub fn new(policies: Policies) -> Self {
        Self { current: RwLock::new(Arc::new(policies)), refused: RwLock::new(None) }
    }

    /// The set in force now.
    pub fn now(&self) -> Arc<Policies> {
        // A poisoned lock only means that a thread died between two whole sets.
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts this set in the place of the one in force.
    pub fn replace(&self, policies: Policies) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
        self.note_refused(None);
    }

    /// Notes why a newer set was not taken, or that there is none.
    pub fn note_refused(&self, why: Option<String>) {
        *self.refused.write().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Why a newer set was not taken; none while the newest is the one in force.
    pub fn refused(&self) -> Option<String> {
        self.refused.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::LivePolicies;
    use crate::policies::Policies;

    #[test]
    fn who_took_the_policies_keeps_them_and_the_next_request_sees_the_new_ones() {
        let live = LivePolicies::new(Policies::builtin().unwrap());
        let before = live.now();
        live.note_refused(Some("a fault".to_owned()));
        assert!(std::sync::Arc::ptr_eq(&before, &live.now()));
        assert_eq!(live.refused().as_deref(), Some("a fault"));
        live.replace(Policies::builtin().unwrap());
        assert!(!std::sync::Arc::ptr_eq(&before, &live.now()));
        assert_eq!(live.refused(), None);
    }
}
