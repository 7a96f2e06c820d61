//! Queries, limits and a guard to test with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::Timestamp;
use sightline_guard::{Admission, ExecutableQuery, Fault, Guard, Mapping, Refusal, check_sql};
use sightline_model::{Aggregation, Dataset, Dim, QueryId, TimeRange};
use sightline_policies::{Decision, Limits, RowScope};
use sightline_query::{Align, Catalogue, Filter, Match, MetricPart, Order, Query, SampleOrder, Shape, ValueOp};

pub(crate) fn catalogue() -> &'static Catalogue {
    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::builtin().unwrap());
    &CATALOGUE
}

pub(crate) fn mapping() -> Mapping {
    Mapping::native("sightline").unwrap()
}

pub(crate) fn limits() -> Limits {
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

pub(crate) fn decision() -> Decision {
    Decision::allowed_for_tests(RowScope::for_tests(&["atlas", "it's"]).unwrap())
}

pub(crate) fn tenants() -> BTreeSet<String> {
    BTreeSet::from(["atlas".to_owned(), "it's".to_owned()])
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn now() -> Timestamp {
    at("2026-05-04T12:00:00Z")
}

pub(crate) fn day() -> TimeRange {
    TimeRange::new(at("2026-05-03T00:00:00Z"), at("2026-05-04T00:00:00Z")).unwrap()
}

pub(crate) fn admission<'a>(decision: &'a Decision, limits: &'a Limits) -> Admission<'a> {
    Admission { decision, limits, now: now(), query_id: QueryId::new("q-1"), bytes_left: None, estimate: None }
}

pub(crate) fn admit(query: &Query) -> Result<ExecutableQuery, Refusal> {
    let valid = catalogue().check(query).unwrap();
    Guard::new(mapping()).admit(&valid, admission(&decision(), &limits()))
}

/// What is sent, as `check_sql` takes it.
pub(crate) fn params(query: &ExecutableQuery) -> BTreeMap<String, String> {
    query.params().iter().map(|p| (p.name().to_owned(), p.text().to_owned())).collect()
}

pub(crate) fn check(sql: &str, params: &BTreeMap<String, String>) -> Result<(), Vec<Fault>> {
    check_sql(sql, params, &mapping(), &tenants())
}

pub(crate) fn query(dataset: Dataset, shape: Shape) -> Query {
    let metric = (dataset == Dataset::Metrics).then(|| "DCGM_FI_DEV_GPU_TEMP".to_owned());
    Query {
        dataset,
        metric,
        part: MetricPart::Samples,
        range: day(),
        filters: Vec::new(),
        placement: None,
        threshold: None,
        shape,
    }
}

pub(crate) fn filter(dim: Dim, matches: Match) -> Filter {
    Filter::Dim { dim, matches }
}

fn series_of_spans() -> Shape {
    Shape::Series {
        step_ms: 60_000,
        align: Align::Epoch,
        group_by: vec![Dim::Service],
        aggregation: Aggregation::P95,
        limit: 1000,
    }
}

/// One query of every shape and dataset that fit each other, by name.
pub(crate) fn every_shape() -> Vec<(&'static str, Query)> {
    let series = |aggregation| Shape::Series {
        step_ms: 60_000,
        align: Align::Epoch,
        group_by: vec![Dim::Node, Dim::Gpu],
        aggregation,
        limit: 5000,
    };
    let quarters = |aggregation| Shape::Series {
        step_ms: 900_000,
        align: Align::Epoch,
        group_by: vec![Dim::Node, Dim::Gpu],
        aggregation,
        limit: 5000,
    };
    let whole = |aggregation| Shape::Series {
        step_ms: 86_400_000,
        align: Align::Window,
        group_by: vec![Dim::Node],
        aggregation,
        limit: 5000,
    };
    let above = Query { threshold: Some(83.5), ..query(Dataset::Metrics, series(Aggregation::FractionAbove)) };
    let below = Query {
        threshold: Some(-1.0),
        ..query(
            Dataset::Metrics,
            Shape::Rank {
                group_by: vec![Dim::Node],
                aggregation: Aggregation::FractionBelow,
                order: Order::Descending,
                limit: 10,
            },
        )
    };
    let samples =
        |order| query(Dataset::Metrics, Shape::Samples { group_by: vec![Dim::Node, Dim::Metric], order, limit: 10 });
    let slow_spans = Query {
        filters: vec![Filter::Value { op: ValueOp::Above, bound: 250_000.0 }],
        ..query(Dataset::Spans, series_of_spans())
    };
    let rank =
        |dims: &[Dim], aggregation, order| Shape::Rank { group_by: dims.to_vec(), aggregation, order, limit: 10 };
    let pod = Dim::Label("pod".to_owned());
    let rack = Dim::Label("rack".to_owned());
    let placed = Query {
        placement: Some(vec![("atlas-n07".to_owned(), "3".to_owned()), ("atlas-n08".to_owned(), "0".to_owned())]),
        ..query(Dataset::Metrics, series(Aggregation::Avg))
    };
    let whole_nodes = Query {
        placement: Some(
            [("n2", "0"), ("n1", "1"), ("n1", "0"), ("n2", "1")].map(|(n, g)| (n.to_owned(), g.to_owned())).to_vec(),
        ),
        ..query(Dataset::Metrics, series(Aggregation::Avg))
    };
    let filtered = Query {
        filters: vec![
            filter(Dim::Node, Match::In(vec!["n1".to_owned(), "n2".to_owned()])),
            filter(Dim::Gpu, Match::NotEq("7".to_owned())),
            filter(rack.clone(), Match::Eq("r1".to_owned())),
            filter(rack.clone(), Match::Present),
            filter(pod.clone(), Match::Absent),
            Filter::Value { op: ValueOp::AtLeast, bound: 83.5 },
        ],
        ..query(Dataset::Metrics, rank(&[pod.clone(), rack], Aggregation::Max, Order::Descending))
    };
    let counter = Query {
        metric: Some("node_network_receive_bytes_total".to_owned()),
        ..query(Dataset::Metrics, series(Aggregation::Rate))
    };
    let text_filters = Query {
        filters: vec![
            filter(Dim::Body, Match::Contains("Xid".to_owned())),
            filter(Dim::Body, Match::ContainsFold("nvrm".to_owned())),
            filter(Dim::Body, Match::Prefix("NVRM".to_owned())),
            filter(Dim::Body, Match::Regex("Xid.*79".to_owned())),
            filter(Dim::Severity, Match::NotIn(vec!["debug".to_owned(), "info".to_owned()])),
        ],
        ..query(Dataset::Logs, Shape::Rows { order: Order::Descending, limit: 200 })
    };
    let rows = || Shape::Rows { order: Order::Ascending, limit: 500 };
    let ranked_attempt = Query {
        filters: vec![filter(Dim::Attempt, Match::Eq("1".to_owned()))],
        ..query(Dataset::JobGpus, Shape::Distinct { of: vec![Dim::Node, Dim::Rank], limit: 100 })
    };
    vec![
        ("metrics_series_avg", query(Dataset::Metrics, series(Aggregation::Avg))),
        ("metrics_series_of_kept_steps", query(Dataset::Metrics, quarters(Aggregation::Avg))),
        ("metrics_series_placement", placed),
        ("metrics_series_whole_nodes", whole_nodes),
        ("metrics_series_rate", counter),
        (
            "metrics_samples",
            query(
                Dataset::Metrics,
                Shape::Samples { group_by: vec![Dim::Node], order: SampleOrder::Time, limit: 1000 },
            ),
        ),
        ("metrics_rank_filtered", filtered),
        ("metrics_rank_p95", query(Dataset::Metrics, rank(&[Dim::Node], Aggregation::P95, Order::Descending))),
        ("metrics_one_number", query(Dataset::Metrics, rank(&[], Aggregation::Stddev, Order::Descending))),
        ("metrics_last", query(Dataset::Metrics, rank(&[Dim::Node, Dim::Gpu], Aggregation::Last, Order::Ascending))),
        (
            "metrics_distinct",
            Query {
                metric: None,
                ..query(Dataset::Metrics, Shape::Distinct { of: vec![Dim::Metric, Dim::Node], limit: 1000 })
            },
        ),
        ("metrics_whole_window", query(Dataset::Metrics, whole(Aggregation::Avg))),
        ("metrics_time_avg", query(Dataset::Metrics, whole(Aggregation::TimeAvg))),
        ("metrics_fraction_above", above),
        ("metrics_fraction_below", below),
        ("metrics_peak", query(Dataset::Metrics, rank(&[Dim::Node], Aggregation::Max, Order::Descending))),
        ("metrics_lowest", query(Dataset::Metrics, rank(&[Dim::Node], Aggregation::Min, Order::Ascending))),
        ("metrics_samples_highest", samples(SampleOrder::Highest)),
        ("metrics_samples_latest_of_every_metric", Query { metric: None, ..samples(SampleOrder::Latest) }),
        ("metrics_label_keys", Query { metric: None, ..query(Dataset::Metrics, Shape::LabelKeys { limit: 200 }) }),
        (
            "metrics_by_metric",
            Query {
                metric: None,
                ..query(Dataset::Metrics, rank(&[Dim::Metric], Aggregation::Avg, Order::Descending))
            },
        ),
        ("spans_series_p95", slow_spans),
        ("logs_label_keys", query(Dataset::Logs, Shape::LabelKeys { limit: 200 })),
        ("logs_rows", text_filters),
        (
            "logs_series",
            query(
                Dataset::Logs,
                Shape::Series {
                    step_ms: 3_600_000,
                    align: Align::Epoch,
                    group_by: vec![Dim::Severity],
                    aggregation: Aggregation::Count,
                    limit: 100,
                },
            ),
        ),
        ("spans_rows", query(Dataset::Spans, rows())),
        (
            "spans_rank",
            query(Dataset::Spans, rank(&[Dim::Service, Dim::Operation], Aggregation::Count, Order::Descending)),
        ),
        ("events_rows", query(Dataset::Events, rows())),
        ("events_distinct", query(Dataset::Events, Shape::Distinct { of: vec![Dim::Kind, pod], limit: 50 })),
        ("jobs_rows", query(Dataset::Jobs, rows())),
        ("jobs_rank", query(Dataset::Jobs, rank(&[Dim::User], Aggregation::Count, Order::Descending))),
        ("job_gpus_rows", query(Dataset::JobGpus, rows())),
        ("job_gpus_distinct", ranked_attempt),
    ]
}
