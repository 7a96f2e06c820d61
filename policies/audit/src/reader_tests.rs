use std::collections::BTreeSet;

use futures::executor::block_on;
use serde_json::Value;
use sightline_model::audit::{AuditLog, Begin};
use sightline_model::{Principal, QuestionId, Role, TenantScope};

use crate::chain::Hash;
use crate::test_log::{TestLog, ask, at, begin, call, complete};
use crate::{AuditReader, Filter};

/// Four questions of three askers, the last still open.
fn four_questions() -> TestLog {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q1");
    let viewer = Principal {
        id: "viewer@borealis,cetus".to_owned(),
        role: Role::Viewer,
        tenants: TenantScope::Only(BTreeSet::from(["borealis".to_owned(), "cetus".to_owned()])),
        jobs_of: None,
    };
    let admin = Principal { id: "admin".to_owned(), role: Role::Admin, tenants: TenantScope::All, jobs_of: None };
    let asked = |id: &str, principal: &Principal, time: &str, question: &str| Begin {
        principal: principal.clone(),
        at: at(time),
        question: question.to_owned(),
        ..begin(id)
    };
    block_on(log.begin(asked("q2", &viewer, "2026-05-04T10:00:00.5Z", "how HOT is gpu 3? 100%_'"))).unwrap();
    block_on(log.complete(complete("q2", "refused"))).unwrap();
    block_on(log.begin(asked("q3", &admin, "2026-05-04T11:00:00Z", "list idle GPUs"))).unwrap();
    block_on(log.complete(complete("q3", "answered"))).unwrap();
    block_on(log.begin(asked("q4", &viewer, "2026-05-05T10:00:00Z", "and the day before?"))).unwrap();
    test
}

fn listed(test: &TestLog, filter: Filter) -> Vec<String> {
    let page = test.reader().list(&filter).unwrap();
    page.questions
        .iter()
        .map(|question| format!("{} {}", question.begin.record.question_id, question.outcome()))
        .collect()
}

#[test]
fn a_file_where_nothing_can_be_written_is_read_as_it_stands() {
    let test = TestLog::with_questions(2);
    // The index of the write-ahead log cannot be made, as on a medium that takes no write.
    std::os::unix::fs::symlink("/nowhere/index", test.path().with_extension("db-shm")).unwrap();
    assert_eq!(test.verify(), crate::Verdict::Whole { records: 6 });
}

#[test]
fn a_list_shows_the_newest_first_with_how_each_ended() {
    let test = four_questions();
    assert_eq!(listed(&test, Filter::default()), ["q4 open", "q3 answered", "q2 refused", "q1 answered"]);
}

#[test]
fn each_filter_lets_through_what_it_names() {
    let test = four_questions();
    let some = |text: &str| Some(text.to_owned());
    let none = Filter::default();
    let cases = [
        (Filter { principal: some("operator@atlas"), ..none.clone() }, vec!["q1 answered"]),
        (Filter { principal: some("operator"), ..none.clone() }, vec![]),
        (Filter { tenant: some("cetus"), ..none.clone() }, vec!["q4 open", "q2 refused"]),
        (Filter { outcome: some("open"), ..none.clone() }, vec!["q4 open"]),
        (Filter { outcome: some("answered"), ..none.clone() }, vec!["q3 answered", "q1 answered"]),
        (
            Filter { since: Some(at("2026-05-04T10:00:00.5Z")), ..none.clone() },
            vec!["q4 open", "q3 answered", "q2 refused"],
        ),
        (Filter { until: Some(at("2026-05-04T10:00:00.5Z")), ..none.clone() }, vec!["q1 answered"]),
        (Filter { text: some("hot"), ..none.clone() }, vec!["q2 refused"]),
        (Filter { text: some("100%_'"), ..none.clone() }, vec!["q2 refused"]),
        (Filter { text: some("1%0"), ..none.clone() }, vec![]),
        (Filter { tenant: some("borealis"), outcome: some("refused"), ..none.clone() }, vec!["q2 refused"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(listed(&test, filter.clone()), expected, "{filter:?}");
    }
}

#[test]
fn pages_follow_one_another_to_the_first_question() {
    let test = four_questions();
    let first = test.reader().list(&Filter { limit: Some(3), ..Filter::default() }).unwrap();
    assert_eq!(first.next_before, Some(4));
    let rest = Filter { limit: Some(3), before: first.next_before, ..Filter::default() };
    assert_eq!(listed(&test, rest.clone()), ["q1 answered"]);
    assert_eq!(test.reader().list(&rest).unwrap().next_before, None);
}

#[test]
fn an_opened_question_holds_the_records_as_they_were_written() {
    let test = four_questions();
    let file = test.reader().question(&QuestionId::new("q1")).unwrap().unwrap();
    assert_eq!(file.begin.record, begin("q1"));
    assert_eq!(file.calls.iter().map(|call| call.record.clone()).collect::<Vec<_>>(), [call("q1")]);
    assert_eq!(file.complete.map(|complete| (complete.seq, complete.record)), Some((3, complete("q1", "answered"))));
    assert_eq!(test.reader().question(&QuestionId::new("q9")).unwrap(), None);
}

#[test]
fn an_export_can_be_checked_line_by_line_without_the_program() {
    let test = four_questions();
    let mut out = Vec::new();
    assert_eq!(test.reader().export(&mut out).unwrap(), 8);
    let lines: Vec<Value> =
        std::str::from_utf8(&out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [log, records @ .., head] = lines.as_slice() else { panic!("no lines") };
    assert_eq!(log["log"]["id"], hex::encode([9; 16]));
    let mut hash = Hash::genesis(&[9; 16]);
    for (index, record) in records.iter().enumerate() {
        assert_eq!(record["prev"], hash.to_string());
        hash = hash.next(index as u64 + 1, serde_json_canonicalizer::to_string(&record["record"]).unwrap().as_bytes());
        assert_eq!(record["hash"], hash.to_string());
    }
    assert_eq!(head["head"]["hash"], hash.to_string());
}

#[test]
fn a_log_that_is_not_there_yet_is_no_error_to_puzzle_over() {
    let test = TestLog::new();
    let error = AuditReader::open(&test.path()).unwrap_err().to_string();
    assert_eq!(
        error.replace(&test.path().display().to_string(), "LOG"),
        "`LOG` cannot be opened: there is no such file, so nothing was recorded yet; check that its folder exists and may be used by this user"
    );
}
