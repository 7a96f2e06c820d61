//! The policies in force: read by every request, replaced as a whole.

use std::sync::{Arc, PoisonError, RwLock};

use crate::policies::Policies;

/// The policy set in force. Who takes it keeps the set of that moment; the next request takes the next one.
#[derive(Debug)]
pub struct LivePolicies {
    current: RwLock<Arc<Policies>>,
}

impl LivePolicies {
    /// Begins with this set.
    pub fn new(policies: Policies) -> Self {
        Self { current: RwLock::new(Arc::new(policies)) }
    }

    /// The set in force now.
    pub fn now(&self) -> Arc<Policies> {
        // A poisoned lock only means that a thread died between two whole sets.
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts this set in the place of the one in force.
    pub fn replace(&self, policies: Policies) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
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
        live.replace(Policies::builtin().unwrap());
        assert!(!std::sync::Arc::ptr_eq(&before, &live.now()));
    }
}
