use std::path::Path;

use jiff::{Timestamp, ToSpan as _};
use rusqlite::Connection;
use serde_json::json;
use sightline_model::{Answer, AnswerId, Principal, QuestionId, Role};
use sightline_policies::bundle_principal;

use super::keep::title;
use super::{Answers, AnswersError, Feedback, KeepDays, Kept, Lookup, RIGHTS_CHANGED, Swept, Verdict, Whose};

const KEEP: KeepDays = KeepDays { evidence: 30, conversations: 90 };

fn start() -> Timestamp {
    "2026-05-04T10:00:00Z".parse().unwrap()
}

fn days(days: i64) -> Timestamp {
    start().checked_add((days * 24).hours()).unwrap()
}

fn open(folder: &Path) -> Answers {
    Answers::open(folder, KEEP).unwrap()
}

/// An answer with one piece of evidence.
fn answer(id: &str, conversation: &str, question: &str) -> Answer {
    serde_json::from_value(json!({
        "answer_id": id, "conversation_id": conversation, "question": question, "as_of": start(), "time_range": null,
        "outcome": "answered", "headline": "n1 is the hottest.", "causes": [], "claims": [], "choices": [],
        "suggestions": [], "next_steps": [], "runbooks": [], "data_health": [],
        "evidence": [{
            "id": "E1", "tool": "top_k", "dataset": "metrics", "metric": "m", "canonical_metric": null, "labels": {},
            "aggregation": "max", "unit": "celsius", "from": start(), "to": start(), "step_seconds": null, "points": 0,
            "stats": null, "rows": [], "coverage": { "expected": null, "seen": 0, "first": null, "last": null, "gaps": [] },
            "total": 0, "returned": 0, "truncated": false, "read": { "rows": 0, "bytes": 0, "wall_ms": 0.0 },
            "query_id": null, "sql": null, "params": {}
        }],
        "cost": { "queries": 1, "rows_read": 2, "bytes_read": 3, "wall_ms": 4.0, "llm_tokens": 0 },
        "verification": { "checked": 1, "passed": 1, "dropped": 0 },
        "audit": { "question_id": format!("q-{id}"), "seq": 1, "hash": "00" },
    }))
    .unwrap()
}

/// An operator of one tenant.
fn who(id: &str) -> Principal {
    Principal { id: id.to_owned(), ..bundle_principal(Role::Operator, "atlas") }
}

fn keep(store: &Answers, id: &str, conversation: &str, principal: &str, at: Timestamp) -> Kept {
    store.keep(&answer(id, conversation, &format!("question {id}")), &who(principal), at, false).unwrap()
}

fn listed(store: &Answers, principal: &str) -> Vec<String> {
    store.conversations(principal, None, 50).unwrap().conversations.into_iter().map(|line| line.id).collect()
}

