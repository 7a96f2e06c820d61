//! Just over and just under each bound; what a refusal suggests works.

use jiff::ToSpan;
use sightline_guard::{BytesLeft, Estimate, Fits, Guard, Refusal, Suggestion, check_result};
use sightline_model::{Aggregation, Cell, Dataset, Dim, QueryId, Read, ResultSet, TimeRange};
use sightline_policies::{Decision, Limits};
use sightline_query::{Align, Match, MetricPart, Order, Query, Shape, ValidQuery};

use crate::sample::{admission, at, catalogue, day, decision, filter, limits, mapping, now, query};

fn series(step_ms: u64) -> Shape {
    Shape::Series {
        step_ms,
        align: Align::Epoch,
        group_by: vec![Dim::Node],
        aggregation: Aggregation::Avg,
        limit: 5000,
    }
}

fn try_with(query: &Query, limits: &Limits, left: Option<u64>, estimate: Option<Estimate>) -> Option<Refusal> {
    let valid = catalogue().check(query).unwrap();
    let decision = decision();
    let bytes_left = left.map(|bytes| BytesLeft { bytes, resets: at("2026-05-05T00:00:00Z") });
    let admission = sightline_guard::Admission { bytes_left, estimate, ..admission(&decision, limits) };
    Guard::new(mapping()).admit(&valid, admission).err()
}

fn last(seconds: i64, milliseconds: i64) -> TimeRange {
    let from = now().checked_sub(seconds.seconds().milliseconds(milliseconds)).unwrap();
    TimeRange::new(from, now()).unwrap()
}

#[test]
fn a_range_just_over_the_limit_is_refused_and_the_suggested_one_is_not() {
    let limits = limits();
    let month = 30 * 86_400;
    let just_under = Query { range: last(month, 0), ..query(Dataset::Metrics, series(3_600_000)) };
    assert_eq!(try_with(&just_under, &limits, None, None), None);
    let just_over = Query { range: last(month, 1), ..just_under };
    let refusal = try_with(&just_over, &limits, None, None).unwrap();
    assert_eq!(
        refusal.to_string(),
        "the time range is 30 d 1 ms, which is 1 ms over your limit of 30 d; ask about 2026-04-04T12:00:00Z to 2026-05-04T12:00:00Z, for example"
    );
    assert_eq!(refusal.for_model(), "range too long; use 2026-04-04T12:00:00Z..2026-05-04T12:00:00Z");
    assert_eq!(try_with(&refusal.next_try(&just_over).unwrap(), &limits, None, None), None);
}

#[test]
fn jobs_of_a_longer_range_may_be_listed() {
    let year = query(Dataset::Jobs, Shape::Rows { order: Order::Descending, limit: 100 });
    assert_eq!(try_with(&Query { range: last(365 * 86_400, 0), ..year }, &limits(), None, None), None);
}

#[test]
fn too_many_points_are_refused_and_the_suggested_step_is_not() {
    let limits = Limits { max_points: 1440, ..limits() };
    assert_eq!(try_with(&query(Dataset::Metrics, series(60_000)), &limits, None, None), None);
    let finer = query(Dataset::Metrics, series(59_000));
    let refusal = try_with(&finer, &limits, None, None).unwrap();
    assert_eq!(
        refusal.to_string(),
        "each series would have 1,466 points, 26 over your limit of 1,440; use a step of 2 min or longer"
    );
    assert_eq!(refusal.for_model(), "too many points; use step >= 2 min");
    assert_eq!(try_with(&refusal.next_try(&finer).unwrap(), &limits, None, None), None);
}

