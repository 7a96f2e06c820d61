//! What makes no sense is refused in words that say what to ask instead.

#![cfg(test)]

use jiff::Timestamp;
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_query::{Align, Catalogue, Filter, Match, MetricPart, Order, Query, SampleOrder, Shape, ValueOp};

const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";
const RECEIVED: &str = "node_network_receive_bytes_total";

fn query(dataset: Dataset, shape: Shape) -> Query {
    let at = |hour: i64| Timestamp::from_second(1_777_766_400 + hour * 3600).unwrap();
    Query {
        dataset,
        metric: (dataset == Dataset::Metrics).then(|| TEMPERATURE.to_owned()),
        part: MetricPart::Samples,
        range: TimeRange::new(at(0), at(1)).unwrap(),
        filters: Vec::new(),
        placement: None,
        threshold: None,
        shape,
    }
}

fn series(aggregation: Aggregation) -> Shape {
    Shape::Series { step_ms: 60_000, align: Align::Window, group_by: vec![Dim::Node], aggregation, limit: 100 }
}

fn rank(aggregation: Aggregation) -> Shape {
    Shape::Rank { group_by: vec![Dim::Node], aggregation, order: Order::Descending, limit: 100 }
}

fn by_value() -> Vec<Filter> {
    vec![Filter::Value { op: ValueOp::Above, bound: 80.0 }]
}

/// What is asked, and whether it makes sense or why not.
fn said(name: &str, query: &Query) -> String {
    match Catalogue::builtin().unwrap().check(query) {
        Ok(valid) => {
            let columns: Vec<String> = valid.columns().into_iter().map(|column| column.name).collect();
            format!("{name}: {}", columns.join(" "))
        }
        Err(error) => format!("{name}: refused, {error}"),
    }
}

#[test]
fn what_fits_and_what_does_not() {
    let metrics = |shape| query(Dataset::Metrics, shape);
    let of = |dataset, shape| query(dataset, shape);
    let with = |filters, shape| Query { filters, ..query(Dataset::Metrics, shape) };
    let threshold = |value, shape| Query { threshold: Some(value), ..query(Dataset::Metrics, shape) };
    let every = |shape| Query { metric: None, ..query(Dataset::Metrics, shape) };
    let counter = |shape| Query { metric: Some(RECEIVED.to_owned()), ..query(Dataset::Metrics, shape) };
    let listed = |names: &[&str]| Query {
        metric: None,
        filters: vec![Filter::Dim {
            dim: Dim::Metric,
            matches: Match::In(names.iter().map(|name| (*name).to_owned()).collect()),
        }],
        ..query(Dataset::Metrics, rank(Aggregation::Increase))
    };
    let node = |matches| vec![Filter::Dim { dim: Dim::Node, matches }];
    let samples = || Shape::Samples { group_by: vec![Dim::Node], order: SampleOrder::Highest, limit: 10 };
    let lines = [
        said("a mean over time", &metrics(series(Aggregation::TimeAvg))),
        said("a mean over time of hot samples only", &with(by_value(), series(Aggregation::TimeAvg))),
        said(
            "a share of time of hot samples only",
            &Query { threshold: Some(80.0), ..with(by_value(), rank(Aggregation::FractionAbove)) },
        ),
        said("a rate of large samples only", &Query { filters: by_value(), ..counter(rank(Aggregation::Rate)) }),
        said("a mean of hot samples only", &with(by_value(), rank(Aggregation::Avg))),
        said("a share of time without a threshold", &metrics(rank(Aggregation::FractionBelow))),
        said("a share of time above no number", &threshold(f64::NAN, rank(Aggregation::FractionAbove))),
        said("a mean above a threshold", &threshold(80.0, rank(Aggregation::Avg))),
        said("a counter's mean", &counter(rank(Aggregation::Avg))),
        said("the rate of every metric", &every(rank(Aggregation::Rate))),
        said("the mean of every metric", &every(rank(Aggregation::Avg))),
        said("the increase of several counters", &listed(&[RECEIVED, "node_network_transmit_bytes_total"])),
        said("the increase of a counter and a gauge", &listed(&[RECEIVED, TEMPERATURE])),
        said("the increase of a counter and of nothing known", &listed(&[RECEIVED, "no_such_metric_total"])),
        said("the increase of a histogram's series", &listed(&["vllm:time_to_first_token_seconds_count"])),
        said(
            "the increase of all but a counter",
            &Query {
                metric: None,
                filters: vec![Filter::Dim { dim: Dim::Metric, matches: Match::NotIn(vec![RECEIVED.to_owned()]) }],
                ..metrics(rank(Aggregation::Increase))
            },
        ),
        said("when it peaked", &metrics(rank(Aggregation::Max))),
        said("the highest samples", &metrics(samples())),
        said("samples of logs", &of(Dataset::Logs, samples())),
        said("rows of metrics", &metrics(Shape::Rows { order: Order::Ascending, limit: 1 })),
        said("label keys", &every(Shape::LabelKeys { limit: 10 })),
        said("label keys of GPU intervals", &of(Dataset::JobGpus, Shape::LabelKeys { limit: 10 })),
        said("p95 of spans", &of(Dataset::Spans, series(Aggregation::P95))),
        said("a mean over time of spans", &of(Dataset::Spans, rank(Aggregation::TimeAvg))),
        said("slow spans", &Query { filters: by_value(), ..of(Dataset::Spans, rank(Aggregation::Count)) }),
        said("loud lines", &Query { filters: by_value(), ..of(Dataset::Logs, rank(Aggregation::Count)) }),
        said("the mean of lines", &of(Dataset::Logs, rank(Aggregation::Avg))),
        said("an empty list", &with(node(Match::In(Vec::new())), rank(Aggregation::Avg))),
        said("a pattern that is none", &with(node(Match::Regex("(".to_owned())), rank(Aggregation::Avg))),
        said(
            "no metric of that name",
            &Query { metric: Some("gpu_temprature".to_owned()), ..metrics(rank(Aggregation::Avg)) },
        ),
        said(
            "no rows",
            &metrics(Shape::Rank {
                group_by: vec![],
                aggregation: Aggregation::Avg,
                order: Order::Ascending,
                limit: 0,
            }),
        ),
        said(
            "a step longer than the window",
            &metrics(Shape::Series {
                step_ms: 7_200_000,
                align: Align::Epoch,
                group_by: vec![],
                aggregation: Aggregation::Avg,
                limit: 1,
            }),
        ),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}
