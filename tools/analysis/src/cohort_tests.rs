use super::*;

/// An autoregression of order one around `level`, deviation about 1.
fn series(generator: &mut Generator, count: usize, level: f64, memory: f64) -> Vec<f64> {
    let mut state = 0.0;
    let values = (0..count).map(|_| {
        state = memory * state + (1.0 - memory * memory).sqrt() * generator.normal();
        level + state
    });
    values.collect()
}

#[test]
fn a_shift_is_measured_with_its_interval_and_effect() {
    let mut generator = Generator::new(11);
    let base = series(&mut generator, 200, 10.0, 0.3);
    let moved: Vec<f64> = base.iter().rev().map(|v| v + 2.0).collect();
    let test = cohort_test(&base, &moved).unwrap();
    assert_eq!((test.first, test.second), (200, 200));
    assert!((test.shift - 2.0).abs() < 1e-9 && test.interval.0 > 1.4 && test.interval.1 < 2.6, "{test:?}");
    assert!(test.delta > 0.7 && test.p_value < 1e-6, "{test:?}");
    let back = cohort_test(&moved, &base).unwrap();
    assert!((back.shift + 2.0).abs() < 1e-9 && back.delta == -test.delta, "{back:?}");
}

#[test]
fn the_interval_holds_the_truth_about_as_often_as_it_says_even_when_neighbours_resemble_each_other() {
    let mut generator = Generator::new(5);
    let (mut inside, mut alarms) = (0, 0);
    const TRIES: usize = 200;
    for _ in 0..TRIES {
        let base = series(&mut generator, 80, 5.0, 0.5);
        let other = series(&mut generator, 80, 5.0, 0.5);
        let test = cohort_test(&base, &other).unwrap();
        inside += usize::from(test.interval.0 <= 0.0 && 0.0 <= test.interval.1);
        alarms += usize::from(test.p_value < 0.05);
    }
    // 95 % and 5 % are meant; short series with memory make a bootstrap a little too sure.
    assert!(inside >= TRIES * 88 / 100 && alarms <= TRIES * 9 / 100, "{inside} inside, {alarms} alarms of {TRIES}");
}

#[test]
fn too_few_values_decide_nothing_and_missing_ones_are_not_zero() {
    assert_eq!(cohort_test(&[1.0; 4], &[9.0; 50]), None);
    assert_eq!(cohort_test(&[f64::NAN; 50], &[9.0; 50]), None);
    let with_gaps: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { f64::NAN } else { 3.0 }).collect();
    let test = cohort_test(&with_gaps, &[3.0; 20]).unwrap();
    assert_eq!((test.first, test.shift, test.interval, test.p_value), (20, 0.0, (0.0, 0.0), 1.0));
}

#[test]
fn corrections_follow_the_textbook() {
    // Holm: 0.01·4, 0.02·3, 0.03·2 raised to 0.06, 0.04 raised to 0.06. BH: 0.01·4/1, 0.02·4/2, 0.03·4/3, 0.04·4/4.
    let p = [0.04, 0.01, 0.03, 0.02];
    let near = |found: Vec<f64>, wanted: [f64; 4]| found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near(holm(&p), [0.06, 0.04, 0.06, 0.06]), "{:?}", holm(&p));
    assert!(near(benjamini_hochberg(&p), [0.04; 4]), "{:?}", benjamini_hochberg(&p));
    assert_eq!((holm(&[]), benjamini_hochberg(&[0.5])), (vec![], vec![0.5]));
}
