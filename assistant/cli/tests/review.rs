//! What was asked, looked at afterwards: conversations, feedback, usage, and the audit log over HTTP and from the command line.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;
use std::process::Output;

use harness::{Lab, run, stderr};
use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use service::{Service, hold_audit_log_whole, problem};
use sightline_engine::{EngineUser, engine_address};
use sightline_server::{Answers, KeepDays};

const WHY: &str = "Why was training job J4711 slow in the last 4 hours?";
const HOTTEST: &str = "top 3 hottest GPUs in the last hour";
const OPERATOR: &str = "operator@atlas";
const OTHER: &str = "operator@borealis";

fn end() -> Timestamp {
    worlds::END.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_can_be_reviewed_by_who_may() {
    let lab = Lab::start();
    lab.fill(&worlds::two_tenants()).await;
    let folder = lab.into_folder();
    keep_something_long_expired(folder.path());
    let service = Service::start_for(folder.path(), &[OPERATOR, OTHER, "viewer@atlas", "auditor", "admin"], &[]);

    let first = service.answer(OPERATOR, WHY, end()).await;
    let second = service.answer(OPERATOR, HOTTEST, end()).await;
    let theirs = service.answer(OTHER, HOTTEST, end()).await;

    what_is_past_its_days_went_at_the_start(&service, folder.path()).await;
    a_conversation_goes_on_for_its_asker_alone(&service, &first, &theirs).await;
    feedback_is_given_on_ones_own_answer_and_recorded(&service, &first, &theirs).await;
    an_operator_may_not_look_into_the_log_and_that_is_recorded(&service, &first).await;
    an_auditor_lists_filters_pages_and_opens(&service, &first).await;
    the_log_is_verified_and_each_look_stands_in_it(&service).await;
    usage_is_ones_own_or_everybodys_by_role(&service).await;
    recorded_queries_give_the_same_rows_or_it_is_said_why_not(&service, &first, folder.path()).await;
    the_command_line_shows_the_same(folder.path(), &first);
    an_export_is_a_look_too(folder.path());
    a_text_is_erased_and_the_log_stays_whole(folder.path(), &first);
    conversations_are_deleted_by_their_asker(&service, &second).await;
    drop(service);
    hold_audit_log_whole(folder.path());
    a_changed_record_is_told_with_its_number(folder.path());
}

async fn get(service: &Service, who: &str, path: &str) -> Value {
    let response = service.request(who, Method::GET, path).send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

async fn refused(service: &Service, who: &str, method: Method, path: &str, status: u16) -> String {
    problem(service.request(who, method, path).send().await.unwrap(), status).await
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}"))
}

fn keep_something_long_expired(folder: &Path) {
    drop(Answers::open(folder, KeepDays { evidence: 30, conversations: 90 }).unwrap());
    let store = rusqlite::Connection::open(folder.join("answers.db")).unwrap();
    store
        .execute(
            "INSERT INTO evidence (id, answer_id, principal, kept_until, json) VALUES ('x.E1', 'x', ?1, ?2, '{}')",
            (OPERATOR, 0),
        )
        .unwrap();
    store.execute("INSERT INTO conversation VALUES ('x', ?1, 'old', 0, 0, 0)", [OPERATOR]).unwrap();
}

async fn what_is_past_its_days_went_at_the_start(service: &Service, folder: &Path) {
    let swept = get(service, "auditor", "/v1/audit?kind=retention").await;
    let entries = swept["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{swept}");
    assert_eq!((text(&entries[0]["detail"], "evidence"), text(&entries[0]["detail"], "conversations")), ("1", "1"));
    let store = rusqlite::Connection::open(folder.join("answers.db")).unwrap();
    let left: u64 = store.query_row("SELECT count(*) FROM conversation WHERE id = 'x'", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

async fn a_conversation_goes_on_for_its_asker_alone(service: &Service, first: &Value, theirs: &Value) {
    let (own, foreign) = (text(first, "conversation_id"), text(theirs, "conversation_id"));
    let ask = |who: &'static str, id: String| {
        service.chat(who, &json!({ "question": HOTTEST, "as_of": end(), "conversation_id": id }))
    };
    let third: Value = ask(OPERATOR, own.to_owned()).send().await.unwrap().json().await.unwrap();
    assert_eq!(third["conversation_id"], first["conversation_id"]);
    // Somebody else's is told like one that does not exist, and nothing is begun for it.
    let foreign_words = problem(ask(OPERATOR, foreign.to_owned()).send().await.unwrap(), 404).await;
    let unknown_words = problem(ask(OPERATOR, "0190-unknown".to_owned()).send().await.unwrap(), 404).await;
    assert_eq!(foreign_words, unknown_words);

    let listed = get(service, OPERATOR, "/v1/conversations").await;
    let titles: Vec<&str> =
        listed["conversations"].as_array().unwrap().iter().map(|line| text(line, "title")).collect();
    assert_eq!(titles, [WHY, HOTTEST], "the one answered last is first");
    let page = get(service, OPERATOR, "/v1/conversations?limit=1").await;
    let next =
        get(service, OPERATOR, &format!("/v1/conversations?limit=1&cursor={}", text(&page, "next_cursor"))).await;
    assert_eq!(text(&next["conversations"][0], "title"), HOTTEST);
    assert_eq!(next["next_cursor"], Value::Null);

    let opened = get(service, OPERATOR, &format!("/v1/conversations/{own}")).await;
    let questions: Vec<&str> =
        opened["entries"].as_array().unwrap().iter().map(|entry| text(entry, "question")).collect();
    assert_eq!(questions, [WHY, HOTTEST]);
    assert_eq!(opened["entries"][0]["answer"]["headline"], first["headline"]);
    let foreign_words = refused(service, OPERATOR, Method::GET, &format!("/v1/conversations/{foreign}"), 404).await;
    assert_eq!(foreign_words, refused(service, OPERATOR, Method::GET, "/v1/conversations/none", 404).await);
    refused(service, OPERATOR, Method::DELETE, &format!("/v1/conversations/{foreign}"), 404).await;
    refused(service, OPERATOR, Method::GET, "/v1/conversations?cursor=zz", 422).await;
}

async fn feedback_is_given_on_ones_own_answer_and_recorded(service: &Service, first: &Value, theirs: &Value) {
    let path = |answer: &Value| format!("/v1/answers/{}/feedback", text(answer, "answer_id"));
    let give = |path: String, body: Value| service.request(OPERATOR, Method::POST, &path).json(&body).send();
    assert_eq!(give(path(first), json!({ "verdict": "up" })).await.unwrap().status(), 204);
    let reason = "the secret reason";
    let again = json!({ "verdict": "down", "reason": reason });
    assert_eq!(give(path(first), again).await.unwrap().status(), 204);
    let foreign = problem(give(path(theirs), json!({ "verdict": "up" })).await.unwrap(), 404).await;
    assert_eq!(
        foreign,
        problem(give("/v1/answers/none/feedback".to_owned(), json!({ "verdict": "up" })).await.unwrap(), 404).await
    );
    problem(give(path(first), json!({ "verdict": "maybe" })).await.unwrap(), 422).await;
    problem(give(path(first), json!({ "verdict": "up", "reason": "x".repeat(2_001) })).await.unwrap(), 422).await;
    let opened = get(service, OPERATOR, &format!("/v1/conversations/{}", text(first, "conversation_id"))).await;
    assert_eq!(opened["entries"][0]["feedback"]["verdict"], "down");
    assert_eq!(opened["entries"][0]["feedback"]["reason"], reason);
    let recorded = get(service, "auditor", "/v1/audit?kind=feedback").await;
    let verdicts: Vec<&str> =
        recorded["entries"].as_array().unwrap().iter().map(|entry| text(&entry["detail"], "verdict")).collect();
    assert_eq!(verdicts, ["down", "up"]);
    assert!(!recorded.to_string().contains(reason), "the reason stays with the answer");
}

async fn an_operator_may_not_look_into_the_log_and_that_is_recorded(service: &Service, first: &Value) {
    let question = text(&first["audit"], "question_id");
    for (method, path) in [
        (Method::GET, "/v1/audit".to_owned()),
        (Method::GET, "/v1/audit?nonsense=1".to_owned()),
        (Method::GET, format!("/v1/audit/{question}")),
        (Method::POST, "/v1/audit/verify".to_owned()),
        (Method::POST, format!("/v1/audit/{question}/replay")),
    ] {
        let said = refused(service, OPERATOR, method, &path, 403).await;
        assert!(said.contains("no rule lets role `operator`"), "{path}: {said}");
    }
    refused(service, "auditor", Method::POST, &format!("/v1/audit/{question}/replay"), 403).await;
    let denials = get(service, "auditor", &format!("/v1/audit?kind=denied&who={OPERATOR}")).await;
    let actions: Vec<&str> =
        denials["entries"].as_array().unwrap().iter().map(|entry| text(&entry["detail"], "action")).collect();
    // The same denial again within a minute is counted, and told by a later record.
    assert_eq!(actions, ["replay_audit", "verify_audit", "read_audit"]);
}

async fn an_auditor_lists_filters_pages_and_opens(service: &Service, first: &Value) {
    let ids = |page: &Value| -> Vec<String> {
        page["entries"].as_array().unwrap().iter().map(|entry| text(entry, "question_id").to_owned()).collect()
    };
    let all = get(service, "auditor", "/v1/audit?kind=question").await;
    assert_eq!(ids(&all).len(), 4);
    let first_id = text(&first["audit"], "question_id");
    for (filter, count) in [
        (format!("who={OPERATOR}"), 3),
        ("tenant=borealis".to_owned(), 1),
        ("tool=top_k".to_owned(), 3),
        ("tool=job_correlation".to_owned(), 1),
        ("table=job_gpus&text=SLOW".to_owned(), 1),
        ("outcome=answered&decision=allowed".to_owned(), 4),
        ("decision=denied".to_owned(), 0),
        ("from=2020-01-01&to=2020-01-02".to_owned(), 0),
        ("from=2020-01-01".to_owned(), 4),
    ] {
        let found = get(service, "auditor", &format!("/v1/audit?kind=question&{filter}")).await;
        assert_eq!(ids(&found).len(), count, "{filter}: {found}");
    }
    let mut walked = Vec::new();
    let mut path = "/v1/audit?kind=question&limit=1".to_owned();
    loop {
        let page = get(service, "auditor", &path).await;
        walked.extend(ids(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/audit?kind=question&limit=1&cursor={cursor}");
    }
    assert_eq!(walked, ids(&all));
    assert_eq!(walked.last().map(String::as_str), Some(first_id));

    let opened = get(service, "auditor", &format!("/v1/audit/{first_id}")).await;
    assert_eq!(opened["question"], WHY);
    assert_eq!((&opened["who"], &opened["outcome"]), (&json!(OPERATOR), &json!("answered")));
    assert_eq!(opened["hash"], first["audit"]["hash"]);
    assert_eq!(opened["integrity"]["first_bad"], Value::Null);
    let calls = opened["records"].as_array().unwrap();
    assert_eq!(opened["work"]["calls"], calls.len());
    assert!(calls.iter().any(|call| call["record"]["sql"].as_str().is_some_and(|sql| sql.starts_with("SELECT"))));
    assert!(opened["complete"]["record"]["answer_digest"].is_string());
    refused(service, "auditor", Method::GET, "/v1/audit/none", 404).await;
    for bad in ["kind=x", "decision=x", "from=x", "cursor=x", "nonsense=1", "limit=x"] {
        refused(service, "auditor", Method::GET, &format!("/v1/audit?{bad}"), 422).await;
    }
}

async fn the_log_is_verified_and_each_look_stands_in_it(service: &Service) {
    let response = service.request("auditor", Method::POST, "/v1/audit/verify").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let found: Value = response.json().await.unwrap();
    assert_eq!((&found["whole"], &found["first_bad"]), (&json!(true), &Value::Null), "{found}");
    let looks = |kind: &'static str| async move {
        let path = format!("/v1/audit?kind={kind}&who=auditor&limit=1000");
        get(service, "auditor", &path).await["entries"].as_array().unwrap().clone()
    };
    assert_eq!(looks("audit_verified").await.len(), 1);
    let before = looks("audit_read").await.len();
    // A look is recorded before it is taken, so it sees itself.
    let after = looks("audit_read").await;
    assert_eq!(after.len(), before + 1);
    assert_eq!(after[0]["detail"]["kind"], "audit_read");
}

async fn usage_is_ones_own_or_everybodys_by_role(service: &Service) {
    let of = |usage: &Value| -> Vec<(String, u64)> {
        let lines = usage["usage"].as_array().unwrap().iter();
        lines.map(|line| (text(line, "principal").to_owned(), line["questions"].as_u64().unwrap())).collect()
    };
    let own = get(service, OPERATOR, "/v1/usage").await;
    assert_eq!(of(&own), [(OPERATOR.to_owned(), 3)]);
    assert!(own["usage"][0]["rows_read"].as_u64().unwrap() > 0);
    assert_eq!(of(&get(service, OPERATOR, &format!("/v1/usage?principal={OPERATOR}")).await).len(), 1);
    refused(service, OPERATOR, Method::GET, &format!("/v1/usage?principal={OTHER}"), 403).await;
    refused(service, OPERATOR, Method::GET, "/v1/usage?tenant=atlas", 403).await;
    let all = get(service, "auditor", "/v1/usage").await;
    assert_eq!(of(&all), [(OPERATOR.to_owned(), 3), (OTHER.to_owned(), 1)]);
    assert_eq!(of(&get(service, "admin", "/v1/usage?tenant=borealis").await), [(OTHER.to_owned(), 1)]);
    assert_eq!(of(&get(service, "admin", "/v1/usage?to=2020-01-01").await), []);
    refused(service, "admin", Method::GET, "/v1/usage?from=x", 422).await;
}

/// Runs a statement as the writer of the service's engine.
async fn write(folder: &Path, sql: &str) {
    let address = engine_address(folder).unwrap().unwrap();
    let password = address.credentials.password(EngineUser::Writer);
    let request = crate::harness::http().post(address.url()).body(sql.to_owned());
    let response = request.basic_auth(EngineUser::Writer.name(), Some(password)).send().await.unwrap();
    let status = response.status();
    assert!(status.is_success(), "{sql}: {}", response.text().await.unwrap());
}

async fn recorded_queries_give_the_same_rows_or_it_is_said_why_not(service: &Service, first: &Value, folder: &Path) {
    let question = text(&first["audit"], "question_id").to_owned();
    let replay = || async {
        let path = format!("/v1/audit/{question}/replay");
        let response = service.request("admin", Method::POST, &path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json::<Value>().await.unwrap()
    };
    let verdicts = |replayed: &Value| -> Vec<String> {
        replayed["calls"].as_array().unwrap().iter().map(|call| text(call, "verdict").to_owned()).collect()
    };
    let replayed = replay().await;
    let calls = verdicts(&replayed);
    assert!(calls.len() > 3 && calls.iter().all(|verdict| verdict == "same"), "{replayed}");
    assert_eq!(replayed["same"], calls.len());

    // The replay is a question of the reviewer's own, with a call for each query.
    let own = get(service, "auditor", &format!("/v1/audit/{}", text(&replayed, "replay_id"))).await;
    assert_eq!((&own["who"], &own["entrance"]), (&json!("admin"), &json!("audit")));
    assert_eq!(own["records"].as_array().unwrap().len(), calls.len());
    assert_eq!(get(service, "auditor", "/v1/audit?kind=audit_replayed").await["entries"].as_array().unwrap().len(), 1);

    write(folder, "TRUNCATE TABLE sightline.metrics").await;
    let replayed = replay().await;
    let calls = verdicts(&replayed);
    assert!(calls.iter().any(|verdict| verdict == "gone"), "{replayed}");
    assert!(calls.iter().any(|verdict| verdict == "same"), "jobs are still there: {replayed}");
}

fn audit(folder: &Path, who: &str, arguments: &[&str]) -> Output {
    let mut all = vec!["audit", "--as", who];
    all.extend(arguments);
    run(folder, &all)
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn the_command_line_shows_the_same(folder: &Path, first: &Value) {
    let question = text(&first["audit"], "question_id");
    let page: Value = serde_json::from_str(&stdout(&audit(
        folder,
        "auditor",
        &["list", "--json", "--kind", "question", "--who", OPERATOR],
    )))
    .unwrap();
    assert_eq!(page["entries"].as_array().unwrap().len(), 3);
    let lines = stdout(&audit(folder, "auditor", &["list", "--kind", "question", "--limit", "2"]));
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let shown = stdout(&audit(folder, "auditor", &["show", question]));
    assert!(shown.contains(WHY) && shown.contains("as they were written"), "{shown}");
    let verified = stdout(&audit(folder, "auditor", &["verify"]));
    assert!(verified.contains("the log is whole"), "{verified}");
    let used = stdout(&audit(folder, "admin", &["usage", "--principal", OPERATOR]));
    assert!(used.contains("3 questions"), "{used}");
    // Not all of its rows are what they were, as above.
    let output = audit(folder, "admin", &["replay", question, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("gave the same rows"), "{}", stderr(&output));
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(replayed["question_id"], question);
    for (who, arguments, code, says) in [
        (OPERATOR, &["list"][..], 1, "no rule lets role `operator`"),
        (OPERATOR, &["export"][..], 1, "no rule lets role `operator`"),
        ("auditor", &["erase", question][..], 1, "no rule lets role `auditor`"),
        ("auditor", &["replay", question][..], 1, "no rule lets role `auditor`"),
        ("admin", &["erase", question, "none"][..], 1, "there is no question `none` in the log; nothing was erased"),
        ("admin", &["erase", "--principal", "nobody"][..], 1, "there is no question of `nobody` in the log; nothing"),
        ("nobody", &["list"][..], 2, "there is no principal `nobody`"),
        ("auditor", &["list", "--kind", "x"][..], 2, "there is no kind `x`"),
        ("auditor", &["show", "none"][..], 1, "there is no question with this id"),
        ("auditor", &["export", "--who", OPERATOR][..], 2, "jsonl is the chain itself"),
    ] {
        let output = audit(folder, who, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
}

fn an_export_is_a_look_too(folder: &Path) {
    let out = folder.join("export.csv");
    let path = out.to_str().unwrap();
    assert!(
        audit(folder, "auditor", &["export", "--format", "csv", "--kind", "question", "--out", path]).status.success()
    );
    let table = std::fs::read_to_string(&out).unwrap();
    assert!(table.starts_with("seq,time,kind,") && table.contains(WHY), "{table}");
    let ocsf = stdout(&audit(folder, "auditor", &["export", "--format", "ocsf", "--who", OPERATOR]));
    for line in ocsf.lines() {
        let document: Value = serde_json::from_str(line).unwrap();
        assert_eq!(document["metadata"]["version"], "1.6.0");
    }
    let chain = stdout(&audit(folder, "auditor", &["export"]));
    let lines: Vec<Value> = chain.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.first().unwrap()["log"].is_object() && lines.last().unwrap()["head"].is_object());
    let looks: Value =
        serde_json::from_str(&stdout(&audit(folder, "auditor", &["list", "--json", "--kind", "audit_exported"])))
            .unwrap();
    let formats: Vec<&str> =
        looks["entries"].as_array().unwrap().iter().map(|entry| text(&entry["detail"], "format")).collect();
    assert_eq!(formats, ["jsonl", "ocsf", "csv"]);
}

fn a_text_is_erased_and_the_log_stays_whole(folder: &Path, first: &Value) {
    let question = text(&first["audit"], "question_id");
    let erased: Value = serde_json::from_str(&stdout(&audit(folder, "admin", &["erase", question, "--json"]))).unwrap();
    assert_eq!((&erased["erased"], &erased["answers_erased"]), (&json!([question]), &json!(1)));
    let shown: Value = serde_json::from_str(&stdout(&audit(folder, "auditor", &["show", question, "--json"]))).unwrap();
    assert_eq!((&shown["erased"], &shown["question"]), (&json!(true), &json!("(erased)")));
    let everything: Value = serde_json::from_str(&stdout(&audit(
        folder,
        "admin",
        &["erase", "--principal", OTHER, "--conversations", "--json"],
    )))
    .unwrap();
    assert_eq!((everything["erased"].as_array().unwrap().len(), &everything["conversations_deleted"]), (1, &json!(1)));
    assert!(stdout(&audit(folder, "auditor", &["verify"])).contains("the log is whole"));
    // Without its parameters no query can be run again.
    let output = audit(folder, "admin", &["replay", question, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("gave the same rows"), "{}", stderr(&output));
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = replayed["calls"].as_array().unwrap();
    assert!(
        calls.iter().all(|call| text(call, "verdict") == "gone" && text(call, "reason").contains("erased")),
        "{calls:?}"
    );
}

async fn conversations_are_deleted_by_their_asker(service: &Service, second: &Value) {
    // An admin took these away.
    assert_eq!(get(service, OTHER, "/v1/conversations").await["conversations"], json!([]));
    let path = format!("/v1/conversations/{}", text(second, "conversation_id"));
    let evidence = format!("/v1/evidence/{}.E1", text(second, "answer_id"));
    get(service, OPERATOR, &evidence).await;
    assert_eq!(service.request(OPERATOR, Method::DELETE, &path).send().await.unwrap().status(), 204);
    refused(service, OPERATOR, Method::GET, &path, 404).await;
    refused(service, OPERATOR, Method::DELETE, &path, 404).await;
    refused(service, OPERATOR, Method::GET, &evidence, 404).await;
    let all = "/v1/conversations";
    refused(service, OPERATOR, Method::DELETE, "/v1/conversations?principle=viewer%40atlas", 422).await;
    // Somebody else's: for who may, and never one's own instead.
    let theirs = "/v1/conversations?principal=operator%40atlas";
    refused(service, "viewer@atlas", Method::DELETE, theirs, 403).await;
    let denied = get(service, "auditor", "/v1/audit?kind=denied&who=viewer@atlas").await;
    assert_eq!(text(&denied["entries"][0]["detail"], "action"), "manage_conversations", "{denied}");
    assert_eq!(get(service, OPERATOR, all).await["conversations"].as_array().unwrap().len(), 1);
    let response = service.request("admin", Method::DELETE, theirs).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "deleted": 1 }));
    assert_eq!(get(service, OPERATOR, all).await["conversations"], json!([]));
    let events = get(service, "auditor", "/v1/audit?kind=conversations_deleted&who=admin").await;
    assert!(events["entries"].as_array().unwrap().iter().any(|event| event["detail"]["of"] == OPERATOR), "{events}");
    let response = service.request(OPERATOR, Method::DELETE, all).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "deleted": 0 }));
    assert_eq!(get(service, OPERATOR, "/v1/conversations").await["conversations"], json!([]));
    let events = get(service, "auditor", &format!("/v1/audit?kind=conversations_deleted&who={OPERATOR}")).await;
    assert_eq!(events["entries"].as_array().unwrap().len(), 2);
}

fn a_changed_record_is_told_with_its_number(folder: &Path) {
    let log = rusqlite::Connection::open(folder.join("audit.db")).unwrap();
    let trigger = "SELECT sql FROM sqlite_schema WHERE name = 'record_is_not_changed'";
    let trigger: String = log.query_row(trigger, [], |row| row.get(0)).unwrap();
    let change = "UPDATE record SET body = replace(body, '\"tool\":\"', '\"tool\":\"x') WHERE seq = (SELECT min(seq) FROM record WHERE kind = 'call')";
    log.execute_batch(&format!("DROP TRIGGER record_is_not_changed; {change}; {trigger};")).unwrap();
    let seq: u64 = log.query_row("SELECT min(seq) FROM record WHERE kind = 'call'", [], |row| row.get(0)).unwrap();
    drop(log);
    let output = audit(folder, "auditor", &["verify", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["whole"], &found["first_bad"]), (&json!(false), &json!(seq)), "{found}");
}
