//! Queries at once, by principal, across all its questions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sightline_core::quota::{NoPlace, Place};
use tokio::sync::Semaphore;

/// The places of each principal that has asked.
pub(super) struct Places {
    patience: Duration,
    taken: Mutex<HashMap<String, (u64, Arc<Semaphore>)>>,
}

impl Places {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, taken: Mutex::default() }
    }

    /// Waits for one of the principal's places, first come first served: so much `longer` than the patience with short queries.
    pub(super) async fn place(&self, principal: &str, at_once: u64, longer: Duration) -> Result<Place, NoPlace> {
        let places = self.of(principal, at_once);
        let patience = self.patience.saturating_add(longer);
        let refused = NoPlace { waited_s: patience.as_secs() };
        match tokio::time::timeout(patience, places.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Place::new(permit)),
            // Nobody closes them; without a permit there is no place.
            Ok(Err(_)) | Err(_) => Err(refused),
        }
    }

    fn of(&self, principal: &str, at_once: u64) -> Arc<Semaphore> {
        // A poisoned lock only means that another question panicked; the map is whole.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get(principal) {
            Some((known, places)) if *known == at_once => Arc::clone(places),
            // New, or the policy gives it another limit now.
            Some(_) | None => {
                let number = usize::try_from(at_once).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
                let places = Arc::new(Semaphore::new(number));
                taken.insert(principal.to_owned(), (at_once, Arc::clone(&places)));
                places
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_free_again_when_it_is_given_up_and_nobody_waits_for_ever() {
        let places = Places::new(Duration::from_millis(20));
        let first = places.place("a", 2, Duration::ZERO).await;
        let second = places.place("a", 2, Duration::ZERO).await;
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(places.place("a", 2, Duration::ZERO).await.err(), Some(NoPlace { waited_s: 0 }));
        assert!(places.place("b", 2, Duration::ZERO).await.is_ok(), "another principal has places of its own");
        drop(first);
        assert!(places.place("a", 2, Duration::ZERO).await.is_ok());
    }

    #[tokio::test]
    async fn who_waits_gets_the_place_that_becomes_free() {
        let places = Arc::new(Places::new(Duration::from_secs(30)));
        let first = places.place("a", 1, Duration::ZERO).await;
        let waiting = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.place("a", 1, Duration::ZERO).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn who_has_longer_outwaits_the_patience() {
        let places = Arc::new(Places::new(Duration::from_millis(20)));
        let first = places.place("a", 1, Duration::ZERO).await;
        let waiting = |longer| {
            let places = Arc::clone(&places);
            tokio::spawn(async move { places.place("a", 1, longer).await })
        };
        let (long, short) = (waiting(Duration::from_secs(60)), waiting(Duration::ZERO));
        assert_eq!(short.await.unwrap().err(), Some(NoPlace { waited_s: 0 }));
        drop(first);
        let second = long.await.unwrap();
        assert!(second.is_ok());
        assert_eq!(waiting(Duration::from_secs(1)).await.unwrap().err(), Some(NoPlace { waited_s: 1 }));
    }
}