#[test]
fn a_conversation_is_its_askers_alone_and_holds_the_answers_in_the_order_they_were_asked() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    keep(&store, "a1", "c1", "ann", start());
    keep(&store, "a2", "c1", "ann", days(1));
    keep(&store, "b1", "c2", "bob", start());
    let file = store.conversation("c1", &who("ann"), None).unwrap().unwrap();
    assert_eq!(file.line.title, "question a1");
    assert_eq!((file.line.created, file.line.updated, file.line.answers), (start(), days(1), 2));
    assert_eq!(file.line.kept_until, days(91));
    let ids: Vec<&str> = file.entries.iter().map(|entry| entry.answer_id.as_str()).collect();
    assert_eq!(ids, ["a1", "a2"]);
    assert_eq!(file.entries[0].answer.as_ref().unwrap()["headline"], "n1 is the hottest.");
    assert_eq!(file.entries[0].question_id, "q-a1");
    // Somebody else's is like none.
    assert_eq!(
        store.conversation("c2", &who("ann"), None).unwrap(),
        store.conversation("c9", &who("ann"), None).unwrap()
    );
    let may = |id: &str, now| store.may_continue(id, "ann", now).unwrap();
    assert!(may("c1", days(1)) && may("c1", days(90)));
    assert!(!may("c2", days(1)) && !may("c9", days(1)));
    assert!(!may("c1", days(91)), "past its days it is gone, swept or not");
    let earlier = |asker: &str| {
        store.before("c1", &who(asker)).unwrap().into_iter().map(|earlier| earlier.text).collect::<Vec<_>>()
    };
    assert_eq!(earlier("ann"), ["question a1", "question a2"]);
    assert_eq!(earlier("bob"), Vec::<String>::new(), "nobody else's questions are gone on from");
    assert_eq!(listed(&store, "ann"), ["c1"]);
    assert_eq!(store.evidence("b1.E1", &who("ann"), start()).unwrap(), Lookup::Unknown);
    assert!(matches!(store.evidence("b1.E1", &who("bob"), start()).unwrap(), Lookup::Found(_)));
    // An answer never joins somebody else's, whatever the entrance let through.
    assert_eq!(keep(&store, "b2", "c1", "bob", start()), Kept::ConversationGone);
    assert_eq!(store.conversation("c1", &who("ann"), None).unwrap().unwrap().line.answers, 2);
    assert_eq!(store.evidence("b2.E1", &who("bob"), start()).unwrap(), Lookup::Unknown);
}

#[test]
fn pages_hold_every_conversation_once_the_latest_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..7 {
        // Two at every instant: the id decides.
        keep(&store, &format!("a{n}"), &format!("c{n}"), "ann", days(n / 2));
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.conversations("ann", cursor.as_deref(), 3).unwrap();
        seen.extend(page.conversations.into_iter().map(|line| line.id));
        // What comes meanwhile moves nothing on the pages to come.
        keep(&store, &format!("n{}", seen.len()), &format!("new{}", seen.len()), "ann", days(50));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["c6", "c5", "c4", "c3", "c2", "c1", "c0"]);
    assert!(matches!(store.conversations("ann", Some("zz"), 3), Err(AnswersError::Cursor)));
    assert!(matches!(store.conversations("ann", Some("00ff"), 3), Err(AnswersError::Cursor)));
}

#[test]
fn a_long_conversation_comes_in_pages_the_latest_answers_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..120 {
        keep(&store, &format!("a{n:03}"), "c1", "ann", start());
    }
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = None;
    loop {
        let file = store.conversation("c1", &who("ann"), cursor.as_deref()).unwrap().unwrap();
        let page: Vec<String> = file.entries.into_iter().map(|entry| entry.answer_id).collect();
        seen.splice(0..0, page);
        cursor = file.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, (0..120).map(|n| format!("a{n:03}")).collect::<Vec<_>>());
}

#[test]
fn a_deleted_conversation_leaves_no_byte_of_its_question_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let secret = "zyxwv-secret-question";
    store.keep(&answer("a1", "c1", secret), &who("ann"), start(), false).unwrap();
    store.give_feedback("a1", "ann", &feedback(Verdict::Down, Some(secret))).unwrap();
    keep(&store, "a2", "c2", "ann", start());
    keep(&store, "b1", "c3", "bob", start());
    let holds = || {
        ["answers.db", "answers.db-wal"].iter().any(|name| {
            let bytes = std::fs::read(folder.path().join(name)).unwrap_or_default();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        })
    };
    assert!(holds());
    assert_eq!(store.count_conversations("bob", Some("c1")).unwrap(), 0);
    assert_eq!(store.delete_conversations("bob", Some("c1")).unwrap(), 0, "somebody else's");
    assert!(store.conversation("c1", &who("ann"), None).unwrap().is_some());
    assert_eq!(store.delete_conversations("ann", Some("c1")).unwrap(), 1);
    assert!(!holds());
    assert_eq!(store.evidence("a1.E1", &who("ann"), start()).unwrap(), Lookup::Unknown);
    // What is still being answered in it goes with it.
    assert_eq!(store.keep(&answer("a3", "c1", secret), &who("ann"), start(), true).unwrap(), Kept::ConversationGone);
    assert!(!holds());
    assert_eq!(store.delete_conversations("ann", None).unwrap(), 1);
    assert_eq!(listed(&store, "ann"), [""; 0]);
    assert_eq!(listed(&store, "bob"), ["c3"]);
    assert!(matches!(store.evidence("b1.E1", &who("bob"), start()).unwrap(), Lookup::Found(_)));
}

