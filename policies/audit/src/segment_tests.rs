//! Segments, keys, copies and retention.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use jiff::Timestamp;
use sightline_model::audit::{AuditLog, Event, EventKind, EventOutcome};

use crate::test_log::{TestLog, ask, at, begin};
use crate::{
    AuditKey, AuditReader, Check, Checkpoint, CheckpointCopy, Copied, FileCopy, HEARTBEAT_SECONDS, Hex, PublicKey,
    Report, Settings, SqliteAudit, Verdict,
};

fn event(kind: EventKind, time: &str) -> Event {
    Event {
        at: at(time),
        event: kind,
        principal: None,
        entrance: "service".to_owned(),
        outcome: EventOutcome::Done,
        detail: BTreeMap::from([(HEARTBEAT_SECONDS.to_owned(), "60".to_owned())]),
    }
}

fn examine(test: &TestLog, copies: &[Copied], now: Option<Timestamp>) -> Report {
    test.reader().examine(&Check { key: &TestLog::public_key(), copies, now }).unwrap()
}

fn notes(report: &Report) -> Vec<String> {
    report.notes.iter().map(|note| format!("{}: {}", note.seq.unwrap_or_default(), note.what)).collect()
}

/// Checkpoints in memory, and whether the place takes any.
#[derive(Clone, Default)]
struct Place(Arc<Mutex<(Vec<Checkpoint>, Option<String>)>>);

impl Place {
    fn copied(&self) -> Copied {
        Copied { name: "place".to_owned(), checkpoints: self.0.lock().unwrap().0.clone(), unreadable: 0 }
    }

    fn fail(&self, what: Option<&str>) {
        self.0.lock().unwrap().1 = what.map(str::to_owned);
    }
}

impl CheckpointCopy for Place {
    fn name(&self) -> &str {
        "place"
    }

    fn newest(&mut self, _log_id: &Hex<16>) -> Result<Option<u64>, String> {
        Ok(self.0.lock().unwrap().0.last().map(|checkpoint| checkpoint.segment))
    }

    fn put(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        let mut place = self.0.lock().unwrap();
        match &place.1 {
            Some(what) => Err(what.clone()),
            None => {
                place.0.push(checkpoint.clone());
                Ok(())
            }
        }
    }
}

fn open_with(test: &TestLog, copies: Vec<Box<dyn CheckpointCopy>>) -> SqliteAudit {
    SqliteAudit::open(&test.path(), Settings { copies, ..TestLog::settings() }).unwrap()
}

#[test]
fn a_full_segment_is_closed_and_a_heartbeat_closes_one_that_is_not() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    ask(&log, "q1");
    block_on(log.event(event(EventKind::Heartbeat, "2026-05-04T10:00:01Z"))).unwrap();
    block_on(log.event(event(EventKind::Heartbeat, "2026-05-04T10:01:01Z"))).unwrap();
    block_on(log.begin(begin("q2"))).unwrap();
    drop(log);
    let segments: Vec<_> = place.copied().checkpoints.iter().map(|it| (it.segment, it.first, it.last)).collect();
    // The second heartbeat stands alone. The question after it has a clock from before it, which is an event.
    assert_eq!(segments, [(1, 1, 4)]);
    assert!(place.copied().checkpoints.iter().all(Checkpoint::is_signed));
    assert_eq!(test.verify(), Verdict::Whole { records: 7 });
}

#[test]
fn a_checkpoint_survives_its_json_and_any_change_of_it_shows() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    ask(&log, "q1");
    ask(&log, "q2");
    drop(log);
    let checkpoint = place.copied().checkpoints[0].clone();
    let text = serde_json::to_value(&checkpoint).unwrap();
    assert_eq!(serde_json::from_value::<Checkpoint>(text.clone()).unwrap(), checkpoint);
    for (field, value) in text.as_object().unwrap() {
        let mut changed = text.clone();
        changed[field] = match value {
            serde_json::Value::Number(number) => (number.as_u64().unwrap() + 1).into(),
            _ if field == "at" => "2026-05-04T10:00:00.000001Z".into(),
            _ if field == "key" => AuditKey::from_secret([8; 32]).public().to_string().into(),
            other => {
                let text = other.as_str().unwrap();
                let flipped = if text.starts_with('0') { "1" } else { "0" };
                format!("{flipped}{}", text.get(1..).unwrap()).into()
            }
        };
        assert!(!serde_json::from_value::<Checkpoint>(changed).unwrap().is_signed(), "{field}");
    }
}

