//! Any query comes through, whatever its values; and a value is never in the text.

use proptest::prelude::*;
use sightline_guard::ParamValue;
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_query::{Align, Filter, Match, MetricPart, Order, Query, SampleOrder, Shape, ValueOp, check_pattern};

use crate::sample::{admit, at, check, params};

const HOSTILE: &str = include_str!("../../../../fixtures/redteam/hostile_values.jsonl");

pub(crate) fn hostile() -> Vec<String> {
    let value =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["value"].as_str().unwrap().to_owned();
    HOSTILE.lines().map(value).collect()
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z0-9-]{1,12}", "[\\\\'\"`\\x00-\\x1f{}:]{1,8}", prop::sample::select(hostile())]
}

fn dim(dataset: Dataset) -> BoxedStrategy<Dim> {
    let columns = prop::sample::select(sightline_query::schema::dimensions(dataset).to_vec());
    if sightline_query::schema::has_labels(dataset) {
        prop_oneof![3 => columns, 1 => "[a-z][a-z0-9_]{0,12}".prop_map(Dim::Label)].boxed()
    } else {
        columns.boxed()
    }
}

fn matches() -> impl Strategy<Value = Match> {
    let list = || prop::collection::vec(text(), 1..4);
    let pattern = text().prop_filter("a pattern the engine can run", |pattern| check_pattern(pattern).is_ok());
    prop_oneof![
        text().prop_map(Match::Eq),
        text().prop_map(Match::NotEq),
        list().prop_map(Match::In),
        list().prop_map(Match::NotIn),
        text().prop_map(Match::Contains),
        text().prop_map(Match::ContainsFold),
        text().prop_map(Match::Prefix),
        pattern.prop_map(Match::Regex),
        Just(Match::Present),
        Just(Match::Absent),
    ]
}

fn value_filter() -> impl Strategy<Value = Filter> {
    let op = prop::sample::select(vec![
        ValueOp::Above,
        ValueOp::Below,
        ValueOp::AtLeast,
        ValueOp::AtMost,
        ValueOp::Equal,
        ValueOp::NotEqual,
    ]);
    (op, prop::num::f64::NORMAL).prop_map(|(op, bound)| Filter::Value { op, bound })
}

fn filters(dataset: Dataset) -> BoxedStrategy<Vec<Filter>> {
    let on_dim = (dim(dataset), matches()).prop_map(|(dim, matches)| Filter::Dim { dim, matches });
    if dataset == Dataset::Metrics {
        prop::collection::vec(prop_oneof![4 => on_dim, 1 => value_filter()], 0..=16).boxed()
    } else {
        prop::collection::vec(on_dim, 0..=16).boxed()
    }
}

fn shape(dataset: Dataset) -> BoxedStrategy<Shape> {
    let order = || prop::sample::select(vec![Order::Ascending, Order::Descending]);
    let dims = |fewest| prop::collection::vec(dim(dataset), fewest..=8);
    let limit = || 1..=10_000u32;
    let metrics = dataset == Dataset::Metrics;
    let aggregation = move || {
        let all = match dataset {
            Dataset::Metrics => Aggregation::ALL.to_vec(),
            Dataset::Spans => Aggregation::ALL.into_iter().filter(|a| !a.is_by_series()).collect(),
            Dataset::Logs | Dataset::Events | Dataset::Jobs | Dataset::JobGpus => vec![Aggregation::Count],
        };
        prop::sample::select(all)
    };
    let align = || prop::sample::select(vec![Align::Epoch, Align::Window]);
    let series = (60_000..3_600_000u64, align(), dims(0), aggregation(), limit()).prop_map(
        |(step_ms, align, group_by, aggregation, limit)| Shape::Series { step_ms, align, group_by, aggregation, limit },
    );
    let rank = (dims(0), aggregation(), order(), limit())
        .prop_map(|(group_by, aggregation, order, limit)| Shape::Rank { group_by, aggregation, order, limit });
    let distinct = (dims(1), limit()).prop_map(|(of, limit)| Shape::Distinct { of, limit });
    let plain = if metrics {
        let orders = vec![SampleOrder::Time, SampleOrder::Latest, SampleOrder::Highest, SampleOrder::Lowest];
        (dims(0), prop::sample::select(orders), limit())
            .prop_map(|(group_by, order, limit)| Shape::Samples { group_by, order, limit })
            .boxed()
    } else {
        (order(), limit()).prop_map(|(order, limit)| Shape::Rows { order, limit }).boxed()
    };
    if sightline_query::schema::has_labels(dataset) {
        let keys = limit().prop_map(|limit| Shape::LabelKeys { limit });
        prop_oneof![4 => series, 4 => rank, 2 => distinct, 3 => plain, 1 => keys].boxed()
    } else {
        prop_oneof![series, rank, distinct, plain].boxed()
    }
}

