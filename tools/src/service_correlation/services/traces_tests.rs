//! Traces of known shape, and what must come out of them.

use sightline_model::{Cell, Column, ColumnKind, QueryId, Read, ResultSet};

use super::*;

/// (trace, id, parent, service, pod, start in ms, length in ms, label)
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, i64, i64, Option<(&'a str, &'a str)>);

fn result(rows: &[Row<'_>]) -> ResultSet {
    let columns = [
        ("time", ColumnKind::Time),
        ("service", ColumnKind::Text),
        ("pod", ColumnKind::Text),
        ("trace_id", ColumnKind::Text),
        ("span_id", ColumnKind::Text),
        ("parent_id", ColumnKind::Text),
        ("duration_us", ColumnKind::Int),
        ("labels", ColumnKind::Labels),
    ];
    let text = |value: &str| Cell::Text(value.into());
    let rows = rows
        .iter()
        .map(|(trace, id, parent, service, pod, start, length, label)| {
            let labels = label.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            vec![
                Cell::Time(Timestamp::from_millisecond(*start).unwrap()),
                text(service),
                text(pod),
                text(trace),
                text(id),
                text(parent),
                Cell::Int(length * 1000),
                Cell::Labels(labels),
            ]
        })
        .collect();
    ResultSet {
        columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec(),
        rows,
        read: Read::default(),
        query_id: QueryId::new("q".to_owned()),
        truncated: false,
    }
}

fn value(series: &[Series], key: &[(&str, &str)]) -> f64 {
    let entity: Entity = key.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    series.iter().find(|s| s.entity == entity).unwrap().points[0].value
}

#[test]
fn own_time_is_what_overlapping_children_leave() {
    let traced = read(
        &result(&[
            ("t", "a", "", "front", "f-1", 0, 100, None),
            ("t", "b", "a", "cart", "c-1", 10, 40, None),
            ("t", "c", "a", "stock", "s-1", 30, 40, None),
        ]),
        60_000,
    )
    .unwrap();
    assert_eq!(value(&traced.own, &[("service", "front")]), 40_000.0);
    assert_eq!(value(&traced.own_by_pod, &[("service", "cart"), ("pod", "c-1")]), 40_000.0);
    assert_eq!(traced.calls.len(), 2);
    // Before the call to `stock` nothing had ended, so it waited from the beginning.
    assert_eq!(value(&traced.waits, &[("from", "front"), ("to", "stock")]), 30_000.0);
}

#[test]
fn a_call_seen_by_caller_and_callee_loses_the_difference_on_the_way_and_is_no_own_time() {
    let traced = read(
        &result(&[
            ("t", "a", "", "front", "f", 0, 100, None),
            ("t", "b", "a", "front", "f", 20, 60, Some(("span.kind", "client"))),
            ("t", "c", "b", "cart", "c", 40, 20, None),
        ]),
        60_000,
    )
    .unwrap();
    assert_eq!(value(&traced.gaps, &[("from", "front"), ("to", "cart")]), 40_000.0);
    assert_eq!(value(&traced.own, &[("service", "front")]), 40_000.0);
    assert_eq!(value(&traced.own, &[("service", "cart")]), 20_000.0);
}

#[test]
fn failures_begin_where_no_child_fails() {
    let traced = read(
        &result(&[
            ("t", "a", "", "front", "", 0, 100, Some(("http.status_code", "500"))),
            ("t", "b", "a", "cart", "", 10, 40, Some(("otel.status_code", "ERROR"))),
            ("t", "c", "b", "db", "", 20, 10, Some(("otel.status_code", "OK"))),
            ("u", "d", "", "cart", "", 10, 40, Some(("peer.service", "payments"))),
        ]),
        60_000,
    )
    .unwrap();
    assert_eq!(value(&traced.failed, &[("service", "front")]), 0.0);
    assert_eq!(value(&traced.failed, &[("service", "cart")]), 50.0);
    assert!(traced.calls.contains(&("cart".to_owned(), "payments".to_owned())));
}

#[test]
fn a_call_that_fails_with_nothing_behind_it_is_unanswered() {
    let call = |trace, id, label| (trace, id, "", "cart", "", 10, 2, Some(label));
    let traced = read(
        &result(&[
            // Answered, and answered with a failure; the label says one thing a span, so the kind stands on some only.
            call("t", "a", ("span.kind", "client")),
            ("t", "b", "a", "db", "", 10, 1, Some(("otel.status_code", "ERROR"))),
            call("u", "c", ("span.kind", "client")),
            ("u", "d", "c", "db", "", 10, 1, None),
        ]),
        60_000,
    )
    .unwrap();
    assert_eq!(value(&traced.unanswered, &[("from", "cart"), ("to", "db")]), 0.0);
    let mut rows = result(&[
        call("t", "a", ("span.kind", "client")),
        ("t", "b", "a", "db", "", 10, 1, None),
        call("u", "c", ("span.kind", "client")),
    ]);
    let labels = [("span.kind", "client"), ("peer.service", "db"), ("error", "true")];
    rows.rows[2][7] = Cell::Labels(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    let traced = read(&rows, 60_000).unwrap();
    assert_eq!(value(&traced.unanswered, &[("from", "cart"), ("to", "db")]), 50.0);
}