#[test]
fn a_tail_that_was_cut_off_with_its_checkpoints_shows_against_a_copy() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    ask(&log, "q1");
    ask(&log, "q2");
    let older = TestLog::new();
    // A copy of the file as an administrator makes it, whole in itself.
    rusqlite::Connection::open(test.path())
        .unwrap()
        .execute("VACUUM INTO ?1", [older.path().to_str().unwrap()])
        .unwrap();
    ask(&log, "q3");
    ask(&log, "q4");
    drop(log);
    let report = examine(&test, &[place.copied()], None);
    assert_eq!((report.verdict, report.checkpoints, report.compared), (Verdict::Whole { records: 12 }, 3, 3));
    assert_eq!(older.verify(), Verdict::Whole { records: 6 });
    let cut = "the log is broken at record 5: the end was cut off, or an older file was put back: copy `place` holds segment 2 up to record 8, signed for 2026-05-04T10:00:00.5Z";
    assert_eq!(examine(&older, &[place.copied()], None).verdict.to_string(), cut);

    // Written on with other questions, by whoever has the key.
    let log = older.open();
    ask(&log, "other");
    ask(&log, "another");
    drop(log);
    assert_eq!(older.verify(), Verdict::Whole { records: 12 });
    assert_eq!(
        examine(&older, &[place.copied()], None).verdict.to_string(),
        "the log is broken at record 5: segment 2 was signed with other records on 2026-05-04T10:00:00.5Z, as copy `place` holds: an older file was put back and written on"
    );
}

#[test]
fn a_file_that_was_replaced_by_another_log_shows_against_a_copy() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    ask(&log, "q1");
    ask(&log, "q2");
    drop(log);
    let new = TestLog::new();
    let settings = Settings { new_log_id: [1; 16], ..TestLog::settings() };
    ask(&SqliteAudit::open(&new.path(), settings).unwrap(), "q1");
    assert_eq!(new.verify(), Verdict::Whole { records: 3 });
    assert_eq!(
        examine(&new, &[place.copied()], None).verdict.to_string(),
        "the log is broken: the log was replaced: copy `place` holds segment 1 of log 09090909090909090909090909090909, which the same key signed on 2026-05-04T10:00:00.5Z; if that log was moved away on purpose, move the copy away with it"
    );
}

#[test]
fn a_log_that_was_replaced_shows_although_the_new_one_writes_to_the_same_copy() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    ask(&log, "q1");
    ask(&log, "q2");
    drop(log);
    let new = TestLog::new();
    let settings = Settings { new_log_id: [1; 16], copies: vec![Box::new(place.clone())], ..TestLog::settings() };
    let log = SqliteAudit::open(&new.path(), settings).unwrap();
    ask(&log, "q1");
    ask(&log, "q2");
    drop(log);
    let verdict = examine(&new, &[place.copied()], None).verdict.to_string();
    assert!(verdict.contains("the log was replaced"), "{verdict}");
}

#[test]
fn a_copy_that_nothing_was_compared_with_proves_nothing_and_says_so() {
    let test = TestLog::with_questions(2);
    let unproved = "copy `place` holds no checkpoint of this log, so it does not show whether the end was cut off or the log replaced";
    let report = examine(&test, &[Place::default().copied()], None);
    assert_eq!((report.verdict, report.unproved), (Verdict::Whole { records: 6 }, vec![unproved.to_owned()]));
    // Deleted with its key, and begun anew by a service that makes both: the copy knows another key and another log.
    let (other, place) = (TestLog::new(), Place::default());
    let settings = Settings {
        key: AuditKey::from_secret([8; 32]),
        new_log_id: [1; 16],
        copies: vec![Box::new(place.clone())],
        ..TestLog::settings()
    };
    let log = SqliteAudit::open(&other.path(), settings).unwrap();
    ask(&log, "q1");
    ask(&log, "q2");
    drop(log);
    let report = examine(&test, &[place.copied()], None);
    assert_eq!(
        (report.verdict.clone(), report.unproved.clone()),
        (Verdict::Whole { records: 6 }, vec![unproved.to_owned()])
    );
    assert_eq!(notes(&report), ["0: copy `place` also holds 1 checkpoints of other logs and other keys"]);
    // Before the first checkpoint there is nothing that a copy could hold.
    let new = TestLog::with_questions(1);
    assert!(examine(&new, &[Place::default().copied()], None).unproved.is_empty());
}

