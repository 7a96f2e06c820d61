//! Series that are the same series twice: a device metric that an exporter repeats for every pod on the device.

use crate::sample::{Sample, finite};

/// Fewer shared samples than this agree by chance, where values are whole percent.
const MIN_SHARED: usize = 12;

/// Distinct values that twins must have: two idle sensors at one level are no twins.
const MIN_DISTINCT: usize = 3;

/// The groups of members whose samples are equal in time and value, each with at least two members, by their positions in the
/// input. Members that are constant, or nearly, are left out: equal there proves nothing.
pub fn twins<S: AsRef<[Sample]>>(members: &[S]) -> Vec<Vec<usize>> {
    let mut keyed: Vec<(Vec<(i64, u64)>, usize)> = members
        .iter()
        .enumerate()
        .filter_map(|(index, member)| {
            let samples = finite(member.as_ref());
            let mut distinct: Vec<u64> = samples.iter().map(|s| s.value.to_bits()).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let telling = samples.len() >= MIN_SHARED && distinct.len() >= MIN_DISTINCT;
            telling.then(|| (samples.iter().map(|s| (s.millis(), s.value.to_bits())).collect(), index))
        })
        .collect();
    keyed.sort();
    let groups = keyed.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
    let mut groups: Vec<Vec<usize>> = groups.map(|group| group.iter().map(|(_, index)| *index).collect()).collect();
    groups.sort();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_pods_on_one_device_are_one_series_and_two_idle_devices_are_not() {
        let busy = |shift: i64| -> Vec<Sample> {
            (0..30).map(|i| Sample::at_second(i * 30, (90 + (i + shift) * 7 % 9) as f64)).collect()
        };
        let idle: Vec<Sample> = (0..30).map(|i| Sample::at_second(i * 30, 0.0)).collect();
        let members = [busy(0), idle.clone(), busy(0), busy(1), idle, busy(0)];
        assert_eq!(twins(&members), vec![vec![0, 2, 5]]);
        assert_eq!(twins(&[busy(0)[..8].to_vec(), busy(0)[..8].to_vec()]), Vec::<Vec<usize>>::new());
    }
}
