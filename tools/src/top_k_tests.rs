use serde_json::{Value, json};
use sightline_model::{Cell, Outcome};
use sightline_query::Query;

use super::*;
use crate::testing::{context, f, fetched, n, planned, read_out, run, s, text};

fn args(more: Value) -> Value {
    let mut args =
        json!({ "metric": "gpu_temperature", "from": text(0), "to": text(600), "group_by": ["node", "gpu"], "k": 2 });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

fn row(node: &str, gpu: &str, count: i64, value: f64) -> Vec<Cell> {
    vec![s(node), s(gpu), s("DCGM_FI_DEV_GPU_TEMP"), n(count), f(value - 1.0), f(value + 1.0), f(value)]
}

fn fleet(_: &Query) -> Vec<Vec<Cell>> {
    vec![row("n1", "0", 20, 60.0), row("n1", "1", 20, 88.0), row("n2", "0", 20, 61.0), row("n2", "1", 60, 65.0)]
}

#[test]
fn the_plan_was_looked_at() {
    let gauge = planned(&TopK, &args(json!({ "filters": [{ "dim": "cluster", "values": ["c1"] }] })));
    let quantile = planned(&TopK, &args(json!({ "metric": "ttft", "group_by": ["service"], "aggregation": "p99" })));
    let lowest =
        planned(&TopK, &args(json!({ "metric": "network_receive_bytes", "group_by": ["node"], "order": "lowest" })));
    insta::assert_debug_snapshot!("plan_top_k", [gauge, quantile, lowest]);
}

#[test]
fn the_first_are_ranked_and_the_rest_is_one_row() {
    let (_, output) = run(&TopK, &args(json!({})), fleet).unwrap();
    assert_eq!(
        read_out(&output),
        vec![
            "⟨gpu_temperature⟩ of GPU ⟨1⟩, node ⟨n1⟩ was the highest of 4: 88 °C, the others 60.5 °C",
            "then GPU ⟨1⟩, node ⟨n2⟩: 65 °C"
        ]
    );
    let found = &output.evidence[0];
    assert_eq!((found.total, found.returned, found.truncated, found.rows.len()), (4, 2, false, 3));
    insta::assert_json_snapshot!("top_k_rows", found.rows);
}

#[test]
fn equal_values_name_no_winner() {
    let same = |_: &Query| vec![row("n1", "0", 20, 60.0), row("n1", "1", 20, 60.0)];
    let (_, output) = run(&TopK, &args(json!({})), same).unwrap();
    assert_eq!(read_out(&output), vec!["⟨gpu_temperature⟩ was the same for all 2: 60 °C"]);
}

#[test]
fn a_group_that_hardly_reported_is_pointed_out() {
    let rows = |_: &Query| vec![row("n1", "0", 20, 60.0), row("n1", "1", 3, 20.0), row("n2", "0", 20, 61.0)];
    let (_, output) = run(&TopK, &args(json!({ "order": "lowest" })), rows).unwrap();
    assert_eq!(output.data_health.len(), 1);
    assert!(read_out(&output)[0].contains("the lowest of 3: 20 °C"));
}

#[test]
fn a_cut_ranking_is_an_error() {
    let asked = args(json!({}));
    let query = planned(&TopK, &asked).remove(0);
    let mut read = fetched(0, &query, fleet(&query));
    read.result.truncated = true;
    let all = [read];
    let plan = crate::AnyTool::plan(&TopK, &asked, &context(), &all);
    let told = crate::AnyTool::interpret(&TopK, &asked, &context(), &all);
    assert!(matches!((&plan, &told), (Err(ToolError::Cut { .. }), Err(ToolError::Cut { .. }))));
    insta::assert_snapshot!(plan.unwrap_err().to_string());
}

#[test]
fn nothing_to_rank_is_explained() {
    let (all, output) = run(&TopK, &args(json!({})), |_| Vec::new()).unwrap();
    assert_eq!((all.len(), output.outcome), (2, Some(Outcome::InsufficientData)));
    assert_eq!(read_out(&output).len(), 1);
}

#[test]
fn arguments_that_rank_nothing_are_refused() {
    let error = |more: Value| crate::AnyTool::plan(&TopK, &args(more), &context(), &[]).unwrap_err().to_string();
    insta::assert_snapshot!(
        [error(json!({ "group_by": [] })), error(json!({ "k": 0 })), error(json!({ "k": 1000 }))].join("\n")
    );
}
