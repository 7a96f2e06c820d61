use serde_json::{Value, json};
use sightline_model::{Cell, Outcome};
use sightline_query::Query;

use super::*;
use crate::testing::{at, context, f, labels, n, planned, read_out, run, s, t, text};

fn args(more: Value) -> Value {
    let mut args = json!({
        "metric": "gpu_temperature", "from": text(3600), "to": text(4200), "base_from": text(0), "base_to": text(600),
        "filters": [{ "dim": "node", "values": ["n1"] }],
    });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

fn sides(base: f64, other: f64, spread: f64) -> impl Fn(&Query) -> Vec<Vec<Cell>> {
    move |q| {
        let (start, level) = if q.range.from() == at(0) { (0, base) } else { (3600, other) };
        (0..40)
            .map(|step| {
                let v = level + spread * (f64::from(step % 5) - 2.0);
                vec![t(start + i64::from(step) * 15), s("DCGM_FI_DEV_GPU_TEMP"), n(1), f(v), f(v), f(v)]
            })
            .collect()
    }
}

#[test]
fn the_plan_was_looked_at() {
    let windows = planned(&Compare, &args(json!({})));
    let cohorts = planned(
        &Compare,
        &args(json!({ "metric": "ttft", "base_from": null, "base_to": null, "filters": [],
            "base_filters": [{ "dim": "service", "op": "not", "values": ["chat"] }], "aggregation": "avg" })),
    );
    insta::assert_debug_snapshot!("plan_compare", [windows, cohorts]);
}

#[test]
fn verdicts_follow_level_and_spread() {
    let told = |base: f64, other: f64, spread: f64| {
        let (_, output) = run(&Compare, &args(json!({})), sides(base, other, spread)).unwrap();
        read_out(&output).join("; ")
    };
    insta::assert_snapshot!(
        [
            told(60.0, 72.0, 1.0),
            told(72.0, 60.0, 1.0),
            told(60.0, 61.0, 1.0),
            told(10.0, 11.0, 9.0),
            told(0.0, 0.0, 0.0)
        ]
        .join("\n")
    );
}

#[test]
fn too_few_points_decide_nothing() {
    let rows = |q: &Query| sides(60.0, 90.0, 0.0)(q).into_iter().take(3).collect();
    let (_, output) = run(&Compare, &args(json!({})), rows).unwrap();
    assert_eq!(output.outcome, Some(Outcome::InsufficientData));
    assert!(read_out(&output)[0].contains("too little data on one side"));
}

#[test]
fn a_side_without_data_is_explained() {
    let rows = |q: &Query| if q.range.from() == at(0) { sides(60.0, 60.0, 1.0)(q) } else { Vec::new() };
    let (all, output) = run(&Compare, &args(json!({ "filters": [] })), rows).unwrap();
    assert_eq!((all.len(), output.outcome), (3, Some(Outcome::InsufficientData)));
    assert_eq!(read_out(&output).len(), 1);
}

#[test]
fn a_comparison_with_itself_is_refused() {
    let error = |more: Value| crate::AnyTool::plan(&Compare, &args(more), &context(), &[]).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            error(json!({ "base_from": null, "base_to": null })),
            error(json!({ "base_to": null })),
            error(json!({ "event": "deploy" })),
            error(json!({ "also": ["gpu_temperature"] })),
            error(json!({ "also": ["gpu_power", "sm_clock", "ttft", "itl", "sm_active", "dram_active", "tensor_active", "gpu_memory_used"] })),
        ]
        .join("\n")
    );
}

#[test]
fn a_job_is_compared_on_its_own_gpus_in_both_windows() {
    let job = args(json!({ "job": "J123", "filters": [] }));
    let rows = |q: &Query| match q.dataset {
        Dataset::JobGpus => {
            assert_eq!((q.range.from(), q.range.to()), (at(0), at(4200)));
            vec![vec![t(-100), s("c1"), s("J123"), s("0"), s("n1"), s("0"), s("GPU-1"), s("0"), Cell::Null]]
        }
        _ => {
            assert_eq!(q.placement, Some(vec![("n1".to_owned(), "0".to_owned())]));
            sides(60.0, 72.0, 1.0)(q)
        }
    };
    let (all, output) = run(&Compare, &job, rows).unwrap();
    assert_eq!(all.len(), 3);
    assert!(
        read_out(&output)[0].starts_with("⟨gpu_temperature⟩ of job ⟨J123⟩ is higher: 72 °C"),
        "{:?}",
        read_out(&output)
    );
    let (_, unknown) = run(&Compare, &job, |_| Vec::new()).unwrap();
    assert_eq!(unknown.outcome, Some(Outcome::InsufficientData));
}

