use std::collections::BTreeSet;

use futures::executor::block_on;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use sightline_model::audit::{AuditLog, Begin, Call, Complete, Event, EventKind, EventOutcome};
use sightline_model::{Principal, QuestionId, Role, TenantScope};

use crate::test_log::{TestLog, at, begin, call, complete};
use crate::{Amounts, Cursor, Entry, Format, Search, SqliteAudit, UsageFilter, Wanted};

/// What one question of a test is.
struct Asked<'a> {
    id: &'a str,
    who: &'a str,
    tenant: Option<&'a str>,
    question: &'a str,
    tool: &'a str,
    table: &'a str,
    allowed: bool,
    outcome: Option<&'a str>,
    minutes: i64,
}

const PLAIN: Asked<'static> = Asked {
    id: "q",
    who: "operator@atlas",
    tenant: Some("atlas"),
    question: "why was J1 slow?",
    tool: "metric_range",
    table: "metrics",
    allowed: true,
    outcome: Some("answered"),
    minutes: 0,
};

fn start() -> Timestamp {
    at("2026-05-04T10:00:00Z")
}

fn ask(log: &SqliteAudit, asked: &Asked<'_>) {
    let Asked { id, who, tenant, question, tool, table, allowed, outcome, minutes } = *asked;
    let time = start().checked_add(minutes.minutes()).unwrap();
    let principal = Principal {
        id: who.to_owned(),
        role: if tenant.is_some() { Role::Operator } else { Role::Admin },
        tenants: tenant.map_or(TenantScope::All, |tenant| TenantScope::Only(BTreeSet::from([tenant.to_owned()]))),
        jobs_of: None,
    };
    let begun = Begin { at: time, principal, question: question.to_owned(), ..begin(id) };
    block_on(log.begin(begun)).unwrap();
    let mut called = Call { at: time, tool: tool.to_owned(), tables: vec![table.to_owned()], ..call(id) };
    called.decision.allowed = allowed;
    block_on(log.call(called)).unwrap();
    if let Some(outcome) = outcome {
        block_on(log.complete(Complete { at: time, ..complete(id, outcome) })).unwrap();
    }
}

fn happened(log: &SqliteAudit, event: EventKind, who: Option<&str>, outcome: EventOutcome) {
    let principal = who.map(str::to_owned);
    let detail = [("client".to_owned(), "=1+1".to_owned())].into();
    let event = Event { at: start(), event, principal, entrance: "http".to_owned(), outcome, detail };
    block_on(log.event(event)).unwrap();
}

/// Six questions and four events, one after the other.
fn mixed() -> TestLog {
    let test = TestLog::new();
    let log = test.open();
    ask(&log, &Asked { id: "q0", ..PLAIN });
    ask(&log, &Asked { id: "q1", who: "viewer@borealis", tenant: Some("borealis"), minutes: 10, ..PLAIN });
    ask(
        &log,
        &Asked {
            id: "q2",
            tool: "search_logs",
            table: "logs",
            allowed: false,
            outcome: Some("refused"),
            minutes: 20,
            ..PLAIN
        },
    );
    happened(&log, EventKind::Heartbeat, None, EventOutcome::Done);
    happened(&log, EventKind::LoginFailed, None, EventOutcome::Denied);
    // The clock went back.
    ask(&log, &Asked { id: "q3", who: "admin", tenant: None, question: "TOP 5 nodes", minutes: 5, ..PLAIN });
    ask(&log, &Asked { id: "q4", outcome: None, minutes: 30, ..PLAIN });
    happened(&log, EventKind::AuditRead, Some("auditor"), EventOutcome::Done);
    happened(&log, EventKind::Denied, Some("operator@atlas"), EventOutcome::Denied);
    ask(&log, &Asked { id: "q5", outcome: Some("error"), minutes: 40, ..PLAIN });
    test
}

/// What a search finds: ids of questions, kinds of events; not the writer's own remarks that the clock went back.
fn found(test: &TestLog, search: Search) -> Vec<String> {
    let found = test.reader().search(&search).unwrap();
    let name = |entry: Entry| entry.question_id.map_or(entry.kind, |id| id.as_str().to_owned());
    found.entries.into_iter().map(name).filter(|name| name != "clock_went_back").collect()
}

