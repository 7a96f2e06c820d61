//! No text of the engine gets out, whatever goes wrong: not to the asker, the log, the audit log or the kept answers.
//!
//! The engine's error texts quote rows, of other tenants too. Every way to fail is provoked with a secret in it, and everything that
//! comes out is searched.

#![cfg(test)]

#[path = "../../../tools/engine/tests/fence/fake.rs"]
mod fake;
mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use fake::{Asked, FakeServer, ok, refusal};
use harness::{Lab, command, signal, wait_until};
use jiff::Timestamp;
use serde_json::{Value, json};
use service::Service;

const SECRET: &str = "xylographer-of-borealis";
const QUESTION: &str = "top 3 hottest GPUs in the last hour";

fn end() -> Timestamp {
    worlds::END.parse().unwrap()
}

/// Codes of ClickHouse that our queries can meet, those we have words for and some we do not.
const CODES: [i32; 38] = [
    158, 307, 159, 160, 241, 173, 396, 290, 202, 201, 745, 394, 735, 243, 60, 81, 47, 10, 16, 497, 516, 164, 277, 210,
    209, 279, 6, 27, 41, 43, 53, 62, 69, 72, 153, 395, 999, 1002,
];

/// Answers without a code, or that break off.
fn broken(index: usize) -> Option<Response<Body>> {
    let status = |status, text: String| Response::builder().status(status).body(Body::from(text)).unwrap();
    let header =
        |name: &str, value: &str, text: String| Response::builder().header(name, value).body(Body::from(text)).unwrap();
    let rows = "[\"atlas-n01\",\"3\",1.0]\n".repeat(3);
    let exception = format!("Code: 395. DB::Exception: {SECRET}. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO)");
    let answers = [
        status(StatusCode::INTERNAL_SERVER_ERROR, SECRET.to_owned()),
        status(StatusCode::BAD_GATEWAY, format!("<html>{SECRET}</html>")),
        status(StatusCode::SERVICE_UNAVAILABLE, format!("503 {SECRET}")),
        status(StatusCode::FORBIDDEN, SECRET.to_owned()),
        status(StatusCode::NOT_FOUND, SECRET.to_owned()),
        status(StatusCode::IM_A_TEAPOT, String::new()),
        ok(SECRET),
        ok(&format!("[\"{SECRET}\"]\n")),
        ok(&format!("[\"{SECRET}\",")),
        ok(&format!("{{\"{SECRET}\":1}}\n")),
        ok(&exception),
        ok(&format!("{rows}{exception}")),
        header("X-ClickHouse-Exception-Code", "395", exception.clone()),
        header(
            "X-ClickHouse-Exception-Tag",
            "abcdefghijklmnop",
            format!(
                "{rows}\r\n__exception__\r\nabcdefghijklmnop\r\n{exception}\n80 abcdefghijklmnop\r\n__exception__\r\n"
            ),
        ),
        header("X-ClickHouse-Summary", SECRET, SECRET.to_owned()),
        header("Location", &format!("http://127.0.0.1:1/{SECRET}"), SECRET.to_owned()),
    ];
    answers.into_iter().nth(index)
}

/// A server with a right fence, whose answer to a question is the one of that number.
fn answer(asked: &Asked, number: usize) -> Response<Body> {
    let text = &asked.body;
    if text.contains("PREWHERE") {
        return match CODES.get(number) {
            Some(code) => refusal(*code, &format!("Cannot parse string '{SECRET}' as Int32: (in query: {SECRET})")),
            None => broken(number - CODES.len()).unwrap_or_else(|| refusal(1002, SECRET)),
        };
    }
    if text.contains("system.processes") {
        return ok("0\n");
    }
    if text.starts_with("KILL") {
        return ok("");
    }
    let is_forbidden = ["INSERT", "CREATE"].iter().any(|word| text.starts_with(word)) || text.contains("SETTINGS");
    let roles = asked.all("role");
    if is_forbidden || roles.is_empty() {
        return refusal(164, SECRET);
    }
    if roles == ["sightline_t_sightline-nobody"] {
        return refusal(511, SECRET);
    }
    let canary = u8::from(roles == ["sightline_t_sightline-canary"]);
    let tables = ["metrics", "logs", "spans", "events", "jobs", "job_gpus"];
    let lines: String = tables.iter().map(|table| format!("[\"{table}\",0]\n")).collect();
    ok(&format!("{lines}[\"fence_canary\",{canary}]\n[\"asked\",1]\n"))
}

/// Every file of a folder that holds this.
fn files_with(secret: &str, folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The engine's own files hold the rows themselves.
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "engine") {
                files_with(secret, &path, found);
            }
        } else if std::fs::read(&path).unwrap_or_default().windows(secret.len()).any(|bytes| bytes == secret.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
}

