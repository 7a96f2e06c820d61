//! Histograms: quantiles from the growth of `_bucket` series, means from the growth of `_sum` and `_count`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_analysis::{Bucket, histogram_quantile};
use sightline_model::{Aggregation, Dim, Entity, Point, Series};

use crate::reading::rank::{Ranked, read_rank};
use crate::reading::read_series;
use crate::tool::{Fetched, ToolError};

const BOUND: &str = "le";

/// What was read from a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The values; a point's `count` is the number of observations.
    pub series: Vec<Series>,
    /// What was sampled to get them, for coverage; a point's `count` is the number of samples.
    pub sampled: Vec<Series>,
}

/// The quantile of the observations of each step. The query read [`sightline_query::MetricPart::Buckets`] by
/// `increase`, grouped by `group_by` and the label `le`. A step without observations has no point.
///
/// # Errors
/// When a column is missing.
pub fn histogram_quantiles(buckets: &Fetched, group_by: &[Dim], q: f64) -> Result<Histogram, ToolError> {
    let grown = read_series(buckets, &with_bound(group_by), Aggregation::Increase)?;
    let mut steps: BTreeMap<Entity, BTreeMap<Timestamp, Vec<Bucket>>> = BTreeMap::new();
    let mut sampled = Vec::new();
    for Series { mut entity, points } in grown {
        let Some(le) = take_bound(&mut entity) else { continue };
        let group = steps.entry(entity.clone()).or_default();
        for point in &points {
            group.entry(point.time).or_default().push(Bucket { le, count: point.value });
        }
        if le == f64::INFINITY {
            sampled.push(Series { entity, points });
        }
    }
    let series = steps
        .into_iter()
        .map(|(entity, steps)| Series {
            entity,
            points: steps.into_iter().filter_map(|(time, buckets)| quantile_point(time, &buckets, q)).collect(),
        })
        .filter(|s| !s.points.is_empty())
        .collect();
    Ok(Histogram { series, sampled })
}

/// The mean of the observations of each step. Both queries read by `increase`, one the `_sum`, one the `_count` series.
///
/// # Errors
/// When a column is missing.
pub fn histogram_mean(sum: &Fetched, count: &Fetched, group_by: &[Dim]) -> Result<Histogram, ToolError> {
    let sums = read_series(sum, group_by, Aggregation::Increase)?;
    let counts = read_series(count, group_by, Aggregation::Increase)?;
    let observed: BTreeMap<(&Entity, Timestamp), f64> =
        counts.iter().flat_map(|s| s.points.iter().map(move |p| ((&s.entity, p.time), p.value))).collect();
    let series = sums
        .iter()
        .map(|s| Series {
            entity: s.entity.clone(),
            points: s
                .points
                .iter()
                .filter_map(|p| {
                    let n = *observed.get(&(&s.entity, p.time))?;
                    let count = observations(n)?;
                    Some(flat_point(p.time, p.value / n, count))
                })
                .collect(),
        })
        .filter(|s| !s.points.is_empty())
        .collect();
    Ok(Histogram { series, sampled: counts })
}

/// As [`histogram_quantiles`], over the whole window.
///
/// # Errors
/// When a column is missing.
pub fn rank_histogram_quantiles(buckets: &Fetched, group_by: &[Dim], q: f64) -> Result<Vec<Ranked>, ToolError> {
    let mut groups: BTreeMap<Entity, Vec<Bucket>> = BTreeMap::new();
    for Ranked { mut entity, value, .. } in read_rank(buckets, &with_bound(group_by), Aggregation::Increase)? {
        let Some(le) = take_bound(&mut entity) else { continue };
        groups.entry(entity).or_default().push(Bucket { le, count: value });
    }
    Ok(groups
        .into_iter()
        .filter_map(|(entity, buckets)| {
            let count = observations(observed(&buckets))?;
            Some(Ranked { entity, value: histogram_quantile(q, &buckets)?, count, at: None })
        })
        .collect())
}

/// As [`histogram_mean`], over the whole window.
///
/// # Errors
/// When a column is missing.
pub fn rank_histogram_mean(sum: &Fetched, count: &Fetched, group_by: &[Dim]) -> Result<Vec<Ranked>, ToolError> {
    let counts: BTreeMap<Entity, f64> =
        read_rank(count, group_by, Aggregation::Increase)?.into_iter().map(|r| (r.entity, r.value)).collect();
    Ok(read_rank(sum, group_by, Aggregation::Increase)?
        .into_iter()
        .filter_map(|r| {
            let n = *counts.get(&r.entity)?;
            let count = observations(n)?;
            Some(Ranked { entity: r.entity, value: r.value / n, count, at: None })
        })
        .collect())
}

fn with_bound(group_by: &[Dim]) -> Vec<Dim> {
    group_by.iter().cloned().chain([Dim::Label(BOUND.to_owned())]).collect()
}

/// `+Inf` and `Inf` parse as infinite.
fn take_bound(entity: &mut Entity) -> Option<f64> {
    entity.remove(BOUND)?.parse().ok().filter(|le: &f64| !le.is_nan())
}

fn observed(buckets: &[Bucket]) -> f64 {
    buckets.iter().map(|b| b.count).fold(0.0, f64::max)
}

/// A whole number of observations; none without any, for then nothing was measured.
fn observations(grown: f64) -> Option<u64> {
    (grown > 0.0).then(|| (grown.round() as u64).max(1))
}

fn quantile_point(time: Timestamp, buckets: &[Bucket], q: f64) -> Option<Point> {
    let count = observations(observed(buckets))?;
    Some(flat_point(time, histogram_quantile(q, buckets)?, count))
}

/// A histogram keeps no extremes, so the point's are its value.
fn flat_point(time: Timestamp, value: f64, count: u64) -> Point {
    Point { time, value, min: value, max: value, count }
}
