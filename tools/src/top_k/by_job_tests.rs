use serde_json::{Value, json};
use sightline_model::{Cell, Dataset, Outcome};
use sightline_query::{Query, Shape};

use crate::testing::{f, n, read_out, run, s, t, text};
use crate::top_k::TopK;

fn args(more: Value) -> Value {
    let mut args = json!({ "metric": "gpu_power", "from": text(0), "to": text(600), "group_by": ["job"] });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

/// Samples carry no job. Two jobs: the second began halfway on the first one's GPU.
fn rows(query: &Query) -> Vec<Vec<Cell>> {
    if query.dataset == Dataset::JobGpus {
        let held = |job: &str, node: &str, from: i64, to: Cell| {
            vec![t(from), s("c1"), s(job), s("0"), s(node), s("0"), s("GPU-1"), s("0"), to]
        };
        return vec![held("J1", "n1", 0, t(300)), held("J2", "n1", 300, Cell::Null), held("J2", "n2", 300, Cell::Null)];
    }
    if matches!(query.shape, Shape::Rank { .. }) {
        return Vec::new();
    }
    let of_first = query.range.to() <= crate::testing::at(300);
    let value = if of_first { 300.0 } else { 500.0 };
    assert_eq!(query.placement.as_ref().map(Vec::len), Some(if of_first { 1 } else { 2 }));
    vec![vec![t(0), s("DCGM_FI_DEV_POWER_USAGE"), n(20), f(value - 10.0), f(value + 10.0), f(value)]]
}

#[test]
fn a_job_is_ranked_by_its_gpus_for_the_time_in_which_it_held_them() {
    let (all, output) = run(&TopK, &args(json!({})), rows).unwrap();
    assert_eq!((all.len(), output.outcome), (4, Some(Outcome::Answered)));
    let told = read_out(&output);
    assert!(told[0].contains("job ⟨J2⟩") && told[0].contains("500"), "{told:?}");
    let ranking = &output.evidence[0];
    assert_eq!(
        (ranking.total, ranking.sql.is_none()),
        (2, true),
        "what is computed is followed by what it was read from"
    );
    assert!(output.evidence[1].sql.is_some() && output.evidence[1].labels["job"] == "J1");
}

#[test]
fn a_bound_leaves_jobs_out() {
    let (_, output) = run(&TopK, &args(json!({ "below": 400.0, "order": "lowest" })), rows).unwrap();
    assert_eq!(output.evidence[0].total, 1);
    assert!(read_out(&output)[0].contains("job ⟨J1⟩"), "{:?}", read_out(&output));
}
