//! The audit log around a running service: signs of life, copies of checkpoints, a new key, a process that is killed.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;

use harness::{command, run, stderr, wait_until};
use jiff::Timestamp;
use service::{Service, hold_audit_log_whole};
use sightline_audit::{AuditKey, AuditReader, Check, FileCopy, Filter, PublicKey, Report, Verdict};
use sightline_server::process;

const QUESTION: &str = "top 3 hottest GPUs in the last hour";

/// Runs the service for one question, until a checkpoint was made, and ends it in order.
async fn ask_once(folder: &Path, copy: &Path) {
    let environment =
        [("SIGHTLINE_AUDIT_HEARTBEAT_SECONDS", "1"), ("SIGHTLINE_AUDIT_CHECKPOINT_COPY", copy.to_str().unwrap())];
    let mut service = Service::start_with(folder, &environment);
    let before = AuditReader::open(&folder.join("audit.db")).unwrap().checkpoints(0).unwrap().len();
    service.answer("viewer@atlas", QUESTION, worlds::END.parse::<Timestamp>().unwrap()).await;
    wait_until("a heartbeat closes the segment", || {
        AuditReader::open(&folder.join("audit.db")).unwrap().checkpoints(0).unwrap().len() > before
    });
    assert!(service.terminate().success(), "{}", service.log());
}

fn public_key(folder: &Path) -> PublicKey {
    AuditKey::load(&folder.join("audit.key")).unwrap().unwrap().public()
}

fn examine(folder: &Path, key: &PublicKey, copy: &Path) -> Report {
    let copies = [FileCopy::read(copy).unwrap()];
    AuditReader::open(&folder.join("audit.db")).unwrap().examine(&Check { key, copies: &copies, now: None }).unwrap()
}

/// What `doctor` says of the log and of its copies.
fn doctor(folder: &Path) -> Vec<String> {
    let output = run(folder, &["doctor"]);
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines()
        .filter(|line| line.contains(" audit log:") || line.contains(" audit copies:"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_leaves_signs_of_life_and_copies_that_show_an_older_log_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("checkpoints.jsonl");
    ask_once(folder, &copy).await;

    // The service started, lived and ended, in this order.
    let mut exported = Vec::new();
    AuditReader::open(&folder.join("audit.db")).unwrap().export(&mut exported).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    let at = |event: &str| exported.find(&format!("\"event\":\"{event}\"")).unwrap();
    assert!(at("service_started") < at("heartbeat") && at("heartbeat") < at("service_stopped"), "{exported}");
    let first_key = public_key(folder);
    let report = examine(folder, &first_key, &copy);
    assert!(matches!(report.verdict, Verdict::Whole { .. }) && report.compared >= 1, "{report:?}");

    let older = elsewhere.path().join("older.db");
    rusqlite::Connection::open(folder.join("audit.db"))
        .unwrap()
        .execute("VACUUM INTO ?1", [older.to_str().unwrap()])
        .unwrap();

    // A new key: the old one checks what came before and after, and the service goes on.
    let output =
        command(folder, &["audit", "rotate-key"]).env("SIGHTLINE_AUDIT_CHECKPOINT_COPY", &copy).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let second_key = public_key(folder);
    assert_ne!(first_key, second_key);
    assert!(String::from_utf8(output.stdout).unwrap().contains(&second_key.to_string()));
    ask_once(folder, &copy).await;
    for key in [first_key, second_key] {
        let report = examine(folder, &key, &copy);
        assert!(matches!(report.verdict, Verdict::Whole { .. }), "{report:?}");
    }
    let [log, copies] = doctor(folder).try_into().unwrap();
    assert!(log.starts_with("ok    audit log: the log is whole"), "{log}");
    // No file is named here: what fits are the checkpoints in the engine.
    assert!(copies.starts_with("ok    audit copies: ") && !copies.contains(" 0 "), "{copies}");

    // The older file is whole in itself; every second place knows better.
    for name in ["audit.db", "audit.db-wal", "audit.db-shm"] {
        let _absent = std::fs::remove_file(folder.join(name));
    }
    std::fs::copy(&older, folder.join("audit.db")).unwrap();
    let verdict = AuditReader::open(&folder.join("audit.db")).unwrap().verify(&first_key).unwrap();
    assert!(matches!(verdict, Verdict::Whole { .. }), "{verdict}");
    let put_back = examine(folder, &first_key, &copy).verdict.to_string();
    assert!(put_back.contains("the end was cut off, or an older file was put back"), "{put_back}");
    // Who trusts the new key needs no copy: the older file knows nothing of it.
    let verdict = AuditReader::open(&folder.join("audit.db")).unwrap().verify(&second_key).unwrap();
    assert!(matches!(verdict, Verdict::Broken(_)), "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_was_killed_is_known_to_be_gone() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path());
    service.answer("viewer@atlas", QUESTION, worlds::END.parse::<Timestamp>().unwrap()).await;
    let reader = AuditReader::open(&folder.path().join("audit.db")).unwrap();
    let page = reader.list(&Filter::default()).unwrap();
    let [question] = page.questions.as_slice() else { panic!("{page:?}") };
    let name = question.begin.record.detail.get("process").unwrap().clone();
    assert_eq!(process::alive(&name), Some(true));
    drop(service);
    assert_eq!(process::alive(&name), Some(false));
    hold_audit_log_whole(folder.path());
}
