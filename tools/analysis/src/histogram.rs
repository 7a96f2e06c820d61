//! Quantiles from cumulative histogram buckets, as Prometheus computes them.

/// One cumulative bucket: how many observations were at or below `le`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The upper bound; infinite for the last.
    pub le: f64,
    /// Observations up to it (over the window: an increase, not a lifetime count).
    pub count: f64,
}

/// The quantile by linear interpolation inside the bucket it falls into. In the open last bucket it is the highest
/// finite bound; a first bucket with a positive bound begins at zero. `None` without an infinite bucket, with fewer than two
/// buckets or without observations. Counts that fall, as torn scrapes make them, are lifted to the one before.
pub fn histogram_quantile(q: f64, buckets: &[Bucket]) -> Option<f64> {
    let mut sorted: Vec<Bucket> = buckets.iter().filter(|b| !b.le.is_nan() && b.count.is_finite()).copied().collect();
    sorted.sort_by(|a, b| a.le.total_cmp(&b.le));
    let mut highest = 0.0_f64;
    for bucket in &mut sorted {
        highest = highest.max(bucket.count);
        bucket.count = highest;
    }
    let last = sorted.last()?;
    if sorted.len() < 2 || last.le != f64::INFINITY || last.count <= 0.0 || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let rank = q * last.count;
    let position = sorted.iter().position(|b| b.count >= rank)?;
    let bucket = sorted.get(position)?;
    let below = position.checked_sub(1).and_then(|p| sorted.get(p));
    if bucket.le == f64::INFINITY {
        return below.map(|b| b.le);
    }
    let (start, before) = match below {
        Some(b) => (b.le, b.count),
        None if bucket.le <= 0.0 => return Some(bucket.le),
        None => (0.0, 0.0),
    };
    let inside = bucket.count - before;
    Some(if inside > 0.0 { start + (bucket.le - start) * (rank - before) / inside } else { bucket.le })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn buckets(pairs: &[(f64, f64)]) -> Vec<Bucket> {
        pairs.iter().map(|(le, count)| Bucket { le: *le, count: *count }).collect()
    }

    #[test]
    fn quantiles_are_interpolated_within_their_bucket() {
        let data = buckets(&[(f64::INFINITY, 20.0), (0.1, 10.0), (0.5, 18.0)]);
        assert_eq!(
            [0.25, 0.5, 0.7, 0.95].map(|q| histogram_quantile(q, &data)),
            [Some(0.05), Some(0.1), Some(0.1 + 0.4 * 4.0 / 8.0), Some(0.5)]
        );
    }

    #[test]
    fn an_empty_or_open_histogram_has_no_quantile() {
        let none = [
            buckets(&[]),
            buckets(&[(f64::INFINITY, 3.0)]),
            buckets(&[(0.1, 0.0), (f64::INFINITY, 0.0)]),
            buckets(&[(0.1, 2.0), (0.2, 3.0)]),
        ];
        assert!(none.iter().all(|b| histogram_quantile(0.5, b).is_none()));
    }

    #[test]
    fn a_torn_scrape_is_lifted_to_a_cumulative_one() {
        let torn = buckets(&[(1.0, 10.0), (2.0, 9.0), (f64::INFINITY, 10.0)]);
        assert_eq!(histogram_quantile(0.9, &torn), Some(0.9));
    }

    proptest! {
        #[test]
        fn quantiles_never_decrease(counts in prop::collection::vec(0_u32..50, 2..9), a in 0.0_f64..=1.0, b in 0.0_f64..=1.0) {
            let mut total = 0.0;
            let last = counts.len() - 1;
            let data: Vec<Bucket> = counts.iter().enumerate().map(|(i, c)| {
                total += f64::from(*c);
                Bucket { le: if i == last { f64::INFINITY } else { i as f64 + 1.0 }, count: total }
            }).collect();
            match (histogram_quantile(a.min(b), &data), histogram_quantile(a.max(b), &data)) {
                (Some(x), Some(y)) => prop_assert!(x <= y),
                (None, None) => prop_assert!(total == 0.0),
                other => prop_assert!(false, "one side only: {other:?}"),
            }
        }
    }
}
