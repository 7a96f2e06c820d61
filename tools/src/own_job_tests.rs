use std::collections::BTreeSet;

use serde_json::{Value, json};
use sightline_model::{Cell, TimeRange};
use sightline_query::Query;

use super::{Places, Run, asked, named, none_of_yours, places, places_query, run, runs_query};
use crate::testing::{at, context, fetched, read_out, s, t, text};
use crate::tool::{Fetched, ToolError};

const NOW: i64 = 36_000;

fn cells(query: &Query, cell: impl Fn(&str) -> Cell) -> Vec<Cell> {
    context().catalogue.check(query).unwrap().columns().iter().map(|c| cell(&c.name)).collect()
}

/// Runs by start, end and cluster.
fn jobs(runs: &[(i64, Option<i64>, &str)]) -> Fetched {
    let query = runs_query("J1", at(NOW), 100).unwrap();
    let rows = runs.iter().map(|(start, end, cluster)| {
        cells(&query, |name| match name {
            "time" => t(*start),
            "end" => end.map_or(Cell::Null, t),
            "cluster" => s(cluster),
            "tenant" => s("atlas"),
            _ => s("x"),
        })
    });
    fetched(0, &query, rows.collect())
}

fn the_run() -> Run {
    Run { tenant: "atlas".to_owned(), cluster: "east".to_owned(), start: at(1000), end: at(9000) }
}

/// Placements by attempt, node, GPU, start and end.
fn gpus(held: &[(&str, &str, &str, i64, Option<i64>)]) -> Fetched {
    let query = places_query("J1", &the_run(), 100).unwrap();
    let rows = held.iter().map(|(attempt, node, gpu, start, end)| {
        cells(&query, |name| match name {
            "time" => t(*start),
            "end" => end.map_or(Cell::Null, t),
            "attempt" => s(attempt),
            "node" => s(node),
            "gpu" => s(gpu),
            _ => s("x"),
        })
    });
    fetched(0, &query, rows.collect())
}

fn window(from: i64, to: i64) -> Option<TimeRange> {
    TimeRange::new(at(from), at(to))
}

fn held(slots: &[(&str, &str)], from: i64, to: i64, attempts: usize) -> Places {
    let slots: BTreeSet<_> = slots.iter().map(|(node, gpu)| ((*node).to_owned(), (*gpu).to_owned())).collect();
    Places { slots, from: at(from), to: at(to), attempts }
}

#[test]
fn a_call_names_its_job_as_an_argument_or_by_one_filter() {
    let by = |filter: Value| json!({ "filters": [{ "dim": "node", "values": ["n1"] }, filter] });
    for (arguments, expected) in [
        (json!({ "job": "J1" }), Some("J1")),
        (json!({ "job": "J1", "filters": [{ "dim": "job", "values": ["J2"] }] }), Some("J1")),
        (by(json!({ "dim": "job", "values": ["J1"] })), Some("J1")),
        (by(json!({ "dim": "job_id", "op": "is", "values": ["J1"] })), Some("J1")),
        (by(json!({ "dim": "job", "values": ["J1", "J2"] })), None),
        (by(json!({ "dim": "job", "op": "not", "values": ["J1"] })), None),
        (by(json!({ "dim": "job", "op": "contains", "values": ["J"] })), None),
        (by(json!({ "dim": "user", "values": ["ann"] })), None),
        (json!({ "search": "J1" }), None),
        (json!({ "job": 7, "filters": "J1" }), None),
        (json!([]), None),
    ] {
        assert_eq!(named(&arguments), expected, "{arguments}");
    }
}

#[test]
fn the_window_is_the_asked_one_until_now() {
    assert_eq!(asked(&json!({}), at(NOW)), TimeRange::new(jiff::Timestamp::UNIX_EPOCH, at(NOW)));
    let later = json!({ "from": text(100), "to": text(NOW + 100) });
    assert_eq!(asked(&later, at(NOW)), window(100, NOW));
    assert_eq!(asked(&json!({ "from": text(100), "to": text(50) }), at(NOW)), None);
}

#[test]
fn of_several_runs_the_latest_in_the_window_is_meant() {
    let runs = jobs(&[(1000, Some(9000), "east"), (20_000, None, "west")]);
    let started = |window| run(&runs, window, at(NOW)).unwrap().map(|run| (run.start, run.end, run.cluster));
    let [first, second] = [(at(1000), at(9000), "east".to_owned()), (at(20_000), at(NOW), "west".to_owned())];
    assert_eq!(started(window(0, NOW)), Some(second.clone()));
    assert_eq!(started(window(0, 9500)), Some(first));
    // In none of them: whichever, nothing is there then.
    assert_eq!(started(window(9500, 9600)), Some(second));
    assert_eq!(run(&jobs(&[]), window(0, NOW), at(NOW)).unwrap(), None);
}

#[test]
fn the_places_are_those_that_were_held_all_of_the_time() {
    let found = |gpus: &Fetched, window| places(gpus, "J1", &the_run(), window).unwrap();
    let whole = gpus(&[("0", "n1", "0", 1000, None), ("0", "n1", "1", 1000, None)]);
    assert_eq!(found(&whole, window(0, NOW)), held(&[("n1", "0"), ("n1", "1")], 1000, 9000, 1));
    // The second came later and the first left earlier: what they share is between.
    let shifted = gpus(&[("0", "n1", "0", 1000, Some(5000)), ("0", "n1", "1", 3000, None)]);
    assert_eq!(found(&shifted, window(0, NOW)), held(&[("n1", "0"), ("n1", "1")], 3000, 5000, 1));
    // They share no time, so nothing can be told by them together.
    let apart = gpus(&[("0", "n1", "0", 1000, Some(2000)), ("0", "n1", "1", 3000, None)]);
    assert_eq!(found(&apart, window(0, NOW)).slots, BTreeSet::new());
}

#[test]
fn an_attempt_does_not_lend_its_time_to_the_places_of_another() {
    let attempts = gpus(&[("0", "n1", "0", 1000, Some(4000)), ("1", "n2", "0", 5000, None)]);
    let found = |window| places(&attempts, "J1", &the_run(), window).unwrap();
    assert_eq!(found(window(0, NOW)), held(&[("n2", "0")], 5000, 9000, 2));
    assert_eq!(found(window(0, 4500)), held(&[("n1", "0")], 1000, 4000, 2));
}

#[test]
fn placements_outside_of_the_run_or_without_a_place_do_not_count() {
    let foreign = gpus(&[("0", "n1", "0", 0, Some(1000)), ("0", "n1", "1", 9000, None), ("0", "", "", 1000, None)]);
    assert_eq!(places(&foreign, "J1", &the_run(), window(0, NOW)).unwrap(), held(&[], 1000, 9000, 0));
    let mut cut = foreign;
    cut.result.truncated = true;
    assert!(matches!(places(&cut, "J1", &the_run(), window(0, NOW)), Err(ToolError::Cut { .. })));
}

#[test]
fn a_job_of_nobody_and_of_somebody_else_are_told_in_the_same_words() {
    assert_eq!(read_out(&none_of_yours("metric_range", &jobs(&[]))), ["no data: there is no job ⟨J1⟩ of yours"]);
}