fn feedback(verdict: Verdict, reason: Option<&str>) -> Feedback {
    Feedback { verdict, reason: reason.map(str::to_owned), at: start() }
}

#[test]
fn feedback_is_for_ones_own_answer_and_the_last_word_counts() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    keep(&store, "a1", "c1", "ann", start());
    assert!(!store.give_feedback("a1", "bob", &feedback(Verdict::Up, None)).unwrap());
    assert!(!store.give_feedback("a9", "ann", &feedback(Verdict::Up, None)).unwrap());
    assert!(store.give_feedback("a1", "ann", &feedback(Verdict::Up, Some("right"))).unwrap());
    assert!(store.give_feedback("a1", "ann", &feedback(Verdict::Down, None)).unwrap());
    let file = store.conversation("c1", &who("ann"), None).unwrap().unwrap();
    assert_eq!(file.entries[0].feedback, Some(feedback(Verdict::Down, None)));
}

#[test]
fn an_erased_question_leaves_nothing_and_its_conversation_is_called_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let secret = "zyxwv-secret-question";
    store.keep(&answer("a1", "c1", secret), &who("ann"), start(), false).unwrap();
    store.give_feedback("a1", "ann", &feedback(Verdict::Down, Some(secret))).unwrap();
    keep(&store, "a2", "c1", "ann", days(1));
    keep(&store, "a3", "c2", "ann", start());
    let erase = |ids: &[&str]| {
        let ids: Vec<QuestionId> = ids.iter().map(|id| QuestionId::new(*id)).collect();
        store.erase_questions(&ids).unwrap()
    };
    assert_eq!(erase(&["q-a1", "q-a3", "q-none"]), 2);
    assert_eq!(erase(&["q-a1"]), 0);
    assert_eq!(listed(&store, "ann"), ["c1"], "the other is empty and goes");
    let file = store.conversation("c1", &who("ann"), None).unwrap().unwrap();
    assert_eq!((file.line.title.as_str(), file.line.answers), ("question a2", 1));
    assert_eq!(store.evidence("a1.E1", &who("ann"), start()).unwrap(), Lookup::Unknown);
    assert!(matches!(store.evidence("a2.E1", &who("ann"), start()).unwrap(), Lookup::Found(_)));
    for name in ["answers.db", "answers.db-wal"] {
        let bytes = std::fs::read(folder.path().join(name)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{name}");
    }
}

#[test]
fn an_answer_does_not_outlive_the_rights_it_was_got_with() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    keep(&store, "a1", "c1", "ann", start());
    let viewer = Principal { role: Role::Viewer, ..who("ann") };
    store.keep(&answer("a2", "c1", "what now?"), &viewer, days(1), true).unwrap();
    let (answer_id, question_id) = (AnswerId::new("t1"), QuestionId::new("q-t1"));
    let whose = Whose { answer_id: &answer_id, question_id: &question_id, asker: &who("ann") };
    store.keep_evidence(whose, &answer("t1", "", "").evidence, start()).unwrap();
    let shown = |reader: &Principal| {
        let file = store.conversation("c1", reader, None).unwrap().unwrap();
        file.entries.into_iter().map(|e| (e.question, e.answer.is_some(), e.withheld)).collect::<Vec<_>>()
    };
    let question = |text: &str, shown: bool| (text.to_owned(), shown, (!shown).then_some(RIGHTS_CHANGED));
    assert_eq!(shown(&who("ann")), [question("question a1", true), question("what now?", false)]);
    assert_eq!(shown(&viewer), [question("question a1", false), question("what now?", true)]);
    let looked_up = |id: &str, reader: &Principal| store.evidence(id, reader, start()).unwrap();
    let own_jobs = Principal { jobs_of: Some("ann".to_owned()), ..who("ann") };
    let elsewhere = Principal { id: "ann".to_owned(), ..bundle_principal(Role::Operator, "borealis") };
    for id in ["a1.E1", "t1.E1"] {
        assert!(matches!(looked_up(id, &who("ann")), Lookup::Found(_)), "{id}");
        for changed in [&viewer, &own_jobs, &elsewhere] {
            assert_eq!(looked_up(id, changed), Lookup::RightsChanged, "{id} {changed:?}");
        }
        assert_eq!(looked_up(id, &Principal { id: "bob".to_owned(), ..viewer.clone() }), Lookup::Unknown);
    }
}

