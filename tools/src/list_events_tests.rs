use serde_json::json;
use sightline_model::Cell;
use sightline_query::{Query, Shape};

use super::*;
use crate::testing::{labels, n, planned, read_out, run, s, t, text};

#[test]
fn the_plan_was_looked_at() {
    let args = json!({ "from": text(0), "to": text(600), "kind": "deploy", "filters": [{ "dim": "service", "values": ["chat"] }] });
    insta::assert_debug_snapshot!("plan_list_events", planned(&ListEvents, &args));
}

#[test]
fn events_are_told_in_time_order_with_their_text_quoted() {
    let rows = |q: &Query| -> Vec<Vec<Cell>> {
        match &q.shape {
            Shape::Rows { .. } => vec![
                vec![t(10), s("c1"), s("n1"), s(""), s(""), s("driver_upgrade"), s("570.1 to 580.2"), labels(&[])],
                vec![t(20), s("c1"), s(""), s(""), s("chat"), s("deploy"), s(""), labels(&[("version", "v2")])],
            ],
            _ => vec![vec![n(2)]],
        }
    };
    let (_, output) = run(&ListEvents, &json!({ "from": text(0), "to": text(600) }), rows).unwrap();
    assert_eq!(
        read_out(&output),
        vec![
            "2 events in this window",
            "2026-05-03T12:00:10Z: ⟨driver_upgrade⟩, node ⟨n1⟩, cluster ⟨c1⟩: “570.1 to 580.2”",
            "2026-05-03T12:00:20Z: ⟨deploy⟩, service ⟨chat⟩, cluster ⟨c1⟩",
        ]
    );
}

#[test]
fn events_are_counted_by_label_and_the_latest_of_each_kind_listed() {
    let event =
        |at: i64, kind: &str| vec![t(at), s("c1"), s("n1"), s(""), s(""), s(kind), s("x"), labels(&[("xid", "79")])];
    let rows = |q: &Query| -> Vec<Vec<Cell>> {
        match &q.shape {
            Shape::Rows { .. } => vec![event(30, "xid"), event(20, "xid"), event(10, "deploy")],
            Shape::Rank { group_by, .. } if !group_by.is_empty() => vec![vec![s("79"), n(2)], vec![s(""), n(1)]],
            _ => vec![vec![n(3)]],
        }
    };
    let args =
        json!({ "from": text(0), "to": text(600), "latest": true, "per": ["kind"], "limit": 1, "count_by": ["xid"] });
    let (_, output) = run(&ListEvents, &args, rows).unwrap();
    let kinds: Vec<_> = output.evidence[0].rows.iter().map(|r| r.fields["kind"].as_str()).collect();
    assert_eq!(kinds, ["xid", "deploy"]);
    assert_eq!(output.evidence[2].rows[0].value, Some(2.0));
    assert!(read_out(&output)[0].starts_with("3 events in this window; 2 of them are listed"));
}
