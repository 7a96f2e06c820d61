//! Against guessing: who fails too often is told to wait, each time longer.
//!
//! Behind a proxy everybody has the same address, and a token's id is no secret. So every credential is checked first, and a lock turns
//! away only what is wrong: whoever knows an id and whoever shares an address can shut nobody out. A secret has 256 random bits, which
//! no number of guesses finds; what a lock brings is an event that names the guessing, and an answer that slows honest programs down.
//! Wrong secrets for a token that exists are counted for that token and address, everything else (an older token, a provider's token, a
//! made-up id) for the address.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;

/// Failures within [`WINDOW_MS`] that lock.
const FAILURES: usize = 5;
/// The window, milliseconds.
const WINDOW_MS: f64 = 60_000.0;
/// How long the first lock holds; each further one twice as long as the one before.
const FIRST_LOCK_MS: f64 = 60_000.0;
/// The longest lock.
const LONGEST_LOCK_MS: f64 = 15.0 * 60_000.0;
/// Who has been quiet for this long begins anew.
const FORGET_MS: f64 = 60.0 * 60_000.0;
/// The most that is remembered; the one that was quiet for longest goes.
const MOST: usize = 4096;

/// Whose attempts are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Attempts {
    /// Those of an address for a token that exists.
    Token {
        /// The address.
        peer: IpAddr,
        /// The token's public id.
        id: String,
        /// Whom it stands for.
        principal: String,
    },
    /// Those of an address with what is right and names this principal, and still lets nobody in.
    Named {
        /// The address.
        peer: IpAddr,
        /// Whom it names.
        principal: String,
    },
    /// All others of an address.
    Other {
        /// The address.
        peer: IpAddr,
    },
    /// Those from other machines, together: they have as many addresses as they like, and none of their credentials is looked at.
    Afar,
}

struct Entry {
    /// When the last few failures were.
    failures: Vec<f64>,
    last: f64,
    locked_until: Option<f64>,
    next_lock_ms: f64,
}

/// The memory of failures. Times are the clock's monotonic milliseconds: setting the wall clock opens no lock.
pub(crate) struct Lockout {
    entries: Mutex<LruCache<Attempts, Entry>>,
}

impl Default for Lockout {
    fn default() -> Self {
        Self { entries: Mutex::new(LruCache::new(MOST)) }
    }
}

impl Lockout {
    /// For how many seconds what is wrong among these attempts is told to wait still.
    pub(crate) fn locked_for(&self, whose: &Attempts, now_ms: f64) -> Option<u64> {
        let entries = self.entries();
        let until = entries.peek(whose)?.locked_until?;
        (until > now_ms).then(|| seconds(until - now_ms))
    }

    /// Counts a guess; the seconds of the lock if this one brings it about.
    pub(crate) fn guessed(&self, whose: &Attempts, now_ms: f64) -> Option<u64> {
        let mut entries = self.entries();
        if entries.get(whose).is_none_or(|entry| now_ms - entry.last >= FORGET_MS) {
            // The cache lets the one go that was quiet for longest.
            entries.insert(whose.clone(), Entry::new(now_ms));
        }
        let entry = entries.get_mut(whose)?;
        entry.last = now_ms;
        entry.guessed(now_ms)
    }

    /// A poisoned lock only means that a thread died between two whole states.
    fn entries(&self) -> MutexGuard<'_, LruCache<Attempts, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(now_ms: f64) -> Self {
        Self { failures: Vec::with_capacity(FAILURES), last: now_ms, locked_until: None, next_lock_ms: FIRST_LOCK_MS }
    }

    fn guessed(&mut self, now_ms: f64) -> Option<u64> {
        if self.locked_until.is_some_and(|until| until > now_ms) {
            return None;
        }
        self.failures.retain(|at| now_ms - at < WINDOW_MS);
        self.failures.push(now_ms);
        if self.failures.len() < FAILURES {
            return None;
        }
        self.failures.clear();
        let lock = self.next_lock_ms;
        self.next_lock_ms = (lock * 2.0).min(LONGEST_LOCK_MS);
        self.locked_until = Some(now_ms + lock);
        Some(seconds(lock))
    }
}

/// Whole seconds, rounded up: who comes back then is let in.
fn seconds(ms: f64) -> u64 {
    (ms / 1000.0).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    fn token(id: &str) -> Attempts {
        Attempts::Token { peer: peer(1), id: id.to_owned(), principal: "viewer@atlas".to_owned() }
    }

    #[test]
    fn five_guesses_in_a_minute_lock_and_each_lock_is_twice_as_long_up_to_a_quarter_of_an_hour() {
        let lockout = Lockout::default();
        let mut now = 0.0;
        let mut locks = Vec::new();
        for _ in 0..7 {
            for guess in 1..=5 {
                assert_eq!(lockout.locked_for(&token("a"), now), None);
                let locked = lockout.guessed(&token("a"), now);
                assert_eq!(locked.is_some(), guess == 5, "guess {guess}");
                locks.extend(locked);
                now += 1000.0;
            }
            let rest = lockout.locked_for(&token("a"), now).unwrap();
            assert_eq!(rest, locks.last().unwrap() - 1);
            now += rest as f64 * 1000.0;
        }
        assert_eq!(locks, [60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(lockout.locked_for(&token("b"), now - 1.0), None, "another token at the same address");
    }

    #[test]
    fn four_guesses_in_a_minute_do_not_lock_and_an_hour_of_quiet_begins_anew() {
        let lockout = Lockout::default();
        for guess in 0..40 {
            let locked = lockout.guessed(&token("a"), f64::from(guess) * 15_001.0);
            assert_eq!(locked, None, "guess {guess}");
        }
        for hour in [1.0, 2.5] {
            let locks: Vec<u64> = (0..5).filter_map(|_| lockout.guessed(&token("b"), hour * 3_600_000.0)).collect();
            assert_eq!(locks, [60]);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let lockout = Lockout::default();
        for index in 0..3 * MOST {
            lockout.guessed(&token(&format!("{index}")), 0.0);
        }
        assert_eq!(lockout.entries().len(), MOST);
    }
}
