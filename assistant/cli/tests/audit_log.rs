//! The audit log around a running service: signs of life, copies of checkpoints, a new key, a process that is killed.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;

use harness::{command, run, signal, stderr, wait_until};
use jiff::Timestamp;
use service::{Service, hold_audit_log_whole, problem};
use sightline_audit::{
    AuditKey, AuditReader, Check, FileCopy, Filter, PublicKey, Report, Settings, SqliteAudit, Verdict,
};
use sightline_model::audit::{AuditLog, Event, EventKind, EventOutcome};
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
    let output = command(folder, &["audit", "rotate-key", "--as", "admin"])
        .env("SIGHTLINE_AUDIT_CHECKPOINT_COPY", &copy)
        .output()
        .unwrap();
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

/// A log of seven events in segments of two, closed, with its copy.
async fn small_log(folder: &Path, copy: &Path) -> PublicKey {
    let key = AuditKey::load_or_create(&folder.join("audit.key"), [7; 32]).unwrap();
    let public = key.public();
    let mut settings = Settings::new(key, [9; 16], Box::new(|| Ok([5; 32])));
    settings.checkpoint_every = 2;
    settings.copies.push(Box::new(FileCopy::new(copy)));
    let log = SqliteAudit::open(&folder.join("audit.db"), settings).unwrap();
    for second in 0..7 {
        let event = Event {
            at: format!("2026-05-04T10:00:0{second}Z").parse().unwrap(),
            event: EventKind::Login,
            principal: Some("viewer@atlas".to_owned()),
            entrance: "http".to_owned(),
            outcome: EventOutcome::Done,
            detail: std::collections::BTreeMap::new(),
        };
        log.event(event).await.unwrap();
    }
    public
}

/// What `audit` prints, what it complains of, and its exit code.
fn audit(folder: &Path, copy: Option<&Path>, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut all = vec!["audit"];
    all.extend(arguments);
    let mut command = command(folder, &all);
    let output = command.envs(copy.map(|copy| ("SIGHTLINE_AUDIT_CHECKPOINT_COPY", copy))).output().unwrap();
    (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output), output.status.code())
}

#[test]
fn looking_into_a_log_that_is_not_there_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for look in
        [&["verify"][..], &["rotate-key"], &["list"], &["show", "q1"], &["export"], &["proof", "1"], &["public-key"]]
    {
        let (out, error, code) = audit(folder, None, &[look, &["--as", "auditor"]].concat());
        assert_eq!((out.as_str(), code), ("", Some(1)), "{look:?} {error}");
        assert!(error.contains("is not there") || error.contains("there is no such file"), "{error}");
        assert!(!folder.join("audit.db").exists() && !folder.join("audit.key").exists(), "{look:?}");
    }
}

#[tokio::test]
async fn a_verdict_says_what_it_was_compared_with_and_stands_in_the_log() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, copy) = (folder.path(), elsewhere.path().join("copy.jsonl"));
    small_log(folder, &copy).await;
    let verify = ["verify", "--as", "auditor", "--json"];
    let (out, error, code) = audit(folder, Some(&copy), &verify);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["whole"], &found["compared"], code), (&true.into(), &3.into(), Some(0)), "{out} {error}");

    // A copy that cannot be read is no copy that fits.
    let (out, _, code) = audit(folder, Some(&elsewhere.path().join("gone.jsonl")), &verify);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["whole"], code), (&serde_json::Value::Null, Some(1)), "{out}");
    assert!(found["verdict"].as_str().unwrap().starts_with("not proved: the log is whole"), "{out}");

    let (listed, ..) = audit(folder, None, &["list", "--as", "auditor", "--kind", "audit_verified"]);
    let whole: Vec<&str> = listed.lines().filter_map(|line| line.split("whole=").nth(1)).collect();
    assert_eq!(whole, ["unproved", "yes"], "{listed}");

    // Deleted, and begun anew with the same key by whoever wanted it forgotten.
    std::fs::remove_file(folder.join("audit.db")).unwrap();
    let (out, _, code) = audit(folder, Some(&copy), &["verify", "--as", "auditor"]);
    assert!(out.contains("is gone, and copy") && code == Some(1), "{out}");
    assert!(!folder.join("audit.db").exists());
    let key = AuditKey::load(&folder.join("audit.key")).unwrap().unwrap();
    drop(SqliteAudit::open(&folder.join("audit.db"), Settings::new(key, [1; 16], Box::new(|| Ok([5; 32])))).unwrap());
    let (out, _, code) = audit(folder, Some(&copy), &["verify", "--as", "auditor"]);
    assert!(out.contains("the log was replaced") && code == Some(1), "{out}");
}

