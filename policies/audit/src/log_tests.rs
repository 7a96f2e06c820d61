use futures::executor::block_on;
use futures::future::join_all;
use rusqlite::Connection;
use sightline_model::audit::AuditLog;
use sightline_model::{AuditRef, QuestionId};

use crate::test_log::{TestLog, ask, begin, call, complete};
use crate::{Filter, Verdict};

#[test]
fn a_begin_is_answered_with_its_place_in_the_chain() {
    let test = TestLog::new();
    let log = test.open();
    let answered = block_on(log.begin(begin("q1"))).unwrap();
    let stored = test.reader().question(&QuestionId::new("q1")).unwrap().unwrap().begin;
    assert_eq!(answered, AuditRef { question_id: QuestionId::new("q1"), seq: Some(1), hash: stored.hash.to_string() });
}

#[test]
fn the_chain_goes_on_after_a_restart() {
    let test = TestLog::new();
    for round in 0..3 {
        ask(&test.open(), &format!("q{round}"));
    }
    assert_eq!(test.verify(), Verdict::Whole { records: 9 });
}

#[test]
fn a_record_is_written_although_nobody_waits_for_it() {
    let test = TestLog::new();
    let log = test.open();
    drop(log.begin(begin("q1")));
    drop(log);
    assert_eq!(test.verify(), Verdict::Whole { records: 1 });
}

#[test]
fn a_question_that_never_ended_is_listed_as_open() {
    let test = TestLog::new();
    let log = test.open();
    block_on(log.begin(begin("q1"))).unwrap();
    block_on(log.call(call("q1"))).unwrap();
    let page = test.reader().list(&Filter::default()).unwrap();
    let lines: Vec<_> = page.questions.iter().map(|question| (question.outcome(), question.calls)).collect();
    assert_eq!(lines, [("open", 1)]);
}

#[test]
fn two_processes_share_one_log_and_one_chain() {
    let test = TestLog::new();
    let handles = [test.open(), test.open()];
    std::thread::scope(|scope| {
        for (name, log) in ["a", "b"].into_iter().zip(&handles) {
            scope.spawn(move || {
                for index in 0..50 {
                    ask(log, &format!("{name}{index}"));
                }
            });
        }
    });
    assert!(handles.iter().all(|log| log.transactions() > 0));
    assert_eq!(test.verify(), Verdict::Whole { records: 300 });
}

#[test]
fn many_first_starts_at_once_make_one_log() {
    let test = TestLog::new();
    std::thread::scope(|scope| {
        for index in 0..8 {
            let test = &test;
            scope.spawn(move || ask(&test.open(), &format!("q{index}")));
        }
    });
    assert_eq!(test.verify(), Verdict::Whole { records: 24 });
}

#[test]
fn records_that_wait_together_are_committed_together() {
    let test = TestLog::new();
    let log = test.open();
    let shell = Connection::open(test.path()).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting: Vec<_> = (0..64).map(|index| log.begin(begin(&format!("q{index}")))).collect();
    shell.execute_batch("ROLLBACK").unwrap();
    assert!(block_on(join_all(waiting)).iter().all(Result::is_ok));
    // The first may have been taken alone before the others came; all of those then share one transaction.
    assert!(log.transactions() <= 2, "{} transactions", log.transactions());
    assert_eq!(test.verify(), Verdict::Whole { records: 64 });
}

#[test]
fn sixty_four_writers_need_less_than_a_fifth_of_a_commit_for_a_pair() {
    let (writers, rounds) = (64, 16);
    let test = TestLog::new();
    let log = test.open();
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let log = &log;
            scope.spawn(move || {
                for round in 0..rounds {
                    let id = format!("q{writer}-{round}");
                    block_on(log.begin(begin(&id))).unwrap();
                    block_on(log.complete(complete(&id, "answered"))).unwrap();
                }
            });
        }
    });
    let pairs = writers * rounds;
    assert!(log.transactions() * 5 < pairs, "{} transactions for {pairs} pairs", log.transactions());
    assert_eq!(test.verify(), Verdict::Whole { records: pairs * 2 });
}

#[test]
fn a_log_that_cannot_be_written_says_so_to_everybody_who_waits() {
    let test = TestLog::with_questions(1);
    test.tamper("UPDATE head SET seq = 2");
    let log = test.open();
    let path = test.path().display().to_string();
    let answers = block_on(join_all([log.begin(begin("q1")), log.begin(begin("q2"))]));
    for answer in answers {
        assert_eq!(
            answer.unwrap_err().to_string().replace(&path, "LOG"),
            "the audit log cannot be written: `LOG` was changed from outside at or before record 2; keep the file, run `sightline audit verify`, then move it away so that a new log begins"
        );
    }
}
