//! Just over and just under each bound; what a refusal suggests works.

use jiff::ToSpan;
use sightline_guard::{Estimate, Guard, Refusal};
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_policies::{Decision, Limits};
use sightline_query::{Align, Order, Query, Shape};

use crate::sample::{admission, at, catalogue, day, decision, limits, mapping, now, query};

fn series(step_ms: u64) -> Shape {
    Shape::Series {
        step_ms,
        align: Align::Epoch,
        group_by: vec![Dim::Node],
        aggregation: Aggregation::Avg,
        limit: 5000,
    }
}

fn try_with(query: &Query, limits: &Limits, bytes_left: Option<u64>, estimate: Option<Estimate>) -> Option<Refusal> {
    let valid = catalogue().check(query).unwrap();
    let decision = decision();
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
    let Refusal::RangeTooLong { fits, .. } = refusal else { panic!("another refusal: {refusal}") };
    assert_eq!(try_with(&Query { range: fits, ..just_over }, &limits, None, None), None);
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
    let Refusal::TooManyPoints { step_ms, .. } = refusal else { panic!("another refusal: {refusal}") };
    assert_eq!(try_with(&query(Dataset::Metrics, series(step_ms)), &limits, None, None), None);
}

#[test]
fn a_window_across_one_step_more_counts_it() {
    let limits = Limits { max_points: 24, ..limits() };
    let whole = query(Dataset::Metrics, series(3_600_000));
    assert_eq!(try_with(&whole, &limits, None, None), None);
    let shifted = TimeRange::new(at("2026-05-03T00:30:00Z"), at("2026-05-04T00:30:00Z")).unwrap();
    let refusal = try_with(&Query { range: shifted, ..whole }, &limits, None, None).unwrap();
    assert_eq!(refusal, Refusal::TooManyPoints { asked: 25, limit: 24, step_ms: 7_200_000 });
}

#[test]
fn a_limit_over_the_rows_that_may_come_back_is_refused() {
    let rows = |limit| query(Dataset::Logs, Shape::Rows { order: Order::Descending, limit });
    assert_eq!(try_with(&rows(10_000), &limits(), None, None), None);
    let refusal = try_with(&rows(10_001), &limits(), None, None).unwrap();
    assert_eq!(refusal.to_string(), "10,001 rows were asked for, 1 over your limit of 10,000; ask for 10,000 or fewer");
}

#[test]
fn an_estimate_over_a_bound_is_refused_and_the_suggested_window_is_in_proportion() {
    let query = query(Dataset::Metrics, series(60_000));
    let rows = |rows| Some(Estimate { rows, bytes: 0 });
    assert_eq!(try_with(&query, &limits(), None, rows(1_000_000_000)), None);
    let refusal = try_with(&query, &limits(), None, rows(2_000_000_000)).unwrap();
    assert_eq!(
        refusal.to_string(),
        "it would read about 2,000,000,000 rows, 1,000,000,000 over your limit of 1,000,000,000; ask about 12 h or less, or name a node or a job"
    );
    let bytes = |bytes| Some(Estimate { rows: 0, bytes });
    let refusal = try_with(&query, &limits(), None, bytes(40_000_000_000)).unwrap();
    assert_eq!(
        refusal.to_string(),
        "it would read about 37.3 GiB, 18.6 GiB over your limit of 18.6 GiB; ask about 12 h or less, or name a node or a job"
    );
    let refusal = try_with(&query, &limits(), Some(1_000_000), bytes(2_000_000)).unwrap();
    assert_eq!(
        refusal.to_string(),
        "it would read about 1.9 MiB, 976.6 KiB over the 976.6 KiB left of today's budget; ask about 12 h or less, or name a node or a job"
    );
}

#[test]
fn a_spent_budget_refuses_and_a_small_rest_bounds_the_read() {
    let wanted = query(Dataset::Metrics, series(60_000));
    assert_eq!(
        try_with(&wanted, &limits(), Some(0), None).unwrap().to_string(),
        "today's budget of 931.3 GiB read is spent; ask again tomorrow, or ask an admin for more"
    );
    let valid = catalogue().check(&wanted).unwrap();
    let (decision, limits) = (decision(), limits());
    let admission = sightline_guard::Admission { bytes_left: Some(5), ..admission(&decision, &limits) };
    assert_eq!(Guard::new(mapping()).admit(&valid, admission).unwrap().bounds().max_bytes_to_read, 5);
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
