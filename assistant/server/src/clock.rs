//! The binary's clock and source of ids: the only place that reads either.

use std::time::Instant;

use jiff::Timestamp;
use sightline_core::{Clock, Ids};
use uuid::Uuid;

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic side begins now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1000.0
    }
}

/// UUIDv7 from the system's clock and randomness.
#[derive(Clone, Copy, Debug)]
pub struct UuidIds;

impl Ids for UuidIds {
    #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
    fn next(&self) -> String {
        Uuid::now_v7().to_string()
    }
}
