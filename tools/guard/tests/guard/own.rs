//! What is asked by those who may read own jobs only: the SQL for people to read, and that nothing beyond comes through.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use sightline_guard::{ExecutableQuery, Guard, ParamValue};
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_policies::{Decision, JobRows, OwnRows, RowScope};
use sightline_query::{Align, Query, Shape};

use crate::sample::{admission, at, catalogue, check, every_shape, limits, mapping, params, query};

fn slots() -> BTreeSet<(String, String)> {
    ["0", "1", "2"].map(|gpu| ("n1".to_owned(), gpu.to_owned())).into()
}

fn job(from: Timestamp, to: Timestamp) -> OwnRows {
    let [job_id, user, tenant, cluster] = ["J1", "ann", "atlas", "east"].map(str::to_owned);
    OwnRows::Job(Arc::new(JobRows { job_id, user, tenant, cluster, slots: slots(), from, to }))
}

fn morning() -> OwnRows {
    job(at("2026-05-03T08:00:00Z"), at("2026-05-03T10:00:00Z"))
}

fn admit(query: &Query, own: OwnRows) -> ExecutableQuery {
    let valid = catalogue().check(query).unwrap();
    let scope = RowScope::for_tests(&["atlas"]).unwrap().narrowed_for_tests(own);
    let decision = Decision::allowed_for_tests(scope);
    Guard::new(mapping()).admit(&valid, admission(&decision, &limits())).unwrap()
}

#[test]
fn sql_of_own_rows() {
    let mut out = String::new();
    let wanted = [
        "metrics_series_avg",
        "metrics_series_placement",
        "metrics_series_whole_nodes",
        "logs_rows",
        "spans_rows",
        "events_rows",
        "jobs_rows",
        "job_gpus_rows",
    ];
    for (name, query) in every_shape().into_iter().filter(|(name, _)| wanted.contains(name)) {
        for (whose, own) in [("own job", morning()), ("own jobs", OwnRows::JobsOf { user: "ann".to_owned() })] {
            let query = admit(&query, own);
            let (_, conditions) = query.sql().split_once(" PREWHERE ").unwrap();
            writeln!(out, "-- {name}, {whose}\n{conditions}").unwrap();
            for param in query.params() {
                writeln!(out, "   {} = {}", param.name(), param.text()).unwrap();
            }
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn every_shape_can_be_narrowed_and_is_a_text_of_ours() {
    let elsewhen = job(at("2026-05-01T08:00:00Z"), at("2026-05-01T10:00:00Z"));
    for (name, query) in every_shape() {
        for own in [morning(), elsewhen.clone(), OwnRows::JobsOf { user: "ann".to_owned() }] {
            let query = admit(&query, own);
            assert_eq!(check(query.sql(), &params(&query)), Ok(()), "{name}");
        }
    }
}

/// The window and the places that are sent.
fn sent(query: &ExecutableQuery) -> (Timestamp, Timestamp, Option<Vec<(String, String)>>) {
    let times: Vec<Timestamp> = query
        .params()
        .iter()
        .filter_map(|param| if let ParamValue::Time(time) = param.value() { Some(*time) } else { None })
        .collect();
    let pairs = query.params().iter().find_map(|param| match param.value() {
        ParamValue::PairList(pairs) => Some(pairs.clone()),
        _ => None,
    });
    (times[0], times[1], pairs)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_outside_of_the_job_is_read_and_nothing_outside_of_what_was_asked(
        // Milliseconds within a day, and nanoseconds that are no whole ones.
        asked in (0_i64..80_000_000, 1_000_i64..6_000_000),
        ran in (0_i64..80_000_000, 1_i64..6_000_000),
        odd in 0_i64..1_000_000,
        // Seconds; shorter ones would be more points than the limit of these tests.
        step in 4_u64..6_000,
        aligned in any::<bool>(),
        places in prop::option::of(prop::collection::btree_set((0..2_u8, 0..5_u8), 1..6)),
    ) {
        let day = at("2026-05-03T00:00:00Z").as_millisecond();
        let ms = |offset: i64| Timestamp::from_millisecond(day + offset).unwrap();
        let range = TimeRange::new(ms(asked.0), ms(asked.0 + asked.1)).unwrap();
        let from = Timestamp::from_nanosecond(i128::from(day + ran.0) * 1_000_000 + i128::from(odd)).unwrap();
        let to = Timestamp::from_nanosecond(i128::from(day + ran.0 + ran.1) * 1_000_000 + i128::from(odd)).unwrap();
        let placement: Option<Vec<(String, String)>> = places
            .map(|places| places.into_iter().map(|(node, gpu)| (format!("n{node}"), gpu.to_string())).collect());
        let step_ms = (step * 1000).min(u64::try_from(range.millis()).unwrap().max(1000));
        let align = if aligned { Align::Window } else { Align::Epoch };
        let shape = Shape::Series { step_ms, align, group_by: vec![Dim::Gpu], aggregation: Aggregation::Avg, limit: 900 };
        let wanted = Query { range, placement: placement.clone(), ..query(Dataset::Metrics, shape) };
        let (first, last, pairs) = sent(&admit(&wanted, job(from, to)));
        let pairs = pairs.unwrap();
        prop_assert!(pairs.iter().all(|pair| slots().contains(pair)));
        if let Some(asked) = placement {
            prop_assert!(pairs.iter().all(|pair| asked.contains(pair)));
        }
        prop_assert!(range.from() <= first && last <= range.to());
        prop_assert!(pairs.is_empty() || (from <= first && last <= to));
        // Steps from the window's start stay where they would be, unless there is one step only.
        let late = first.as_millisecond() - range.from().as_millisecond();
        let step_ms = i64::try_from(step_ms).unwrap();
        prop_assert!(!aligned || pairs.is_empty() || step_ms >= range.millis() || late % step_ms == 0);
        // What lies in both by more than a step is not lost.
        let common = to.min(range.to()).as_millisecond() - from.max(range.from()).as_millisecond();
        prop_assert!(!pairs.is_empty() || common <= step_ms + 1 || wanted.placement.is_some());
    }
}
