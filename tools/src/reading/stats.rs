//! Statistics of series, as grounding recomputes them.

use sightline_analysis::{median, quantile};
use sightline_model::{Point, Series, Stat, Stats};

/// The statistics over all points of all series; none without points.
pub fn stats(series: &[Series]) -> Option<Stats> {
    let points: Vec<&Point> = series.iter().flat_map(|s| &s.points).collect();
    let (first, last) = (points.iter().min_by_key(|p| p.time)?, points.iter().max_by_key(|p| p.time)?);
    let values: Vec<f64> = points.iter().map(|p| p.value).collect();
    let count: u64 = points.iter().map(|p| p.count).sum();
    let weighted: f64 = points.iter().map(|p| p.value * p.count as f64).sum();
    Some(Stats {
        count,
        min: points.iter().map(|p| p.min).fold(f64::INFINITY, f64::min),
        max: points.iter().map(|p| p.max).fold(f64::NEG_INFINITY, f64::max),
        mean: if count == 0 { return None } else { weighted / count as f64 },
        median: median(&values)?,
        p95: quantile(&values, 0.95)?,
        first: first.value,
        last: last.value,
    })
}

/// One statistic of one series.
pub fn stat(series: &Series, stat: Stat) -> Option<f64> {
    let stats = stats(std::slice::from_ref(series))?;
    Some(match stat {
        Stat::Count => stats.count as f64,
        Stat::Min => stats.min,
        Stat::Max => stats.max,
        Stat::Mean => stats.mean,
        Stat::Median => stats.median,
        Stat::P95 => stats.p95,
        Stat::First => stats.first,
        Stat::Last => stats.last,
        Stat::Sum => series.points.iter().map(|p| p.value).sum(),
    })
}
