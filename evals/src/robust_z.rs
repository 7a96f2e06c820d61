//! The baseline: what an alert on robust z-scores would blame. Pure.
//!
//! Each gauge is compared with its own past: how many scaled median absolute deviations its median moved. The component whose series
//! moved most is blamed. The baseline is told the onset where one is known, which is more than a person has who asks.

use sightline_engine::SeriesShift;
use sightline_model::{Component, MetricKind};
use sightline_query::Catalogue;

/// Makes the median absolute deviation of a normal distribution its standard deviation: 1 / Φ⁻¹(3/4).
const MAD_TO_SIGMA: f64 = 1.4826;
/// The least spread that a series is taken to have, relative to its level: without it, one that stood still would move infinitely.
const LEAST_SPREAD: f64 = 0.01;
/// Samples on either side without which nothing is said about a series.
const LEAST_SAMPLES: u64 = 3;

/// Components, the most moved first.
pub fn ranked(shifts: &[SeriesShift], catalogue: &Catalogue) -> Vec<Component> {
    let mut moved: Vec<(f64, Component)> = Vec::new();
    for shift in shifts {
        // A counter's level says nothing; what is unknown is taken for a gauge, as an alert would.
        let kind = catalogue.by_stored(&shift.metric).map_or(MetricKind::Gauge, |metric| metric.kind());
        if kind != MetricKind::Gauge {
            continue;
        }
        let component: Component = shift.entity.clone();
        let Some(score) = score(shift) else { continue };
        match moved.iter_mut().find(|(_, known)| *known == component) {
            Some((most, _)) => *most = most.max(score),
            None => moved.push((score, component)),
        }
    }
    moved.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    moved.into_iter().filter(|(_, component)| !component.is_empty()).map(|(_, component)| component).collect()
}

/// By how many of its own deviations a series moved; none with too few samples.
fn score(shift: &SeriesShift) -> Option<f64> {
    if shift.before_count < LEAST_SAMPLES || shift.after_count < LEAST_SAMPLES {
        return None;
    }
    let spread = (MAD_TO_SIGMA * shift.before_deviation).max(LEAST_SPREAD * shift.before_median.abs());
    let moved = (shift.after_median - shift.before_median).abs();
    if spread > 0.0 { Some(moved / spread) } else { Some(if moved > 0.0 { f64::MAX } else { 0.0 }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(metric: &str, node: &str, before: (f64, f64), after: f64) -> SeriesShift {
        SeriesShift {
            metric: metric.to_owned(),
            entity: [("node".to_owned(), node.to_owned())].into(),
            before_count: 100,
            before_median: before.0,
            before_deviation: before.1,
            after_count: 100,
            after_median: after,
        }
    }

    #[test]
    fn the_component_whose_gauge_moved_most_against_its_own_spread_comes_first() {
        let shifts = [
            shift("DCGM_FI_DEV_GPU_TEMP", "n1", (60.0, 5.0), 75.0),
            shift("DCGM_FI_DEV_GPU_TEMP", "n2", (60.0, 1.0), 70.0),
            shift("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "n3", (1e9, 1.0), 9e9),
        ];
        let ranked = ranked(&shifts, &Catalogue::builtin().unwrap());
        let nodes: Vec<&str> = ranked.iter().map(|component| component["node"].as_str()).collect();
        assert_eq!(
            nodes,
            ["n2", "n1"],
            "ten degrees of a steady GPU are more than fifteen of an unsteady one; counters do not count"
        );
    }

    #[test]
    fn too_few_samples_say_nothing_and_a_series_that_stood_still_does_not_break_it() {
        let still = shift("DCGM_FI_DEV_GPU_TEMP", "n1", (0.0, 0.0), 1.0);
        let few = SeriesShift { before_count: 1, ..shift("DCGM_FI_DEV_GPU_TEMP", "n2", (1.0, 0.0), 9.0) };
        assert_eq!(ranked(&[still, few], &Catalogue::builtin().unwrap()).len(), 1);
    }
}
