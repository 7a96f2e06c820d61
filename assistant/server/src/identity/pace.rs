//! How many requests a principal may send: far more than a person or a page does, and few enough that a loop fills neither log nor CPU.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use governor::clock::Clock as _;
use governor::{Quota, RateLimiter};
use hashlink::LruCache;
use sightline_core::Clock;

use crate::quota::rate::{Limiter, Monotonic, whole_seconds};

/// This many at once, after a pause;
const BURST: NonZeroU32 = at_least_one(400);
/// then so many a second.
pub(crate) const PER_SECOND: NonZeroU32 = at_least_one(20);
/// The most principals remembered; identity providers may vouch for any number.
const MOST: usize = 16_384;

const fn at_least_one(count: u32) -> NonZeroU32 {
    match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    }
}

/// The paces of all principals. They are counted by principal, not by address, which everybody behind a proxy shares; and only once a
/// credential was found right, so that nobody uses up another's.
pub(super) struct Pace {
    clock: Monotonic,
    limiters: Mutex<LruCache<String, Arc<Limiter>>>,
}

impl Pace {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Monotonic(clock), limiters: Mutex::new(LruCache::new(MOST)) }
    }

    /// Counts a request; the seconds to wait if it is one too many.
    pub(super) fn request(&self, principal: &str) -> Result<(), u64> {
        let limiter = {
            // A poisoned lock only means that another request panicked; the cache is whole.
            let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || {
                let quota = Quota::per_second(PER_SECOND).allow_burst(BURST);
                Arc::new(RateLimiter::direct_with_clock(quota, self.clock.clone()))
            };
            Arc::clone(limiters.entry(principal.to_owned()).or_insert_with(new))
        };
        limiter.check().map_err(|until| whole_seconds(until.wait_time_from(self.clock.now())))
    }
}
