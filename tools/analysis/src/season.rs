//! Whether what a window shows is what happens at that time every day.

use jiff::Timestamp;

use crate::robust::{median, robust_scale};
use crate::sample::{Sample, values};

/// A day, milliseconds. Days on which the clocks change are an hour off; a level is compared, not an edge.
const DAY_MS: i64 = 86_400_000;

/// Values a window needs on a day to count as seen.
const MIN_VALUES: usize = 3;

/// A level at one time of day against the same time on earlier days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Season {
    /// The median in the window.
    pub now: f64,
    /// The median over the earlier days' medians at this time of day.
    pub usual: f64,
    /// How far the days differ among themselves: the robust scale of their medians, or of the values within a day if that is
    /// larger.
    pub scatter: f64,
    /// How many earlier days had data at this time.
    pub days: usize,
}

impl Season {
    /// Whether the level is a usual one: within three scatters, or within `relative` of the usual level.
    pub fn is_usual(&self, relative: f64) -> bool {
        let off = (self.now - self.usual).abs();
        off <= (3.0 * self.scatter).max(relative * self.usual.abs())
    }
}

/// Compares `[from, to)` with the same time of day on up to `days` days before; `None` when the window or all earlier days have
/// fewer than three values there.
pub fn season(series: &[Sample], from: Timestamp, to: Timestamp, days: u32) -> Option<Season> {
    let (from, to) = (from.as_millisecond(), to.as_millisecond());
    let on = |days_ago: i64| -> Option<Vec<f64>> {
        let shift = days_ago * DAY_MS;
        let inside = |s: &&Sample| from - shift <= s.millis() && s.millis() < to - shift;
        let found = values(&series.iter().filter(inside).copied().collect::<Vec<_>>());
        (found.len() >= MIN_VALUES).then_some(found)
    };
    let now = on(0)?;
    // A window longer than a day would be compared with a part of itself.
    let first = 1 + (to - from - 1) / DAY_MS;
    let earlier: Vec<Vec<f64>> = (first..first + i64::from(days)).filter_map(on).collect();
    let levels: Vec<f64> = earlier.iter().filter_map(|day| median(day)).collect();
    let within: Vec<f64> = earlier.iter().filter_map(|day| robust_scale(day)).collect();
    let scatter = robust_scale(&levels)?.max(median(&within)?);
    Some(Season { now: median(&now)?, usual: median(&levels)?, scatter, days: levels.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daily(extra: impl Fn(i64) -> f64) -> Vec<Sample> {
        // Half past each hour for four days; slower from 12 to 15 o'clock each day.
        (0..4 * 48)
            .map(|i| {
                let hour = i / 2 % 24;
                let wobble = (i * 7 % 5) as f64 * 0.01;
                Sample::at_second(i * 1800, if (12..15).contains(&hour) { 1.3 } else { 1.0 } + wobble + extra(i))
            })
            .collect()
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3600).unwrap()
    }

    #[test]
    fn the_daily_dip_is_usual_and_the_same_level_at_another_hour_is_not() {
        let dip = season(&daily(|_| 0.0), at(84), at(87), 3).unwrap();
        assert!(dip.days == 3 && dip.is_usual(0.05) && (dip.now - dip.usual).abs() < 0.02, "{dip:?}");
        let odd =
            season(&daily(|i| if (3 * 48 + 12..3 * 48 + 18).contains(&i) { 0.3 } else { 0.0 }), at(78), at(81), 3);
        assert!(odd.is_some_and(|s| !s.is_usual(0.05)), "{odd:?}");
    }

    #[test]
    fn without_earlier_days_nothing_is_usual() {
        assert_eq!(season(&daily(|_| 0.0)[..40], at(12), at(15), 3), None);
        assert_eq!(season(&daily(|_| 0.0), at(200), at(203), 3), None);
    }
}
