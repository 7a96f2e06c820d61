//! Queries that the guard has admitted, on the database `fleet`.

use jiff::Timestamp;
use sightline_guard::{Admission, ExecutableQuery, Guard, Mapping};
use sightline_model::{Dataset, Dim, QueryId, TimeRange};
use sightline_policies::{Decision, Limits, RowScope};
use sightline_query::{Catalogue, MetricPart, Query, Shape};

pub(crate) const METRIC: &str = "DCGM_FI_DEV_GPU_TEMP";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn limits() -> Limits {
    Limits {
        max_range_seconds: 30 * 86_400,
        max_points: 2000,
        max_series: 1000,
        max_result_rows: 10_000,
        max_result_bytes: 64 << 20,
        max_rows_read: 1_000_000,
        max_bytes_read: 1_000_000_000,
        max_memory_bytes: 2_000_000_000,
        max_seconds: 60,
        max_concurrent: 4,
        questions_per_minute: 30,
        bytes_per_day: 1_000_000_000_000,
        tokens_per_day: 1_000_000,
    }
}

pub(crate) fn admit(id: &str, tenant: &str, limits: &Limits, dataset: Dataset, shape: Shape) -> ExecutableQuery {
    let metric = (dataset == Dataset::Metrics).then(|| METRIC.to_owned());
    let range = TimeRange::new(at("2026-05-03T00:00:00Z"), at("2026-05-04T00:00:00Z")).unwrap();
    let query = Query {
        dataset,
        metric,
        part: MetricPart::Samples,
        range,
        filters: Vec::new(),
        placement: None,
        threshold: None,
        shape,
    };
    let valid = Catalogue::builtin().unwrap().check(&query).unwrap();
    let decision = Decision::allowed_for_tests(RowScope::for_tests(&[tenant]).unwrap());
    let now = at("2026-05-04T12:00:00Z");
    let admission =
        Admission { decision: &decision, limits, now, query_id: QueryId::new(id), bytes_left: None, estimate: None };
    Guard::new(Mapping::native("fleet").unwrap()).admit(&valid, admission).unwrap()
}

pub(crate) fn samples(limit: u32) -> Shape {
    Shape::Samples {
        order: sightline_query::SampleOrder::Time,
        group_by: vec![Dim::Node, Dim::Label("UUID".to_owned())],
        limit,
    }
}