fn hold_nothing_got_out(data_dir: &Path, log: &str) {
    let mut found = Vec::new();
    files_with(SECRET, data_dir, &mut found);
    assert_eq!(found, Vec::<String>::new());
    let line = log.lines().find(|line| line.contains(SECRET));
    assert_eq!(line, None, "in the log");
}

/// Asks as JSON and as events; gives back all that came.
async fn ask_both_ways(service: &Service, principal: &str, question: &str) -> String {
    let body = json!({ "question": question, "as_of": end() });
    let response = service.chat(principal, &body).send().await.unwrap();
    let headers = format!("{:?}", response.headers());
    let whole = response.text().await.unwrap();
    let streamed = service.stream(principal, question, end()).await.text().await.unwrap();
    assert!(!whole.is_empty() && streamed.contains("event: "), "{whole}\n{streamed}");
    format!("{headers}\n{whole}\n{streamed}")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_server_answers_its_text_stays_inside() {
    let number = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&number);
    let server = FakeServer::start(move |asked| answer(asked, current.load(Ordering::SeqCst))).await;
    let folder = tempfile::tempdir().unwrap();
    let environment = [("SIGHTLINE_LOG", "trace"), ("SIGHTLINE_CLICKHOUSE_URL", server.url.as_str())];
    let service = Service::start_with(folder.path(), &environment);
    let mut index = 0;
    while index < CODES.len() || broken(index - CODES.len()).is_some() {
        number.store(index, Ordering::SeqCst);
        let said = ask_both_ways(&service, "operator@atlas", QUESTION).await;
        assert!(!said.contains(SECRET), "answer {index}: {said}");
        if index % 6 == 0 {
            let mut ask = command(folder.path(), &["ask", "--as", "operator@atlas", QUESTION]);
            let output = ask.envs(environment).output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            assert!(!String::from_utf8_lossy(&said).contains(SECRET), "answer {index}");
        }
        index += 1;
    }
    assert_eq!(index, CODES.len() + 16);
    // Without this the test could hold because no question reached the server.
    let asked = server.asked().iter().filter(|asked| asked.body.contains("PREWHERE")).count();
    assert!(asked > 2 * index, "{asked}");
    let records = service.audited("hottest");
    assert!(records.len() >= 2 * index, "{}", records.len());
    hold_nothing_got_out(folder.path(), &service.log());
}