#[test]
fn every_metric_at_once_has_no_difference_and_a_share_of_time_needs_its_threshold() {
    let error = |more: Value| crate::AnyTool::plan(&Compare, &args(more), &context(), &[]).map_err(|e| e.to_string());
    assert!(error(json!({ "metric": "*" })).unwrap_err().contains("name the metrics"));
    assert!(error(json!({ "aggregation": "fraction_above" })).is_err());
    let queries = planned(&Compare, &args(json!({ "aggregation": "fraction_above", "threshold": 80 })));
    assert!(queries.iter().all(|query| query.threshold == Some(80.0)), "{queries:?}");
}

/// Points of both sides of some metrics: level by stored metric name and side, and how far they spread.
fn levels(of: &'static [(&str, &str, f64, f64, f64)], points: i64) -> impl Fn(&Query) -> Vec<Vec<Cell>> {
    move |q| {
        let Some((_, stored, base, other, spread)) = of.iter().find(|(id, ..)| Some(*id) == q.metric.as_deref()) else {
            return Vec::new();
        };
        let (start, level) = if q.range.from() == at(0) { (0, base) } else { (3600, other) };
        (0..points)
            .map(|step| {
                let v = level + spread * ((step * 7 % 11) as f64 - 5.0);
                vec![t(start + step * 15), s(stored), n(1), f(v), f(v), f(v)]
            })
            .collect()
    }
}

fn canary(of: &'static [(&str, &str, f64, f64, f64)], points: i64) -> ToolOutput {
    let also: Vec<&str> = of.iter().skip(1).map(|(id, ..)| *id).collect();
    let args = args(json!({ "metric": of[0].0, "also": also, "canary": true, "filters": [] }));
    run(&Compare, &args, levels(of, points)).unwrap().1
}

const STEP: (&str, &str, f64, f64, f64) = ("step_time", "train_step_time_seconds", 2.0, 2.01, 0.01);
const SLOWER: (&str, &str, f64, f64, f64) = ("step_time", "train_step_time_seconds", 2.0, 2.6, 0.01);
const WILD: (&str, &str, f64, f64, f64) = ("step_time", "train_step_time_seconds", 2.0, 2.1, 0.3);
const TOKENS: (&str, &str, f64, f64, f64) =
    ("training_throughput_tokens", "train_tokens_per_second", 1000.0, 1003.0, 4.0);
const LOAD: (&str, &str, f64, f64, f64) = ("batch_size", "train_batch_size", 64.0, 128.0, 1.0);
const SAME_LOAD: (&str, &str, f64, f64, f64) = ("batch_size", "train_batch_size", 64.0, 64.5, 1.0);

#[test]
fn a_canary_is_promoted_held_or_rolled_back_with_its_reason() {
    let told = [
        canary(&[STEP, TOKENS, SAME_LOAD], 40),
        canary(&[SLOWER, TOKENS, SAME_LOAD], 40),
        canary(&[SLOWER, TOKENS, LOAD], 40),
        canary(&[WILD, TOKENS], 40),
        canary(&[SAME_LOAD], 40),
        canary(&[STEP, TOKENS], 12),
    ];
    assert_eq!(told[0].outcome, Some(Outcome::Answered));
    assert_eq!(told[5].outcome, Some(Outcome::InsufficientData));
    let told: Vec<String> = told.iter().map(|output| read_out(output).join("\n")).collect();
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn a_metric_that_one_side_lacks_is_left_out_and_said_so() {
    let args = args(json!({ "metric": "step_time", "also": ["gpu_power"], "filters": [] }));
    let (_, output) = run(&Compare, &args, levels(&[STEP], 40)).unwrap();
    assert_eq!(output.data_health, ["gpu_power has no data on one of the sides and was left out"]);
    assert_eq!(output.outcome, Some(Outcome::Answered));
}

#[test]
fn before_and_after_the_last_event_of_a_kind() {
    let asked = args(json!({
        "metric": "step_time", "from": text(0), "to": text(7200), "base_from": null, "base_to": null, "filters": [],
        "event": "deploy",
    }));
    let event = |second: i64| {
        vec![t(second), s("c1"), s(""), s(""), s("trainer"), s("deploy"), s("trainer one rolled out"), labels(&[])]
    };
    let rows = |q: &Query| match q.dataset {
        Dataset::Events => vec![event(7200), event(3600)],
        _ => levels(&[SLOWER], 40)(q),
    };
    let (all, output) = run(&Compare, &asked, rows).unwrap();
    let windows: Vec<(i64, i64)> = all
        .iter()
        .filter(|f| f.query.dataset() == Dataset::Metrics)
        .map(|f| f.query.range())
        .map(|r| (r.from().as_second() - at(0).as_second(), r.to().as_second() - at(0).as_second()))
        .collect();
    assert_eq!(windows, [(0, 3600), (3600, 7200)]);
    insta::assert_snapshot!(read_out(&output).join("\n"));
    let (_, none) = run(&Compare, &asked, |_| Vec::new()).unwrap();
    assert_eq!(none.outcome, Some(Outcome::InsufficientData));
    assert!(read_out(&none)[0].contains("no event of kind ⟨deploy⟩"), "{:?}", read_out(&none));
}