#[test]
fn one_service_does_not_speak_for_another() {
    let test = TestLog::new();
    let log = test.open();
    let of = |process: &str, kind: EventKind, time: &str| {
        let mut event = event(kind, time);
        event.detail.insert("process".to_owned(), process.to_owned());
        event
    };
    for (process, kind, time) in [
        ("a", EventKind::ServiceStarted, "2026-05-04T10:00:00Z"),
        ("b", EventKind::ServiceStarted, "2026-05-04T10:00:10Z"),
        ("b", EventKind::Heartbeat, "2026-05-04T10:01:10Z"),
        ("b", EventKind::Heartbeat, "2026-05-04T10:02:10Z"),
        ("b", EventKind::Heartbeat, "2026-05-04T10:03:10Z"),
        ("b", EventKind::ServiceStopped, "2026-05-04T10:03:20Z"),
    ] {
        block_on(log.event(of(process, kind, time))).unwrap();
    }
    drop(log);
    let report = examine(&test, &[], Some(at("2026-05-04T12:00:00Z")));
    assert_eq!(
        notes(&report),
        [
            "5: no sign of life of the service (process a) from 2026-05-04T10:00:00Z to 2026-05-04T10:03:10Z, although it had not ended in order: it was killed or hung, or its records were kept from the log"
        ]
    );
}

#[test]
fn whoever_can_write_a_copy_alone_cannot_make_a_whole_log_look_broken() {
    let test = TestLog::with_questions(2);
    let place = Place::default();
    let other = TestLog::new();
    let settings =
        Settings { key: AuditKey::from_secret([8; 32]), copies: vec![Box::new(place.clone())], ..TestLog::settings() };
    let log = SqliteAudit::open(&other.path(), settings).unwrap();
    ask(&log, "forged");
    ask(&log, "forged too");
    drop(log);
    let report = examine(&test, &[Copied { unreadable: 2, ..place.copied() }], None);
    assert_eq!(report.verdict, Verdict::Whole { records: 6 });
    assert_eq!(
        notes(&report),
        [
            "0: copy `place` holds 2 entries that are no checkpoint",
            "0: copy `place` holds a segment 1 that no key of this log signed"
        ]
    );
}

#[test]
fn a_copy_that_fails_is_an_event_and_is_made_up_for_later() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    place.fail(Some("the other machine is down"));
    ask(&log, "q1");
    ask(&log, "q2");
    until("the copy was tried", || !log.copy_faults().is_empty());
    assert_eq!(log.copy_faults(), ["place: the other machine is down"]);
    place.fail(None);
    ask(&log, "q3");
    until("it is made up for", || log.copy_faults().is_empty());
    drop(log);
    let segments: Vec<u64> = place.copied().checkpoints.iter().map(|it| it.segment).collect();
    assert_eq!(segments, [1, 2]);
    // Nine records of questions, and one that a copy failed.
    assert_eq!(test.verify(), Verdict::Whole { records: 10 });
    let mut out = Vec::new();
    test.reader().export(&mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("the other machine is down"));
}

/// Waits for what another thread does.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// A place that takes nothing and never returns, until the test lets go of it.
struct Hanging(std::sync::mpsc::Receiver<()>);

impl CheckpointCopy for Hanging {
    fn name(&self) -> &str {
        "hanging"
    }

    fn newest(&mut self, _log_id: &Hex<16>) -> Result<Option<u64>, String> {
        Ok(Some(0))
    }

