//! The default length of a time step: enough points to see a shape, few enough to hold.

use sightline_model::TimeRange;

/// Points wanted of a series, first try and, when that was cut, second: a chart of a page's width, then a sketch.
pub(crate) const TARGETS: [i64; 2] = [240, 30];

/// The lengths people read charts in, seconds. None is below 15 s, Prometheus' usual scrape interval being 15 s to 60 s.
const STEPS: [i64; 15] = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800];

/// The default step in milliseconds, for the n-th try.
pub(crate) fn default_ms(range: TimeRange, tries: usize) -> u64 {
    let target = TARGETS.get(tries).copied().unwrap_or(1);
    let wanted = range.millis() / 1000 / target;
    let seconds = STEPS.into_iter().find(|s| *s >= wanted).unwrap_or(wanted);
    // A step is never longer than its window, and never shorter than a second.
    u64::try_from((seconds * 1000).min(range.millis()).max(1000)).unwrap_or(1000)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_longer_window_gets_a_longer_step() {
        let range =
            |seconds: i64| TimeRange::new(Timestamp::UNIX_EPOCH, Timestamp::from_second(seconds).unwrap()).unwrap();
        let steps = [10, 300, 3600, 86_400, 30 * 86_400].map(|s| (default_ms(range(s), 0), default_ms(range(s), 1)));
        assert_eq!(
            steps,
            [(10_000, 10_000), (15_000, 15_000), (15_000, 120_000), (600_000, 3_600_000), (10_800_000, 86_400_000)]
        );
    }
}
