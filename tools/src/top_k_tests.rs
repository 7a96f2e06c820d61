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

#[test]
fn what_lies_outside_the_bounds_is_not_ranked() {
    let (_, output) =
        run(&TopK, &args(json!({ "above": 60.5, "below": 80.0, "min_samples": 20, "k": 5 })), fleet).unwrap();
    assert_eq!(
        read_out(&output),
        vec![
            "⟨gpu_temperature⟩ of GPU ⟨1⟩, node ⟨n2⟩ was the highest of 2: 65 °C",
            "then GPU ⟨0⟩, node ⟨n2⟩: 61 °C",
            "4 groups were compared; the mean of those within the bounds is 63 °C"
        ]
    );
    let (_, none) = run(&TopK, &args(json!({ "above": 100.0 })), fleet).unwrap();
    assert_eq!(read_out(&none), vec!["none of the 4 groups fits `above`, `below` and `min_samples`"]);
    assert_eq!((none.outcome, none.evidence[0].rows.len()), (Some(Outcome::Answered), 0));
    let (_, few) = run(&TopK, &args(json!({ "min_samples": 21 })), fleet).unwrap();
    assert_eq!(few.evidence[0].rows[0].entity["node"], "n2");
}

#[test]
fn what_all_groups_come_to_is_evidence() {
    let (_, output) = run(&TopK, &args(json!({})), fleet).unwrap();
    let rows = &output.evidence[1].rows;
    let told: Vec<_> = rows.iter().map(|r| (r.fields["row"].as_str(), r.value.unwrap())).collect();
    assert_eq!(
        told,
        [
            ("groups compared", 4.0),
            ("mean of the ranked groups", 68.5),
            ("median of the ranked groups", 63.0),
            ("lowest of the ranked groups", 60.0),
            ("highest of the ranked groups", 88.0)
        ]
    );
}

#[test]
fn a_peak_says_when_it_was() {
    let peaks = |_: &Query| {
        let row = |node: &str, name: &str, value: f64, at: i64| {
            vec![s(node), s(name), n(9), f(0.0), f(value), f(value), crate::testing::t(at)]
        };
        // One node under two spellings: the larger is its peak.
        vec![
            row("n1", "DCGM_FI_DEV_GPU_TEMP", 80.0, 30),
            row("n1", "dcgm_gpu_temp", 85.0, 40),
            row("n2", "dcgm_gpu_temp", 70.0, 50),
        ]
    };
    let (_, output) = run(&TopK, &args(json!({ "aggregation": "max", "group_by": ["node"] })), peaks).unwrap();
    let rows = &output.evidence[0].rows;
    assert_eq!((rows[0].value, rows[0].time), (Some(85.0), Some(crate::testing::at(40))));
    assert_eq!((rows[1].time, rows[0].fields["samples"].as_str()), (Some(crate::testing::at(50)), "18"));
}

#[test]
fn every_metric_can_be_ranked_by_metric() {
    let rows = |_: &Query| {
        [("a", 12, 5.0), ("b", 3, 9.0)].map(|(name, count, v)| vec![s(name), n(count), f(v), f(v), f(v)]).into()
    };
    let (_, output) =
        run(&TopK, &args(json!({ "metric": "*", "group_by": ["metric"], "min_samples": 10 })), rows).unwrap();
    assert_eq!(read_out(&output)[0], "⟨a⟩ was the highest of 1: 5");
    assert_eq!(output.data_health, Vec::<String>::new());
}

#[test]
fn bounds_that_exclude_everything_are_refused() {
    let error = |more: Value| crate::AnyTool::plan(&TopK, &args(more), &context(), &[]).unwrap_err().to_string();
    assert!(error(json!({ "above": 5, "below": 5 })).contains("nothing is above 5 and below 5"));
    assert!(error(json!({ "threshold": 5 })).contains("threshold"));
    assert!(error(json!({ "above": "x" })).contains("invalid type"));
}
