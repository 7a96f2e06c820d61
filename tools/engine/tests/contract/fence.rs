//! The second fence: what the reader cannot reach when the guard's text is wrong.

use sightline_engine::EngineUser;

use crate::target::{Target, code};

#[tokio::test(flavor = "multi_thread")]
async fn tenant_filters_hold_against_aliases_and_lambdas() {
    let target = Target::any().await.with_metrics().await;
    for sql in [
        "SELECT sum(value) FROM contract.metrics",
        "SELECT sum(t.value) FROM contract.metrics AS t",
        "SELECT sum(value) FROM (SELECT value FROM contract.metrics)",
        "SELECT sum(s) FROM (SELECT sum(value) AS s, 'tenant-a' AS tenant FROM contract.metrics)",
        "SELECT sum(s) FROM (SELECT sum(value) AS s, 'tenant-a' AS tenant FROM contract.metrics WHERE tenant = 'tenant-a')",
        "WITH 'tenant-a' AS tenant SELECT sum(value) FROM contract.metrics WHERE tenant = 'tenant-a'",
        "WITH (x, y) -> 1 AS equals SELECT sum(value) FROM contract.metrics",
        "WITH (x, y) -> 1 AS in SELECT sum(value) FROM contract.metrics AS t",
        "WITH (x, y) -> 1 AS and SELECT sum(value) FROM contract.metrics AS t WHERE t.tenant = 'tenant-a'",
        "SELECT sum(value) FROM contract.metrics WHERE tenant = 'tenant-b' OR 1",
        "SELECT sum(value) FROM contract.metrics PREWHERE 1",
        "SELECT sum(a.value) FROM contract.metrics AS a INNER JOIN contract.metrics AS b ON a.tenant = b.tenant WHERE b.node = 'n' AND a.node != 'x' LIMIT 1",
    ] {
        let sum = target.reader().query(sql).fetch_one::<f64>().await;
        let sum = sum.unwrap_or_else(|error| panic!("{sql}: {error}"));
        // The join pairs each of the ten rows with ten rows of its own tenant.
        let expected = if sql.contains("JOIN") { 100.0 } else { 10.0 };
        assert_eq!(sum, expected, "{sql}");
    }
    let nothing = target.reader().query("SELECT count() FROM contract.metrics WHERE tenant = 'tenant-b'");
    assert_eq!(nothing.fetch_one::<u64>().await.unwrap(), 0);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reader_reaches_no_file_no_address_and_no_other_table() {
    let Some(target) = Target::embedded().await else { return };
    let target = target.with_metrics().await;
    for sql in [
        "SELECT count() FROM file('/etc/passwd', 'LineAsString')",
        "SELECT length(file('/etc/passwd'))",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "DESCRIBE TABLE url('http://127.0.0.1:1/', 'CSV')",
        "SELECT * FROM merge('contract', '.*')",
        "SELECT * FROM remote('127.0.0.1', 'contract', 'metrics')",
        "SELECT * FROM view(SELECT * FROM contract.metrics)",
        "SELECT * FROM contract.secrets",
        "SELECT * FROM `contract`.`secrets`",
        "SELECT * FROM contract./**/secrets",
        "SELECT * FROM system.processes",
        "SELECT * FROM system.settings",
        "SELECT * FROM information_schema.tables",
        "SHOW TABLES FROM contract",
        "EXPLAIN SELECT * FROM contract.metrics",
        "SELECT 1 INTO OUTFILE '/tmp/sightline-must-not-exist'",
        "SELECT 1 FROM contract.metrics; SELECT 2",
    ] {
        let error = target.reader().query(sql).execute().await.unwrap_err();
        assert!(matches!(code(&error), 62 | 164 | 497), "{sql}: {error}");
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_table_is_out_of_reach_from_its_first_moment() {
    let Some(target) = Target::embedded().await else { return };
    let target = target.with_metrics().await;
    let read = || target.reader().query("SELECT count() FROM contract.late").fetch_one::<u64>();
    assert_eq!(code(&read().await.unwrap_err()), 60, "there is no such table yet");
    target.writer().query("CREATE TABLE contract.late (a UInt8) ENGINE = Memory").execute().await.unwrap();
    assert_eq!(code(&read().await.unwrap_err()), 497);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_filters_the_reader_gets_nothing() {
    let Some(target) = Target::embedded().await else { return };
    for (query, sql) in
        [("", "SELECT 1"), ("additional_table_filters=", "SELECT 1"), ("additional_table_filters=%7B%7D", "SELECT 1")]
    {
        let response = target.post(EngineUser::Reader, query, sql).await;
        assert!(matches!(response.status().as_u16(), 400 | 403), "{query}");
    }
    let proof = target.post(EngineUser::Reader, "", "SELECT count() FROM system.processes WHERE query_id = 'x'").await;
    assert_eq!(proof.text().await.unwrap(), "0\n");
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_itself_refuses_what_readonly_forbids() {
    // What the front need not stop on 26.5.3, since readonly=1 does. Sent as the writer, with readonly set.
    let target = Target::any().await.with_metrics().await;
    let client =
        target.writer().with_setting("readonly", "1").with_setting("additional_table_filters", crate::target::FILTER);
    for sql in [
        "SELECT count() FROM file('/etc/passwd', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "SELECT 1 SETTINGS max_threads = 1",
        "SET additional_table_filters = {}",
        "CREATE TABLE contract.y (a UInt8) ENGINE = Memory",
    ] {
        let error = client.query(sql).execute().await.unwrap_err();
        assert_eq!(code(&error), 164, "{sql}: {error}");
    }
    target.end().await;
}
