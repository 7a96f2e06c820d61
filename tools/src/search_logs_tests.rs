use serde_json::{Value, json};
use sightline_model::Cell;
use sightline_query::{Query, Shape};

use super::*;
use crate::testing::{context, labels, n, planned, read_out, run, s, t, text};

fn args(more: Value) -> Value {
    let mut args = json!({ "from": text(0), "to": text(600) });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

fn line(at: i64, node: &str, body: &str) -> Vec<Cell> {
    vec![t(at), s("c1"), s(node), s(""), s("kernel"), s("err"), s(body), labels(&[("rack", "r1")])]
}

const XID: &str = "NVRM: Xid (PCI:0000:0f:00): 79, pid=1234, name=python, GPU has fallen off the bus.";

fn lines(q: &Query) -> Vec<Vec<Cell>> {
    match &q.shape {
        Shape::Rows { .. } => vec![
            line(10, "n1", "say {a} 42 and [click](http://x)"),
            line(20, "n1", XID),
            line(30, "n2", XID),
            line(40, "n2", "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),
        ],
        Shape::Rank { group_by, .. } if group_by.is_empty() => vec![vec![n(4)]],
        Shape::Rank { .. } => vec![vec![s("n1"), n(1)], vec![s("n2"), n(3)]],
        _ => Vec::new(),
    }
}

#[test]
fn the_plan_was_looked_at() {
    let queries = planned(
        &SearchLogs,
        &args(json!({ "contains": "xid", "regex": "NVRM.*[0-9]+", "severity": "err", "latest": true, "limit": 20,
            "filters": [{ "dim": "node", "op": "prefix", "values": ["atlas-"] }], "count_by": ["node"] })),
    );
    insta::assert_debug_snapshot!("plan_search_logs", queries);
}

#[test]
fn lines_are_counted_quoted_and_decoded() {
    let (_, output) = run(&SearchLogs, &args(json!({ "count_by": ["node"] })), lines).unwrap();
    insta::assert_snapshot!(read_out(&output).join("\n"));
    insta::assert_json_snapshot!("log_rows", output.evidence[0].rows);
}

#[test]
fn a_list_that_goes_on_says_so_and_dates_no_first_xid() {
    let many = |q: &Query| match &q.shape {
        Shape::Rank { .. } => vec![vec![n(400)]],
        _ => lines(q),
    };
    let (_, output) = run(&SearchLogs, &args(json!({ "limit": 4 })), many).unwrap();
    let told = read_out(&output);
    assert_eq!(told[0], "400 log lines match; 4 of them are listed");
    assert!(told[2].starts_with("Xid ⟨79⟩ at "), "{}", told[2]);
    assert!(output.evidence[0].truncated);
}

#[test]
fn no_line_is_no_data_and_no_logs_are_not_collected() {
    let probe = |q: &Query| matches!(q.shape, Shape::Distinct { .. });
    let told = |rows: &dyn Fn(&Query) -> Vec<Vec<Cell>>| {
        let (_, output) = run(&SearchLogs, &args(json!({ "contains": "xid" })), rows).unwrap();
        assert_eq!(output.outcome, Some(Outcome::InsufficientData));
        read_out(&output).join(" ")
    };
    let some = |_: &Query| vec![vec![s("c1"), n(3), t(5), t(50)]];
    let none_match = told(&|q| if probe(q) { some(q) } else { Vec::new() });
    let no_logs = told(&|_| Vec::new());
    insta::assert_snapshot!([none_match, no_logs].join("\n"));
}

/// The distinct texts of a window: in the window asked about, and in the ten minutes before it.
fn texts(q: &Query) -> Vec<Vec<Cell>> {
    let Shape::Distinct { .. } = &q.shape else { return lines(q) };
    if q.range.from() == crate::testing::at(0) {
        vec![
            vec![s("step 1 took 0.5 s"), n(1), t(0), t(0)],
            vec![s("step 2 took 0.6 s"), n(1), t(60), t(60)],
            vec![s(XID), n(2), t(20), t(30)],
            vec![s("worker 3 lost its peer 7"), n(5), t(40), t(90)],
        ]
    } else {
        vec![
            vec![s("cache warmed in 12 ms"), n(3), t(-500), t(-400)],
            vec![s("step 0 took 0.5 s"), n(7), t(-300), t(-200)],
        ]
    }
}

#[test]
fn messages_are_counted_and_those_new_or_gone_are_told() {
    let (all, output) = run(&SearchLogs, &args(json!({ "base_from": text(-600) })), texts).unwrap();
    assert_eq!(all.len(), 4);
    insta::assert_snapshot!("templates_told", read_out(&output).join("\n"));
    let (window, before) = (&output.evidence[2], &output.evidence[3]);
    insta::assert_json_snapshot!("templates_rows", [&window.rows, &before.rows]);
    assert_eq!((window.total, window.coverage.seen, before.coverage.seen), (4, 9, 10));
}

#[test]
fn without_a_baseline_messages_are_only_counted() {
    let (all, output) = run(&SearchLogs, &args(json!({ "templates": true })), texts).unwrap();
    assert_eq!((all.len(), output.evidence.len()), (3, 3));
    let told = read_out(&output);
    assert!(told.contains(&"3 different messages, numbers and names aside".to_owned()), "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("new: ") || line.contains("baseline")), "{told:?}");
}

#[test]
fn of_more_texts_than_can_be_read_none_is_called_new() {
    let asked = args(json!({ "base_from": text(-600) }));
    let mut read: Vec<_> =
        planned(&SearchLogs, &asked).iter().map(|q| crate::testing::fetched(0, q, texts(q))).collect();
    read.last_mut().unwrap().result.truncated = true;
    let output = crate::AnyTool::interpret(&SearchLogs, &asked, &context(), &read).unwrap();
    assert!(!read_out(&output).iter().any(|line| line.starts_with("new: ") || line.starts_with("gone: ")));
    assert!(output.data_health[0].contains("cannot be told"), "{:?}", output.data_health);
}

#[test]
fn a_baseline_that_makes_no_sense_is_refused() {
    let refused =
        |more: Value| crate::AnyTool::plan(&SearchLogs, &args(more), &context(), &[]).unwrap_err().to_string();
    assert!(refused(json!({ "base_to": text(-1) })).contains("stands without `base_from`"));
    let overlaps = refused(json!({ "base_from": text(-10), "base_to": text(10) }));
    assert!(overlaps.contains("overlaps the window"), "{overlaps}");
}

#[test]
fn lines_of_many_kinds_are_explained_and_the_origin_of_a_burst_is_named() {
    let rows = |q: &Query| match &q.shape {
        Shape::Rows { .. } => vec![
            line(5, "n1", "NCCL WARN NET/IB : Got completion with error 12, opcode 0"),
            line(6, "n2", "NCCL WARN NET/IB : Got async event : port error"),
            line(
                7,
                "n3",
                "NVRM: Xid (PCI:0018:01:00): 145, pid=1, name=x, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)",
            ),
            line(8, "n3", "NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6)"),
            line(
                9,
                "n3",
                "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
            ),
        ],
        Shape::Rank { .. } => vec![vec![n(5)]],
        _ => Vec::new(),
    };
    let (_, output) = run(&SearchLogs, &args(json!({})), rows).unwrap();
    insta::assert_snapshot!("lines_explained", read_out(&output).join("\n"));
}

#[test]
fn limits_are_bounded() {
    let error = crate::AnyTool::plan(&SearchLogs, &args(json!({ "limit": 5000 })), &context(), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the arguments of `search_logs` cannot be used: `limit` is 5000; between 1 and 1000 can be listed"
    );
}

#[test]
fn a_step_without_lines_counts_zero_and_is_told() {
    let rows = |q: &Query| match &q.shape {
        Shape::Series { .. } => vec![vec![t(0), n(3)], vec![t(180), n(1)]],
        _ => lines(q),
    };
    let (all, output) = run(&SearchLogs, &args(json!({ "step_seconds": 60, "to": text(301) })), rows).unwrap();
    assert_eq!(all.len(), 3);
    let piece = &output.evidence[2];
    let values: Vec<f64> = piece.series[0].points.iter().map(|p| p.value).collect();
    assert_eq!(values, [3.0, 0.0, 0.0, 1.0, 0.0, 0.0], "the last step is cut short by the window");
    let stats = piece.stats.unwrap();
    assert_eq!((stats.mean, stats.count, piece.coverage.seen), (4.0 / 6.0, 6, 4));
    assert!(piece.coverage.gaps.is_empty());
    assert!(
        read_out(&output)
            .contains(&"the most in one step are 3 at 2026-05-03T12:00:00Z; 4 of 6 steps have none".to_owned()),
        "{:?}",
        read_out(&output)
    );
}

#[test]
fn counts_over_time_are_told_apart_by_what_is_counted_by() {
    let rows = |q: &Query| match &q.shape {
        Shape::Series { .. } => vec![vec![t(0), s("n1"), n(1)], vec![t(60), s("n2"), n(3)]],
        _ => lines(q),
    };
    let asked = args(json!({ "step_seconds": 60, "to": text(120), "count_by": ["node"] }));
    let (_, output) = run(&SearchLogs, &asked, rows).unwrap();
    let piece = &output.evidence[3];
    assert_eq!((piece.series.len(), piece.rows.last().unwrap().value), (2, Some(2.0)));
    assert!(read_out(&output).iter().any(|line| line.contains("3 at 2026-05-03T12:01:00Z, with node ⟨n2⟩; 2 of 4")));
    let whole = planned(&SearchLogs, &args(json!({ "step_seconds": 0 })));
    assert!(matches!(whole[2].shape, Shape::Series { step_ms: 600_000, align: sightline_query::Align::Window, .. }));
    let short = args(json!({ "step_seconds": 0, "from": "2026-05-03T12:00:00.2Z", "to": "2026-05-03T12:00:00.7Z" }));
    assert!(matches!(planned(&SearchLogs, &short)[2].shape, Shape::Series { step_ms: 1000, .. }));
    let count = |q: &Query| if matches!(q.shape, Shape::Series { .. }) { Vec::new() } else { lines(q) };
    run(&SearchLogs, &short, count).unwrap();
    // More steps than may be shown is no list of zeros.
    let long = args(json!({ "step_seconds": 1, "to": text(1200) }));
    let error = run(&SearchLogs, &long, |q| {
        if matches!(q.shape, Shape::Series { .. }) { vec![vec![t(0), n(1)]] } else { lines(q) }
    });
    assert!(matches!(error, Err(ToolError::Cut { .. })));
}

#[test]
fn lines_that_begin_alike_are_counted_as_one_with_their_share() {
    let head = "x".repeat(200);
    let rows = |q: &Query| match &q.shape {
        Shape::Rank { group_by, .. } if !group_by.is_empty() => {
            vec![vec![s("short"), n(1)], vec![s(&format!("{head} one")), n(2)], vec![s(&format!("{head} two")), n(1)]]
        }
        _ => lines(q),
    };
    let (_, output) = run(&SearchLogs, &args(json!({ "count_by": ["body"] })), rows).unwrap();
    let told: Vec<_> = output.evidence[2]
        .rows
        .iter()
        .map(|r| (r.entity["body"].as_str(), r.value, r.fields["share"].as_str()))
        .collect();
    assert_eq!(told, [(head.as_str(), Some(3.0), "0.75"), ("short", Some(1.0), "0.25")]);
}

#[test]
fn the_latest_of_each_node_are_taken_from_all_lines() {
    let asked = args(json!({ "per": ["node"], "limit": 1, "latest": true }));
    let query = planned(&SearchLogs, &asked).remove(0);
    assert!(matches!(query.shape, Shape::Rows { limit: 1000, .. }), "{query:?}");
    let (_, output) = run(&SearchLogs, &asked, lines).unwrap();
    let told: Vec<_> = output.evidence[0].rows.iter().map(|r| (r.entity["node"].as_str(), r.rank)).collect();
    assert_eq!(told, [("n1", Some(1)), ("n2", Some(1))]);
    assert_eq!((output.evidence[0].total, output.evidence[0].truncated), (4, true));
    let mut read: Vec<_> =
        planned(&SearchLogs, &asked).iter().map(|q| crate::testing::fetched(0, q, lines(q))).collect();
    read[0].result.truncated = true;
    let cut = crate::AnyTool::interpret(&SearchLogs, &asked, &context(), &read);
    assert!(matches!(cut, Err(ToolError::Cut { .. })));
}
