//! Values reach the engine byte for byte.

use clickhouse::Row;
use serde::{Deserialize, Serialize};

use crate::target::Target;

const HOSTILE_VALUES: &str = include_str!("../../../../fixtures/redteam/hostile_values.jsonl");

#[derive(Deserialize)]
struct HostileValue {
    value: String,
}

fn hostile_values() -> Vec<String> {
    let own = ["\0", "a\0b", "a\tb", "\u{b}\u{c}\u{8}", "\\\\\\'", "é\u{10ffff}", "", "[1,'2']", "{'a':1}", "NULL"];
    let values = HOSTILE_VALUES.lines().map(|line| serde_json::from_str::<HostileValue>(line).unwrap().value);
    let values: Vec<String> = values.chain(own.map(str::to_owned)).collect();
    assert!(values.len() > 30);
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_come_back_as_they_were() {
    let target = Target::any().await;
    for value in hostile_values() {
        let query = target.reader().query("SELECT {p0:String}, length({p0:String})").param("p0", &value);
        let (returned, length) = query.fetch_one::<(String, u64)>().await.unwrap();
        assert_eq!((returned.as_str(), length), (value.as_str(), value.len() as u64));
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_inside_arrays_and_tuples_come_back_as_they_were() {
    let target = Target::any().await;
    let values = hostile_values();
    let query = target.reader().query("SELECT {p0:Array(String)}").param("p0", &values);
    assert_eq!(query.fetch_one::<Vec<String>>().await.unwrap(), values);

    let pairs: Vec<(String, String)> = values.iter().cloned().zip(values.iter().rev().cloned()).collect();
    let query = target.reader().query("SELECT {p0:Array(Tuple(String, String))}").param("p0", &pairs);
    assert_eq!(query.fetch_one::<Vec<(String, String)>>().await.unwrap(), pairs);

    let none: Vec<String> = Vec::new();
    let query = target.reader().query("SELECT {p0:Array(String)}").param("p0", &none);
    assert_eq!(query.fetch_one::<Vec<String>>().await.unwrap(), none);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_and_numbers_come_back_as_they_were() {
    let target = Target::any().await;
    for time in ["2026-05-03 14:10:00.123", "1970-01-01 00:00:00.000", "2038-01-19 03:14:08.001"] {
        let query = target.reader().query("SELECT toString({p0:DateTime64(3, 'UTC')})").param("p0", time);
        assert_eq!(query.fetch_one::<String>().await.unwrap(), time);
    }
    // Any float near what telemetry measures. Far from there the engine's parser may miss the last bit (26.5: under 1e-13
    // as decimal digits) and takes the very smallest for zero, so no text may rest on a bound float being equal to a stored one.
    let mut numbers = vec![0.0, 0.1 + 0.2, 1e308, -1.5, 1.0 / 3.0, 123_456_789.123_456_79];
    let mut bits = 1_u64;
    for _ in 0..500 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.push((bits >> 11) as f64 / 1e6 - 4e9);
    }
    let query = target.reader().query("SELECT {p0:Array(Float64)}").param("p0", &numbers);
    let returned = query.fetch_one::<Vec<f64>>().await.unwrap();
    let to_bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
    assert!(to_bits(&returned) == to_bits(&numbers), "not every float came back to the last bit");
    let query = target.reader().query("SELECT {p0:Float64}").param("p0", 0.1 + 0.2);
    assert_eq!(query.fetch_one::<f64>().await.unwrap(), 0.1 + 0.2);
    target.end().await;
}

#[derive(Debug, Clone, PartialEq, Row, Serialize, Deserialize)]
struct Line {
    id: u32,
    body: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_inserted_and_read_as_they_were() {
    let target = Target::any().await.with_metrics().await;
    let writer = target.writer().with_database("contract");
    writer
        .query("CREATE OR REPLACE TABLE lines (id UInt32, body String) ENGINE = MergeTree ORDER BY id")
        .execute()
        .await
        .unwrap();
    // Twenty thousand rows, so that the data fill more than one block of the request.
    let values = hostile_values();
    let lines: Vec<Line> =
        (0..20_000).map(|id| Line { id, body: values[id as usize % values.len()].clone() }).collect();
    let mut insert = writer.insert::<Line>("lines").await.unwrap();
    for line in &lines {
        insert.write(line).await.unwrap();
    }
    insert.end().await.unwrap();
    let read = writer.query("SELECT ?fields FROM lines ORDER BY id").fetch_all::<Line>().await.unwrap();
    assert!(read == lines, "{} rows came back, and not all as they were", read.len());

    for line in lines.iter().take(values.len()) {
        let query = writer.query("SELECT count() FROM lines WHERE body = {p0:String} AND id = {p1:UInt32}");
        let count = query.param("p0", &line.body).param("p1", line.id).fetch_one::<u64>().await.unwrap();
        assert_eq!(count, 1, "{line:?}");
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_does_not_fit_its_type_is_an_error() {
    let target = Target::any().await;
    for (kind, value) in [("UInt8", "1 OR 1"), ("Float64", "(SELECT 1)"), ("DateTime64(3, 'UTC')", "yesterday")] {
        let query = target.reader().query(&format!("SELECT toString({{p0:{kind}}})")).param("p0", value);
        assert!(query.fetch_one::<String>().await.is_err(), "{kind} took `{value}`");
    }
    let missing = target.reader().query("SELECT {p0:String}").fetch_one::<String>().await;
    assert!(missing.is_err());
    target.end().await;
}