#[test]
fn a_window_across_one_step_more_counts_it() {
    let limits = Limits { max_points: 24, ..limits() };
    let whole = query(Dataset::Metrics, series(3_600_000));
    assert_eq!(try_with(&whole, &limits, None, None), None);
    let shifted = TimeRange::new(at("2026-05-03T00:30:00Z"), at("2026-05-04T00:30:00Z")).unwrap();
    let refusal = try_with(&Query { range: shifted, ..whole }, &limits, None, None).unwrap();
    let fits = Fits::This(Suggestion { window: None, step_ms: Some(7_200_000) });
    assert_eq!(refusal, Refusal::TooManyPoints { asked: 25, limit: 24, fits });
    // Steps that begin with the window fit into it.
    let of_window = |step_ms| Shape::Series {
        step_ms,
        align: Align::Window,
        group_by: vec![Dim::Node],
        aggregation: Aggregation::Avg,
        limit: 5000,
    };
    let from_start = |step_ms| Query { range: shifted, ..query(Dataset::Metrics, of_window(step_ms)) };
    assert_eq!(try_with(&from_start(3_600_000), &limits, None, None), None);
    let refusal = try_with(&from_start(3_599_000), &limits, None, None).unwrap();
    let fits = Fits::This(Suggestion { window: None, step_ms: Some(3_600_000) });
    assert_eq!(refusal, Refusal::TooManyPoints { asked: 25, limit: 24, fits });
    assert_eq!(try_with(&from_start(3_600_000), &limits, None, None), None, "what was suggested fits");
}

#[test]
fn a_limit_over_the_rows_that_may_come_back_is_refused() {
    let rows = |limit| query(Dataset::Logs, Shape::Rows { order: Order::Descending, limit });
    assert_eq!(try_with(&rows(10_000), &limits(), None, None), None);
    let refusal = try_with(&rows(10_001), &limits(), None, None).unwrap();
    assert_eq!(refusal.to_string(), "10,001 rows were asked for, 1 over your limit of 10,000; ask for 10,000 or fewer");
}

#[test]
fn an_estimate_over_a_bound_is_refused_and_the_next_try_is_in_proportion_with_the_same_end() {
    let query = query(Dataset::Metrics, series(60_000));
    let rows = |rows| Some(Estimate { rows, bytes: 0 });
    assert_eq!(try_with(&query, &limits(), None, rows(1_000_000_000)), None);
    let refusal = try_with(&query, &limits(), None, rows(1_000_000_001)).unwrap();
    let how = "ask about a shorter time range, or name a node or a job";
    assert_eq!(
        refusal.to_string(),
        format!("it would read about 1,100,000,000 rows, 100,000,000 over your limit of 1,000,000,000; {how}")
    );
    let length = |refusal: &Refusal| {
        let next = refusal.next_try(&query).unwrap();
        assert_eq!(next.range.to(), query.range.to());
        next.range.millis() / 3_600_000
    };
    assert_eq!(length(&refusal), 12, "never more than half, so that a search ends");
    assert_eq!(length(&try_with(&query, &limits(), None, rows(4_000_000_000)).unwrap()), 6);
    let bytes = |bytes| Some(Estimate { rows: 0, bytes });
    assert_eq!(try_with(&query, &limits(), None, bytes(20_000_000_000)), None);
    let refusal = try_with(&query, &limits(), None, bytes(80_000_000_000)).unwrap();
    assert_eq!(
        refusal.to_string(),
        format!("it would read about 74.5 GiB, 55.9 GiB over your limit of 18.6 GiB; {how}")
    );
    assert_eq!(length(&refusal), 6);
    assert_eq!(try_with(&query, &limits(), Some(1_000_000), bytes(1_000_000)), None);
    let refusal = try_with(&query, &limits(), Some(1_000_000), bytes(2_000_000)).unwrap();
    assert_eq!(
        refusal.to_string(),
        format!(
            "it would read about 1.9 MiB, 976.6 KiB over the 976.6 KiB left of today's budget, which begins anew at 2026-05-05T00:00:00Z; {how}"
        )
    );
    assert_eq!(length(&refusal), 12);
}

#[test]
fn a_refusal_says_what_was_found_to_fit_to_a_person_and_shorter_to_a_model() {
    let query = query(Dataset::Metrics, series(60_000));
    let estimate = Some(Estimate { rows: 4_000_000_000, bytes: 0 });
    let refusal = try_with(&query, &limits(), None, estimate).unwrap();
    let asked = Query { range: last(366 * 86_400, 0), shape: series(1000), ..query };
    let fitting = Query { range: last(3600, 0), shape: series(5000), ..asked.clone() };
    let found = Suggestion::between(&asked, &fitting);
    assert_eq!(found, Suggestion { window: Some(last(3600, 0)), step_ms: Some(5000) });
    let ending = |refusal: &Refusal| refusal.to_string().split_once("; ").unwrap().1.to_owned();
    let this = refusal.clone().with(Fits::This(found));
    assert_eq!(ending(&this), "ask about 2026-05-04T11:00:00Z to 2026-05-04T12:00:00Z with a step of 5 s, for example");
    assert_eq!(this.for_model(), "reads too much; use 2026-05-04T11:00:00Z..2026-05-04T12:00:00Z and step >= 5 s");
    let nothing = refusal.with(Fits::Nothing);
    assert_eq!(ending(&nothing), "no shorter time range that was tried fits, so name a node or a job");
    assert_eq!(nothing.for_model(), "reads too much; filter by node or job");
}

