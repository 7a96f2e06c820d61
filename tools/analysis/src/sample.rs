//! One sample of a series, and the few ways to look at a slice of them.

use jiff::Timestamp;

/// One measured value. A series is a slice of these in order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it was measured.
    pub time: Timestamp,
    /// What was measured; values that are not finite are skipped by every function here.
    pub value: f64,
}

impl Sample {
    /// A sample at a whole second since the epoch; seconds outside the calendar are clamped to the epoch.
    pub fn at_second(second: i64, value: f64) -> Self {
        Self { time: Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH), value }
    }

    pub(crate) fn millis(&self) -> i64 {
        self.time.as_millisecond()
    }
}

/// The finite values of a series.
pub fn values(series: &[Sample]) -> Vec<f64> {
    series.iter().map(|s| s.value).filter(|v| v.is_finite()).collect()
}

/// The samples in `[from, to)`.
pub fn between(series: &[Sample], from: Timestamp, to: Timestamp) -> Vec<Sample> {
    series.iter().filter(|s| from <= s.time && s.time < to).copied().collect()
}

/// The samples whose value is finite.
pub(crate) fn finite(series: &[Sample]) -> Vec<Sample> {
    series.iter().filter(|s| s.value.is_finite()).copied().collect()
}
