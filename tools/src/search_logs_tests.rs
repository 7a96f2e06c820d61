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

#[test]
fn limits_are_bounded() {
    let error = crate::AnyTool::plan(&SearchLogs, &args(json!({ "limit": 5000 })), &context(), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the arguments of `search_logs` cannot be used: `limit` is 5000; between 1 and 1000 can be listed"
    );
}