    fn put(&mut self, _checkpoint: &Checkpoint) -> Result<(), String> {
        let _gone = self.0.recv();
        Ok(())
    }
}

#[test]
fn a_place_that_hangs_holds_up_no_record_and_is_told_of() {
    let test = TestLog::new();
    let (free, hung) = std::sync::mpsc::channel();
    let log = open_with(&test, vec![Box::new(Hanging(hung))]);
    // However many checkpoints are made at a time, it has had no time yet.
    for index in 0..5 {
        ask(&log, &format!("q{index}"));
    }
    assert!(log.copy_faults().is_empty(), "{:?}", log.copy_faults());
    for minute in 1..4 {
        let at = format!("2026-05-04T10:0{minute}:00Z");
        block_on(log.event(event(EventKind::ServiceStopped, &at))).unwrap();
    }
    until("it is told of", || !log.copy_faults().is_empty());
    assert_eq!(log.copy_faults(), ["hanging: it hangs: it has taken no checkpoint after segment 0"]);
    drop(free);
    drop(log);
    let mut out = Vec::new();
    test.reader().export(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().matches("it hangs").count(), 1);
}

#[test]
fn a_file_that_missed_checkpoints_of_an_earlier_process_gets_them_at_the_next_start() {
    let test = TestLog::with_questions(4);
    let path = test.path().with_extension("jsonl");
    for _ in 0..2 {
        drop(open_with(&test, vec![Box::new(FileCopy::new(&path))]));
        let segments: Vec<u64> = FileCopy::read(&path).unwrap().checkpoints.iter().map(|it| it.segment).collect();
        assert_eq!(segments, [1, 2, 3]);
    }
}

#[test]
fn a_file_of_copies_is_private_and_a_line_that_was_cut_short_is_passed_over() {
    let test = TestLog::new();
    let path = test.path().with_extension("jsonl");
    let log = open_with(&test, vec![Box::new(FileCopy::new(&path))]);
    ask(&log, "q1");
    ask(&log, "q2");
    until("the first is copied", || FileCopy::read(&path).is_ok_and(|copied| copied.checkpoints.len() == 1));
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.get(..whole.len() - 20).unwrap()).unwrap();
    ask(&log, "q3");
    drop(log);
    let copied = FileCopy::read(&path).unwrap();
    assert_eq!((copied.checkpoints.len(), copied.unreadable), (1, 1));
    assert_eq!(copied.checkpoints[0].segment, 2);
    assert_eq!(mode(&path), 0o600);
    let missing = test.path().with_extension("nothing");
    assert!(FileCopy::read(&missing).unwrap_err().to_string().contains("No such file"));
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn key(byte: u8) -> AuditKey {
    AuditKey::from_secret([byte; 32])
}

fn rotate(log: &SqliteAudit, byte: u8) {
    block_on(log.rotate(key(byte), at("2026-05-04T10:00:00.6Z"), "admin".to_owned())).unwrap();
}

/// A log of three keys: 7, 8 and 9.
fn rotated() -> TestLog {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q1");
    rotate(&log, 8);
    ask(&log, "q2");
    ask(&log, "q3");
    rotate(&log, 9);
    drop(log);
    let settings = Settings { key: key(9), ..TestLog::settings() };
    ask(&SqliteAudit::open(&test.path(), settings).unwrap(), "q4");
    test
}

#[test]
fn whoever_trusts_any_of_a_logs_keys_can_check_all_of_it() {
    let test = rotated();
    for byte in [7, 8, 9] {
        let verdict = test.reader().verify(&key(byte).public()).unwrap();
        assert_eq!(verdict, Verdict::Whole { records: 14 }, "{byte}");
    }
    let stranger: PublicKey = key(1).public();
    let Verdict::Broken(broken) = test.reader().verify(&stranger).unwrap() else { panic!("whole") };
    assert!(broken.what.ends_with(&format!("and {} is none of them", stranger.id())), "{}", broken.what);
}

