//! A recorded query runs again as what it says, under the rights of the one who runs it, or not at all.

use std::collections::BTreeMap;

use sightline_guard::{Admission, BytesLeft, ExecutableQuery, Guard, Refusal};
use sightline_model::{Dataset, QueryId};
use sightline_policies::{Decision, Limits, OwnRows, RowScope};
use sightline_query::{Order, Shape};

use crate::sample::{admission, at, catalogue, decision, every_shape, limits, mapping, params, query};

fn admit_sample(name: &str) -> ExecutableQuery {
    let (_, query) = every_shape().into_iter().find(|(known, _)| *known == name).unwrap();
    let valid = catalogue().check(&query).unwrap();
    Guard::new(mapping()).admit(&valid, admission(&decision(), &limits())).unwrap()
}

fn readmit(sent: &ExecutableQuery, admission: Admission<'_>) -> Result<ExecutableQuery, Refusal> {
    let guard = Guard::new(mapping());
    let recorded = guard.read_recorded(sent.sql(), &params(sent)).unwrap();
    guard.readmit(&recorded, admission)
}

#[test]
fn every_query_that_was_sent_is_read_back_to_the_byte() {
    let (decision, limits) = (decision(), limits());
    for (name, query) in every_shape() {
        let valid = catalogue().check(&query).unwrap();
        let guard = Guard::new(mapping());
        let sent = guard.admit(&valid, admission(&decision, &limits)).unwrap();
        // Another guard: nothing is remembered of the first time.
        let guard = Guard::new(mapping());
        let recorded = guard.read_recorded(sent.sql(), &params(&sent)).unwrap();
        assert_eq!(recorded.dataset(), valid.dataset(), "{name}");
        assert_eq!(recorded.window(), query.range, "{name}");
        let again = Admission { query_id: QueryId::new("q-2"), ..admission(&decision, &limits) };
        let again = guard.readmit(&recorded, again).unwrap();
        assert_eq!(again.query_id().as_str(), "q-2");
        assert_eq!((again.sql(), again.params()), (sent.sql(), sent.params()), "{name}");
        assert_eq!((again.bounds(), again.row_limit()), (sent.bounds(), sent.row_limit()), "{name}");
        assert_eq!((again.fence(), again.tables()), (sent.fence(), sent.tables()), "{name}");
        let kinds = |query: &ExecutableQuery| query.columns().iter().map(|column| column.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&again), kinds(&sent), "{name}");
        assert!(again.row_bytes() >= sent.row_bytes(), "{name}");
    }
}

#[test]
fn a_reviewer_reads_no_tenant_that_is_not_open_to_the_reviewer() {
    let sent = admit_sample("metrics_peak");
    let limits = limits();
    let fewer = Decision::allowed_for_tests(RowScope::for_tests(&["atlas"]).unwrap());
    let refusal = readmit(&sent, admission(&fewer, &limits)).unwrap_err();
    assert_eq!(refusal.to_string(), "it read rows of a tenant that is not open to you");
    let more = Decision::allowed_for_tests(RowScope::for_tests(&["atlas", "borealis", "it's"]).unwrap());
    let again = readmit(&sent, admission(&more, &limits)).unwrap();
    // The text names the tenants of the first time, and the fence all that are open now.
    assert_eq!(again.params(), sent.params());
    assert_eq!(again.tenants().len(), 3);
    let denied = Decision::denied_for_tests("no rule lets role `auditor` read metrics");
    let refusal = readmit(&sent, admission(&denied, &limits)).unwrap_err();
    assert_eq!(refusal.to_string(), "no rule lets role `auditor` read metrics");
}

#[test]
fn who_reads_own_jobs_only_runs_nothing_of_the_record() {
    let own =
        RowScope::for_tests(&["atlas", "it's"]).unwrap().narrowed_for_tests(OwnRows::JobsOf { user: "u".to_owned() });
    let refusal =
        readmit(&admit_sample("metrics_peak"), admission(&Decision::allowed_for_tests(own), &limits())).unwrap_err();
    assert!(matches!(&refusal, Refusal::Denied { .. }) && refusal.to_string().contains("own jobs"), "{refusal}");
}

#[test]
fn the_reviewers_own_limits_hold() {
    let decision = decision();
    let sent = admit_sample("metrics_series_avg");
    let refused = |limits: Limits| readmit(&sent, admission(&decision, &limits)).unwrap_err();
    assert!(matches!(refused(Limits { max_range_seconds: 3_600, ..limits() }), Refusal::RangeTooLong { .. }));
    assert!(matches!(refused(Limits { max_points: 1_439, ..limits() }), Refusal::TooManyPoints { asked: 1_440, .. }));
    assert!(matches!(refused(Limits { max_result_rows: 4_999, ..limits() }), Refusal::TooManyResultRows { .. }));
    let limits = limits();
    let spent = BytesLeft { bytes: 0, resets: at("2026-05-05T00:00:00Z") };
    let nothing_left = Admission { bytes_left: Some(spent), ..admission(&decision, &limits) };
    assert!(matches!(readmit(&sent, nothing_left).unwrap_err(), Refusal::BudgetSpent { .. }));
    let too_early = Admission { now: at("2020-01-01T00:00:00Z"), ..admission(&decision, &limits) };
    assert!(matches!(readmit(&sent, too_early).unwrap_err(), Refusal::InTheFuture { .. }));
}

#[test]
fn a_text_that_the_guard_would_not_write_is_not_read() {
    let guard = Guard::new(mapping());
    let sent = admit_sample("metrics_peak");
    let values = params(&sent);
    let faulty = |sql: &str, values: &BTreeMap<String, String>| guard.read_recorded(sql, values).is_err();
    assert!(!faulty(sent.sql(), &values));
    assert!(faulty(&format!("{} ", sent.sql()), &values));
    assert!(faulty(&sent.sql().replace("sightline.metrics", "system.users"), &values));
    assert!(faulty(&sent.sql().replace("sightline.", "elsewhere."), &values));
    assert!(faulty("DROP TABLE sightline.metrics", &BTreeMap::new()));
    let without: BTreeMap<String, String> =
        values.iter().filter(|(name, _)| *name != "p0").map(|(n, v)| (n.clone(), v.clone())).collect();
    assert!(faulty(sent.sql(), &without));
    let mut more = values.clone();
    more.insert("p99".to_owned(), "x".to_owned());
    assert!(faulty(sent.sql(), &more));
    let mut another = values;
    another.insert("p0".to_owned(), "['atlas'] OR 1".to_owned());
    assert!(faulty(sent.sql(), &another));
}

#[test]
fn jobs_of_a_longer_range_may_be_listed_again_too() {
    let year = sightline_query::Query {
        range: sightline_model::TimeRange::new(at("2025-06-01T00:00:00Z"), at("2026-05-04T00:00:00Z")).unwrap(),
        ..query(Dataset::Jobs, Shape::Rows { order: Order::Descending, limit: 100 })
    };
    let (decision, limits) = (decision(), limits());
    let valid = catalogue().check(&year).unwrap();
    let sent = Guard::new(mapping()).admit(&valid, admission(&decision, &limits)).unwrap();
    assert!(readmit(&sent, admission(&decision, &limits)).is_ok());
}
