//! From a query to checked text, as every tool call pays it.
#![expect(clippy::unwrap_used, reason = "a benchmark may stop at the first thing that is wrong")]

use std::collections::BTreeSet;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use sightline_guard::{Admission, Guard, Mapping, check_sql};
use sightline_model::{Aggregation, Dataset, Dim, QueryId, TimeRange};
use sightline_policies::{Decision, Limits, RowScope};
use sightline_query::{Align, Catalogue, Filter, Match, MetricPart, Query, Shape};

const DAY: i64 = 86_400;

fn limits() -> Limits {
    Limits {
        max_range_seconds: 30 * 86_400,
        max_points: 2000,
        max_series: 1000,
        max_result_rows: 10_000,
        max_result_bytes: 64 << 20,
        max_rows_read: 1_000_000_000,
        max_bytes_read: 20_000_000_000,
        max_memory_bytes: 2_000_000_000,
        max_seconds: 10,
        max_concurrent: 4,
        questions_per_minute: 30,
        bytes_per_day: 1_000_000_000_000,
        tokens_per_day: 1_000_000,
    }
}

/// A job on 64 GPUs, filtered and grouped: what `metric_range` asks.
fn query() -> Query {
    let day = Timestamp::from_second(20_000 * DAY).unwrap();
    let next = Timestamp::from_second(20_001 * DAY).unwrap();
    let pairs = (0..8).flat_map(|node| (0..8).map(move |gpu| (format!("atlas-n{node:02}"), gpu.to_string())));
    Query {
        dataset: Dataset::Metrics,
        metric: Some("DCGM_FI_DEV_GPU_TEMP".to_owned()),
        part: MetricPart::Samples,
        range: TimeRange::new(day, next).unwrap(),
        filters: vec![
            Filter::Dim { dim: Dim::Cluster, matches: Match::Eq("atlas-a".to_owned()) },
            Filter::Dim {
                dim: Dim::Label("rack".to_owned()),
                matches: Match::In(vec!["r1".to_owned(), "r2".to_owned()]),
            },
        ],
        placement: Some(pairs.collect()),
        threshold: None,
        shape: Shape::Series {
            step_ms: 60_000,
            align: Align::Epoch,
            group_by: vec![Dim::Node, Dim::Gpu],
            aggregation: Aggregation::P95,
            limit: 10_000,
        },
    }
}

fn admit(criterion: &mut Criterion) {
    let catalogue = Catalogue::builtin().unwrap();
    let guard = Guard::new(Mapping::native("sightline").unwrap());
    let decision = Decision::allowed_for_tests(RowScope::for_tests(&["atlas"]).unwrap());
    let limits = limits();
    let query = query();
    let valid = catalogue.check(&query).unwrap();
    let admission = || Admission {
        decision: &decision,
        limits: &limits,
        now: Timestamp::from_second(20_002 * DAY).unwrap(),
        query_id: QueryId::new("0197a0c2-0000-7000-8000-000000000000"),
        bytes_left: None,
        estimate: None,
    };
    criterion.bench_function("check + admit + text, of a shape seen before", |bencher| {
        bencher.iter(|| guard.admit(&catalogue.check(black_box(&query)).unwrap(), admission()).unwrap());
    });
    criterion.bench_function("check + admit + text, of a shape never seen", |bencher| {
        let fresh = || Guard::new(Mapping::native("sightline").unwrap());
        let admit = |guard: Guard| guard.admit(&catalogue.check(black_box(&query)).unwrap(), admission()).unwrap();
        bencher.iter_batched(fresh, admit, BatchSize::SmallInput);
    });
    criterion.bench_function("catalogue check", |bencher| {
        bencher.iter(|| catalogue.check(black_box(&query)).unwrap());
    });
    let executable = guard.admit(&valid, admission()).unwrap();
    let params = executable.params().iter().map(|p| (p.name().to_owned(), p.text().to_owned())).collect();
    let tenants = BTreeSet::from(["atlas".to_owned()]);
    criterion.bench_function("check_sql", |bencher| {
        bencher.iter(|| check_sql(black_box(executable.sql()), &params, guard.mapping(), &tenants).unwrap());
    });
}

criterion_group!(benches, admit);
criterion_main!(benches);
