//! One member against its peers: how far off, in their own scatter and as a ratio.

use crate::robust::{median, robust_scale};

/// Which end of a metric is the healthy one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher is better (clock, throughput).
    Higher,
    /// Lower is better (step time, temperature).
    Lower,
}

/// How a member compares with all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeerScore {
    /// Its position in the input.
    pub index: usize,
    /// Its value.
    pub value: f64,
    /// The median of the others.
    pub peer_median: f64,
    /// Its value over that median; `None` when the median is zero.
    pub ratio_to_median: Option<f64>,
    /// Performance relative to the best member: 1 for the best, lower for the rest; `None` when that is undefined.
    pub ratio_to_best: Option<f64>,
    /// Distance from the others' median in their robust scale, positive on the bad side.
    pub z: f64,
}

/// Scores every member that has a value against the others; empty below three values, for then nobody is the odd one.
///
/// `relative_floor` is the scatter, as a share of the median, below which peers count as equal: without it eight GPUs
/// that agree to the megahertz would make the ninth infinitely odd for being one megahertz off.
pub fn peer_scores(values: &[Option<f64>], better: Better, relative_floor: f64) -> Vec<PeerScore> {
    let present: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(i, v)| Some((i, v.filter(|v| v.is_finite())?))).collect();
    if present.len() < 3 {
        return Vec::new();
    }
    let best = present.iter().map(|(_, v)| *v).reduce(|a, b| match better {
        Better::Higher => a.max(b),
        Better::Lower => a.min(b),
    });
    let mut scores = Vec::with_capacity(present.len());
    for (index, value) in &present {
        let others: Vec<f64> = present.iter().filter(|(i, _)| i != index).map(|(_, v)| *v).collect();
        let (Some(peer_median), Some(scale)) = (median(&others), robust_scale(&others)) else { continue };
        let scale = scale.max(relative_floor * peer_median.abs());
        let bad_side = match better {
            Better::Higher => peer_median - value,
            Better::Lower => value - peer_median,
        };
        let z = match (scale > 0.0, bad_side == 0.0) {
            (true, _) => bad_side / scale,
            (false, true) => 0.0,
            (false, false) => f64::INFINITY.copysign(bad_side),
        };
        let ratio = |part: f64, whole: f64| (whole != 0.0).then(|| part / whole);
        scores.push(PeerScore {
            index: *index,
            value: *value,
            peer_median,
            ratio_to_median: ratio(*value, peer_median),
            ratio_to_best: best.and_then(|best| match better {
                Better::Higher => ratio(*value, best),
                Better::Lower => ratio(best, *value),
            }),
            z,
        });
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_one_stands_out_and_missing_members_are_left_out() {
        let clocks = [Some(1980.0), Some(1975.0), None, Some(1980.0), Some(1110.0), Some(1965.0)];
        let scores = peer_scores(&clocks, Better::Higher, 0.01);
        assert_eq!(scores.iter().map(|s| s.index).collect::<Vec<_>>(), vec![0, 1, 3, 4, 5]);
        let slow = scores[3];
        assert_eq!((slow.peer_median, slow.ratio_to_best), (1977.5, Some(1110.0 / 1980.0)));
        assert!(slow.z > 30.0 && scores.iter().filter(|s| s.index != 4).all(|s| s.z < 3.0), "{scores:?}");
    }

    #[test]
    fn equal_peers_have_no_outlier_within_the_floor() {
        let scores = peer_scores(&[Some(100.0), Some(100.0), Some(100.0), Some(99.5)], Better::Higher, 0.01);
        assert!(scores.iter().all(|s| s.z <= 0.5), "{scores:?}");
    }

    #[test]
    fn two_members_cannot_tell_which_is_the_odd_one() {
        assert_eq!(peer_scores(&[Some(1.0), Some(9.0)], Better::Lower, 0.0), vec![]);
    }
}