#[test]
fn a_window_that_is_cut_to_the_limit_takes_a_longer_step_with_it() {
    let limits = Limits { max_range_seconds: 3600, ..limits() };
    let daily = query(Dataset::Metrics, series(86_400_000));
    let refusal = try_with(&daily, &limits, None, None).unwrap();
    let Refusal::RangeTooLong { .. } = refusal else { panic!("{refusal}") };
    let next = refusal.next_try(&daily).unwrap();
    assert_eq!((next.range.millis(), &next.shape), (3_600_000, &series(3_600_000)));
    assert_eq!(try_with(&next, &limits, None, None), None);
}

#[test]
fn a_window_of_seconds_is_not_cut_further() {
    let refusal = Refusal::TooManyRows { estimated: 100, limit: 1, fits: Fits::Untried };
    let two = Query { range: last(2, 0), ..query(Dataset::Metrics, series(1000)) };
    assert_eq!(refusal.next_try(&two), None);
    let refusal = Refusal::TooManyRows { estimated: 2, limit: 1, fits: Fits::Untried };
    let one = refusal.next_try(&two).unwrap();
    assert_eq!((one.range.millis(), refusal.next_try(&one)), (1000, None));
}

#[test]
fn a_spent_budget_refuses_and_a_small_rest_bounds_the_read() {
    let wanted = query(Dataset::Metrics, series(60_000));
    assert_eq!(
        try_with(&wanted, &limits(), Some(0), None).unwrap().to_string(),
        "today's budget of 931.3 GiB read is spent; ask again after 2026-05-05T00:00:00Z, or ask an admin for more"
    );
    let valid = catalogue().check(&wanted).unwrap();
    let (decision, limits) = (decision(), limits());
    // The exact number is that of others' rows too, and the difference of two looks at what is left is what one query read.
    let estimate = |rows, bytes| Some(Estimate { rows, bytes });
    let words = |left, estimate| try_with(&wanted, &limits, left, estimate).unwrap().to_string();
    assert_eq!(words(None, estimate(4_000_000_001, 0)), words(None, estimate(4_099_999_999, 0)));
    assert_eq!(words(None, estimate(0, 80_000_000_001)), words(None, estimate(0, 80_999_999_999)));
    assert_eq!(words(Some(1_000_000), estimate(0, 2_000_001)), words(Some(1_099_999), estimate(0, 2_099_999)));
    let bytes_left = Some(BytesLeft { bytes: 5, resets: at("2026-05-05T00:00:00Z") });
    let admission = sightline_guard::Admission { bytes_left, ..admission(&decision, &limits) };
    assert_eq!(Guard::new(mapping()).admit(&valid, admission).unwrap().bounds().max_bytes_to_read, 5);
}

#[test]
fn every_bound_of_one_query_is_sent_to_the_engine() {
    let valid = catalogue().check(&query(Dataset::Metrics, series(60_000))).unwrap();
    let (decision, limits) = (decision(), limits());
    let admitted = Guard::new(mapping()).admit(&valid, admission(&decision, &limits)).unwrap();
    let sent = admitted.bounds().settings();
    for (name, value) in [
        ("max_rows_to_read", limits.max_rows_read),
        ("max_bytes_to_read", limits.max_bytes_read),
        ("max_memory_usage", limits.max_memory_bytes),
        ("max_execution_time", limits.max_seconds),
        // One more than is wanted: when it comes, the result was cut.
        ("max_result_rows", 5001),
        ("max_result_bytes", limits.max_result_bytes),
    ] {
        assert!(sent.contains(&(name, value.to_string())), "{name}");
    }
}

