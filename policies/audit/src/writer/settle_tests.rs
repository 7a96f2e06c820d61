use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{Job, Pending, Writer};
use crate::file::{LogFile, Opening};
use crate::tail::{Closes, Entry};
use crate::test_log::{TestLog, ask, at};
use crate::{AuditReader, Settings, Verdict};

fn open(test: &TestLog) -> LogFile {
    let Settings { key, new_log_id, checkpoint_every, lock_wait, .. } = TestLog::settings();
    LogFile::open(&test.path(), Opening { key, new_log_id, checkpoint_every, lock_wait, key_again: None }).unwrap()
}

fn entry() -> Entry {
    Entry {
        body: r#"{"kind":"begin","question_id":"q"}"#.to_owned(),
        text: None,
        at: at("2026-05-04T10:00:00Z"),
        just_now: true,
        closes: Closes::Never,
    }
}

/// What `cp audit.db` makes while the log is open, verified.
fn copied_alone(log: PathBuf) -> Result<Verdict, String> {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("audit.db");
    fs::copy(log, &copy).unwrap();
    AuditReader::open(&copy).and_then(|reader| reader.verify(&TestLog::public_key())).map_err(|error| error.to_string())
}

#[test]
fn what_a_checkpoint_covers_is_in_the_one_file_before_the_writer_goes_on() {
    let test = TestLog::new();
    let (sender, waiting) = channel();
    for _ in 0..4 {
        let (done, _outcome) = futures::channel::oneshot::channel();
        sender.send(Job::Record(Pending { entry: entry(), done })).unwrap();
    }
    let (tell, told) = channel();
    let path = test.path();
    sender.send(Job::Other(Box::new(move |_file| tell.send(copied_alone(path)).unwrap()))).unwrap();
    drop(sender);
    let writer = Writer { file: open(&test), copies: Vec::new(), transactions: Default::default() };
    writer.run(&waiting);
    assert_eq!(told.recv().unwrap(), Ok(Verdict::Whole { records: 4 }));
}

#[test]
fn a_log_that_is_quiet_lies_in_the_one_file_although_it_stays_open() {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q0");
    let mut tries = 0;
    while copied_alone(test.path()) != Ok(Verdict::Whole { records: 3 }) {
        tries += 1;
        assert!(tries < 600, "it never settled");
        std::thread::sleep(Duration::from_millis(50));
    }
    ask(&log, "q1");
}

#[test]
fn a_reader_holds_back_and_holds_up_nothing() {
    let test = TestLog::new();
    let mut file = open(&test);
    file.append([&entry()]).unwrap();
    let reader = Connection::open(test.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM record").unwrap();
    file.append([&entry()]).unwrap();
    assert!(!file.settle());
    file.append([&entry()]).unwrap();
    reader.execute_batch("ROLLBACK").unwrap();
    assert!(file.settle());
    assert_eq!(copied_alone(test.path()), Ok(Verdict::Whole { records: 3 }));
}

#[test]
fn nothing_is_mixed_into_a_copy_that_was_laid_over_the_log() {
    let older = TestLog::with_questions(1);
    let test = TestLog::new();
    fs::copy(older.path(), test.path()).unwrap();
    let mut file = open(&test);
    for _ in 0..40 {
        file.append([&entry()]).unwrap();
    }
    assert!(file.settle());
    file.append([&entry()]).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    fs::copy(older.path(), test.path()).unwrap();
    assert!(!file.settle());
    assert_eq!(fs::read(test.path()).unwrap(), fs::read(older.path()).unwrap());
    let error = file.append([&entry()]).unwrap_err().to_string();
    assert!(error.contains("was changed from outside") || error.contains("is damaged"), "{error}");
}

#[test]
fn what_was_settled_and_then_laid_over_is_not_written_on_from_memory() {
    let older = TestLog::with_questions(1);
    let test = TestLog::new();
    fs::copy(older.path(), test.path()).unwrap();
    let mut file = open(&test);
    for _ in 0..3 {
        file.append([&entry()]).unwrap();
    }
    assert!(file.settle());
    std::thread::sleep(Duration::from_millis(20));
    fs::copy(older.path(), test.path()).unwrap();
    let error = file.append([&entry()]).unwrap_err().to_string();
    assert!(error.contains("was changed from outside at or before record 3"), "{error}");
}
