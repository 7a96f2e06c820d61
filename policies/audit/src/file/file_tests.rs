use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ffi};

use super::{LogFile, Opening};
use crate::error::AuditError;
use crate::tail::{Closes, Entry};
use crate::test_log::{TestLog, at};
use crate::{AuditKey, AuditReader, Settings, Verdict};

fn open(path: &Path) -> Result<LogFile, AuditError> {
    let Settings { key, new_log_id, checkpoint_every, .. } = TestLog::settings();
    let key_again = None;
    LogFile::open(path, Opening { key, new_log_id, checkpoint_every, lock_wait: Duration::from_millis(20), key_again })
}

/// The error with the log's path taken out.
fn words(test: &TestLog, error: &AuditError) -> String {
    error.to_string().replace(&test.path().display().to_string(), "LOG")
}

fn entry(question: &str) -> Entry {
    Entry {
        body: format!(r#"{{"kind":"begin","question":"{question}","question_id":"q"}}"#),
        text: None,
        at: at("2026-05-04T10:00:00Z"),
        just_now: true,
        closes: Closes::Never,
    }
}

#[test]
fn a_new_log_belongs_to_its_user_alone() {
    let test = TestLog::new();
    open(&test.path()).unwrap();
    assert_eq!(fs::metadata(test.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_full_disk_refuses_the_record_and_the_log_goes_on_when_there_is_room_again() {
    let test = TestLog::new();
    let mut file = open(&test.path()).unwrap();
    file.append([&entry("")]).unwrap();
    file.connection.pragma_update(None, "max_page_count", 1).unwrap();
    let large = entry(&"x".repeat(100_000));
    let error = file.append([&entry(""), &large]).unwrap_err();
    assert_eq!(
        words(&test, &error),
        "no space left for `LOG`; free space on its disk, the next question is tried again"
    );

    file.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
    let places = file.append([&entry(""), &large]).unwrap();
    assert_eq!(places.iter().map(|place| place.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(test.verify(), Verdict::Whole { records: 3 });
}

#[test]
fn a_file_that_may_only_be_read_refuses_the_record() {
    let test = TestLog::new();
    let mut file = open(&test.path()).unwrap();
    file.connection.pragma_update(None, "query_only", true).unwrap();
    let error = file.append([&entry("")]).unwrap_err();
    assert_eq!(words(&test, &error), "`LOG` cannot be written; give this user write access to the file and its folder");
}

#[test]
fn a_file_that_another_process_holds_refuses_the_record() {
    let test = TestLog::new();
    let mut file = open(&test.path()).unwrap();
    let shell = Connection::open(test.path()).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = file.append([&entry("")]).unwrap_err();
    assert_eq!(
        words(&test, &error),
        "`LOG` is locked by another process; end whatever holds it, for example an open database shell"
    );
    shell.execute_batch("ROLLBACK").unwrap();
    file.append([&entry("")]).unwrap();
}

#[test]
fn a_log_of_a_newer_program_is_neither_written_nor_read() {
    let test = TestLog::with_questions(1);
    test.tamper("PRAGMA user_version = 4");
    let expected = "`LOG` has format 4, this program knows 3; use the newer program that wrote it";
    assert_eq!(words(&test, &open(&test.path()).err().unwrap()), expected);
    assert_eq!(words(&test, &AuditReader::open(&test.path()).unwrap_err()), expected);
}

#[test]
fn a_file_that_is_no_log_is_refused_and_left_as_it_is() {
    let expected = "`LOG` is damaged or no audit log; keep it, restore it from a copy and run `sightline audit verify`";
    let text = TestLog::new();
    fs::write(text.path(), "x".repeat(5_000)).unwrap();
    assert_eq!(words(&text, &open(&text.path()).err().unwrap()), expected);
    assert_eq!(fs::read_to_string(text.path()).unwrap(), "x".repeat(5_000));

    let other = TestLog::new();
    Connection::open(other.path()).unwrap().execute_batch("CREATE TABLE record (seq INTEGER)").unwrap();
    assert_eq!(words(&other, &open(&other.path()).err().unwrap()), expected);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let test = TestLog::new();
    let path = test.path().join("deeper");
    let error = open(&path).err().unwrap().to_string().replace(&path.display().to_string(), "LOG");
    assert_eq!(
        error,
        "`LOG` cannot be opened: No such file or directory (os error 2); check that its folder exists and may be used by this user"
    );
}

#[test]
fn a_log_signed_with_another_key_is_not_continued() {
    let test = TestLog::with_questions(1);
    let other = AuditKey::from_secret([8; 32]);
    let lock_wait = Duration::from_millis(20);
    let opening = Opening { key: other, new_log_id: [0; 16], checkpoint_every: 4, lock_wait, key_again: None };
    let error = LogFile::open(&test.path(), opening).err().unwrap();
    let [mine, given] = [TestLog::public_key().id(), AuditKey::from_secret([8; 32]).public().id()];
    assert_eq!(
        words(&test, &error),
        format!("`LOG` was signed with key {mine}, the key file holds {given}; put the right key file back")
    );
}

#[test]
fn a_head_that_was_changed_is_not_signed_again() {
    let test = TestLog::with_questions(2);
    test.tamper(
        "DELETE FROM record WHERE seq = 6; UPDATE head SET seq = 5, hash = (SELECT hash FROM record WHERE seq = 5)",
    );
    let error = open(&test.path()).unwrap().append([&entry("")]).unwrap_err();
    assert_eq!(
        words(&test, &error),
        "`LOG` was changed from outside at or before record 5; keep the file, run `sightline audit verify`, then move it away so that a new log begins"
    );
}

#[test]
fn a_head_that_is_none_is_told_of_as_such_by_whoever_opens_writes_or_verifies() {
    let cases = [
        (
            "UPDATE head SET signature = x'00'",
            "the signed head was changed into something that this program never writes",
        ),
        ("UPDATE head SET seq = -5", "the signed head was changed into something that this program never writes"),
        ("DELETE FROM head", "the signed head was removed"),
        ("DELETE FROM log", "the id of the log was removed"),
        ("UPDATE log SET id = x'00'", "the id of the log was changed into something that this program never writes"),
    ];
    for (change, what) in cases {
        let test = TestLog::with_questions(1);
        let mut written = open(&test.path()).unwrap();
        test.tamper(change);
        let expected = format!(
            "`LOG` was changed from outside: {what}; keep the file, run `sightline audit verify`, then move it away so that a new log begins"
        );
        if change.contains("head") {
            assert_eq!(words(&test, &written.append([&entry("")]).unwrap_err()), expected, "{change}");
        }
        drop(written);
        assert_eq!(words(&test, &open(&test.path()).err().unwrap()), expected, "{change}");
        assert_eq!(test.verify().to_string(), format!("the log is broken: {what}"), "{change}");
    }
}

#[test]
fn an_older_head_that_was_put_back_is_not_signed_again() {
    let test = TestLog::new();
    let mut file = open(&test.path()).unwrap();
    file.append([&entry("")]).unwrap();
    test.tamper("CREATE TABLE older AS SELECT * FROM head");
    file.append([&entry("")]).unwrap();
    test.tamper(
        "DELETE FROM record WHERE seq = 2; DELETE FROM head; INSERT INTO head SELECT * FROM older; DROP TABLE older",
    );
    assert_eq!(test.verify(), Verdict::Whole { records: 1 });
    assert!(matches!(file.append([&entry("")]), Err(AuditError::Tampered { seq: 1, .. })));
}

#[test]
fn every_error_of_the_database_becomes_one_line_that_says_what_to_do() {
    let codes = [
        ffi::SQLITE_FULL,
        ffi::SQLITE_READONLY,
        ffi::SQLITE_PERM,
        ffi::SQLITE_BUSY,
        ffi::SQLITE_LOCKED,
        ffi::SQLITE_CANTOPEN,
        ffi::SQLITE_CORRUPT,
        ffi::SQLITE_NOTADB,
        ffi::SQLITE_IOERR_FSYNC,
    ];
    let lines: Vec<String> = codes
        .into_iter()
        .map(|code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            AuditError::sqlite(Path::new("data/audit.db"), &error).unavailable().to_string()
        })
        .collect();
    insta::assert_snapshot!("unavailable", lines.join("\n"));
}