#[tokio::test]
async fn a_log_that_takes_no_record_is_verified_all_the_same_and_nothing_else_of_it_is_shown() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, copy) = (folder.path(), elsewhere.path().join("copy.jsonl"));
    small_log(folder, &copy).await;
    let shell = rusqlite::Connection::open(folder.join("audit.db")).unwrap();
    let unrecorded = "this look could not be recorded: ";

    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (out, error, code) = audit(folder, Some(&copy), &["verify", "--as", "auditor"]);
    assert!(out.contains("the log is whole: 7 records") && out.contains(unrecorded), "{out} {error}");
    assert!(out.contains("is locked by another process") && code == Some(0), "{out}");
    let (out, error, code) = audit(folder, Some(&copy), &["list", "--as", "auditor"]);
    assert_eq!((out.as_str(), code), ("", Some(1)), "{error}");
    shell.execute_batch("ROLLBACK").unwrap();

    shell.execute("UPDATE head SET signature = zeroblob(64)", []).unwrap();
    let (out, _, code) = audit(folder, Some(&copy), &["verify", "--as", "auditor"]);
    assert!(out.contains("the head at record 7 was changed") && out.contains(unrecorded), "{out}");
    assert_eq!(code, Some(1));

    // What cannot be opened as a log at all has a verdict, too.
    drop(shell);
    std::fs::write(folder.join("audit.db"), "no database").unwrap();
    let (out, error, code) = audit(folder, Some(&copy), &["verify", "--as", "auditor"]);
    assert!(out.contains("is damaged or no audit log") && code == Some(1), "{out} {error}");
}

