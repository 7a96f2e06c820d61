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
