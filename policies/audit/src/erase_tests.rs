use std::collections::BTreeMap;
use std::fs;

use futures::executor::block_on;
use serde_json::{Value, json};
use sightline_model::QuestionId;
use sightline_model::audit::{AuditLog, Complete, DecisionRecord};

use crate::test_log::{TestLog, ask, at, begin, call, complete};
use crate::{Erase, Filter, Search, SqliteAudit, Verdict, Wanted};

const NOW: &str = "2026-05-04T10:00:01Z";

fn erase(log: &SqliteAudit, ids: &[&str]) -> Vec<String> {
    let ids = ids.iter().map(|id| QuestionId::new(*id)).collect();
    let erased = block_on(log.erase(Erase::Questions(ids), at(NOW), "admin".to_owned())).unwrap();
    assert!(erased.in_the_chain.is_empty());
    erased.questions.iter().map(|id| id.as_str().to_owned()).collect()
}

#[test]
fn an_erased_question_stays_provable_and_its_text_is_gone() {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q1");
    let secret = "the wording that is to be forgotten";
    block_on(log.begin(sightline_model::audit::Begin { question: secret.to_owned(), ..begin("q2") })).unwrap();
    block_on(log.call(call("q2"))).unwrap();
    block_on(log.complete(complete("q2", "answered"))).unwrap();
    assert_eq!(erase(&log, &["q2", "q9"]), ["q2"]);

    let file = test.reader().question(&QuestionId::new("q2")).unwrap().unwrap();
    assert_eq!((file.begin.record.question.as_str(), file.begin.erased), ("(erased)", true));
    let [call] = file.calls.as_slice() else { panic!("{:?}", file.calls) };
    assert!(call.erased && call.record.params.is_empty() && call.record.arguments == Value::Null);
    // What was read and what came of it is no text of the asker.
    assert_eq!(call.record.tables, ["metrics"]);
    let other = test.reader().question(&QuestionId::new("q1")).unwrap().unwrap();
    assert_eq!((other.begin.record, other.begin.erased), (begin("q1"), false));
    assert_eq!(test.verify(), Verdict::Whole { records: 7 });
    drop(log);
    for path in [test.path(), test.path().with_extension("db-wal")] {
        let bytes = fs::read(path).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[test]
fn what_a_refusal_quotes_of_the_question_is_erased_with_it() {
    let test = TestLog::new();
    let log = test.open();
    let secret = "zyxwv-secret-metric";
    block_on(log.begin(begin("q1"))).unwrap();
    let mut refused = call("q1");
    refused.decision = DecisionRecord { allowed: false, rules: Vec::new(), reasons: vec![format!("no `{secret}`")] };
    refused.error = Some(format!("there is no `{secret}`"));
    block_on(log.call(refused.clone())).unwrap();
    let ended = Complete { error: Some(format!("failed for `{secret}`")), ..complete("q1", "error") };
    block_on(log.complete(ended.clone())).unwrap();
    // Until then it reads as it was written, everywhere.
    let file = || test.reader().question(&QuestionId::new("q1")).unwrap().unwrap();
    let (call, end) = (file().calls.remove(0), file().complete.unwrap());
    assert_eq!((&call.record, &end.record, call.erased), (&refused, &ended, false));
    let listed = || test.reader().search(&Search::default()).unwrap().entries.remove(0).error;
    assert_eq!(listed(), ended.error);
    assert_eq!(test.reader().list(&Filter::default()).unwrap().questions[0].complete, Some(ended));

    assert_eq!(erase(&log, &["q1"]), ["q1"]);
    let (call, end) = (file().calls.remove(0), file().complete.unwrap());
    assert!(call.erased && end.erased && !call.record.decision.allowed);
    assert_eq!((call.record.error, call.record.decision.reasons, end.record.error), (None, Vec::new(), None));
    let questions = Search { wanted: Wanted::Questions, ..Search::default() };
    assert_eq!(test.reader().search(&questions).unwrap().entries[0].error, None);
    assert_eq!(test.verify(), Verdict::Whole { records: 4 });
    drop(log);
    for path in [test.path(), test.path().with_extension("db-wal")] {
        let bytes = fs::read(path).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[test]
fn everything_of_a_principal_is_erased_once() {
    let test = TestLog::with_questions(3);
    let log = test.open();
    let everything = || Erase::Principal("operator@atlas".to_owned());
    let erased = block_on(log.erase(everything(), at(NOW), "admin".to_owned())).unwrap();
    assert_eq!(erased.questions.len(), 3);
    assert_eq!(test.verify(), Verdict::Whole { records: 10 });
    // Nothing is left: no second event.
    assert!(block_on(log.erase(everything(), at(NOW), "admin".to_owned())).unwrap().questions.is_empty());
    assert_eq!(test.verify(), Verdict::Whole { records: 10 });
    let texts = Filter { text: Some("slow".to_owned()), ..Filter::default() };
    assert!(test.reader().list(&texts).unwrap().questions.is_empty());
    assert_eq!(test.reader().list(&Filter::default()).unwrap().questions.len(), 3);
}

#[test]
fn a_text_that_comes_after_the_erasure_is_not_covered_by_it() {
    let test = TestLog::new();
    let log = test.open();
    block_on(log.begin(begin("q1"))).unwrap();
    erase(&log, &["q1"]);
    block_on(log.call(call("q1"))).unwrap();
    assert_eq!(test.verify(), Verdict::Whole { records: 3 });
    test.tamper("DELETE FROM private WHERE seq = 3");
    assert_eq!(
        test.verify().to_string(),
        "the log is broken at record 3: its question or arguments are gone, and no event says that they were erased"
    );
}

#[test]
fn an_event_of_another_question_does_not_cover_a_text_that_was_taken_out() {
    let test = TestLog::with_questions(2);
    erase(&test.open(), &["q1"]);
    assert_eq!(test.verify(), Verdict::Whole { records: 7 });
    test.tamper("DELETE FROM private WHERE seq = 1");
    assert!(matches!(test.verify(), Verdict::Broken(broken) if broken.seq == Some(1)));
}

#[test]
fn without_randomness_for_a_salt_nothing_is_recorded_as_begun() {
    let test = TestLog::new();
    let settings = crate::Settings { salts: Box::new(|| Err("no entropy".to_owned())), ..TestLog::settings() };
    let log = SqliteAudit::open(&test.path(), settings).unwrap();
    assert_eq!(
        block_on(log.begin(begin("q1"))).unwrap_err().to_string(),
        "the audit log cannot be written: the record cannot be written: no randomness for its salt: no entropy"
    );
    drop(log);
    assert_eq!(test.verify(), Verdict::Whole { records: 0 });
}

#[test]
fn two_questions_of_the_same_words_have_different_commitments() {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, "q1");
    ask(&log, "q2");
    let mut out = Vec::new();
    test.reader().export(&mut out).unwrap();
    let commitments: BTreeMap<String, Value> = std::str::from_utf8(&out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["text"] == json!({ "question": begin("q1").question }))
        .map(|line| (line["record"]["commitment"].to_string(), line))
        .collect();
    assert_eq!(commitments.len(), 2);
}
