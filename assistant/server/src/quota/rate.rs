//! Questions a minute, by principal.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use sightline_core::Clock;
use sightline_core::quota::TooManyQuestions;

/// The program's clock as the limiter reads it: nothing here looks at the time on its own.
#[derive(Clone)]
pub(crate) struct Monotonic(pub(crate) Arc<dyn Clock>);

impl GovernorClock for Monotonic {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        // Milliseconds of a process's life fit; a clock before its own start reads as its start.
        Nanos::new((self.0.monotonic_ms() * 1e6) as u64)
    }
}

/// A limiter of one asker.
pub(crate) type Limiter = RateLimiter<NotKeyed, InMemoryState, Monotonic, NoOpMiddleware<Nanos>>;

/// A limiter for each principal that has asked; there are as many as principals in the policy files.
pub(super) struct Rates {
    clock: Monotonic,
    limiters: Mutex<HashMap<String, (u64, Arc<Limiter>)>>,
}

impl Rates {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Monotonic(clock), limiters: Mutex::default() }
    }

    /// Counts a question. After a pause a whole minute's worth may come at once, then one each time a share of the minute has passed.
    pub(super) fn question(&self, principal: &str, per_minute: u64) -> Result<(), TooManyQuestions> {
        let refused = |wait: Duration| TooManyQuestions { limit: per_minute, retry_after_s: whole_seconds(wait) };
        let limit = u32::try_from(per_minute).unwrap_or(u32::MAX);
        // A limit of none lets nothing through, however long one waits.
        let Some(limit) = NonZeroU32::new(limit) else { return Err(refused(Duration::from_secs(60))) };
        let limiter = self.limiter(principal, per_minute, limit);
        limiter.check().map_err(|until| refused(until.wait_time_from(self.clock.now())))
    }

    fn limiter(&self, principal: &str, per_minute: u64, limit: NonZeroU32) -> Arc<Limiter> {
        // A poisoned lock only means that another question panicked; the map is whole.
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        match limiters.get(principal) {
            Some((known, limiter)) if *known == per_minute => Arc::clone(limiter),
            // New, or the policy gives it another limit now.
            Some(_) | None => {
                let limiter = Arc::new(RateLimiter::direct_with_clock(Quota::per_minute(limit), self.clock.clone()));
                limiters.insert(principal.to_owned(), (per_minute, Arc::clone(&limiter)));
                limiter
            }
        }
    }
}

/// Rounded up, and never 0: who comes back then is let in.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use jiff::Timestamp;

    use super::*;

    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn monotonic_ms(&self) -> f64 {
            self.0.load(Ordering::Relaxed) as f64
        }
    }

    #[test]
    fn a_minutes_worth_is_taken_at_once_then_one_for_each_share_of_the_minute() {
        let hand = Arc::new(Hand(AtomicU64::new(5)));
        let rates = Rates::new(Arc::clone(&hand) as _);
        for _ in 0..3 {
            assert_eq!(rates.question("viewer@atlas", 3), Ok(()));
        }
        let full = TooManyQuestions { limit: 3, retry_after_s: 20 };
        assert_eq!(rates.question("viewer@atlas", 3), Err(full));
        assert_eq!(full.to_string(), "you asked more than 3 questions within a minute, your limit; ask again in 20 s");
        assert_eq!(rates.question("operator@atlas", 3), Ok(()), "another principal has a minute of its own");
        hand.0.store(20_004, Ordering::Relaxed);
        assert_eq!(rates.question("viewer@atlas", 3), Err(TooManyQuestions { limit: 3, retry_after_s: 1 }));
        hand.0.store(20_005, Ordering::Relaxed);
        assert_eq!(rates.question("viewer@atlas", 3), Ok(()), "what the refusal said holds");
        assert!(rates.question("viewer@atlas", 3).is_err());
    }

    #[test]
    fn a_limit_of_none_lets_nothing_through() {
        let rates = Rates::new(Arc::new(Hand(AtomicU64::new(0))));
        assert_eq!(rates.question("x", 0), Err(TooManyQuestions { limit: 0, retry_after_s: 60 }));
    }
}