#[test]
fn an_old_key_opens_the_log_no_more_and_a_statement_that_was_changed_is_found() {
    let test = rotated();
    let Err(error) = SqliteAudit::open(&test.path(), TestLog::settings()) else { panic!("opened") };
    assert!(error.to_string().contains("was signed with key"), "{error}");
    for sql in [
        "UPDATE rotation SET seq = seq + 1 WHERE number = 1",
        "UPDATE rotation SET new_signature = zeroblob(64) WHERE number = 2",
        "UPDATE rotation SET old_signature = new_signature WHERE number = 2",
        "DELETE FROM rotation WHERE number = 1",
        "DELETE FROM rotation WHERE number = 2",
        "DELETE FROM rotation",
        "INSERT INTO rotation SELECT 3, seq + 1, hash, new_key, old_key, new_signature, old_signature FROM rotation WHERE number = 2",
    ] {
        let test = rotated();
        test.tamper(sql);
        for byte in [7, 8, 9] {
            let verdict = test.reader().verify(&key(byte).public()).unwrap();
            assert!(matches!(verdict, Verdict::Broken(_)), "{sql} {byte}");
        }
    }
}

#[test]
fn a_key_is_not_replaced_by_itself() {
    let test = TestLog::with_questions(1);
    let log = test.open();
    let again = block_on(log.rotate(key(7), at("2026-05-04T10:00:00.6Z"), "admin".to_owned())).unwrap_err();
    assert!(again.to_string().ends_with("signs the log already; make a new key"), "{again}");
    assert_eq!(test.verify(), Verdict::Whole { records: 3 });
}

fn retain(log: &SqliteAudit, until: &str) -> Option<(u64, u64)> {
    let now = at("2026-05-04T10:00:00.7Z");
    let retained = block_on(log.retain(at(until), now, "admin".to_owned())).unwrap();
    retained.map(|it| (it.first, it.last))
}

#[test]
fn retention_takes_out_whole_segments_and_the_log_stays_whole() {
    let (test, place) = (TestLog::new(), Place::default());
    let log = open_with(&test, vec![Box::new(place.clone())]);
    for index in 0..3 {
        ask(&log, &format!("q{index}"));
    }
    assert_eq!(retain(&log, "2026-05-04T10:00:00Z"), None);
    assert_eq!(retain(&log, "2026-05-04T10:00:00.6Z"), Some((1, 8)));
    ask(&log, "q9");
    assert_eq!(test.verify(), Verdict::Whole { records: 5 });
    let report = examine(&test, &[place.copied()], None);
    assert_eq!(report.verdict, Verdict::Whole { records: 5 });
    assert_eq!(notes(&report), ["0: records 1 to 8 were taken out by retention"]);
    assert_eq!(test.reader().list(&crate::Filter::default()).unwrap().questions.len(), 1);
    // Again, over the event of the first time.
    assert_eq!(retain(&log, "2026-05-04T10:00:00.75Z"), Some((9, 10)));
    drop(log);
    assert_eq!(test.verify(), Verdict::Whole { records: 4 });
    ask(&test.open(), "q10");
    assert_eq!(test.verify(), Verdict::Whole { records: 7 });
}

#[test]
fn more_than_retention_took_out_is_found() {
    let test = TestLog::with_questions(4);
    let log = test.open();
    assert_eq!(retain(&log, "2026-05-04T10:00:00.6Z"), Some((1, 12)));
    for index in 4..8 {
        ask(&log, &format!("q{index}"));
    }
    drop(log);
    assert_eq!(test.verify(), Verdict::Whole { records: 13 });
    test.tamper("DELETE FROM record WHERE seq <= 13; DELETE FROM private WHERE seq <= 13");
    assert_eq!(test.verify().to_string(), "the log is broken at record 1: records 1 to 13 are missing");
    test.tamper("DELETE FROM record WHERE seq <= 15; DELETE FROM private WHERE seq <= 15");
    assert_eq!(test.verify().to_string(), "the log is broken at record 1: records 1 to 15 are missing");
}

