//! Whether a metric differs between the sides, in which direction, and how sure that is.

use sightline_analysis::{CohortTest, cohort_test, holm};
use sightline_model::{Evidence, Series};
use sightline_query::catalogue::BetterEnd;

/// A shift must be this unlikely by chance, after correction for the number of metrics.
const MAX_P: f64 = 0.01;
/// Changes of less than this share are called unchanged: within what differs from day to day without a cause. Chosen.
pub(super) const UNCHANGED: f64 = 0.05;
/// A shift that is sure but smaller than most of the spread is no change that anybody would feel: Cliff's delta below which a
/// difference is called small (Romano and others, 2006).
const MIN_DELTA: f64 = 0.33;

/// Both sides of one metric as numbers.
#[derive(Clone, Debug)]
pub(super) struct Side {
    base: Vec<f64>,
    other: Vec<f64>,
    better: Option<BetterEnd>,
}

impl Side {
    pub(super) fn of(pair: &super::facts::Pair) -> Self {
        let points = |e: &Evidence| values(&e.series).collect();
        Self { base: points(&pair.base), other: points(&pair.other), better: pair.better }
    }
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|s| &s.points).map(|p| p.value)
}

/// How the second side relates to the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It moved to the metric's worse end.
    Regressed,
    /// It moved to the metric's better end.
    Improved,
    /// It is higher, for better or worse.
    Higher,
    /// It is lower, for better or worse.
    Lower,
    /// It moved by less than what counts.
    Unchanged,
    /// It may have moved; the spread is too wide to tell.
    Unclear,
    /// A side has too few points.
    TooLittle,
}

/// What one metric says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// The numbers; none with too little data.
    pub(super) test: Option<CohortTest>,
    /// The p-value after correction.
    pub(super) p_value: f64,
    /// The interval's worse end as a share of the base's level, positive for worse; none where no end is better or the base is
    /// zero.
    pub(super) worst_share: Option<f64>,
}

/// Judges every metric, corrected for their number.
pub(super) fn judged(sides: &[Side]) -> Vec<Judgement> {
    let tests: Vec<Option<CohortTest>> = sides.iter().map(|s| cohort_test(&s.base, &s.other)).collect();
    let mut corrected = holm(&tests.iter().flatten().map(|t| t.p_value).collect::<Vec<_>>()).into_iter();
    sides
        .iter()
        .zip(tests)
        .map(|(side, test)| {
            let Some(test) = test else {
                return Judgement { verdict: Verdict::TooLittle, test: None, p_value: 1.0, worst_share: None };
            };
            let p_value = corrected.next().unwrap_or(1.0);
            let level = sightline_analysis::median(&side.base).map_or(0.0, f64::abs);
            let worst_share = side.better.filter(|_| level > 0.0).map(|better| match better {
                BetterEnd::Lower => test.interval.1 / level,
                BetterEnd::Higher => -test.interval.0 / level,
            });
            Judgement { verdict: verdict(&test, p_value, level, side.better), test: Some(test), p_value, worst_share }
        })
        .collect()
}

fn verdict(test: &CohortTest, p_value: f64, level: f64, better: Option<BetterEnd>) -> Verdict {
    let (low, high) = test.interval;
    let small = |shift: f64| shift.abs() < UNCHANGED * level || shift == 0.0;
    let sure = p_value <= MAX_P && test.delta.abs() >= MIN_DELTA && (low > 0.0 || high < 0.0);
    if sure && !small(test.shift) {
        return match (better, test.shift > 0.0) {
            (Some(BetterEnd::Lower), true) | (Some(BetterEnd::Higher), false) => Verdict::Regressed,
            (Some(BetterEnd::Lower), false) | (Some(BetterEnd::Higher), true) => Verdict::Improved,
            (None, true) => Verdict::Higher,
            (None, false) => Verdict::Lower,
        };
    }
    // Unchanged is a statement too: the interval must not reach what would be a change twice over.
    if small(test.shift) && small(low / 2.0) && small(high / 2.0) { Verdict::Unchanged } else { Verdict::Unclear }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(level: f64, better: Option<BetterEnd>) -> Side {
        let around = |centre: f64| (0..60).map(|i| centre + f64::from(i * 7 % 11) * 0.01).collect();
        Side { base: around(1.0), other: around(level), better }
    }

    fn verdicts(sides: &[Side]) -> Vec<Verdict> {
        judged(sides).iter().map(|j| j.verdict).collect()
    }

    #[test]
    fn direction_follows_the_better_end() {
        let ends = [Some(BetterEnd::Lower), Some(BetterEnd::Higher), None];
        let at = |level: f64| verdicts(&ends.map(|end| side(level, end)));
        assert_eq!(at(1.5), [Verdict::Regressed, Verdict::Improved, Verdict::Higher]);
        assert_eq!(at(0.5), [Verdict::Improved, Verdict::Regressed, Verdict::Lower]);
        assert_eq!(at(1.01), [Verdict::Unchanged; 3]);
    }

    #[test]
    fn a_wide_spread_is_unclear_and_few_points_are_too_little() {
        let wild: Vec<f64> = (0..60).map(|i| 1.0 + f64::from(i * 37 % 61) * 0.05).collect();
        let other: Vec<f64> = wild.iter().rev().map(|v| v + 0.15).collect();
        let unclear = Side { base: wild, other, better: Some(BetterEnd::Lower) };
        let few = Side { base: vec![1.0; 3], other: vec![2.0; 60], better: None };
        assert_eq!(verdicts(&[unclear, few]), [Verdict::Unclear, Verdict::TooLittle]);
    }

    #[test]
    fn many_metrics_need_more_proof_than_one() {
        // Borderline alone: a handful of points, fully apart.
        let apart = || Side {
            base: vec![1.0, 1.01, 1.02, 1.03, 1.04, 1.05],
            other: vec![1.2, 1.21, 1.22, 1.23, 1.24, 1.25],
            better: Some(BetterEnd::Lower),
        };
        let alone = judged(&[apart()])[0].p_value;
        let among = judged(&(0..8).map(|_| apart()).collect::<Vec<_>>())[0].p_value;
        assert!((among / alone - 8.0).abs() < 1e-9 || among == 1.0, "{alone} {among}");
    }
}
