//! Several processes on one log, and processes that are killed. The children are this test binary, started again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use futures::executor::block_on;
use sightline_model::QuestionId;
use sightline_model::audit::AuditLog;

use crate::test_log::{TestLog, ask, at, begin, call};
use crate::{AuditReader, Filter, Liveness, Settings, SqliteAudit, Verdict};

const LOG: &str = "AUDIT_TEST_LOG";
const NAME: &str = "AUDIT_TEST_NAME";
const QUESTIONS: &str = "AUDIT_TEST_QUESTIONS";

#[expect(clippy::disallowed_methods, reason = "how the parent tells its child what to do")]
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What a child does: asks so many whole questions and says each when it is durable, then begins one and hangs.
#[test]
#[ignore = "started by the other tests as a process of its own"]
fn child() {
    let (Some(path), Some(name)) = (told(LOG), told(NAME)) else { return };
    let settings = Settings { process: Some(name.clone()), ..TestLog::settings() };
    let log = SqliteAudit::open(Path::new(&path), settings).unwrap();
    let questions: Option<u64> = told(QUESTIONS).and_then(|count| count.parse().ok());
    for index in 0..questions.unwrap_or(u64::MAX) {
        let id = format!("{name}-{index}");
        ask(&log, &id);
        println!("asked {id}");
    }
    let id = format!("{name}-open");
    block_on(log.begin(begin(&id))).unwrap();
    block_on(log.call(call(&id))).unwrap();
    println!("begun {id}");
    loop {
        std::thread::park();
    }
}

fn start(test: &TestLog, name: &str, questions: Option<u64>) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process_tests::child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(LOG, test.path()).env(NAME, name).stdout(Stdio::piped()).stderr(Stdio::null());
    command.envs(questions.map(|count| (QUESTIONS, count.to_string())));
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.filter_map(|line| {
        // The harness's own words stand before the first line.
        let (_, id) = line.split_once("asked ").or_else(|| line.split_once("begun "))?;
        Some(id.to_owned())
    });
    (child, said)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn outcomes(test: &TestLog, now: &str, alive: impl Fn(&str) -> Option<bool> + Send + 'static) -> Vec<String> {
    let reader = AuditReader::open(&test.path()).unwrap().with_liveness(Liveness::new(at(now), Box::new(alive)));
    let page = reader.list(&Filter::default()).unwrap();
    page.questions
        .iter()
        .map(|question| {
            let id = &question.begin.record.question_id;
            let file = reader.question(id).unwrap().unwrap();
            assert_eq!(file.outcome(), question.outcome());
            format!("{id} {}", question.outcome())
        })
        .collect()
}

#[test]
fn a_question_of_a_process_that_was_killed_is_abandoned() {
    let test = TestLog::new();
    let (child, said) = start(&test, "p1", Some(1));
    assert_eq!(said.take(2).collect::<Vec<_>>(), ["p1-0", "p1-open"]);
    let soon = "2026-05-04T10:00:01Z";
    assert_eq!(outcomes(&test, soon, |_| Some(true)), ["p1-open open", "p1-0 answered"]);
    kill(child);
    let gone = |name: &str| Some(name != "p1");
    assert_eq!(outcomes(&test, soon, gone), ["p1-open abandoned", "p1-0 answered"]);
    // Where nobody can tell, five minutes do.
    assert_eq!(outcomes(&test, "2026-05-04T10:05:00Z", |_| None)[0], "p1-open open");
    assert_eq!(outcomes(&test, "2026-05-04T10:05:00.1Z", |_| None)[0], "p1-open abandoned");
    for (outcome, expected) in [("open", 0), ("abandoned", 1), ("answered", 1)] {
        let reader = test.reader().with_liveness(Liveness::new(at(soon), Box::new(gone)));
        let filter = Filter { outcome: Some(outcome.to_owned()), ..Filter::default() };
        assert_eq!(reader.list(&filter).unwrap().questions.len(), expected, "{outcome}");
    }
    // The next process goes on where it was killed.
    assert_eq!(test.verify(), Verdict::Whole { records: 5 });
    ask(&test.open(), "next");
    assert_eq!(test.verify(), Verdict::Whole { records: 8 });
}

#[test]
fn what_a_killed_process_was_told_is_durable_stands_in_the_log() {
    let test = TestLog::new();
    for round in 0..4_usize {
        let (child, said) = start(&test, &format!("k{round}"), None);
        let told: Vec<String> = said.take(5 + 3 * round).collect();
        kill(child);
        for id in told {
            let file = test.reader().question(&QuestionId::new(&id)).unwrap().unwrap();
            assert_eq!((file.calls.len(), file.outcome()), (1, "answered"), "{id}");
        }
        assert!(matches!(test.verify(), Verdict::Whole { .. }));
    }
}

#[test]
fn several_processes_append_to_one_log_and_nothing_is_lost() {
    let test = TestLog::new();
    let names = ["a", "b", "c", "d"];
    let children: Vec<_> = names.iter().map(|name| start(&test, name, Some(12))).collect();
    for (child, said) in children {
        assert_eq!(said.take(13).count(), 13);
        kill(child);
    }
    assert_eq!(test.verify(), Verdict::Whole { records: 4 * (12 * 3 + 2) });
    let page = test.reader().list(&Filter { limit: Some(1000), ..Filter::default() }).unwrap();
    let ids: BTreeSet<&str> =
        page.questions.iter().map(|question| question.begin.record.question_id.as_str()).collect();
    assert_eq!(ids.len(), 4 * 13);
    // Each process wrote in turn with the others, and each question carries its process.
    assert!(page.questions.iter().all(|question| {
        let process = question.begin.record.detail.get("process").unwrap();
        question.begin.record.question_id.as_str().starts_with(process.as_str())
    }));
}
