//! Windows of whole kept steps: what lets the engine read the aggregates that a table of samples may keep beside its rows.

use jiff::Timestamp;
use sightline_model::TimeRange;

/// The steps for which a table of samples may keep ready aggregates, milliseconds: five minutes.
pub const KEPT_STEP_MS: u64 = 300_000;

/// The shortest window that is read by kept steps, milliseconds: what is shorter is read fast enough as it is stored. Half of what a window
/// must have to be fitted, so that one that was cut is still long enough.
pub const READ_FROM_MS: i64 = WORTH_FROM_MS / 2;

/// The shortest window that is worth being fitted to kept steps, milliseconds: twelve hours, of which two kept steps are one and a half
/// percent.
const WORTH_FROM_MS: i64 = 12 * 3600 * 1000;

/// Whether a window is long enough to be read by kept steps.
pub fn worth_keeping(range: TimeRange) -> bool {
    range.millis() >= WORTH_FROM_MS
}

/// Whether a window begins and ends with a kept step.
pub fn is_of_kept_steps(range: TimeRange) -> bool {
    [range.from(), range.to()].into_iter().all(|end| floor(end) == Some(end))
}

/// The window of the whole kept steps within a range; the range itself where it holds none.
pub fn within_kept_steps(range: TimeRange) -> TimeRange {
    let cut = ceil(range.from()).zip(floor(range.to())).and_then(|(from, to)| TimeRange::new(from, to));
    cut.unwrap_or(range)
}

/// The window of the kept steps that a range touches.
pub fn around_kept_steps(range: TimeRange) -> TimeRange {
    let wide = floor(range.from()).zip(ceil(range.to())).and_then(|(from, to)| TimeRange::new(from, to));
    wide.unwrap_or(range)
}

fn step_nanos() -> i128 {
    i128::from(KEPT_STEP_MS) * 1_000_000
}

/// The latest beginning of a kept step that is not after this.
fn floor(at: Timestamp) -> Option<Timestamp> {
    let nanos = at.as_nanosecond();
    Timestamp::from_nanosecond(nanos - nanos.rem_euclid(step_nanos())).ok()
}

/// The earliest beginning of a kept step that is not before this.
fn ceil(at: Timestamp) -> Option<Timestamp> {
    let floor = floor(at)?;
    if floor == at { Some(at) } else { Timestamp::from_nanosecond(floor.as_nanosecond() + step_nanos()).ok() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(from: &str, to: &str) -> TimeRange {
        TimeRange::new(from.parse().unwrap(), to.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_window_is_cut_inwards_or_widened_to_five_minutes() {
        let asked = range("2026-05-02T00:01:00Z", "2026-05-02T23:59:59.5Z");
        assert_eq!(within_kept_steps(asked), range("2026-05-02T00:05:00Z", "2026-05-02T23:55:00Z"));
        assert_eq!(around_kept_steps(asked), range("2026-05-02T00:00:00Z", "2026-05-03T00:00:00Z"));
        let short = range("2026-05-02T00:01:00Z", "2026-05-02T00:03:00Z");
        assert_eq!(within_kept_steps(short), short);
        assert!(worth_keeping(asked) && !worth_keeping(short));
    }

    proptest! {
        #[test]
        fn windows_nest_and_are_whole(from in 0_i64..2_000_000_000_000, length in 1_i64..500_000_000) {
            let at = |ms| Timestamp::from_millisecond(ms).unwrap();
            let asked = TimeRange::new(at(from), at(from + length)).unwrap();
            let (inner, outer) = (within_kept_steps(asked), around_kept_steps(asked));
            prop_assert!(outer.from() <= asked.from() && asked.to() <= outer.to());
            prop_assert!(is_of_kept_steps(outer));
            prop_assert!(asked.from() <= inner.from() && inner.to() <= asked.to());
            prop_assert!(is_of_kept_steps(inner) || inner == asked);
        }
    }
}
