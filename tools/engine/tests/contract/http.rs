//! The HTTP interface as curl and other clients use it.

use sightline_engine::EngineUser::{Reader, Writer};

use crate::target::Target;

#[tokio::test(flavor = "multi_thread")]
async fn a_query_may_come_in_the_url_or_in_the_body() {
    let Some(target) = Target::embedded().await else { return };
    assert_eq!(target.post(Writer, "", "SELECT 1 + 1").await.text().await.unwrap(), "2\n");
    assert_eq!(target.post(Writer, "query=SELECT%201%20%2B%202", "").await.text().await.unwrap(), "3\n");
    assert_eq!(
        target.post(Writer, "query=SELECT%201", "+ 3 FORMAT JSONEachRow").await.text().await.unwrap(),
        "{\"plus(1, 3)\":4}\n"
    );
    let named = target.post(Writer, "default_format=CSV&query_id=my-id&param_p=x", "SELECT {p:String}").await;
    assert_eq!(named.headers()["x-clickhouse-query-id"], "my-id");
    assert_eq!(named.headers()["x-clickhouse-format"], "CSV");
    assert_eq!(named.text().await.unwrap(), "\"x\"\n");
    let ping = crate::plain_http::client().get(format!("{}/ping", target.url)).send().await.unwrap();
    assert_eq!(ping.text().await.unwrap(), "Ok.\n");
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_password_there_is_only_a_ping() {
    let Some(target) = Target::embedded().await else { return };
    for request in [
        crate::plain_http::client().post(&target.url).body("SELECT 1"),
        crate::plain_http::client().post(&target.url).body("SELECT 1").basic_auth("writer", Some("")),
        crate::plain_http::client().post(&target.url).body("SELECT 1").basic_auth("default", Some("")),
        crate::plain_http::client().get(format!("{}/?query=SELECT%201", target.url)),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(response.headers()["x-clickhouse-exception-code"], "516");
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_carry_their_code() {
    let Some(target) = Target::embedded().await else { return };
    for (sql, status, code) in [
        ("SELEC 1", 400, "62"),
        ("SELECT 1; SELECT 2", 400, "62"),
        ("SELECT * FROM nowhere", 404, "60"),
        ("", 400, "62"),
    ] {
        let response = target.post(Writer, "", sql).await;
        assert_eq!(
            (response.status().as_u16(), response.headers()["x-clickhouse-exception-code"].to_str().unwrap()),
            (status, code),
            "{sql}"
        );
        assert!(response.text().await.unwrap().starts_with(&format!("Code: {code}. ")));
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_follow_an_insert_in_the_body() {
    let Some(target) = Target::embedded().await else { return };
    let target = target.with_metrics().await;
    target.post(Writer, "", "CREATE TABLE contract.t (a UInt64, s String) ENGINE = MergeTree ORDER BY a").await;
    let lines = "{\"a\": 1, \"s\": \"x;'--\"}\n{\"a\": 2, \"s\": \"y\"}\n";
    let sent = target.post(Writer, "query=INSERT%20INTO%20contract.t%20FORMAT%20JSONEachRow", lines).await;
    let summary = sent.headers()["x-clickhouse-summary"].to_str().unwrap().to_owned();
    assert!(summary.contains(r#""written_rows":"2""#), "{summary}");
    target.post(Writer, "", format!("INSERT INTO contract.t FORMAT JSONEachRow {lines}")).await;
    target.post(Writer, "", "INSERT INTO contract.t (s, a) VALUES ('it''s; me', 3)").await;
    let rows = target.post(Writer, "", "SELECT a, s, count() FROM contract.t GROUP BY a, s ORDER BY a").await;
    assert_eq!(rows.text().await.unwrap(), "1\tx;\\'--\t2\n2\ty\t2\n3\tit\\'s; me\t1\n");

    let parquet =
        target.post(Writer, "", "SELECT a + 10 AS a, s FROM contract.t FORMAT Parquet").await.bytes().await.unwrap();
    let sent = target.post(Writer, "query=INSERT%20INTO%20contract.t%20FORMAT%20Parquet", parquet.slice(..)).await;
    assert_eq!(sent.status(), 200);
    let cut = target.post(Writer, "query=INSERT%20INTO%20contract.t%20FORMAT%20Parquet", parquet.slice(..100)).await;
    assert_ne!(cut.status(), 200);
    let count = target.post(Writer, "", "SELECT count(), sum(a) FROM contract.t").await;
    assert_eq!(count.text().await.unwrap(), "10\t68\n");
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn get_changes_nothing() {
    let Some(target) = Target::embedded().await else { return };
    let (user, password) = target.engine().login(Writer);
    let get = |sql: &str| {
        let request = crate::plain_http::client().get(format!("{}/?query={}", target.url, sql.replace(' ', "%20")));
        request.basic_auth(user, Some(password)).send()
    };
    assert_eq!(get("SELECT 1").await.unwrap().text().await.unwrap(), "1\n");
    assert_eq!(get("CREATE DATABASE d").await.unwrap().headers()["x-clickhouse-exception-code"], "164");
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_queries_of_one_id_do_not_run_at_once() {
    let Some(target) = Target::embedded().await else { return };
    let first = target.writer().query("SELECT sleep(2)").with_setting("query_id", "twin");
    let first = tokio::spawn(first.fetch_one::<u8>());
    target.until_runs("twin", true).await;
    let second = target.post(Writer, "query_id=twin", "SELECT 1").await;
    assert_eq!(second.headers()["x-clickhouse-exception-code"], "216");
    first.await.unwrap().unwrap();
    for id in ["a b", "a'b", ""] {
        let response = target.post(Reader, &format!("query_id={}", id.replace(' ', "%20")), "SELECT 1").await;
        assert_eq!(response.status(), 400, "`{id}`");
    }
    target.end().await;
}