#[test]
fn questions_and_events_stand_in_one_list_the_newest_first() {
    let test = mixed();
    let all = ["q5", "denied", "audit_read", "q4", "q3", "login_failed", "q2", "q1", "q0"];
    assert_eq!(found(&test, Search::default()), all);
    let mut turned = found(&test, Search { oldest_first: true, ..Search::default() });
    turned.reverse();
    assert_eq!(turned, all);
    let entry = test.reader().search(&Search { who: Some("admin".to_owned()), ..Search::default() }).unwrap().entries;
    let shown = serde_json::to_value(&entry[0]).unwrap();
    assert_eq!(shown["question"], "TOP 5 nodes");
    assert_eq!(shown["work"]["tools"], json!(["metric_range"]));
    assert_eq!((&shown["work"]["calls"], &shown["work"]["rows_read"]), (&json!(1), &json!(120)));
    assert_eq!(shown["hash"].as_str().unwrap().len(), 64);
}

#[test]
fn each_filter_lets_through_what_it_says_and_nothing_else() {
    let test = mixed();
    let some = |text: &str| Some(text.to_owned());
    let any = Search::default;
    for (search, expected) in [
        (Search { who: some("operator@atlas"), ..any() }, vec!["q5", "denied", "q4", "q2", "q0"]),
        (Search { who: some("nobody"), ..any() }, vec![]),
        (Search { tenant: some("borealis"), ..any() }, vec!["q1"]),
        (Search { tenant: some("atlas"), ..any() }, vec!["q5", "q4", "q2", "q0"]),
        (Search { tool: some("search_logs"), ..any() }, vec!["q2"]),
        (Search { table: some("logs"), ..any() }, vec!["q2"]),
        (Search { table: some("log"), ..any() }, vec![]),
        (Search { allowed: Some(false), ..any() }, vec!["denied", "login_failed", "q2"]),
        (Search { allowed: Some(true), ..any() }, vec!["q5", "audit_read", "q4", "q3", "q1", "q0"]),
        (Search { allowed: Some(false), wanted: Wanted::Questions, ..any() }, vec!["q2"]),
        (Search { outcome: some("answered"), ..any() }, vec!["q3", "q1", "q0"]),
        (Search { outcome: some("error"), ..any() }, vec!["q5"]),
        (Search { outcome: some("open"), ..any() }, vec!["q4"]),
        (Search { outcome: some("abandoned"), ..any() }, vec![]),
        (Search { outcome: some("denied"), ..any() }, vec!["denied", "login_failed"]),
        (Search { text: some("top 5"), ..any() }, vec!["q3"]),
        (Search { text: some("%"), ..any() }, vec![]),
        (Search { wanted: Wanted::Questions, ..any() }, vec!["q5", "q4", "q3", "q2", "q1", "q0"]),
        (Search { wanted: Wanted::Events, ..any() }, vec!["denied", "audit_read", "login_failed", "heartbeat"]),
        (Search { wanted: Wanted::Event(EventKind::Heartbeat), ..any() }, vec!["heartbeat"]),
        (Search { wanted: Wanted::Event(EventKind::Denied), who: some("operator@atlas"), ..any() }, vec!["denied"]),
        (Search { wanted: Wanted::Events, who: some("auditor"), ..any() }, vec!["audit_read"]),
        (Search { who: some("operator@atlas"), tool: some("search_logs"), allowed: Some(false), ..any() }, vec!["q2"]),
    ] {
        assert_eq!(found(&test, search.clone()), expected, "{search:?}");
    }
}

#[test]
fn a_time_is_told_to_the_millisecond_even_where_the_clock_went_back() {
    let test = mixed();
    let minutes = |minutes: i64| start().checked_add(minutes.minutes()).unwrap();
    let questions = |from: Option<Timestamp>, to: Option<Timestamp>| {
        found(&test, Search { from, to, wanted: Wanted::Questions, ..Search::default() })
    };
    assert_eq!(questions(Some(minutes(10)), Some(minutes(30))), ["q2", "q1"]);
    assert_eq!(questions(Some(minutes(5)), Some(minutes(11))), ["q3", "q1"]);
    let almost = minutes(10).checked_add(1.millisecond()).unwrap();
    assert_eq!(questions(Some(almost), Some(minutes(30))), ["q2"]);
    assert_eq!(questions(Some(minutes(10)), Some(almost)), ["q1"]);
    assert_eq!(questions(Some(minutes(500)), None), [""; 0]);
    assert_eq!(questions(None, Some(minutes(0))), [""; 0]);
    assert_eq!(questions(None, Some(minutes(6))), ["q3", "q0"]);
}

