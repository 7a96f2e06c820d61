//! Telling a question that still runs from one whose process was killed.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

/// No question runs as long as this: a process that cannot be asked about has given it up.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// Says whether a process, by the name in its begin records, lives. None when that cannot be told from here.
pub type Alive = Box<dyn Fn(&str) -> Option<bool> + Send>;

/// What a reader needs to know to call an open question abandoned.
pub struct Liveness {
    now: Timestamp,
    alive: Alive,
}

impl Liveness {
    /// Processes are alive by this account, and the time is this.
    pub fn new(now: Timestamp, alive: Alive) -> Self {
        Self { now, alive }
    }

    /// Whether a question of this process, begun at this time and not ended, will never end.
    pub(crate) fn is_gone(&self, process: Option<&str>, begun: Timestamp) -> bool {
        match process.and_then(|process| (self.alive)(process)) {
            Some(alive) => !alive,
            None => self.now.duration_since(begun) > LONGEST,
        }
    }
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Liveness").field("now", &self.now).finish_non_exhaustive()
    }
}
