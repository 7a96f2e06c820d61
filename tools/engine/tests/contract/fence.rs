//! The second fence: what the reader cannot reach when the guard's text is wrong.

use std::collections::BTreeSet;

use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{AdminSql, ClickHouseEngine, Endpoint, EngineUser, ProofFault, SecondFence, role_name};
use sightline_guard::{Bounds, Mapping};

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

/// Runs what an administrator runs, and proves it. It makes and drops a user, a profile, roles and a database of its own.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_administrator_runs_on_a_server_is_proved_there() {
    let Some(target) = Target::remote().await else { return };
    let (user, password) = ("sightline_contract", "contract-9-Fence");
    let (admin, database) = (target.writer(), DatabaseName::new("sightline_contract").unwrap());
    let mapping = Mapping::native(database.as_str()).unwrap();
    let tenants = BTreeSet::from(["atlas".to_owned(), "it's".to_owned()]);
    admin.query(&format!("DROP DATABASE IF EXISTS {database}")).execute().await.unwrap();
    for statement in native::statements(&database) {
        admin.query(&statement).execute().await.unwrap();
    }
    let rows =
        format!("INSERT INTO {database}.logs (tenant, time, body) VALUES ('atlas', now(), 'a'), ('other', now(), 'b')");
    admin.query(&rows).execute().await.unwrap();
    let widest = Bounds {
        max_rows_to_read: 1_000_000,
        max_bytes_to_read: 1_000_000_000,
        max_memory_usage: 1_000_000_000,
        max_execution_seconds: 30,
        max_result_rows: 1000,
        max_result_bytes: 64 << 20,
        force_primary_key: true,
    };
    let sql = AdminSql { user, mapping: &mapping, tenants: &tenants, widest: &widest };
    for statement in sql.statements() {
        let digest = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(password));
        let statement = statement.replace("put the SHA-256 of a long random password here, in hex", &digest);
        admin.query_raw(&statement).execute().await.unwrap();
    }
    let client = ClickHouseEngine::new(&Endpoint::new(&target.url, user, password), SecondFence::AtServer);
    client.prove_fence(&mapping, &tenants).await.unwrap();
    // A tenant without a role, and a role that sees too much, are found.
    let more = BTreeSet::from(["atlas".to_owned(), "late".to_owned()]);
    let missing = client.prove_fence(&mapping, &more).await.unwrap_err().proofs;
    assert!(missing.iter().any(|proof| matches!(proof.outcome, Err(ProofFault::NoRole { .. }))), "{missing:?}");
    let role = role_name("atlas");
    admin.query_raw(&format!("ALTER ROW POLICY `{role}` ON {database}.logs USING 1")).execute().await.unwrap();
    let leaking = client.prove_fence(&mapping, &tenants).await.unwrap_err().proofs;
    assert!(leaking.iter().any(|p| p.outcome == Err(ProofFault::Rows { table: "logs".to_owned() })), "{leaking:?}");
    for tenant in ["atlas", "it's", native::CANARY_TENANT] {
        admin.query_raw(&format!("DROP ROLE IF EXISTS `{}`", role_name(tenant))).execute().await.unwrap();
    }
    for statement in [format!("DROP USER IF EXISTS {user}"), format!("DROP DATABASE IF EXISTS {database}")] {
        admin.query_raw(&statement).execute().await.unwrap();
    }
    target.end().await;
}
