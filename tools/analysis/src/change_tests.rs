use proptest::prelude::*;

use super::*;

/// Noise that looks irregular and is the same on every run.
fn wobble(i: usize) -> f64 {
    let x = (i as f64 * 12.9898).sin() * 43758.5453;
    x - x.floor() - 0.5
}

fn series(values: impl IntoIterator<Item = f64>) -> Vec<Sample> {
    values.into_iter().enumerate().map(|(i, v)| Sample::at_second(i as i64 * 30, v)).collect()
}

#[test]
fn a_noisy_step_is_found_at_its_first_sample() {
    let data = series((0..200).map(|i| if i < 140 { 1.0 } else { 1.4 } + 0.05 * wobble(i)));
    let found = change_points(&data, &ChangeOptions::default());
    assert_eq!(found.iter().map(|c| c.index).collect::<Vec<_>>(), vec![140]);
    let change = found[0];
    assert!((change.before - 1.0).abs() < 0.01 && (change.after - 1.4).abs() < 0.01, "{change:?}");
    assert!(change.effect > 5.0 && change.p_value < 1e-6 && change.direction() == Direction::Rise, "{change:?}");
}

#[test]
fn a_slow_period_has_a_start_and_an_end() {
    let data = series((0..150).map(|i| if (50..90).contains(&i) { 3.0 } else { 1.0 } + 0.1 * wobble(i)));
    let found = change_points(&data, &ChangeOptions::default());
    assert_eq!(found.iter().map(|c| c.index).collect::<Vec<_>>(), vec![50, 90]);
}

#[test]
fn lone_spikes_noise_constants_and_short_series_have_no_change() {
    let options = ChangeOptions::default();
    let spikes = series((0..120).map(|i| if i % 20 == 10 { 9.0 } else { 1.0 } + 0.02 * wobble(i)));
    let noise = series((0..300).map(|i| 5.0 + wobble(i)));
    let constant = series((0..50).map(|_| 1980.0));
    let short = series([1.0, 5.0, 5.0]);
    let found = [spikes, noise, constant, short].map(|s| change_points(&s, &options).len());
    assert_eq!(found, [0, 0, 0, 0]);
}

#[test]
fn changes_below_the_relative_floor_are_not_reported() {
    let data = series((0..100).map(|i| if i < 50 { 100.0 } else { 103.0 }));
    assert_eq!(change_points(&data, &ChangeOptions::default()), vec![]);
    let sharp = ChangeOptions { min_relative: 0.01, ..ChangeOptions::default() };
    assert_eq!(change_points(&data, &sharp).len(), 1);
}

#[test]
fn missing_values_are_skipped_not_read_as_zero() {
    let data = series((0..60).map(|i| if i % 3 == 0 { f64::NAN } else { 7.0 }));
    assert_eq!(change_points(&data, &ChangeOptions::default()), vec![]);
}

#[test]
fn a_recovered_fall_does_not_last_and_a_staying_one_does() {
    let options = ChangeOptions::default();
    let recovered = series((0..90).map(|i| if (30..60).contains(&i) { 1100.0 } else { 1980.0 }));
    let staying = series((0..90).map(|i| if i < 30 { 1980.0 } else { 1100.0 }));
    assert_eq!(lasting_change(&recovered, Direction::Fall, &options), None);
    assert_eq!(lasting_change(&staying, Direction::Fall, &options).map(|c| c.index), Some(30));
}

proptest! {
    #[test]
    fn a_step_well_above_the_noise_is_found_within_one_sample(
        at in 12_usize..88, level in 1.0_f64..1000.0, jump in 0.3_f64..3.0
    ) {
        let data = series((0..100).map(|i| level * (if i < at { 1.0 } else { 1.0 + jump } + 0.04 * wobble(i))));
        let found = change_points(&data, &ChangeOptions::default());
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].index.abs_diff(at) <= 1);
    }
}
