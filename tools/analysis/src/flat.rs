//! Values that do not move at all: a sensor on live hardware that repeats one value is often an exporter that died.

use jiff::Timestamp;

use crate::sample::{Sample, finite};

/// The longest stretch of equal values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstantRun {
    /// The value that repeats.
    pub value: f64,
    /// Its first sample.
    pub from: Timestamp,
    /// Its last sample.
    pub to: Timestamp,
    /// How many samples it has.
    pub samples: usize,
}

/// The longest run of exactly equal values; the earliest of equally long ones.
pub fn longest_constant_run(series: &[Sample]) -> Option<ConstantRun> {
    let samples = finite(series);
    let mut longest: Option<ConstantRun> = None;
    for run in samples.chunk_by(|a, b| a.value == b.value) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        if longest.is_none_or(|l| run.len() > l.samples) {
            longest = Some(ConstantRun { value: first.value, from: first.time, to: last.time, samples: run.len() });
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_is_found_across_missing_samples() {
        let values = [1.0, 2.0, 2.0, f64::NAN, 2.0, 3.0];
        let data: Vec<Sample> = values.iter().enumerate().map(|(i, v)| Sample::at_second(i as i64, *v)).collect();
        let expected = ConstantRun { value: 2.0, from: data[1].time, to: data[4].time, samples: 3 };
        assert_eq!(longest_constant_run(&data), Some(expected));
        assert_eq!(longest_constant_run(&[]), None);
    }
}
