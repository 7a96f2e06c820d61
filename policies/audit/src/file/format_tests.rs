//! Logs of older formats: a file made with the tables of format 1, word for word as they were shipped.

use std::time::Duration;

use futures::executor::block_on;
use rusqlite::{Connection, params};
use sightline_model::QuestionId;
use sightline_model::audit::AuditLog;

use super::schema;
use crate::chain::Head;
use crate::file::{LogFile, Opening};
use crate::test_log::{TestLog, ask, at, begin, call, complete};
use crate::{Erase, Filter, Settings, Verdict};

const FORMAT_1: &str = include_str!("format_1.sql");

/// A record as format 1 wrote it: the text stands in the chain.
fn old_body(kind: &str, record: &impl serde::Serialize) -> String {
    let mut value = serde_json::to_value(record).unwrap();
    value["kind"] = kind.into();
    serde_json_canonicalizer::to_string(&value).unwrap()
}

/// A log of format 1 with two questions and a checkpoint after the fourth record.
pub(crate) fn old_log() -> TestLog {
    let test = TestLog::new();
    let Settings { key, new_log_id, .. } = TestLog::settings();
    let shell = Connection::open(test.path()).unwrap();
    shell.execute_batch(FORMAT_1).unwrap();
    shell.execute("INSERT INTO log VALUES (1, ?1)", [new_log_id]).unwrap();
    let bodies = ["q1", "q2"].into_iter().flat_map(|id| {
        [old_body("begin", &begin(id)), old_body("call", &call(id)), old_body("complete", &complete(id, "answered"))]
    });
    let mut head = Head::empty(&new_log_id);
    for body in bodies {
        let (seq, hash) = (head.seq + 1, head.hash.next(head.seq + 1, body.as_bytes()));
        shell
            .execute(
                "INSERT INTO record (seq, body, prev, hash) VALUES (?1, ?2, ?3, ?4)",
                params![seq, body, head.hash.as_bytes(), hash.as_bytes()],
            )
            .unwrap();
        head = Head { seq, hash, previous: head.previous };
        if seq == 4 {
            let signature = key.sign(&head.signed_bytes(&new_log_id));
            shell
                .execute(
                    "INSERT INTO checkpoint VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![seq, hash.as_bytes(), head.previous, key.public().id(), signature],
                )
                .unwrap();
            head.previous = seq;
        }
    }
    let signature = key.sign(&head.signed_bytes(&new_log_id));
    shell
        .execute(
            "INSERT INTO head VALUES (1, ?1, ?2, ?3, ?4, ?5)",
            params![head.seq, head.hash.as_bytes(), head.previous, key.public().id(), signature],
        )
        .unwrap();
    test
}

#[test]
fn a_table_that_a_file_of_an_older_format_has_is_not_hidden_behind_an_empty_one() {
    let test = TestLog::new();
    let shell = Connection::open(test.path()).unwrap();
    schema::migrate(&shell, 2).unwrap();
    shell.execute("INSERT INTO private VALUES (1, zeroblob(32), 'a text')", []).unwrap();
    drop(shell);
    let texts: i64 = test.reader().connection.query_row("SELECT count(*) FROM private", [], |row| row.get(0)).unwrap();
    assert_eq!(texts, 1);
}

fn format(test: &TestLog) -> i64 {
    let shell = Connection::open(test.path()).unwrap();
    shell.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn an_old_log_is_read_and_verified_without_being_changed() {
    let test = old_log();
    assert_eq!(test.verify(), Verdict::Whole { records: 6 });
    let file = test.reader().question(&QuestionId::new("q2")).unwrap().unwrap();
    assert_eq!((file.begin.record, file.begin.erased), (begin("q2"), false));
    assert_eq!(file.calls.iter().map(|call| call.record.clone()).collect::<Vec<_>>(), [call("q2")]);
    assert_eq!(
        test.reader().list(&Filter { text: Some("slow".to_owned()), ..Filter::default() }).unwrap().questions.len(),
        2
    );
    assert_eq!(format(&test), 1);
}

#[test]
fn an_old_log_grows_into_the_new_format_and_its_records_stay_as_they_are() {
    let test = old_log();
    let before: Vec<String> = bodies(&test);
    ask(&test.open(), "q3");
    assert_eq!(format(&test), schema::FORMAT);
    assert_eq!(test.verify(), Verdict::Whole { records: 9 });
    assert_eq!(bodies(&test)[..6], before);
    let listed = test.reader().list(&Filter { text: Some("slow".to_owned()), ..Filter::default() }).unwrap();
    assert_eq!(listed.questions.len(), 3);
    // The first segment covers the old records too.
    for index in 4..8 {
        ask(&test.open(), &format!("q{index}"));
    }
    assert_eq!(test.verify(), Verdict::Whole { records: 21 });
    let first: (u64, u64) = Connection::open(test.path())
        .unwrap()
        .query_row("SELECT first, last FROM segment WHERE segment = 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(first, (1, 8));
}

#[test]
fn an_old_log_that_was_tampered_with_is_found_before_and_after_it_has_grown() {
    for sql in [
        "UPDATE record SET body = replace(body, '120', '121') WHERE seq = 2",
        "UPDATE checkpoint SET signature = zeroblob(64)",
        "DELETE FROM checkpoint",
    ] {
        let test = old_log();
        test.tamper(sql);
        let before = test.verify();
        assert!(matches!(before, Verdict::Broken(_)), "{sql}");
        let Settings { key, new_log_id, .. } = TestLog::settings();
        let lock_wait = Duration::from_millis(20);
        drop(
            LogFile::open(&test.path(), Opening { key, new_log_id, checkpoint_every: 4, lock_wait, key_again: None })
                .unwrap(),
        );
        assert_eq!(format(&test), schema::FORMAT);
        assert_eq!(test.verify(), before, "{sql}");
    }
}

#[test]
fn a_text_in_the_chain_of_an_old_log_is_not_said_to_be_erased() {
    let test = old_log();
    let log = test.open();
    block_on(log.begin(begin("q3"))).unwrap();
    let everything = Erase::Principal("operator@atlas".to_owned());
    let erased = block_on(log.erase(everything, at("2026-05-04T10:00:01Z"), "admin".to_owned())).unwrap();
    assert_eq!(erased.questions, [QuestionId::new("q3")]);
    assert_eq!(erased.in_the_chain, [QuestionId::new("q1"), QuestionId::new("q2")]);
}

#[test]
fn a_new_log_is_built_like_one_that_grew() {
    let grown = old_log();
    drop(grown.open());
    let new = TestLog::new();
    drop(new.open());
    let shape = |test: &TestLog| -> Vec<(String, Option<String>)> {
        let shell = Connection::open(test.path()).unwrap();
        let mut statement = shell.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(shape(&grown), shape(&new));
}

fn bodies(test: &TestLog) -> Vec<String> {
    let shell = Connection::open(test.path()).unwrap();
    let mut statement = shell.prepare("SELECT body FROM record ORDER BY seq").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
