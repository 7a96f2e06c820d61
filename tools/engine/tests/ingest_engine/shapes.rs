//! What every shape and aggregation gives over a few rows that can be added up by hand, through a real engine.

use jiff::Timestamp;
use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{ClickHouseEngine, Scope, SecondFence, insert_rows};
use sightline_guard::{Admission, Engine as _, Guard, Mapping};
use sightline_model::rows::{Labels, MetricRow, Rows, SpanRow};
use sightline_model::{Aggregation, Cell, Dataset, Dim, QueryId, TimeRange};
use sightline_policies::{Decision, Policies, RowScope};
use sightline_query::catalogue::LabelAliases;
use sightline_query::{Align, Catalogue, Filter, MetricPart, Order, Query, SampleOrder, Shape, ValueOp};

use crate::engine::TestEngine;

const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";
const POWER: &str = "DCGM_FI_DEV_POWER_USAGE";

fn noon(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_777_809_600 + seconds).unwrap()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn sample(metric: &str, tenant: &str, gpu: &str, second: i64, value: f64) -> MetricRow {
    let labels = labels(&[("tenant", tenant), ("cluster", "west"), ("Hostname", "n1"), ("gpu", gpu), ("rack", "r7")]);
    MetricRow { time: noon(second), metric: metric.to_owned(), labels, value }
}

/// One GPU with four samples at uneven distances, one with a single sample, another metric, another tenant.
fn rows() -> Rows {
    let span = |tenant: &str, second: i64, duration_us: i64| SpanRow {
        time: noon(second),
        duration_us,
        trace_id: "t".to_owned(),
        span_id: second.to_string(),
        parent_id: String::new(),
        service: "router".to_owned(),
        pod: "router-0".to_owned(),
        operation: "route".to_owned(),
        labels: labels(&[("tenant", tenant), ("cluster", "west")]),
    };
    Rows {
        metrics: vec![
            sample(TEMPERATURE, "atlas", "0", 0, 10.0),
            sample(TEMPERATURE, "atlas", "0", 10, 20.0),
            sample(TEMPERATURE, "atlas", "0", 40, 40.0),
            sample(TEMPERATURE, "atlas", "0", 60, 40.0),
            sample(TEMPERATURE, "atlas", "1", 5, 50.0),
            sample(POWER, "atlas", "0", 0, 300.0),
            sample(TEMPERATURE, "borealis", "0", 0, 7777.0),
        ],
        spans: vec![span("atlas", 0, 100), span("atlas", 1, 300), span("borealis", 2, 7777)],
        ..Rows::default()
    }
}

struct Bench {
    _engine: TestEngine,
    client: ClickHouseEngine,
    catalogue: Catalogue,
}

impl Bench {
    async fn start() -> Self {
        let engine = TestEngine::start().await;
        let (writer, database) = (engine.writer(), DatabaseName::new("fleet").unwrap());
        native::create(&writer, &database).await.unwrap();
        let scope = Scope { tenant: "default".to_owned(), cluster: "default".to_owned() };
        insert_rows(&writer, &database, &rows(), &LabelAliases::builtin().unwrap(), &scope).await.unwrap();
        let client = ClickHouseEngine::new(&engine.reader(), SecondFence::InRequest);
        Self { _engine: engine, client, catalogue: Catalogue::builtin().unwrap() }
    }

    /// The rows as text, one column after the other.
    async fn run(&self, query: Query) -> Vec<String> {
        let valid = self.catalogue.check(&query).unwrap();
        let policies = Policies::builtin().unwrap();
        let limits = policies.limits(&policies.principal("operator@atlas").unwrap());
        let decision = Decision::allowed_for_tests(RowScope::for_tests(&["atlas"]).unwrap());
        let admission = Admission {
            decision: &decision,
            limits: &limits,
            now: noon(86_400),
            query_id: QueryId::new("shapes"),
            bytes_left: None,
            estimate: None,
        };
        let executable = Guard::new(Mapping::native("fleet").unwrap()).admit(&valid, admission).unwrap();
        let result = self.client.run(&executable).await.unwrap();
        result.rows.iter().map(|row| row.iter().map(said).collect::<Vec<_>>().join(" ")).collect()
    }
}

fn said(cell: &Cell) -> String {
    match cell {
        Cell::Null => "-".to_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Text(text) => text.to_string(),
        // Seconds since noon.
        Cell::Time(time) => format!("+{}", time.as_second() - noon(0).as_second()),
        Cell::Labels(labels) => labels.keys().cloned().collect::<Vec<_>>().join("+"),
    }
}

fn query(metric: Option<&str>, shape: Shape) -> Query {
    Query {
        dataset: Dataset::Metrics,
        metric: metric.map(str::to_owned),
        part: MetricPart::Samples,
        range: TimeRange::new(noon(-5), noon(85)).unwrap(),
        filters: Vec::new(),
        placement: None,
        threshold: None,
        shape,
    }
}

fn series(aggregation: Aggregation, step_ms: u64, align: Align) -> Shape {
    Shape::Series { step_ms, align, group_by: vec![Dim::Gpu], aggregation, limit: 100 }
}

