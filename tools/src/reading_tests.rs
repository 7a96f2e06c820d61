use proptest::prelude::*;
use sightline_analysis::{Sample, increase};
use sightline_model::{Cell, Coverage, Dataset, Entity, Gap, TimeRange};
use sightline_query::{Align, MetricPart, Order, Query};

use super::*;
use crate::testing::{at, f, fetched, labels, n, s, t};

fn entity(pairs: &[(&str, &str)]) -> Entity {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn range(from: i64, to: i64) -> TimeRange {
    TimeRange::new(at(from), at(to)).unwrap()
}

fn query(metric: &str, part: MetricPart, shape: Shape) -> Query {
    Query {
        dataset: Dataset::Metrics,
        metric: Some(metric.to_owned()),
        part,
        range: range(0, 600),
        filters: Vec::new(),
        placement: None,
        threshold: None,
        shape,
    }
}

fn series_of(group_by: &[Dim], aggregation: Aggregation) -> Shape {
    Shape::Series { step_ms: 60_000, align: Align::Epoch, group_by: group_by.to_vec(), aggregation, limit: 1000 }
}

/// A row of growth: what tells the series apart, then first, last, rise, min and the times of the first and last sample.
fn grown(key: Vec<Cell>, count: i64, min: f64, ends: (f64, f64), rise: f64, times: (i64, i64)) -> Vec<Cell> {
    let mut row = key;
    row.extend([n(count), f(min), f(ends.0.max(ends.1)), f(ends.0), f(ends.1), f(rise), t(times.0), t(times.1)]);
    row
}

fn point(seconds: i64, value: f64, count: u64) -> Point {
    Point { time: at(seconds), value, min: value, max: value, count }
}

const COUNTER: &str = "network_receive_bytes";

fn counter_key(bucket: i64, node: &str, device: &str) -> Vec<Cell> {
    vec![
        t(bucket),
        s(node),
        s("node_network_receive_bytes_total"),
        s("c1"),
        s(""),
        s(""),
        labels(&[("device", device)]),
    ]
}

#[test]
fn a_counter_is_added_up_across_steps_resets_and_series() {
    let q = query(COUNTER, MetricPart::Samples, series_of(&[Dim::Node], Aggregation::Increase));
    let rows = vec![
        // eth0: 100 110 | 130 140 | reset 5 15 | one sample 25
        grown(counter_key(0, "n1", "eth0"), 2, 100.0, (100.0, 110.0), 10.0, (0, 30)),
        grown(counter_key(60, "n1", "eth0"), 2, 130.0, (130.0, 140.0), 10.0, (60, 90)),
        grown(counter_key(120, "n1", "eth0"), 2, 5.0, (5.0, 15.0), 10.0, (120, 150)),
        grown(counter_key(180, "n1", "eth0"), 1, 25.0, (25.0, 25.0), 0.0, (180, 180)),
        // eth1: a reset inside the second step: 50 60 | 70 2 4
        grown(counter_key(0, "n1", "eth1"), 2, 50.0, (50.0, 60.0), 10.0, (0, 30)),
        grown(counter_key(60, "n1", "eth1"), 3, 2.0, (70.0, 4.0), 2.0, (60, 100)),
        // One sample says nothing about growth.
        grown(counter_key(0, "n2", "eth0"), 1, 7.0, (7.0, 7.0), 0.0, (0, 0)),
    ];
    let read = fetched(0, &q, rows);
    let increase = read_series(&read, &[Dim::Node], Aggregation::Increase).unwrap();
    let points = vec![point(0, 20.0, 4), point(60, 30.0 + 14.0, 5), point(120, 15.0, 2), point(180, 10.0, 1)];
    assert_eq!(increase, vec![Series { entity: entity(&[("node", "n1")]), points }]);
    let rate = read_series(&read, &[Dim::Node], Aggregation::Rate).unwrap();
    let rates: Vec<f64> = rate[0].points.iter().map(|p| p.value).collect();
    assert_eq!(rates, vec![20.0 / 30.0, 30.0 / 60.0 + 14.0 / 70.0, 15.0 / 60.0, 10.0 / 30.0]);
}

#[test]
fn a_rank_by_rate_adds_up_whole_windows() {
    let shape =
        Shape::Rank { group_by: vec![Dim::Node], aggregation: Aggregation::Rate, order: Order::Descending, limit: 10 };
    let q = query(COUNTER, MetricPart::Samples, shape);
    let key = |node: &str, device: &str| counter_key(0, node, device).into_iter().skip(1).collect::<Vec<Cell>>();
    let rows = vec![
        grown(key("n1", "eth0"), 10, 0.0, (0.0, 600.0), 600.0, (0, 300)),
        grown(key("n1", "eth1"), 10, 0.0, (0.0, 300.0), 300.0, (0, 300)),
        grown(key("n2", "eth0"), 10, 5.0, (5.0, 5.0), 0.0, (0, 300)),
        grown(key("n3", "eth0"), 1, 5.0, (5.0, 5.0), 0.0, (0, 0)),
    ];
    let ranked = read_rank(&fetched(0, &q, rows), &[Dim::Node], Aggregation::Rate).unwrap();
    let expected = vec![
        Ranked { entity: entity(&[("node", "n1")]), value: 3.0, count: 20, at: None },
        // Grew by nothing is zero; not enough samples is no row.
        Ranked { entity: entity(&[("node", "n2")]), value: 0.0, count: 10, at: None },
    ];
    assert_eq!(ranked, expected);
}

#[test]
fn histogram_quantiles_follow_the_buckets_growth() {
    let le = Dim::Label("le".to_owned());
    let q = query(
        "time_to_first_token",
        MetricPart::Buckets,
        series_of(&[Dim::Service, Dim::Metric, le], Aggregation::Increase),
    );
    let row = |bucket: i64, le: &str, first: f64, last: f64| {
        let key = vec![
            t(bucket),
            s("chat"),
            s("vllm:time_to_first_token_seconds_bucket"),
            s(le),
            s("c1"),
            s("n1"),
            s(""),
            labels(&[("le", le)]),
        ];
        grown(key, 2, first, (first, last), last - first, (bucket, bucket + 30))
    };
    let rows = vec![
        row(0, "0.1", 100.0, 110.0),
        row(0, "0.5", 200.0, 218.0),
        row(0, "+Inf", 200.0, 220.0),
        // No observations in the second step: no point, not a zero.
        row(60, "0.1", 110.0, 110.0),
        row(60, "0.5", 218.0, 218.0),
        row(60, "+Inf", 220.0, 220.0),
    ];
    let read = fetched(0, &q, rows);
    let histogram = histogram_quantiles(&read, &[Dim::Service], 0.7).unwrap();
    // 20 observations, rank 14: 4 of the 8 between 0.1 and 0.5.
    let expected = Series { entity: entity(&[("service", "chat")]), points: vec![point(0, 0.1 + 0.4 * 4.0 / 8.0, 20)] };
    assert_eq!(histogram.series, vec![expected]);
    assert_eq!(histogram.sampled.iter().map(|s| s.points.len()).collect::<Vec<_>>(), vec![2]);
}

#[test]
fn a_histograms_mean_is_its_sum_over_its_count() {
    let read = |part: MetricPart, growth: f64| {
        let q = query("time_to_first_token", part, series_of(&[Dim::Metric], Aggregation::Increase));
        let key = vec![t(0), s("x"), s("c1"), s("n1"), s(""), s("chat"), labels(&[])];
        fetched(0, &q, vec![grown(key, 2, 1.0, (1.0, 1.0 + growth), growth, (0, 30))])
    };
    let (sum, count) = (read(MetricPart::Sum, 6.0), read(MetricPart::Count, 4.0));
    let mean = histogram_mean(&sum, &count, &[]).unwrap();
    assert_eq!(mean.series, vec![Series { entity: Entity::new(), points: vec![point(0, 1.5, 4)] }]);
    let none = histogram_mean(&sum, &read(MetricPart::Count, 0.0), &[]).unwrap();
    assert_eq!(none.series, vec![]);
}

fn temperature(group_by: &[Dim], aggregation: Aggregation) -> Query {
    query("gpu_temperature", MetricPart::Samples, series_of(group_by, aggregation))
}

#[test]
fn two_spellings_of_one_metric_are_one_series_where_that_can_be() {
    let rows = || {
        vec![
            vec![t(0), s("n1"), s("DCGM_FI_DEV_GPU_TEMP"), n(2), f(50.0), f(60.0), f(55.0)],
            vec![t(0), s("n1"), s("DCGM_FI_DEV_GPU_TEMP_CELSIUS"), n(1), f(70.0), f(70.0), f(70.0)],
        ]
    };
    let by = [Dim::Node, Dim::Metric];
    let mean = read_series(&fetched(0, &temperature(&by, Aggregation::Avg), rows()), &[Dim::Node], Aggregation::Avg);
    let together = Point { time: at(0), value: 60.0, min: 50.0, max: 70.0, count: 3 };
    assert_eq!(mean.unwrap(), vec![Series { entity: entity(&[("node", "n1")]), points: vec![together] }]);
    let p95 = read_series(&fetched(0, &temperature(&by, Aggregation::P95), rows()), &[Dim::Node], Aggregation::P95);
    let names: Vec<Option<String>> = p95.unwrap().iter().map(|s| s.entity.get("metric").cloned()).collect();
    let expected = ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"].map(|name| Some(name.to_owned()));
    assert_eq!(names, expected);
}

#[test]
fn a_null_value_is_no_point_and_an_empty_dimension_no_entity() {
    let q = temperature(&[Dim::Node, Dim::Gpu], Aggregation::Avg);
    let rows = vec![
        vec![t(0), s("n1"), s(""), n(2), Cell::Null, Cell::Null, Cell::Null],
        vec![t(60), s("n1"), s(""), n(2), f(0.0), f(0.0), f(0.0)],
    ];
    let series = read_series(&fetched(0, &q, rows), &[Dim::Node, Dim::Gpu], Aggregation::Avg).unwrap();
    assert_eq!(series, vec![Series { entity: entity(&[("node", "n1")]), points: vec![point(60, 0.0, 2)] }]);
}

#[test]
fn a_single_sample_counts_for_what_the_engine_was_asked_to_hold() {
    let single = |gpu: &str, value: f64| {
        let key = [s("n1"), s("DCGM_FI_DEV_GPU_TEMP"), s("c1"), s(gpu), s(""), labels(&[])];
        let own = [n(1), f(value), f(value), f(0.0), t(5), t(5)];
        [t(0)].into_iter().chain(key).chain(own).collect::<Vec<_>>()
    };
    let value = |aggregation, threshold| {
        let q = Query { threshold, ..temperature(&[Dim::Node], aggregation) };
        // One stored series each, none of which stood for a time that is known.
        let read = fetched(0, &q, vec![single("0", 95.0), single("1", 80.0), single("2", 65.0), single("3", 60.0)]);
        read_series(&read, &[Dim::Node], aggregation).unwrap()[0].points[0].value
    };
    assert_eq!(value(Aggregation::TimeAvg, None), 75.0);
    assert_eq!(value(Aggregation::FractionAbove, Some(80.0)), 0.25);
    assert_eq!(value(Aggregation::FractionBelow, Some(80.0)), 0.5);
}

#[test]
fn a_missing_column_is_named() {
    let mut read = fetched(0, &temperature(&[Dim::Node], Aggregation::Avg), vec![]);
    read.result.columns.retain(|c| c.name != "max");
    let error = read_series(&read, &[Dim::Node], Aggregation::Avg).unwrap_err();
    assert_eq!(error, ToolError::Result { tool: "series", column: "max".to_owned() });
}

#[test]
fn coverage_counts_samples_and_lists_gaps() {
    let steady = |gpu: &str, seconds: &[i64]| Series {
        entity: entity(&[("gpu", gpu)]),
        points: seconds.iter().map(|at| point(*at, 1.0, 2)).collect(),
    };
    let both = [
        steady("0", &[0, 60, 120, 360, 420, 480, 540]),
        // Stops at 300 s, and shares the hole before.
        steady("1", &[0, 60, 120]),
    ];
    let found = coverage(&both, range(0, 600), 60_000);
    let expected = Coverage {
        expected: Some(40),
        seen: 20,
        first: Some(at(0)),
        last: Some(at(540)),
        gaps: vec![
            Gap { entity: entity(&[("gpu", "1")]), from: at(180), to: at(600) },
            Gap { entity: entity(&[("gpu", "0")]), from: at(180), to: at(360) },
        ],
    };
    assert_eq!(found, expected);
    let same = [steady("0", &[300, 360, 420, 480, 540]), steady("1", &[300, 360, 420, 480, 540])];
    assert_eq!(
        coverage(&same, range(0, 600), 60_000).gaps,
        vec![Gap { entity: Entity::new(), from: at(0), to: at(300) }]
    );
}

#[test]
fn samples_rarer_than_the_step_are_no_gaps() {
    // Every 30 s, read in steps of 15 s; one is missing, which is not yet a gap, then several.
    let seconds = [0, 30, 60, 120, 150, 180, 210, 390, 420, 450, 480, 510, 540, 570];
    let series = [Series { entity: Entity::new(), points: seconds.iter().map(|at| point(*at, 1.0, 1)).collect() }];
    let found = coverage(&series, range(0, 600), 15_000);
    assert_eq!(
        (found.expected, found.seen, found.gaps),
        (Some(20), 14, vec![Gap { entity: Entity::new(), from: at(225), to: at(390) }])
    );
}

#[test]
fn many_series_in_one_that_come_seldom_are_complete() {
    // 33 services, each every 5 minutes, read together in steps of 15 s: a point of 33 samples now and then.
    let series = |last: i64| {
        let points = (0..=last).map(|index| point(index * 300, 1.0, 33)).collect();
        [Series { entity: Entity::new(), points }]
    };
    let whole = coverage(&series(11), range(0, 3600), 15_000);
    assert_eq!((whole.expected, whole.seen, whole.gaps), (Some(396), 396, Vec::new()));
    let half = coverage(&series(5), range(0, 3600), 15_000);
    assert_eq!(
        (half.expected, half.seen, half.gaps),
        (Some(396), 198, vec![Gap { entity: Entity::new(), from: at(1515), to: at(3600) }])
    );
    // The same as it was stored, where several samples share an instant.
    let stored = coverage(&series(11), range(0, 3600), 0);
    assert_eq!((stored.expected, stored.seen, stored.gaps), (Some(396), 396, Vec::new()));
}

#[test]
fn evidence_says_what_was_read_and_how_complete_it_is() {
    let q = Query {
        filters: vec![sightline_query::Filter::Dim {
            dim: Dim::Node,
            matches: sightline_query::Match::Eq("n1".to_owned()),
        }],
        ..temperature(&[Dim::Gpu, Dim::Metric], Aggregation::Avg)
    };
    let rows = (0..10)
        .map(|step| {
            vec![t(step * 60), s("3"), s("DCGM_FI_DEV_GPU_TEMP"), n(2), f(60.0), f(70.0), f(64.0 + step as f64 / 10.0)]
        })
        .collect();
    let read = fetched(0, &q, rows);
    let series = read_series(&read, &[Dim::Gpu], Aggregation::Avg).unwrap();
    let mut found = evidence(&read, "metric_range", 1, Content::Series(series));
    assert_eq!(found.points, 10);
    found.series.clear();
    insta::assert_json_snapshot!("evidence_of_a_series", found);
}

proptest! {
    /// Cut into steps at any places, a counter gains the same as sample by sample, as long as resets fall between steps.
    #[test]
    fn growth_does_not_depend_on_the_steps(runs in prop::collection::vec(prop::collection::vec(0_u32..50, 1..6), 1..6)) {
        let mut samples = Vec::new();
        let mut steps = Vec::new();
        let mut second = 0;
        for run in &runs {
            // Each run begins anew, below where the last one ended unless that was low.
            let mut value = 0.0;
            let mut step: Vec<Sample> = Vec::new();
            for gain in run {
                value += f64::from(*gain);
                step.push(Sample::at_second(second, value));
                second += 10;
            }
            let (first, last) = (step[0], step[step.len() - 1]);
            steps.push(growth::StepGrowth {
                time: first.time,
                count: step.len() as u64,
                min: first.value,
                first: first.value,
                last: last.value,
                rise: last.value - first.value,
                first_time: first.time,
                last_time: last.time,
            });
            samples.extend(step);
        }
        let total: f64 = growth::gains(steps).iter().map(|g| g.increase).sum();
        let expected = increase(&samples).map_or(0.0, |i| i.total);
        prop_assert!((total - expected).abs() < 1e-9, "{total} is not {expected}");
    }
}

/// vLLM writes old and new names at once for some versions: they are one counter, and one after another they still are.
#[test]
fn two_spellings_of_one_counter_are_not_added_up() {
    let key = |bucket: i64, name: &str| {
        vec![t(bucket), s("n1"), s(name), s("c1"), s(""), s("chat"), labels(&[("engine", "0")])]
    };
    let q =
        query("prefix_cache_hits", MetricPart::Samples, series_of(&[Dim::Node, Dim::Metric], Aggregation::Increase));
    let (new, old) = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total");
    let step = |bucket: i64, name: &str, from: f64| {
        grown(key(bucket, name), 2, from, (from, from + 30.0), 30.0, (bucket, bucket + 30))
    };
    let both = vec![step(0, new, 0.0), step(0, old, 0.0), step(60, new, 60.0), step(60, old, 60.0)];
    let sum = |rows: Vec<Vec<Cell>>| {
        let series = read_series(&fetched(0, &q, rows), &[Dim::Node], Aggregation::Increase).unwrap();
        series[0].points.iter().map(|p| p.value).collect::<Vec<_>>()
    };
    assert_eq!(sum(both), vec![30.0, 60.0]);
    let one_after_another = vec![step(0, old, 0.0), step(60, new, 60.0)];
    assert_eq!(sum(one_after_another), vec![30.0, 30.0]);
    let whole = Shape::Rank {
        group_by: vec![Dim::Node, Dim::Metric],
        aggregation: Aggregation::Increase,
        order: Order::Descending,
        limit: 10,
    };
    let q = query("prefix_cache_hits", MetricPart::Samples, whole);
    let row = |name: &str, times: (i64, i64)| grown(key(0, name)[1..].to_vec(), 4, 0.0, (0.0, 90.0), 90.0, times);
    let value = |rows| read_rank(&fetched(0, &q, rows), &[Dim::Node], Aggregation::Increase).unwrap()[0].value;
    assert_eq!(value(vec![row(new, (0, 90)), row(old, (0, 90))]), 90.0);
    assert_eq!(value(vec![row(new, (30, 90)), row(old, (0, 90))]), 90.0);
    assert_eq!(value(vec![row(old, (0, 90)), row(new, (100, 190))]), 180.0);
}

/// The same of a histogram: each bucket, the sum and the count.
#[test]
fn two_spellings_of_one_histogram_are_not_added_up() {
    let (new, old) = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds");
    let part = |part: MetricPart, total: f64| {
        let q = query("inter_token_latency", part, series_of(&[Dim::Metric], Aggregation::Increase));
        let rows = [new, old].map(|name| {
            let stored = format!("{name}{}", part.suffix());
            let key = vec![t(0), s(&stored), s("c1"), s("n1"), s(""), s("chat"), labels(&[("engine", "0")])];
            grown(key, 2, 0.0, (0.0, total), total, (0, 30))
        });
        fetched(0, &q, rows.to_vec())
    };
    let mean = histogram_mean(&part(MetricPart::Sum, 6.0), &part(MetricPart::Count, 120.0), &[]).unwrap();
    assert_eq!(mean.series[0].points, vec![point(0, 0.05, 120)]);
}
