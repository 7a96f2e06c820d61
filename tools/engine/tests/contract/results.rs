//! Results large, parallel, empty and broken in the middle.

use std::time::{Duration, Instant};

use clickhouse::Row;
use serde::Deserialize;

use crate::target::{Target, code};

/// What a stream may add to the engine's memory, whatever its length: some blocks and the buffers of their formats.
const STREAM_MIB: u64 = 128;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_stream_through_flat_memory() {
    let target = Target::any().await;
    let sql = "SELECT number, toString(number) FROM numbers(8000000)";
    // A short run first: what the engine takes once for its caches and threads is not the stream's.
    target.reader().query("SELECT number FROM numbers(1000000)").fetch_all::<u64>().await.unwrap();
    let before = target.resident_mib();
    let mut bytes = target.reader().query(sql).fetch_bytes("TabSeparated").unwrap();
    let mut received = 0_u64;
    let mut most = before;
    let mut seen = 0;
    while let Some(part) = bytes.next().await.unwrap() {
        received += part.len() as u64;
        if received / 10_000_000 > seen {
            seen = received / 10_000_000;
            most = most.max(target.resident_mib());
        }
    }
    // Eight million numbers of 1 to 7 digits, twice, with tab and line feed.
    let digits: u64 =
        (1..=7).map(|length| length * if length == 1 { 10 } else { 9 * 10_u64.pow(length as u32 - 1) }).sum();
    let digits = digits - 2_000_000 * 7;
    assert_eq!(received, 2 * digits + 16_000_000);
    if let (Some(before), Some(most)) = (before, most) {
        assert!(
            most < before + STREAM_MIB,
            "the engine held {before} MiB before and up to {most} MiB during the stream"
        );
    }
    target.end().await;
}

#[derive(Debug, PartialEq, Row, Deserialize)]
struct Pair {
    number: u64,
    text: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_rows_of_many_blocks_come_whole_and_in_order() {
    let target = Target::any().await;
    let sql = "SELECT number, toString(number) AS text FROM numbers(500000) ORDER BY number";
    let rows = target.reader().query(sql).fetch_all::<Pair>().await.unwrap();
    assert_eq!(rows.len(), 500_000);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(*row, Pair { number: index as u64, text: index.to_string() });
    }
    let none = target.reader().query("SELECT number, '' AS text FROM numbers(10) WHERE number > 10");
    assert_eq!(none.fetch_all::<Pair>().await.unwrap(), Vec::new());
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_middle_of_a_stream_is_an_error() {
    let target = Target::any().await;
    let sql = "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2000000) = 0";
    let client = target.reader().with_setting("max_threads", "1").with_setting("max_block_size", "65536");
    for format in ["RowBinary", "TabSeparated"] {
        let mut bytes = client.query(sql).fetch_bytes(format).unwrap();
        let mut received = 0;
        let error = loop {
            match bytes.next().await {
                Ok(Some(part)) => received += part.len(),
                Ok(None) => panic!("{format}: the stream ended after {received} bytes as if it were whole"),
                Err(error) => break error,
            }
        };
        assert_eq!(code(&error), 395);
        assert!(received > 0, "{format}: rows were sent before the error");
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_summary_is_whole_when_it_is_waited_for() {
    let target = Target::any().await;
    let query = target.reader().query("SELECT number FROM numbers(1000000) WHERE number % 100000 = 0");
    let mut rows = query.with_setting("wait_end_of_query", "1").fetch::<u64>().unwrap();
    let mut count = 0;
    while rows.next().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 10);
    let summary = rows.summary().unwrap();
    assert_eq!((summary.read_rows(), summary.read_bytes()), (Some(1_000_000), Some(8_000_000)));
    assert_eq!(summary.result_rows(), Some(10));
    assert!(summary.elapsed_ns().unwrap() > 0);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_queries_run_at_once() {
    let target = Target::any().await;
    let started = Instant::now();
    let queries = (0..64_u64).map(|number| {
        // The reader may not sleep.
        let query = target.writer().query("SELECT {n:UInt64} * 2 + sleep(1)").param("n", number);
        tokio::spawn(async move { query.fetch_one::<u64>().await.map(|double| (number, double)) })
    });
    for query in futures::future::join_all(queries).await {
        let (number, double) = query.unwrap().unwrap();
        assert_eq!(double, number * 2);
    }
    assert!(started.elapsed() < Duration::from_secs(32), "64 queries of one second ran one after another");
    target.end().await;
}
