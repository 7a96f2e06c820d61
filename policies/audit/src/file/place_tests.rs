use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use futures::executor::block_on;
use sightline_model::audit::AuditLog;

use crate::test_log::{TestLog, ask, begin};
use crate::{SqliteAudit, Verdict};

fn beside(test: &TestLog, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", test.path().display()))
}

fn moved(test: &TestLog) -> String {
    format!(
        "`{}` was moved or replaced while it was open, or a file beside it was; put it back or restart the service so that a new log begins",
        test.path().display()
    )
}

/// Why a question cannot begin.
fn refused(log: &SqliteAudit) -> String {
    block_on(log.begin(begin("refused"))).unwrap_err().reason
}

#[test]
fn nothing_begins_when_a_file_beside_the_log_was_removed_and_what_was_recorded_is_kept() {
    for ending in ["-wal", "-shm"] {
        let test = TestLog::new();
        let log = test.open();
        ask(&log, "q0");
        fs::remove_file(beside(&test, ending)).unwrap();
        assert_eq!(refused(&log), moved(&test), "{ending}");
        drop(log);
        let log = test.open();
        ask(&log, "q1");
        drop(log);
        assert_eq!(test.verify(), Verdict::Whole { records: 6 }, "{ending}");
    }
}

#[test]
fn nothing_begins_while_the_log_is_away_and_it_goes_on_when_it_was_put_back() {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q0");
    let away = beside(&test, ".away");
    fs::rename(test.path(), &away).unwrap();
    assert_eq!(refused(&log), moved(&test));
    fs::copy(&away, test.path()).unwrap();
    assert_eq!(refused(&log), moved(&test), "another file of the same content");
    fs::rename(&away, test.path()).unwrap();
    ask(&log, "q1");
    drop(log);
    assert_eq!(test.verify(), Verdict::Whole { records: 6 });
}

#[test]
fn a_copy_that_was_laid_over_the_open_log_is_not_written_on() {
    let other = TestLog::with_questions(1);
    let test = TestLog::with_questions(2);
    let older = fs::read(test.path()).unwrap();
    let unlike = fs::read(other.path()).unwrap();
    for content in [&older, &unlike] {
        // The log has grown since, and all of it is in the file.
        let test = TestLog::new();
        fs::write(test.path(), &older).unwrap();
        let log = test.open();
        ask(&log, "q2");
        drop(log);
        let log = test.open();
        ask(&log, "q3");
        test.fold();
        ask(&log, "q4");
        // A file system's clock ticks every few milliseconds.
        std::thread::sleep(Duration::from_millis(20));
        fs::write(test.path(), content).unwrap();
        let why = refused(&log);
        assert!(why.contains("was changed from outside") || why.contains("is damaged"), "{why}");
    }
}

#[test]
fn a_file_that_another_process_folded_is_written_on() {
    let test = TestLog::new();
    let log = test.open();
    let other = test.open();
    for round in 0..3 {
        ask(&log, &format!("mine-{round}"));
        test.fold();
        std::thread::sleep(Duration::from_millis(20));
        ask(&other, &format!("theirs-{round}"));
    }
    drop((log, other));
    assert_eq!(test.verify(), Verdict::Whole { records: 18 });
}