fn threshold() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL
}

pub(crate) fn any_query() -> impl Strategy<Value = Query> {
    // Metrics have most of the aggregations and half of the queries.
    let datasets = [Dataset::ALL.to_vec(), vec![Dataset::Metrics; 4]].concat();
    prop::sample::select(datasets).prop_flat_map(|dataset| {
        let placement = if sightline_query::schema::dimensions(dataset).contains(&Dim::Gpu) {
            prop::option::of(prop::collection::vec((text(), text()), 1..5)).boxed()
        } else {
            Just(None).boxed()
        };
        let minutes = (0..1000i64, 60..1440i64);
        (filters(dataset), placement, shape(dataset), minutes, threshold()).prop_map(
            move |(filters, placement, shape, (start, length), threshold)| {
                let from = at("2026-05-01T00:00:00Z") + jiff::SignedDuration::from_mins(start);
                let range = TimeRange::new(from, from + jiff::SignedDuration::from_mins(length)).unwrap();
                let metric = (dataset == Dataset::Metrics).then(|| {
                    let grows = matches!(aggregation_of(&shape), Some(Aggregation::Rate | Aggregation::Increase));
                    let name = if grows { "node_network_receive_bytes_total" } else { "DCGM_FI_DEV_GPU_TEMP" };
                    name.to_owned()
                });
                let mut filters = filters;
                if aggregation_of(&shape).is_some_and(Aggregation::is_by_series) {
                    filters.retain(|filter| matches!(filter, Filter::Dim { .. }));
                }
                let threshold = aggregation_of(&shape).filter(|a| a.needs_threshold()).map(|_| threshold);
                Query { dataset, metric, part: MetricPart::Samples, range, filters, placement, threshold, shape }
            },
        )
    })
}

pub(crate) fn aggregation_of(shape: &Shape) -> Option<Aggregation> {
    match shape {
        Shape::Series { aggregation, .. } | Shape::Rank { aggregation, .. } => Some(*aggregation),
        Shape::Samples { .. } | Shape::Rows { .. } | Shape::Distinct { .. } | Shape::LabelKeys { .. } => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_query_that_checks_is_admitted_and_passes_from_outside(query in any_query()) {
        let admitted = admit(&query);
        let executable = match admitted {
            Ok(executable) => executable,
            Err(refusal) => return Err(TestCaseError::fail(refusal.to_string())),
        };
        prop_assert_eq!(check(executable.sql(), &params(&executable)), Ok(()));
        let is_ours = |byte: u8| byte.is_ascii_alphanumeric() || b" _.,()[]{}:<>=!'".contains(&byte);
        let foreign = executable.sql().bytes().any(|byte| !is_ours(byte));
        prop_assert!(!foreign);
        prop_assert_eq!(executable.sql().matches('\'').count() % 2, 0);
        prop_assert_eq!(executable.sql().matches("'UTC'").count() * 2, executable.sql().matches('\'').count());
    }

    #[test]
    fn the_text_is_the_same_whatever_the_values(one in text(), other in text()) {
        let with = |value: &str| {
            let filters = vec![Filter::Dim { dim: Dim::Node, matches: Match::Eq(value.to_owned()) }];
            let rows = Shape::Rows { order: Order::Ascending, limit: 5 };
            let query = Query { filters, ..crate::sample::query(Dataset::Logs, rows) };
            admit(&query).unwrap().sql().to_owned()
        };
        prop_assert_eq!(with(&one), with(&other));
    }
}

#[test]
fn hostile_values_travel_in_parameters_and_nowhere_else() {
    for value in hostile() {
        let filters = vec![Filter::Dim { dim: Dim::Body, matches: Match::Contains(value.clone()) }];
        let rows = Shape::Rows { order: Order::Ascending, limit: 5 };
        let query = admit(&Query { filters, ..crate::sample::query(Dataset::Logs, rows) }).unwrap();
        let sent = query.params().iter().filter(|p| *p.value() == ParamValue::Text(value.clone())).count();
        assert_eq!(sent, 1, "{value:?}");
        assert_eq!(check(query.sql(), &params(&query)), Ok(()), "{value:?}");
        assert!(value.len() < 4 || !query.sql().contains(&value), "{value:?}");
    }
}