#[test]
fn more_series_than_allowed_are_refused_as_soon_as_they_are_named() {
    let limits = Limits { max_series: 2, ..limits() };
    let nodes = |count: usize| Query {
        filters: vec![filter(Dim::Node, Match::In((0..count).map(|n| format!("n{n}")).collect()))],
        ..query(Dataset::Metrics, series(60_000))
    };
    assert_eq!(try_with(&nodes(2), &limits, None, None), None);
    let refusal = try_with(&nodes(3), &limits, None, None).unwrap();
    assert_eq!(
        refusal.to_string(),
        "there are 3 series, 1 over your limit of 2; group by fewer dimensions, name fewer nodes, or rank them instead"
    );
    let placed = |shape| Query {
        placement: Some(["0", "1", "2"].map(|gpu| ("n1".to_owned(), gpu.to_owned())).to_vec()),
        ..query(Dataset::Metrics, shape)
    };
    let by = |group_by: &[Dim]| Shape::Samples {
        order: sightline_query::SampleOrder::Time,
        group_by: group_by.to_vec(),
        limit: 10,
    };
    assert_eq!(try_with(&placed(by(&[Dim::Node])), &limits, None, None), None, "one node, however many GPUs");
    let refusal = try_with(&placed(by(&[Dim::Node, Dim::Gpu])), &limits, None, None);
    assert_eq!(refusal, Some(Refusal::TooManySeries { asked: 3, limit: 2 }));
    let ranked =
        Shape::Rank { group_by: vec![Dim::Gpu], aggregation: Aggregation::Max, order: Order::Descending, limit: 10 };
    assert_eq!(try_with(&placed(ranked), &limits, None, None), None, "a list is bounded by its rows");
}

#[test]
fn more_series_than_allowed_are_refused_when_they_come_back() {
    let valid = catalogue().check(&query(Dataset::Metrics, series(60_000))).unwrap();
    let limits = Limits { max_series: 2, ..limits() };
    assert_eq!(check_result(&valid, &of_nodes(&valid, &["a", "b", "a", "b", "b"]), &limits), Ok(()));
    let three = of_nodes(&valid, &["a", "b", "a", "c"]);
    assert_eq!(check_result(&valid, &three, &limits), Err(Refusal::TooManySeries { asked: 3, limit: 2 }));
    // The buckets of a histogram are one series each of its groups.
    let buckets = Shape::Series {
        step_ms: 60_000,
        align: Align::Epoch,
        group_by: vec![Dim::Node, Dim::Metric, Dim::Label("le".to_owned())],
        aggregation: Aggregation::Increase,
        limit: 100,
    };
    let histogram = Query {
        metric: Some("vllm:time_to_first_token_seconds".to_owned()),
        part: MetricPart::Buckets,
        ..query(Dataset::Metrics, buckets)
    };
    let histogram = catalogue().check(&histogram).unwrap();
    let mut of_two = of_nodes(&histogram, &["a", "a", "a", "b", "b"]);
    let le = of_two.columns.iter().position(|column| column.name == "le").unwrap();
    for (index, row) in of_two.rows.iter_mut().enumerate() {
        row[le] = Cell::Text(index.to_string().into());
    }
    assert_eq!(check_result(&histogram, &of_two, &limits), Ok(()));
    let ranked =
        Shape::Rank { group_by: vec![Dim::Node], aggregation: Aggregation::Max, order: Order::Descending, limit: 10 };
    let ranked = catalogue().check(&query(Dataset::Metrics, ranked)).unwrap();
    assert_eq!(check_result(&ranked, &of_nodes(&ranked, &["a", "b", "c"]), &limits), Ok(()));
}

/// A result with a row for each of these nodes, all else empty.
fn of_nodes(valid: &ValidQuery, nodes: &[&str]) -> ResultSet {
    let columns = valid.columns();
    let cell = |name: &str, node: &str| if name == "node" { Cell::Text(node.into()) } else { Cell::Null };
    let rows = nodes.iter().map(|node| columns.iter().map(|column| cell(&column.name, node)).collect()).collect();
    ResultSet { columns: columns.clone(), rows, read: Read::default(), query_id: QueryId::new("q-1"), truncated: false }
}

