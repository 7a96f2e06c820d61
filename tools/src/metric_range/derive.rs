//! What is computed from series that were read: differences, moving averages, running sums, and the ratio of two metrics.
//!
//! A point that cannot be computed is missing; it is never zero.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Entity, Point, Series, Unit};

use crate::measure::Derived;

/// What is made of every series, point by point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransformArg {
    /// Each point less the one before it.
    Delta,
    /// The mean of the last `points` points.
    MovingAverage,
    /// The sum of all points so far.
    Cumulative,
}

impl JsonSchema for TransformArg {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TransformArg".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ["delta", "moving_average", "cumulative"] })
    }
}

/// A transform with what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    Delta,
    /// Over so many points.
    MovingAverage(usize),
    Cumulative,
}

impl Transform {
    pub(super) fn derived(self) -> Derived {
        match self {
            Self::Delta => Derived::Delta,
            Self::MovingAverage(_) => Derived::MovingAverage,
            Self::Cumulative => Derived::Cumulative,
        }
    }

    /// How it is written in evidence.
    pub(super) fn described(self) -> String {
        match self {
            Self::Delta => "difference to the point before".to_owned(),
            Self::MovingAverage(points) => format!("mean of the last {points} points"),
            Self::Cumulative => "running sum".to_owned(),
        }
    }

    /// The series that come of it; one of too few points for any is left out.
    pub(super) fn apply(self, series: &[Series]) -> Vec<Series> {
        series
            .iter()
            .map(|Series { entity, points }| Series { entity: entity.clone(), points: self.points(points) })
            .filter(|series| !series.points.is_empty())
            .collect()
    }

    fn points(self, points: &[Point]) -> Vec<Point> {
        match self {
            // The first point has none before it. A difference over a gap is one between neighbours, as they were sampled.
            Self::Delta => points
                .windows(2)
                .filter_map(|pair| match pair {
                    [before, after] => Some(flat(after.time, after.value - before.value, after.count)),
                    _ => None,
                })
                .collect(),
            // At the start there are fewer points to take the mean of.
            Self::MovingAverage(length) => (0..points.len())
                .filter_map(|index| {
                    let last = points.get((index + 1).saturating_sub(length)..=index)?;
                    let sum: f64 = last.iter().map(|p| p.value).sum();
                    let own = last.last()?;
                    Some(flat(own.time, sum / last.len() as f64, own.count))
                })
                .collect(),
            Self::Cumulative => points
                .iter()
                .scan(0.0, |sum, point| {
                    *sum += point.value;
                    Some(flat(point.time, *sum, point.count))
                })
                .collect(),
        }
    }
}

/// A computed value has no extremes of its own. Its count is its own point's: a mean over the points weighs them by their counts, and
/// the samples of the points before it would weigh the later ones most.
fn flat(time: Timestamp, value: f64, count: u64) -> Point {
    Point { time, value, min: value, max: value, count }
}

/// The unit of a ratio: none where both are of one unit, else unknown to us.
pub(super) fn ratio_unit(above: Unit, below: Unit) -> Unit {
    if above == below { Unit::Ratio } else { Unit::None }
}

/// Each point divided by the other metric's of the same group and instant, and how many could not be: there is nothing to divide by,
/// or it is zero.
pub(super) fn ratio(above: &[Series], below: &[Series]) -> (Vec<Series>, u64) {
    let mut divisors: BTreeMap<(&Entity, Timestamp), f64> = BTreeMap::new();
    for series in below {
        divisors.extend(series.points.iter().map(|p| ((&series.entity, p.time), p.value)));
    }
    let mut without = 0;
    let mut ratios = Vec::new();
    for Series { entity, points } in above {
        let mut divided = Vec::new();
        for point in points {
            let value = divisors.get(&(entity, point.time)).filter(|d| **d != 0.0).map(|d| point.value / d);
            match value.filter(|v| v.is_finite()) {
                Some(value) => divided.push(flat(point.time, value, point.count)),
                None => without += 1,
            }
        }
        if !divided.is_empty() {
            ratios.push(Series { entity: entity.clone(), points: divided });
        }
    }
    (ratios, without)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::stats;

    fn series(node: &str, values: &[(i64, f64)]) -> Series {
        let point = |(second, value): &(i64, f64)| flat(Timestamp::from_second(*second).unwrap(), *value, 2);
        let entity = [("node".to_owned(), node.to_owned())].into();
        Series { entity, points: values.iter().map(point).collect() }
    }

    fn read(series: &[Series]) -> Vec<(i64, f64, u64)> {
        series.iter().flat_map(|s| &s.points).map(|p| (p.time.as_second(), p.value, p.count)).collect()
    }

    #[test]
    fn transforms_leave_out_what_cannot_be_computed() {
        let of = [series("a", &[(0, 10.0), (60, 14.0), (240, 11.0)]), series("b", &[(0, 5.0)])];
        assert_eq!(read(&Transform::Delta.apply(&of)), [(60, 4.0, 2), (240, -3.0, 2)]);
        assert_eq!(Transform::Delta.apply(&of).len(), 1, "a single point has no difference");
        assert_eq!(
            read(&Transform::MovingAverage(2).apply(&of)),
            [(0, 10.0, 2), (60, 12.0, 2), (240, 12.5, 2), (0, 5.0, 2)]
        );
        assert_eq!(read(&Transform::Cumulative.apply(&of)), [(0, 10.0, 2), (60, 24.0, 2), (240, 35.0, 2), (0, 5.0, 2)]);
    }

    #[test]
    fn the_mean_of_computed_points_weighs_each_by_its_own_samples() {
        let of = [series("a", &[(0, 10.0), (60, 14.0), (240, 11.0)])];
        let mean = |transform: Transform| stats(&transform.apply(&of)).unwrap().mean;
        assert_eq!(mean(Transform::Cumulative), 23.0, "of 10, 24 and 35");
        assert_eq!(mean(Transform::MovingAverage(2)), 11.5, "of 10, 12 and 12.5");
        assert_eq!(mean(Transform::Delta), 0.5, "of 4 and -3");
    }

    #[test]
    fn a_ratio_has_no_point_where_nothing_can_divide() {
        let above = [series("a", &[(0, 10.0), (60, 14.0), (120, 1.0), (180, 0.0)]), series("b", &[(0, 5.0)])];
        let below = [series("a", &[(0, 4.0), (60, 0.0), (180, 3.0), (240, 9.0)])];
        let (ratios, without) = ratio(&above, &below);
        assert_eq!((read(&ratios), without), (vec![(0, 2.5, 2), (180, 0.0, 2)], 3));
    }
}