#[test]
fn what_is_past_its_days_goes_and_expired_evidence_is_remembered_for_a_year() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    keep(&store, "a1", "c1", "ann", start());
    keep(&store, "a2", "c2", "ann", days(80));
    assert_eq!(store.sweep(days(29)).unwrap(), Swept::default());
    assert_eq!(store.sweep(days(30)).unwrap(), Swept { evidence: 1, conversations: 0 });
    assert_eq!(store.evidence("a1.E1", &who("ann"), days(30)).unwrap(), Lookup::Expired);
    assert_eq!(listed(&store, "ann"), ["c2", "c1"]);
    assert_eq!(store.sweep(days(90)).unwrap(), Swept { evidence: 0, conversations: 1 });
    assert_eq!(listed(&store, "ann"), ["c2"]);
    assert_eq!(store.evidence("a1.E1", &who("ann"), days(90)).unwrap(), Lookup::Expired);
    store.sweep(days(30 + 365)).unwrap();
    assert_eq!(store.evidence("a1.E1", &who("ann"), days(395)).unwrap(), Lookup::Unknown);
}

#[test]
fn evidence_does_not_outlive_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let store = Answers::open(folder.path(), KeepDays { evidence: 300, conversations: 10 }).unwrap();
    keep(&store, "a1", "c1", "ann", start());
    assert_eq!(store.sweep(days(10)).unwrap(), Swept { evidence: 1, conversations: 1 });
    assert_eq!(store.evidence("a1.E1", &who("ann"), days(10)).unwrap(), Lookup::Expired);
}

#[test]
fn a_store_of_format_1_keeps_its_evidence_and_a_newer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE evidence (id TEXT PRIMARY KEY, principal TEXT NOT NULL, kept_until INTEGER NOT NULL, json TEXT) STRICT;
         CREATE INDEX evidence_kept_until ON evidence (kept_until);
         PRAGMA user_version = 1;",
    )
    .unwrap();
    old.execute("INSERT INTO evidence VALUES ('old.E1', 'ann', ?1, '{}')", [days(30).as_second()]).unwrap();
    drop(old);
    let store = open(folder.path());
    // With which rights it was got is not known: it is there, and not shown.
    assert_eq!(store.evidence("old.E1", &who("ann"), start()).unwrap(), Lookup::RightsChanged);
    assert_eq!(store.evidence("old.E1", &who("ann"), days(30)).unwrap(), Lookup::Expired);
    keep(&store, "a1", "c1", "ann", start());
    drop(store);
    // Opening it again changes nothing.
    assert_eq!(listed(&open(folder.path()), "ann"), ["c1"]);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 4).unwrap();
    let refused = Answers::open(folder.path(), KEEP).err().unwrap();
    assert!(matches!(refused, AnswersError::Newer { found: 4 }), "{refused}");
}

#[test]
fn a_title_is_the_question_on_one_line_cut_at_a_word() {
    assert_eq!(title("why\n is  J1\tslow?"), "why is J1 slow?");
    let long = title(&"words ".repeat(40));
    assert_eq!(long, format!("{}…", vec!["words"; 13].join(" ")));
    let unbroken = title(&"é".repeat(100));
    assert_eq!(unbroken.chars().count(), 80);
}