#[test]
fn pages_stay_the_same_while_records_are_added() {
    let test = mixed();
    let log = test.open();
    let whole = found(&test, Search::default());
    for limit in [1, 2, 4] {
        let mut seen = Vec::new();
        let mut cursor: Option<Cursor> = None;
        loop {
            let page = test.reader().search(&Search { cursor, limit: Some(limit), ..Search::default() }).unwrap();
            assert!(page.entries.len() <= limit as usize);
            seen.extend(page.entries.into_iter().map(|entry| entry.seq));
            happened(&log, EventKind::AuditRead, None, EventOutcome::Done);
            // A cursor goes out as text and comes back.
            cursor = page.next.map(|cursor| Cursor::parse(&cursor.text()).unwrap());
            if cursor.is_none() {
                break;
            }
        }
        // The first page of a later walk begins with what was added in the one before.
        assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "{seen:?}");
        assert!(seen.len() >= whole.len());
    }
    assert_eq!(Cursor::parse("zz"), None);
    assert_eq!(Cursor::parse(&hex::encode("12")), None);
}

/// What SQLite does for a search, as it says itself.
fn plan(test: &TestLog, search: &Search) -> String {
    let reader = test.reader();
    let span = crate::search::sql::span(&reader, search).unwrap().unwrap();
    let (sql, parameters) = crate::search::sql::statement(search, span);
    let mut statement = reader.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let parameters: Vec<(&str, &dyn rusqlite::ToSql)> =
        parameters.iter().map(|(name, value)| (*name, value as &dyn rusqlite::ToSql)).collect();
    let lines = statement.query_map(parameters.as_slice(), |row| row.get::<_, String>(3)).unwrap();
    lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_common_search_sorts_or_reads_every_record() {
    let test = mixed();
    let some = |text: &str| Some(text.to_owned());
    let any = Search::default;
    for (search, index) in [
        (any(), "SEARCH b USING INTEGER PRIMARY KEY"),
        (Search { who: some("admin"), ..any() }, "record_by_who (who=?"),
        (Search { who: some("admin"), wanted: Wanted::Questions, ..any() }, "record_by_who (who=?"),
        (Search { wanted: Wanted::Event(EventKind::Denied), ..any() }, "record_by_event (event=?"),
        (Search { tool: some("top_k"), ..any() }, "INDEX record_of_question (question_id=? AND kind=? AND tool=?)"),
        (Search { table: some("logs"), ..any() }, "INDEX record_of_question (question_id=? AND kind=?)"),
        (Search { outcome: some("error"), ..any() }, "INDEX record_of_question (question_id=? AND kind=?)"),
    ] {
        let plan = plan(&test, &search);
        assert!(plan.contains(index), "{search:?}:\n{plan}");
        assert!(!plan.contains("SEARCH c USING INDEX record_by_kind"), "{search:?}:\n{plan}");
        assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN b"), "{search:?}:\n{plan}");
    }
}

#[test]
fn usage_is_summed_by_day_principal_and_tenant() {
    let test = mixed();
    let log = test.open();
    ask(&log, &Asked { id: "q6", minutes: 60 * 24, ..PLAIN });
    let usage = |filter: UsageFilter| {
        let lines = test.reader().usage(&filter, Amounts::Exact).unwrap();
        lines.into_iter().map(|line| (line.day, line.principal, line.questions, line.rows_read)).collect::<Vec<_>>()
    };
    let line = |day: &str, who: &str, questions: u64| (day.to_owned(), who.to_owned(), questions, questions * 120);
    let (first, second) = ("2026-05-04", "2026-05-05");
    assert_eq!(
        usage(UsageFilter::default()),
        [
            line(first, "admin", 1),
            line(first, "operator@atlas", 4),
            line(first, "viewer@borealis", 1),
            line(second, "operator@atlas", 1)
        ]
    );
    let of = |principal: &str| UsageFilter { principal: Some(principal.to_owned()), ..UsageFilter::default() };
    assert_eq!(usage(of("viewer@borealis")), [line(first, "viewer@borealis", 1)]);
    let tenant = UsageFilter { tenant: Some("atlas".to_owned()), ..UsageFilter::default() };
    assert_eq!(usage(tenant), [line(first, "operator@atlas", 4), line(second, "operator@atlas", 1)]);
    let days =
        |from: &str, to: &str| UsageFilter { from: from.parse().ok(), to: to.parse().ok(), ..UsageFilter::default() };
    assert_eq!(usage(days("2026-05-05", "2026-05-06")), [line(second, "operator@atlas", 1)]);
    assert_eq!(usage(days("2026-05-06", "2026-05-07")), []);
}

#[test]
fn what_was_cancelled_or_cut_off_has_read_all_the_same() {
    let test = TestLog::new();
    let log = test.open();
    // The process was killed after the first; the second was stopped, and its complete record knows of nothing.
    ask(&log, &Asked { id: "q0", outcome: None, ..PLAIN });
    ask(&log, &Asked { id: "q1", outcome: None, ..PLAIN });
    let nothing = Complete { at: start(), queries: 0, rows_read: 0, bytes_read: 0, ..complete("q1", "cancelled") };
    block_on(log.complete(nothing)).unwrap();
    let lines = test.reader().usage(&UsageFilter::default(), Amounts::Exact).unwrap();
    let used: Vec<_> = lines.iter().map(|line| (line.questions, line.queries, line.rows_read)).collect();
    assert_eq!(used, [(2, 2, 240)]);
}

#[test]
fn the_difference_of_two_looks_does_not_say_what_one_question_read_exactly() {
    let test = TestLog::new();
    let log = test.open();
    let read_by = |id: &str, sql: Option<&str>, rows_read: u64| {
        block_on(log.begin(Begin { at: start(), ..begin(id) })).unwrap();
        let sql = sql.map(str::to_owned);
        let read = Call { at: start(), sql, rows_read, bytes_read: rows_read * 100, ..call(id) };
        block_on(log.call(read)).unwrap();
        let lines = test.reader().usage(&UsageFilter::default(), Amounts::Rounded).unwrap();
        lines.iter().map(|line| (line.queries, line.rows_read, line.bytes_read)).collect::<Vec<_>>()
    };
    assert_eq!(read_by("q0", Some("SELECT 1"), 312), [(1, 8_192, 1_048_576)]);
    assert_eq!(read_by("q1", Some("SELECT 1"), 8_191), [(2, 16_384, 2_097_152)]);
    assert_eq!(read_by("q2", None, 0), [(2, 16_384, 2_097_152)], "a refusal reads nothing");
    assert_eq!(read_by("q3", Some("SELECT 1"), 8_193), [(3, 32_768, 3_145_728)]);
}

#[test]
fn a_question_is_opened_with_what_can_be_said_of_its_records() {
    let test = mixed();
    let opened = test.reader().question_record(&QuestionId::new("q1")).unwrap().unwrap();
    assert_eq!((opened.integrity.records, opened.integrity.first_bad), (3, None));
    assert_eq!(opened.records.len(), 1);
    assert_eq!(opened.complete.unwrap().record.outcome, "answered");
    assert_eq!(test.reader().question_record(&QuestionId::new("q9")).unwrap(), None);
    let bad = |tamper: &str| {
        let test = mixed();
        test.tamper(tamper);
        test.reader().question_record(&QuestionId::new("q1")).unwrap().unwrap().integrity.first_bad
    };
    // Its call is record 5.
    assert_eq!(
        bad("UPDATE record SET body = replace(body, '\"rows_read\":120', '\"rows_read\":121') WHERE seq = 5"),
        Some(5)
    );
    assert_eq!(bad("UPDATE private SET text = replace(text, 'J1', 'J2') WHERE seq = 4"), Some(4));
    assert_eq!(bad("UPDATE record SET hash = zeroblob(32) WHERE seq = 3"), Some(4));
}

/// The lines of an export.
fn exported(test: &TestLog, format: Format, search: &Search) -> (u64, String) {
    let mut out = Vec::new();
    let written = test.reader().export_as(format, search, &mut out).unwrap();
    (written, String::from_utf8(out).unwrap())
}

#[test]
fn an_ocsf_export_has_what_the_schema_requires_of_each_class() {
    let (written, text) = exported(&mixed(), Format::Ocsf, &Search::default());
    let remarks = text.matches("clock_went_back").count() / 2;
    assert_eq!(written as usize, 9 + remarks);
    let documents: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Each of the six questions has a document of its call.
    assert_eq!(documents.len(), 15 + remarks);
    let mut classes = BTreeSet::new();
    for document in &documents {
        let class = document["class_uid"].as_u64().unwrap();
        let activity = document["activity_id"].as_u64().unwrap();
        classes.insert(class);
        assert_eq!(document["category_uid"].as_u64().unwrap(), class / 1000);
        assert_eq!(document["type_uid"].as_u64().unwrap(), class * 100 + activity);
        assert!(document["time"].is_i64() || document["time"].is_u64());
        assert_eq!(document["severity_id"], 1);
        assert_eq!(document["metadata"]["version"], "1.6.0");
        assert_eq!(document["metadata"]["product"]["name"], "Sightline");
        assert_eq!(document["metadata"]["uid"].as_str().unwrap().len(), 64);
        assert!(activity != 99 || document["activity_name"].is_string(), "{document}");
        let required: &[&str] = match class {
            6003 => &["/actor/user/name", "/api/operation", "/src_endpoint/name"],
            6005 => &["/actor/user/name", "/src_endpoint/name", "/table/name"],
            3002 => &["/user/name", "/service/name"],
            other => panic!("class {other}"),
        };
        for path in required {
            assert!(document.pointer(path).is_some_and(Value::is_string), "{path}: {document}");
        }
    }
    assert_eq!(classes, BTreeSet::from([3002, 6003, 6005]));
    let login = documents.iter().find(|document| document["class_uid"] == 3002).unwrap();
    assert_eq!((&login["activity_id"], &login["status_id"]), (&json!(1), &json!(2)));
    let times: Vec<i64> = documents.iter().map(|document| document["metadata"]["sequence"].as_i64().unwrap()).collect();
    assert_eq!(times.iter().collect::<BTreeSet<_>>().len(), documents.len(), "each record once");
}

#[test]
fn a_table_stays_one_whatever_was_asked() {
    let test = TestLog::new();
    let log = test.open();
    let hostile = ["=cmd|' /C calc'!A0", "a\"b,c\r\nd", "@SUM(1)", "\t=1", "plain", "-2+3"];
    for (index, question) in hostile.iter().enumerate() {
        ask(&log, &Asked { id: &format!("q{index}"), question, ..PLAIN });
    }
    happened(&log, EventKind::LoginFailed, Some("=1+1"), EventOutcome::Denied);
    drop(log);
    let (written, text) = exported(&test, Format::Csv, &Search::default());
    assert_eq!(written, 7);
    let mut lines = csv::Reader::from_reader(text.as_bytes());
    let place = |name: &str, head: &csv::StringRecord| head.iter().position(|column| column == name).unwrap();
    let head = lines.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 7);
    for (row, question) in rows.iter().zip(hostile) {
        let cell = &row[place("question", &head)];
        assert_eq!(cell.replace('\'', ""), question.replace('\'', ""));
        assert_eq!(cell.starts_with('\''), !["plain", "a\"b,c\r\nd"].contains(&question), "{cell}");
    }
    for cell in rows.iter().flat_map(csv::StringRecord::iter) {
        assert!(!cell.trim_start().starts_with(['=', '+', '-', '@']), "{cell}");
    }
    assert_eq!(&rows[6][place("who", &head)], "'=1+1");
    let (written, text) = exported(&test, Format::Csv, &Search { text: Some("plain".to_owned()), ..Search::default() });
    assert_eq!((written, text.lines().count()), (1, 2));
}