/// Puts in the place of a table one whose columns fail for every row, with the row in the text of the error.
async fn with_table_that_fails(lab: &Lab, value: &str, rows: u32) {
    lab.write("DROP TABLE IF EXISTS sightline.metrics").await;
    lab.write(&format!(
        "CREATE TABLE sightline.metrics (tenant LowCardinality(String), cluster LowCardinality(String), metric LowCardinality(String), \
         node LowCardinality(String), gpu LowCardinality(String), service LowCardinality(String), labels Map(String, String), \
         time DateTime64(3, 'UTC'), secret String, value Float64 ALIAS {value}) ENGINE = MergeTree ORDER BY (tenant, metric)"
    ))
    .await;
    lab.write(&format!(
        "INSERT INTO sightline.metrics (tenant, cluster, metric, node, gpu, labels, time, secret) SELECT ['atlas', 'borealis'][number % 2 + 1], \
         'east', 'DCGM_FI_DEV_GPU_TEMP', 'n01', '3', map('pod', '{SECRET}'), '2025-06-02 09:30:00', '{SECRET}' FROM numbers({rows})"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_in_the_engine_no_row_is_quoted() {
    let lab = Lab::start();
    lab.fill(&worlds::two_tenants()).await;
    let service = Service::start_with(lab.data_dir(), &[("SIGHTLINE_LOG", "trace")]);
    for (value, words) in [
        ("toFloat64(secret)", "code 6"),
        ("toFloat64(throwIf(notEmpty(secret)))", "code 395"),
        ("toFloat64(length(repeat(secret, 1000000)) + length(repeat(secret, 999999)))", "of memory, its limit"),
        ("toFloat64(intDiv(1, empty(secret)))", "code 153"),
        ("toFloat64(sleepEachRow(3))", "time limit"),
    ] {
        with_table_that_fails(&lab, value, if words == "of memory, its limit" { 4000 } else { 16 }).await;
        let said = ask_both_ways(&service, "viewer@atlas", QUESTION).await;
        assert!(said.contains(words), "{value}: {said}");
        assert!(!said.contains(SECRET), "{value}: {said}");
    }
    lab.write("DROP TABLE sightline.metrics").await;
    let said = ask_both_ways(&service, "viewer@atlas", QUESTION).await;
    assert!(said.contains("does not exist in the engine") && !said.contains(SECRET), "{said}");

    // The engine dies in the middle of a query.
    with_table_that_fails(&lab, "toFloat64(sleepEachRow(3))", 2).await;
    let body = json!({ "question": QUESTION, "as_of": end() });
    let asking = tokio::spawn(service.chat("viewer@atlas", &body).send());
    let sql = "SELECT count() FROM system.processes WHERE query LIKE '%sightline.metrics AS t%' AND query NOT LIKE '%processes%' AND query NOT LIKE 'EXPLAIN%'";
    let runs = async {
        while lab.write(sql).await == "0\n" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), runs).await.expect("no query of the question was seen");
    signal(service.engine_pid(), "KILL");
    let response = asking.await.unwrap().unwrap();
    assert!(response.status().is_server_error());
    let problem: Value = response.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("the engine cannot be reached"), "{problem}");
    wait_until("its end is written down", || service.audited("hottest")[0].complete.is_some());
    hold_nothing_got_out(lab.data_dir(), &service.log());
}

/// Sends a request with these headers and gives back all that came.
async fn sent(service: &Service, method: reqwest::Method, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut request = service.client.request(method, format!("{}{path}", service.url)).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.header("Content-Type", "application/json").send().await.unwrap();
    let head = format!("{} {:?}", response.status(), response.headers());
    format!("{head}\n{}", response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_stands_in_a_log_a_file_or_an_answer_that_is_not_its_own() {
    let server = FakeServer::start(|asked| answer(asked, 0)).await;
    let folder = tempfile::tempdir().unwrap();
    let environment = [("SIGHTLINE_LOG", "trace"), ("SIGHTLINE_CLICKHOUSE_URL", server.url.as_str())];
    let mut service = Service::start_with(folder.path(), &environment);
    let token = service.token("operator@atlas").to_owned();
    let (id, secret) = token.trim_start_matches("sl_").split_once('_').unwrap();
    let guessed = format!("sl_{id}_{}", "5ec7e7".repeat(11).split_at(64).0);
    let old = format!("sl_{}", "0ld5ec7e7".repeat(8).split_at(64).0);
    let jwt = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJwbGFudGVkLWlzc3VlciJ9.cGxhbnRlZC1zaWduYXR1cmU".to_owned();

    let post = reqwest::Method::POST;
    let login = sent(&service, post.clone(), "/login", &[], &json!({ "token": token }).to_string()).await;
    let cookie = login.split("sightline_session=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let csrf = login.split("csrf_token\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!((cookie.len(), csrf.len()), (64, 64), "{login}");
    let cookie_line = format!("sightline_session={cookie}");
    let mut said = vec![login.replace(&cookie, "").replace(&csrf, "")];
    let question = json!({ "question": QUESTION, "as_of": end() }).to_string();
    for credential in [&token, &guessed, &old, &jwt] {
        let bearer = format!("Bearer {credential}");
        said.push(sent(&service, post.clone(), "/v1/chat", &[("Authorization", &bearer)], &question).await);
        said.push(
            sent(
                &service,
                post.clone(),
                "/login",
                &[("Authorization", &bearer)],
                &format!("{{\"token\": \"{credential}"),
            )
            .await,
        );
        if *credential != token {
            said.push(sent(&service, post.clone(), "/login", &[], &json!({ "token": credential }).to_string()).await);
        }
    }
    for _ in 0..3 {
        said.push(sent(&service, post.clone(), "/v1/chat", &[("Authorization", &format!("Bearer {jwt}"))], "").await);
    }
    for csrf in ["wrong", csrf.as_str()] {
        let headers = [("Cookie", cookie_line.as_str()), ("X-CSRF-Token", csrf)];
        said.push(sent(&service, post.clone(), "/v1/chat", &headers, &question).await);
        said.push(sent(&service, post.clone(), "/v1/chat", &headers, "{").await);
        said.push(sent(&service, post.clone(), "/logout", &headers, "").await);
    }
    assert!(service.terminate().success(), "what is recorded last is recorded");
    let said = said.join("\n");
    for status in ["401", "403", "429", "400", "204"] {
        assert!(said.contains(&format!("{status} ")), "no answer was {status}:\n{said}");
    }
    let planted = [
        secret,
        &guessed,
        &old,
        &cookie,
        &csrf,
        "cGxhbnRlZC1zaWduYXR1cmU",
        "eyJpc3MiOiJwbGFudGVkLWlzc3VlciJ9",
        "planted-issuer",
    ];
    for secret in planted {
        assert!(!said.contains(secret), "{secret} came back:\n{said}");
        let line = service.log().lines().find(|line| line.contains(secret)).map(str::to_owned);
        assert_eq!(line, None, "in the log");
        let mut found = Vec::new();
        files_with(secret, folder.path(), &mut found);
        assert_eq!(found, Vec::<String>::new(), "{secret}");
    }
    // The search finds what is there.
    let mut found = Vec::new();
    files_with(id, folder.path(), &mut found);
    // The checker's own lines are there at any time; what a client library writes hangs on which question came first.
    assert!(!found.is_empty() && service.log().contains("DEBUG"), "{found:?}");
}
