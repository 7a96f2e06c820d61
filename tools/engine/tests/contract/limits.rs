//! Bounds come back as errors of their own.

use crate::target::{Target, code};

async fn refused_with(target: &Target, sql: &str, settings: &[(&str, &str)]) -> u32 {
    let query =
        settings.iter().fold(target.reader().query(sql), |query, (name, value)| query.with_setting(*name, *value));
    code(&query.fetch_all::<u64>().await.unwrap_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bound_has_its_own_error() {
    let target = Target::any().await.with_metrics().await;
    let rows = refused_with(&target, "SELECT number FROM numbers(100000)", &[("max_rows_to_read", "1000")]).await;
    assert_eq!(rows, 158);
    let rows_of_table =
        refused_with(&target, "SELECT toUInt64(t.value) FROM contract.metrics AS t", &[("max_rows_to_read", "5")])
            .await;
    assert_eq!(rows_of_table, 158);
    let endless = "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)";
    assert_eq!(refused_with(&target, endless, &[("max_execution_time", "1")]).await, 159);
    let big = "SELECT length(groupArray(number)) FROM numbers(10000000)";
    assert_eq!(refused_with(&target, big, &[("max_memory_usage", "10000000")]).await, 241);
    let long = "SELECT number FROM numbers(1000)";
    assert_eq!(refused_with(&target, long, &[("max_result_rows", "10")]).await, 396);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_of_one_request_do_not_reach_another() {
    let target = Target::any().await.with_metrics().await;
    let bounded = [("max_rows_to_read", "1"), ("max_result_rows", "1")];
    assert_eq!(refused_with(&target, "SELECT number FROM numbers(10)", &bounded).await, 158);
    let free = target.reader().query("SELECT number FROM numbers(10)").fetch_all::<u64>().await.unwrap();
    assert_eq!(free.len(), 10);
    target.writer().query("CREATE TABLE contract.after (a UInt8) ENGINE = Memory").execute().await.unwrap();
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reader_changes_nothing() {
    let target = Target::any().await.with_metrics().await;
    for sql in [
        "CREATE TABLE contract.x (a UInt8) ENGINE = Memory",
        "INSERT INTO contract.metrics SELECT 'tenant-a', 'n', 1",
        "ALTER TABLE contract.metrics DELETE WHERE 1",
        "DROP TABLE contract.metrics",
        "SET max_threads = 3",
        "SYSTEM FLUSH LOGS",
    ] {
        let error = target.reader().query(sql).execute().await.unwrap_err();
        assert!(matches!(code(&error), 164 | 497), "{sql}: {error}");
    }
    let in_text = target.reader().query("SELECT 1 FROM contract.metrics SETTINGS max_threads = 1");
    assert_eq!(code(&in_text.fetch_all::<u8>().await.unwrap_err()), 164);
    target.end().await;
}
