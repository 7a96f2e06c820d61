//! A query that nobody waits for ends.

use std::time::Duration;

use crate::target::{Target, code};

const ENDLESS_WORK: &str = "SELECT sum(sipHash64(number)) FROM numbers(100000000000000)";
const ENDLESS_ROWS: &str = "SELECT number FROM system.numbers";

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_query_is_gone() {
    let target = Target::any().await;
    for wait in ["0", "1"] {
        let id = format!("kill-{wait}");
        // The reader of an embedded engine may not name `system.numbers`, so the work is made of `numbers`.
        let query =
            target.reader().query(ENDLESS_WORK).with_setting("query_id", &id).with_setting("wait_end_of_query", wait);
        let running = tokio::spawn(query.fetch_one::<u64>());
        target.until_runs(&id, true).await;
        target
            .reader()
            .query("KILL QUERY WHERE query_id = {id:String} ASYNC")
            .param("id", &id)
            .execute()
            .await
            .unwrap();
        let error = tokio::time::timeout(Duration::from_secs(20), running).await.unwrap().unwrap().unwrap_err();
        assert_eq!(code(&error), 394, "{error}");
        target.until_runs(&id, false).await;
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_that_waits_returns_when_the_query_is_gone() {
    let Some(target) = Target::embedded().await else { return };
    let running = tokio::spawn(target.reader().query(ENDLESS_WORK).with_setting("query_id", "sync").fetch_one::<u64>());
    target.until_runs("sync", true).await;
    target.reader().query("KILL QUERY WHERE query_id = 'sync' SYNC").execute().await.unwrap();
    assert!(!target.runs("sync").await);
    assert_eq!(code(&running.await.unwrap().unwrap_err()), 394);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reader_does_not_kill_the_writers_query() {
    let Some(target) = Target::embedded().await else { return };
    let running =
        tokio::spawn(target.writer().query(ENDLESS_WORK).with_setting("query_id", "ingest").fetch_one::<u64>());
    target.until_runs("ingest", true).await;
    let kill = "KILL QUERY WHERE query_id = 'ingest' SYNC";
    target.reader().query(kill).execute().await.unwrap();
    assert!(target.runs("ingest").await);
    target.writer().query(kill).execute().await.unwrap();
    assert_eq!(code(&running.await.unwrap().unwrap_err()), 394);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_client_goes_before_the_first_row_ends() {
    let target = Target::any().await;
    let client = target.reader().with_setting("cancel_http_readonly_queries_on_client_close", "1");
    let running = tokio::spawn(client.query(ENDLESS_WORK).with_setting("query_id", "gone-early").fetch_one::<u64>());
    target.until_runs("gone-early", true).await;
    running.abort();
    target.until_runs("gone-early", false).await;
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_client_goes_in_the_middle_of_its_rows_ends() {
    let target = Target::any().await;
    let mut rows =
        target.writer().query(ENDLESS_ROWS).with_setting("query_id", "gone-late").fetch_bytes("RowBinary").unwrap();
    assert!(rows.next().await.unwrap().is_some());
    assert!(target.runs("gone-late").await);
    drop(rows);
    target.until_runs("gone-late", false).await;
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_whose_client_goes_leaves_no_row() {
    let target = Target::any().await.with_metrics().await;
    let writer = target.writer();
    writer.query("CREATE TABLE contract.half (a UInt64) ENGINE = MergeTree ORDER BY a").execute().await.unwrap();
    let mut insert = writer.insert_formatted_with("INSERT INTO contract.half FORMAT RowBinary");
    for _ in 0..20 {
        insert.send(vec![1; 800_000].into()).await.unwrap();
    }
    drop(insert);
    let rows = writer.query("SELECT count() FROM contract.half").fetch_one::<u64>().await.unwrap();
    assert_eq!(rows, 0);
    target.end().await;
}
