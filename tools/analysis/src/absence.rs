//! Series that stop while their peers go on: the fault an average cannot see.

use jiff::Timestamp;

use crate::robust::median;
use crate::sample::Sample;

/// A member whose series ended early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Absence {
    /// Its position in the input.
    pub index: usize,
    /// Its last sample.
    pub last_seen: Timestamp,
    /// The typical last sample of its peers.
    pub peers_until: Timestamp,
    /// How many of its samples are missing by then.
    pub missing: f64,
}

/// Members whose last sample lies more than `tolerance` steps before the median last sample of all members. When half
/// or more of them stop, the median stops too, and none is reported: that is an end or a gap, not one member's fault.
/// A member without any sample is not reported either; it may never have been collected.
pub fn absences<S: AsRef<[Sample]>>(members: &[S], step_ms: i64, tolerance: f64) -> Vec<Absence> {
    let last = |m: &S| m.as_ref().iter().filter(|s| s.value.is_finite()).map(Sample::millis).max();
    let ends: Vec<(usize, i64)> = members.iter().enumerate().filter_map(|(i, m)| Some((i, last(m)?))).collect();
    if ends.len() < 2 || step_ms <= 0 {
        return Vec::new();
    }
    let Some(typical) = median(&ends.iter().map(|(_, end)| *end as f64).collect::<Vec<_>>()) else { return Vec::new() };
    // With two members the median lies between both; the later one is then what "goes on" means.
    let typical = if ends.len() == 2 { ends.iter().map(|(_, e)| *e).max().unwrap_or(0) as f64 } else { typical };
    let instant = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    ends.into_iter()
        .map(|(index, end)| Absence {
            index,
            last_seen: instant(end),
            peers_until: instant(typical as i64),
            missing: (typical - end as f64) / step_ms as f64,
        })
        .filter(|a| a.missing > tolerance)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(second: i64) -> Vec<Sample> {
        (0..=second / 30).map(|i| Sample::at_second(i * 30, 1.0)).collect()
    }

    #[test]
    fn the_member_that_stops_is_named_with_its_last_sample() {
        let found = absences(&[until(3000), until(600), until(2970), vec![]], 30_000, 4.0);
        let expected = Absence {
            index: 1,
            last_seen: Timestamp::from_second(600).unwrap(),
            peers_until: Timestamp::from_second(2970).unwrap(),
            missing: 79.0,
        };
        assert_eq!(found, vec![expected]);
    }

    #[test]
    fn an_end_shared_by_most_members_is_nobodys_absence() {
        assert_eq!(absences(&[until(600), until(600), until(600), until(3000)], 30_000, 4.0), vec![]);
    }
}