fn rank(aggregation: Aggregation, group_by: &[Dim]) -> Shape {
    Shape::Rank { group_by: group_by.to_vec(), aggregation, order: Order::Descending, limit: 100 }
}

#[tokio::test]
async fn what_can_be_added_up_by_hand_comes_back() {
    let bench = Bench::start().await;
    let temperature = |shape| query(Some(TEMPERATURE), shape);

    // Steps of 30 s at whole half minutes, and from the window's start at -5 s.
    let avg = |align| temperature(series(Aggregation::Avg, 30_000, align));
    assert_eq!(
        bench.run(avg(Align::Epoch)).await,
        ["+0 0 2 10 20 15", "+0 1 1 50 50 50", "+30 0 1 40 40 40", "+60 0 1 40 40 40"]
    );
    assert_eq!(
        bench.run(avg(Align::Window)).await,
        ["+-5 0 2 10 20 15", "+-5 1 1 50 50 50", "+25 0 1 40 40 40", "+55 0 1 40 40 40"]
    );
    assert_eq!(
        bench.run(temperature(series(Aggregation::Avg, 90_000, Align::Window))).await,
        ["+-5 0 4 10 40 27.5", "+-5 1 1 50 50 50"],
        "one step as long as the window is the window"
    );

    // 10 for 10 s, 20 for 30 s, 40 for 20 s: 1,500,000 in milliseconds, over a minute.
    let held = temperature(rank(Aggregation::TimeAvg, &[Dim::Gpu]));
    let rows = bench.run(held).await;
    let of = |gpu: &str| rows.iter().find(|row| row.starts_with(gpu)).unwrap().clone();
    assert!(of("0 ").ends_with(" 4 10 40 1500000 +0 +60"), "{rows:?}");
    assert!(of("1 ").ends_with(" 1 50 50 0 +5 +5"), "{rows:?}");
    let above = Query { threshold: Some(15.0), ..temperature(rank(Aggregation::FractionAbove, &[Dim::Gpu])) };
    let rows = bench.run(above).await;
    assert!(rows.iter().any(|row| row.starts_with("0 ") && row.ends_with(" 4 10 40 50000 +0 +60")), "{rows:?}");
    let below =
        Query { threshold: Some(20.0), ..temperature(series(Aggregation::FractionBelow, 90_000, Align::Window)) };
    let rows = bench.run(below).await;
    assert!(rows.iter().any(|row| row.starts_with("+-5 0 ") && row.ends_with(" 4 10 40 10000 +0 +60")), "{rows:?}");

    // Equal peaks: the earlier counts.
    assert_eq!(
        bench.run(temperature(rank(Aggregation::Max, &[Dim::Gpu]))).await,
        ["1 1 50 50 50 +5", "0 4 10 40 40 +40"]
    );
    assert_eq!(bench.run(temperature(rank(Aggregation::Min, &[]))).await, ["5 10 50 10 +0"]);
    assert_eq!(
        bench.run(temperature(rank(Aggregation::Last, &[Dim::Gpu]))).await,
        ["1 1 50 50 50 +5", "0 4 10 40 40 +60"]
    );

    let samples = |order, limit| temperature(Shape::Samples { group_by: vec![Dim::Gpu], order, limit });
    assert_eq!(bench.run(samples(SampleOrder::Highest, 2)).await, ["+5 1 50", "+40 0 40"]);
    assert_eq!(bench.run(samples(SampleOrder::Lowest, 1)).await, ["+0 0 10"]);
    assert_eq!(bench.run(samples(SampleOrder::Latest, 2)).await, ["+60 0 40", "+40 0 40"]);
    assert_eq!(bench.run(samples(SampleOrder::Time, 9)).await.len(), 5);

    let by_metric = query(None, rank(Aggregation::Count, &[Dim::Metric]));
    assert_eq!(
        bench.run(by_metric).await,
        [format!("{TEMPERATURE} 5 10 50 5"), format!("{POWER} 1 300 300 1")],
        "every metric, of this tenant alone"
    );
    let keys = bench.run(query(None, Shape::LabelKeys { limit: 100 })).await;
    assert!(keys.contains(&"rack 6 +0 +60".to_owned()), "{keys:?}");
}

#[tokio::test]
async fn a_spans_duration_is_measured_like_a_sample() {
    let bench = Bench::start().await;
    let spans = |shape, filters| Query { dataset: Dataset::Spans, filters, ..query(None, shape) };
    let mean = rank(Aggregation::Avg, &[Dim::Service]);
    assert_eq!(bench.run(spans(mean, Vec::new())).await, ["router 2 100 300 200"]);
    let slow = vec![Filter::Value { op: ValueOp::Above, bound: 100.0 }];
    assert_eq!(bench.run(spans(rank(Aggregation::P95, &[]), slow)).await, ["1 300 300 300"]);
    let windowed = Shape::Series {
        step_ms: 90_000,
        align: Align::Window,
        group_by: vec![Dim::Service],
        aggregation: Aggregation::Max,
        limit: 10,
    };
    assert_eq!(bench.run(spans(windowed, Vec::new())).await, ["+-5 router 2 100 300 300"]);
}
