//! Kept steps: the same rows as from the samples, for a fraction of the reading, behind the same fence.

use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{ClickHouseEngine, SecondFence};
use sightline_guard::{Admission, Engine as _, Guard, Mapping};
use sightline_model::{Aggregation, Dataset, Dim, QueryId, ResultSet, TimeRange};
use sightline_policies::{Decision, RowScope};
use sightline_query::{Align, Catalogue, MetricPart, Order, Query, Shape};

use crate::admitted::{METRIC, at, limits};
use crate::engine::TestEngine;

/// Four GPUs of each of two tenants, a sample every 15 s for a day, some of them no numbers.
const SAMPLES: &str = "INSERT INTO DATABASE.metrics (tenant, cluster, metric, node, gpu, service, labels, time, value) \
    SELECT if(number % 2 = 0, 'atlas', 'borealis'), 'west', 'DCGM_FI_DEV_GPU_TEMP', 'n1', toString(intDiv(number, 2) % 4), '', \
    map('Hostname', 'n1', 'pci_bus_id', 'b'), toDateTime64('2026-05-03 00:00:00', 3, 'UTC') + toIntervalSecond(15 * intDiv(number, 8)), \
    if(number % 1001 = 0, nan, toFloat64(40 + number % 37)) FROM numbers(8 * 5760)";

/// The samples of one tenant.
const OF_ONE: u64 = 4 * 5760;

struct Fleet {
    _engine: TestEngine,
    client: ClickHouseEngine,
}

impl Fleet {
    /// The same samples twice: in `kept` with kept steps, in `plain` without.
    async fn start() -> Self {
        let engine = TestEngine::start().await;
        let writer = engine.writer();
        native::create_or_update(&writer, &DatabaseName::new("kept").unwrap()).await.unwrap();
        native::create(&writer, &DatabaseName::new("plain").unwrap()).await.unwrap();
        for database in ["kept", "plain"] {
            engine.ask(&SAMPLES.replace("DATABASE", database)).await;
        }
        let client = ClickHouseEngine::new(&engine.reader(), SecondFence::InRequest);
        Self { _engine: engine, client }
    }

    async fn ask(&self, database: &str, from: &str, shape: Shape) -> ResultSet {
        let query = Query {
            dataset: Dataset::Metrics,
            metric: Some(METRIC.to_owned()),
            part: MetricPart::Samples,
            range: TimeRange::new(at(from), at("2026-05-04T00:00:00Z")).unwrap(),
            filters: Vec::new(),
            placement: None,
            threshold: None,
            shape,
        };
        let valid = Catalogue::builtin().unwrap().check(&query).unwrap();
        let decision = Decision::allowed_for_tests(RowScope::for_tests(&["atlas"]).unwrap());
        let (limits, now) = (limits(), at("2026-05-04T12:00:00Z"));
        let query_id = QueryId::new(format!("{database}-{from}"));
        let admission =
            Admission { decision: &decision, limits: &limits, now, query_id, bytes_left: None, estimate: None };
        let query = Guard::new(Mapping::native(database).unwrap()).admit(&valid, admission).unwrap();
        self.client.run(&query).await.unwrap()
    }
}

fn steps(aggregation: Aggregation) -> Shape {
    let group_by = vec![Dim::Node, Dim::Gpu];
    Shape::Series { step_ms: 900_000, align: Align::Epoch, group_by, aggregation, limit: 10_000 }
}

fn whole(aggregation: Aggregation) -> Shape {
    Shape::Rank { group_by: vec![Dim::Node, Dim::Gpu], aggregation, order: Order::Descending, limit: 100 }
}

#[tokio::test]
async fn what_is_kept_says_the_same_as_the_samples_for_an_eighth_of_the_reading() {
    let fleet = Fleet::start().await;
    let from = "2026-05-03T00:00:00Z";
    let kept = [Aggregation::Avg, Aggregation::Min, Aggregation::Max, Aggregation::Last, Aggregation::Count];
    let wholes = [Aggregation::Avg, Aggregation::Last, Aggregation::Count].map(whole);
    let names = Shape::Distinct { of: vec![Dim::Gpu, Dim::Label("pci_bus_id".to_owned())], limit: 100 };
    let shapes: Vec<Shape> = kept.map(steps).into_iter().chain(wholes).chain([names]).collect();
    for shape in shapes {
        let [kept, plain] =
            [fleet.ask("kept", from, shape.clone()).await, fleet.ask("plain", from, shape.clone()).await];
        assert_eq!(kept.rows, plain.rows, "{shape:?}");
        assert!(!kept.rows.is_empty() && kept.columns == plain.columns, "{shape:?}");
        assert!(plain.read.rows >= OF_ONE, "{shape:?}: {:?}", plain.read);
        assert!(kept.read.rows <= OF_ONE / 8, "{shape:?}: {:?}", kept.read);
    }
}

#[tokio::test]
async fn a_window_that_cuts_a_kept_step_is_read_from_the_samples() {
    let fleet = Fleet::start().await;
    let from = "2026-05-03T00:00:15Z";
    let [kept, plain] = [
        fleet.ask("kept", from, steps(Aggregation::Count)).await,
        fleet.ask("plain", from, steps(Aggregation::Count)).await,
    ];
    assert_eq!(kept.rows, plain.rows);
    assert!(kept.read.rows >= OF_ONE, "{:?}", kept.read);
}

#[tokio::test]
async fn steps_come_in_the_order_of_their_keys_and_a_cut_takes_whole_ones() {
    let fleet = Fleet::start().await;
    let shape = |limit| {
        let group_by = vec![Dim::Node, Dim::Gpu];
        Shape::Series { step_ms: 900_000, align: Align::Epoch, group_by, aggregation: Aggregation::Avg, limit }
    };
    let all = fleet.ask("plain", "2026-05-03T00:00:00Z", shape(10_000)).await;
    let keys: Vec<_> = all.rows.iter().map(|row| (row[0].time(), row[2].text())).collect();
    assert!(keys.is_sorted() && keys.len() == 4 * 96 && !all.truncated, "{keys:?}");
    // Ten rows reach into the third step of four: two are whole.
    let cut = fleet.ask("plain", "2026-05-03T00:00:00Z", shape(10)).await;
    assert!(cut.truncated);
    assert_eq!(cut.rows, all.rows[..8]);
    // Where it is all there is, a part of a step is better than nothing.
    let first = fleet.ask("plain", "2026-05-03T00:00:00Z", shape(3)).await;
    assert!(first.truncated && first.rows.len() == 3);
}