#[tokio::test]
async fn a_third_party_verifies_with_a_file_and_a_public_key() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, elsewhere) = (folder.path(), elsewhere.path());
    let copy = elsewhere.join("copy.jsonl");
    let key = small_log(folder, &copy).await.to_string();
    let (printed, ..) = audit(folder, None, &["public-key"]);
    assert_eq!(printed.trim(), key);
    let (proof, error, code) = audit(folder, None, &["proof", "3", "--as", "auditor"]);
    assert_eq!(code, Some(0), "{error}");
    let (_, error, code) = audit(folder, None, &["proof", "3", "--as", "operator@atlas"]);
    assert_eq!(code, Some(1), "{error}");

    // From here on with a copy of the log, a copy of its checkpoints and the key, in a folder with nothing else.
    let log = elsewhere.join("their copy.db");
    std::fs::copy(folder.join("audit.db"), &log).unwrap();
    let nothing = tempfile::tempdir().unwrap();
    let mut arguments = vec!["verify", "--public-key", &key, "--log", log.to_str().unwrap()];
    arguments.extend(["--copy", copy.to_str().unwrap()]);
    let (out, error, code) = audit(nothing.path(), None, &arguments);
    assert!(out.contains("the log is whole: ") && code == Some(0), "{out} {error}");
    let file = elsewhere.join("proof.json");
    std::fs::write(&file, &proof).unwrap();
    let check = |key: &str| audit(nothing.path(), None, &["check-proof", file.to_str().unwrap(), "--public-key", key]);
    let (out, error, code) = check(&key);
    assert!(out.starts_with("the proof holds: record 3 stands in segment 2") && code == Some(0), "{out} {error}");
    let stranger = AuditKey::from_secret([8; 32]).public().to_string();
    assert_eq!(check(&stranger).2, Some(1));
    std::fs::write(&file, proof.replace("viewer@atlas", "viewer@other")).unwrap();
    assert_eq!(check(&key).2, Some(1));
    assert_eq!(std::fs::read_dir(nothing.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn one_admin_at_a_time_changes_the_key() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let first = small_log(folder, &elsewhere.path().join("copy.jsonl")).await;
    let (_, error, code) = audit(folder, None, &["rotate-key", "--as", "auditor"]);
    assert!(error.contains("no rule lets role `auditor`") && code == Some(1), "{error}");
    let lock = std::fs::File::create(folder.join("audit.key.lock")).unwrap();
    lock.lock().unwrap();
    let (_, error, code) = audit(folder, None, &["rotate-key", "--as", "admin"]);
    assert!(error.contains("is being changed by another process") && code == Some(1), "{error}");
    assert_eq!(public_key(folder), first);
    drop(lock);
    // What a process left that was killed before the log took its key is in nobody's way.
    std::fs::write(folder.join("audit.key.next"), "half a key").unwrap();
    let (out, error, code) = audit(folder, None, &["rotate-key", "--as", "admin"]);
    assert!(out.contains(&public_key(folder).to_string()) && code == Some(0), "{error}");
    assert_ne!(public_key(folder), first);
    assert!(!folder.join("audit.key.next").exists());
    let (listed, ..) = audit(folder, None, &["list", "--as", "auditor", "--kind", "key_rotated"]);
    assert!(listed.lines().count() == 1 && listed.contains(" admin "), "{listed}");
    assert!(matches!(examine_alone(folder, &first), Verdict::Whole { .. }));
}

fn examine_alone(folder: &Path, key: &PublicKey) -> Verdict {
    AuditReader::open(&folder.join("audit.db")).unwrap().verify(key).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_fails_is_told_at_readyz_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("no such folder").join("copy.jsonl");
    let environment =
        [("SIGHTLINE_AUDIT_HEARTBEAT_SECONDS", "1"), ("SIGHTLINE_AUDIT_CHECKPOINT_COPY", copy.to_str().unwrap())];
    let mut service = Service::start_with(folder.path(), &environment);
    service.answer("viewer@atlas", QUESTION, worlds::END.parse::<Timestamp>().unwrap()).await;
    let mut told = String::new();
    for _ in 0..200 {
        let response = service.client.get(format!("{}/readyz", service.url)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let ready: serde_json::Value = response.json().await.unwrap();
        assert_eq!(ready["status"], "ready");
        told = ready["audit_copies"].as_str().unwrap().to_owned();
        if told != "ok" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(told.starts_with("1 of the places that checkpoints are copied to take none"), "{told}");
    assert!(service.terminate().success(), "{}", service.log());
    let (listed, ..) = audit(folder.path(), None, &["list", "--as", "auditor", "--kind", "copy_failed"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_while_the_log_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path());
    let end = worlds::END.parse::<Timestamp>().unwrap();
    service.answer("viewer@atlas", QUESTION, end).await;
    // The engine is stopped: whoever asked it anything would wait for it, and not be told of the log.
    let engine = service.engine_pid();
    let shell = rusqlite::Connection::open(folder.path().join("audit.db")).unwrap();
    shell.execute_batch("BEGIN EXCLUSIVE").unwrap();
    signal(engine, "STOP");
    let body = serde_json::json!({ "question": QUESTION, "as_of": end });
    let asked = service.chat("viewer@atlas", &body).send().await.unwrap();
    let called = service
        .call("viewer@atlas", "job_correlation", &serde_json::json!({ "job": "J4711" }), end)
        .send()
        .await
        .unwrap();
    signal(engine, "CONT");
    for response in [asked, called] {
        let detail = problem(response, 503).await;
        assert!(detail.contains("the audit log cannot be written"), "{detail}");
    }
    let output = run(folder.path(), &["ask", "--as", "operator@atlas", "--as-of", worlds::END, QUESTION]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{}", stderr(&output));
    assert!(stderr(&output).contains("locked by another process"), "{}", stderr(&output));
    shell.execute_batch("ROLLBACK").unwrap();
    service.answer("viewer@atlas", QUESTION, end).await;
    assert!(service.terminate().success(), "{}", service.log());
    hold_audit_log_whole(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_while_the_log_is_away_and_the_service_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path());
    let end = worlds::END.parse::<Timestamp>().unwrap();
    service.answer("viewer@atlas", QUESTION, end).await;
    let (log, away) = (folder.path().join("audit.db"), folder.path().join("away.db"));
    std::fs::rename(&log, &away).unwrap();
    // Another file under its name is not the log.
    for replaced in [false, true] {
        if replaced {
            std::fs::copy(&away, &log).unwrap();
        }
        let body = serde_json::json!({ "question": QUESTION, "as_of": end });
        let asked = service.chat("viewer@atlas", &body).send().await.unwrap();
        let detail = problem(asked, 503).await;
        assert!(detail.contains("the audit log cannot be written"), "{detail}");
        let response = service.client.get(format!("{}/readyz", service.url)).send().await.unwrap();
        assert_eq!(response.status(), 503);
        let ready: serde_json::Value = response.json().await.unwrap();
        let told = ready["audit"].as_str().unwrap();
        assert!(told.contains("it takes no record"), "{told}");
        // Everybody may ask whether the service is ready; which file is at fault is for its operator.
        assert!(!told.contains('/'), "{told}");
        assert!(service.log().contains("was moved or replaced while it was open"), "{}", service.log());
    }
    std::fs::rename(&away, &log).unwrap();
    service.answer("viewer@atlas", QUESTION, end).await;
    assert!(service.terminate().success(), "{}", service.log());
    hold_audit_log_whole(folder.path());
}
