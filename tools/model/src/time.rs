//! Time ranges, half-open, in UTC.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A half-open range of time `[from, to)`. Guaranteed: `from < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TimeRange {
    from: Timestamp,
    to: Timestamp,
}

impl TimeRange {
    /// A range, or `None` when it is empty or reversed.
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// The first instant in it.
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// The first instant after it.
    pub fn to(&self) -> Timestamp {
        self.to
    }

    /// Its length in whole milliseconds.
    pub fn millis(&self) -> i64 {
        self.to.as_millisecond().saturating_sub(self.from.as_millisecond())
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.millis() as f64 / 1000.0
    }

    /// Whether the instant lies in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// What both ranges share, if anything.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        Self::new(self.from.max(other.from), self.to.min(other.to))
    }
}

/// The window that was asked about, and how it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRange {
    /// Its start.
    pub from: Timestamp,
    /// Its end, exclusive.
    pub to: Timestamp,
    /// The asker's zone, an IANA name.
    pub time_zone: String,
    /// How the words became the range, for example `yesterday (2026-05-03 00:00-24:00 Europe/Berlin)`.
    pub how: String,
}