#[test]
fn the_engine_is_asked_when_a_bound_is_near_or_the_size_is_unknown() {
    let limits = Limits { max_bytes_read: 100_000_000_000, ..limits() };
    let asks = |query: &Query, left: Option<u64>| {
        let bound = Estimate::upper_bound(&catalogue().check(query).unwrap());
        let left = left.map(|bytes| BytesLeft { bytes, resets: now() });
        (bound.map(|bound| bound.rows), Estimate::is_worth_asking(bound, &limits, left))
    };
    let fleet = query(Dataset::Metrics, series(60_000));
    assert_eq!(asks(&fleet, None), (None, true), "nobody knows how many series there are");
    let placed = |gpus: usize| Query {
        placement: Some((0..gpus).map(|gpu| ("n".to_owned(), gpu.to_string())).collect()),
        ..fleet.clone()
    };
    assert_eq!(asks(&placed(1000), None), (Some(86_400_000), false), "a day of a thousand GPUs at a sample a second");
    assert_eq!(asks(&placed(1200), None), (Some(103_680_000), true), "over a tenth of the rows");
    let of_three = Query {
        metric: None,
        filters: vec![filter(
            Dim::Metric,
            Match::In(
                ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"].map(str::to_owned).to_vec(),
            ),
        )],
        ..placed(100)
    };
    assert_eq!(asks(&of_three, None), (Some(25_920_000), false), "three metrics are three series of each GPU");
    let of_all = Query { metric: None, filters: Vec::new(), ..placed(100) };
    assert_eq!(asks(&of_all, None), (None, true), "nobody knows how many metrics there are");
    assert_eq!(asks(&placed(1), Some(20_736_000)), (Some(86_400), false));
    assert_eq!(asks(&placed(1), Some(20_735_999)), (Some(86_400), true), "over a tenth of what is left");
    let node = |filters| Query { filters, ..fleet.clone() };
    let on = |dim, value: &str| filter(dim, Match::Eq(value.to_owned()));
    assert_eq!(asks(&node(vec![on(Dim::Node, "n")]), None), (Some(16 * 86_400), false));
    assert_eq!(asks(&node(vec![on(Dim::Node, "n"), on(Dim::Gpu, "3")]), None), (Some(86_400), false));
    assert_eq!(asks(&node(vec![on(Dim::Gpu, "3")]), None), (None, true), "a GPU of every node");
    let logs = query(Dataset::Logs, Shape::Rows { order: Order::Ascending, limit: 1 });
    assert_eq!(asks(&logs, None), (None, true));
}

#[test]
fn what_is_set_aside_of_a_size_known_by_name_leaves_the_room_that_spares_the_question() {
    let placed =
        Query { placement: Some(vec![("n".to_owned(), "0".to_owned())]), ..query(Dataset::Metrics, series(60_000)) };
    let bound = Estimate::upper_bound(&catalogue().check(&placed).unwrap()).unwrap();
    assert_eq!((bound.bytes, bound.bytes_to_reserve()), (86_400 * 24, 864_000 * 24));
    let most = Estimate { rows: 1, bytes: u64::MAX };
    assert_eq!(most.bytes_to_reserve(), u64::MAX);
}

#[test]
fn a_denied_decision_reads_nothing() {
    let valid = catalogue().check(&query(Dataset::Metrics, series(60_000))).unwrap();
    let denied = Decision::denied_for_tests("no rule lets role `viewer` read logs; ask an operator");
    let refusal = Guard::new(mapping()).admit(&valid, admission(&denied, &limits())).unwrap_err();
    assert_eq!(refusal.to_string(), "no rule lets role `viewer` read logs; ask an operator");
    assert_eq!(refusal.for_model(), "not allowed for this asker; do not retry");
}

#[test]
fn a_window_in_the_future_or_outside_the_calendar_is_refused() {
    let between = |from: &str, to: &str| {
        let range = TimeRange::new(at(from), at(to)).unwrap();
        try_with(&Query { range, ..query(Dataset::Metrics, series(60_000)) }, &limits(), None, None)
            .unwrap()
            .to_string()
    };
    assert_eq!(
        between("2026-05-04T12:00:01Z", "2026-05-05T00:00:00Z"),
        "the time range begins at 2026-05-04T12:00:01Z, after now (2026-05-04T12:00:00Z); ask about a time that has passed"
    );
    assert_eq!(
        between("1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"),
        "the time range reaches outside the years 1970 to 2260; ask about a time within them"
    );
    assert_eq!(day().millis(), 86_400_000);
}