#[test]
fn silence_and_a_clock_that_went_back_are_notes_and_break_nothing() {
    let test = TestLog::new();
    let log = test.open();
    for (kind, time) in [
        (EventKind::ServiceStarted, "2026-05-04T10:00:00Z"),
        (EventKind::Heartbeat, "2026-05-04T10:01:00Z"),
        (EventKind::Heartbeat, "2026-05-04T10:05:00Z"),
        (EventKind::ServiceStopped, "2026-05-04T10:05:10Z"),
        (EventKind::ServiceStarted, "2026-05-04T12:00:00Z"),
        (EventKind::Heartbeat, "2026-05-04T11:00:00Z"),
    ] {
        block_on(log.event(event(kind, time))).unwrap();
    }
    drop(log);
    let report = examine(&test, &[], Some(at("2026-05-04T11:30:00Z")));
    assert_eq!(report.verdict, Verdict::Whole { records: 7 });
    insta::assert_snapshot!("notes", notes(&report).join("\n"));
}

#[test]
fn what_was_cut_off_or_broken_is_no_silence() {
    let test = TestLog::new();
    let log = test.open();
    for time in ["2026-05-04T10:00:00Z", "2026-05-04T10:01:00Z", "2026-05-04T10:02:00Z"] {
        block_on(log.event(event(EventKind::Heartbeat, time))).unwrap();
    }
    drop(log);
    let later = Some(at("2026-05-04T11:30:00Z"));
    assert_eq!(notes(&examine(&test, &[], later)).len(), 1);
    for change in ["UPDATE record SET hash = zeroblob(32) WHERE seq = 2", "DELETE FROM record WHERE seq = 3"] {
        test.tamper(change);
        let report = examine(&test, &[], later);
        assert!(matches!(report.verdict, Verdict::Broken(_)), "{change}");
        assert_eq!(notes(&report), Vec::<String>::new(), "{change}");
    }
}

#[test]
fn a_record_from_before_the_last_is_kept_with_an_event_beside_it() {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q1");
    let earlier = |id: &str| sightline_model::audit::Begin { at: at("2026-05-04T09:00:00Z"), ..begin(id) };
    assert_eq!(block_on(log.begin(earlier("q2"))).unwrap().seq, Some(4));
    // Once: the new time is what counts from there on.
    assert_eq!(block_on(log.begin(earlier("q3"))).unwrap().seq, Some(6));
    drop(log);
    // Another process sees it in the file alone.
    assert_eq!(block_on(test.open().begin(begin("q4"))).unwrap().seq, Some(7));
    let again = sightline_model::audit::Begin { at: at("2026-05-04T08:00:00Z"), ..begin("q5") };
    assert_eq!(block_on(test.open().begin(again)).unwrap().seq, Some(8));
    assert_eq!(test.verify(), Verdict::Whole { records: 9 });
    let reader = AuditReader::open(&test.path()).unwrap();
    let mut out = Vec::new();
    reader.export(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().matches("clock_went_back").count(), 2);
}

#[test]
fn a_process_that_runs_while_another_changes_the_key_goes_on_with_the_new_one() {
    let test = TestLog::new();
    let again = |id: &str| Some(key(8)).filter(|key| key.public().id() == id);
    let settings = Settings { key_again: Some(Box::new(again)), ..TestLog::settings() };
    let (running, without) = (SqliteAudit::open(&test.path(), settings).unwrap(), test.open());
    ask(&running, "q1");
    rotate(&test.open(), 8);
    ask(&running, "q2");
    let error = block_on(without.begin(begin("q3"))).unwrap_err().to_string();
    assert!(error.contains("was signed with key"), "{error}");
    assert_eq!(test.verify(), Verdict::Whole { records: 7 });
}

#[test]
fn a_key_that_was_put_in_without_a_statement_of_the_old_one_is_not_taken() {
    let test = TestLog::new();
    let again = |id: &str| Some(key(8)).filter(|key| key.public().id() == id);
    let settings = Settings { key_again: Some(Box::new(again)), ..TestLog::settings() };
    let running = SqliteAudit::open(&test.path(), settings).unwrap();
    ask(&running, "q1");
    test.tamper(&format!("UPDATE head SET key_id = '{}'", key(8).public().id()));
    assert!(block_on(running.begin(begin("q2"))).is_err());
}
