//! Every metric at once, one number, samples as they are stored, and what is computed from series.

use serde_json::{Value, json};
use sightline_model::{Cell, Outcome};
use sightline_query::Query;

use super::*;
use crate::AnyTool;
use crate::testing::{context, f, fetched, n, planned, read_out, run, s, t, text};

fn args(more: Value) -> Value {
    let mut args = json!({ "metric": "gpu_temperature", "from": text(0), "to": text(600) });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

/// One series: a point every minute, by node and stored name.
fn steps(node: &str, name: &str, values: &[f64]) -> Vec<Vec<Cell>> {
    let row = |(v, step): (&f64, i64)| vec![t(step * 60), s(node), s(name), n(2), f(v - 1.0), f(v + 1.0), f(*v)];
    values.iter().zip(0..).map(row).collect()
}

#[test]
fn the_plans_were_looked_at() {
    let plans = [
        json!({ "metric": "*", "aggregation": "count", "step_seconds": 0, "group_by": ["metric"] }),
        json!({ "aggregation": "fraction_above", "threshold": 80.5, "step_seconds": 300, "align": "window" }),
        json!({ "samples": "latest", "limit": 5, "group_by": ["gpu"] }),
        json!({ "samples": "highest", "limit": 3, "per": ["node"], "group_by": ["gpu", "node"] }),
        json!({ "samples": "time", "transform": "delta" }),
        json!({ "divide_by": "gpu_power", "group_by": ["node"], "step_seconds": 60 }),
    ];
    insta::assert_debug_snapshot!("plan_metric_range_readings", plans.map(|more| planned(&MetricRange, &args(more))));
}

/// 240 samples, each of 5: how many, their sum and their spread are none of them 5.
#[test]
fn what_is_no_sample_is_not_given_the_extremes_of_the_samples() {
    let say = |aggregation: &str, values: [f64; 2]| {
        let asked = args(json!({ "aggregation": aggregation, "step_seconds": 300 }));
        let row = |(value, step): (f64, i64)| {
            vec![t(step * 300), s("DCGM_FI_DEV_GPU_TEMP"), n(120), f(5.0), f(5.0), f(value)]
        };
        let (_, output) = run(&MetricRange, &asked, |_| values.into_iter().zip(0..).map(row).collect()).unwrap();
        read_out(&output).join("; ")
    };
    let told = [
        say("sum", [600.0, 600.0]),
        say("stddev", [0.0, 0.0]),
        say("stddev", [0.5, 1.5]),
        say("p95", [5.0, 5.0]),
        say("max", [5.0, 5.0]),
    ];
    insta::assert_snapshot!("no_sample_among_samples", told.join("\n"));
}

#[test]
fn every_metric_is_said_to_be_mixed_unless_told_apart() {
    let rows = |q: &Query| {
        let names = if matches!(&q.shape, Shape::Series { group_by, .. } if !group_by.is_empty()) { 2 } else { 0 };
        match names {
            0 => vec![vec![t(0), n(9), f(1.0), f(9.0), f(4.0)]],
            _ => ["a_metric", "b_metric"].map(|name| vec![t(0), s(name), n(9), f(1.0), f(9.0), f(4.0)]).into(),
        }
    };
    let every = |more: Value| {
        let mut asked = args(json!({ "metric": "*", "step_seconds": 0 }));
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        run(&MetricRange, &asked, rows).unwrap().1
    };
    let mixed = every(json!({}));
    assert_eq!(read_out(&mixed), ["every metric averaged 4, between 1 and 9"]);
    assert!(mixed.data_health.iter().any(|line| line.contains("different units")), "{:?}", mixed.data_health);
    assert_eq!(mixed.evidence[0].aggregation.as_deref(), Some("avg per 600 s"));
    let apart = every(json!({ "group_by": ["metric"] }));
    assert!(read_out(&apart).contains(&"⟨b_metric⟩ averaged 4, between 1 and 9".to_owned()), "{:?}", read_out(&apart));
    let one = every(json!({ "filters": [{ "dim": "metric", "values": ["a_metric"] }] }));
    let count = every(json!({ "aggregation": "count" }));
    for output in [apart, one, count] {
        assert!(output.data_health.iter().all(|line| !line.contains("units")), "{:?}", output.data_health);
    }
}

#[test]
fn a_series_that_others_fit_too_is_not_told_apart_by_its_name() {
    let rows = |_: &Query| [steps("", "x", &[10.0; 9]), steps("n1", "x", &[60.0; 9])].concat();
    let (_, output) = run(&MetricRange, &args(json!({ "group_by": ["node"], "step_seconds": 60 })), rows).unwrap();
    assert_eq!(output.evidence[0].series.len(), 2);
    let told = read_out(&output);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].starts_with("⟨gpu_temperature⟩ of node ⟨n1⟩ averaged 60"), "{told:?}");
}

fn samples(_: &Query) -> Vec<Vec<Cell>> {
    [(50, "n1", 90.0), (20, "n2", 80.0), (10, "n1", 70.0), (30, "n1", 60.0)]
        .map(|(at, node, value)| vec![t(at), s(node), f(value)])
        .into()
}

#[test]
fn samples_are_listed_as_they_are_stored() {
    let (_, output) = run(&MetricRange, &args(json!({ "samples": "highest", "group_by": ["node"] })), samples).unwrap();
    insta::assert_snapshot!("samples_told", read_out(&output).join("\n"));
    insta::assert_json_snapshot!("samples_rows", output.evidence[0].rows);
    assert_eq!(output.evidence[0].coverage.gaps, Vec::new(), "picked samples have no gaps");
    let (_, first) =
        run(&MetricRange, &args(json!({ "samples": "highest", "per": ["node"], "limit": 2 })), samples).unwrap();
    let rows = &first.evidence[0].rows;
    let told: Vec<_> = rows.iter().map(|r| (r.entity["node"].as_str(), r.rank, r.value)).collect();
    assert_eq!(told, [("n1", Some(1), Some(90.0)), ("n1", Some(2), Some(70.0)), ("n2", Some(1), Some(80.0))]);
    assert_eq!((first.evidence[0].total, first.evidence[0].truncated), (4, true));
    assert!(read_out(&first)[0].contains("3 samples are listed, the highest first in each group"));
}

#[test]
fn the_first_of_each_group_are_never_taken_from_a_cut_list() {
    let asked = |more: Value| {
        let asked = args(more);
        let query = planned(&MetricRange, &asked).remove(0);
        let mut read = fetched(0, &query, samples(&query));
        read.result.truncated = true;
        AnyTool::interpret(&MetricRange, &asked, &context(), &[read])
    };
    let of_each = asked(json!({ "samples": "highest", "per": ["node"], "limit": 2 }));
    assert!(matches!(of_each, Err(ToolError::Cut { .. })), "{of_each:?}");
    // The first of all are the first, however many follow.
    let of_all = asked(json!({ "samples": "highest", "group_by": ["node"], "limit": 4 })).unwrap();
    assert!(of_all.evidence[0].truncated && of_all.data_health[0].contains("more samples"));
}

#[test]
fn what_is_computed_is_never_taken_from_a_cut_list() {
    let told = |more: Value| {
        let asked = args(more);
        let query = planned(&MetricRange, &asked).remove(0);
        let row = |at: i64| vec![t(at), s("x"), s("c1"), s("n1"), s("0"), s(""), f(1.0)];
        let mut read = fetched(0, &query, vec![row(0), row(15)]);
        read.result.truncated = true;
        let planned = AnyTool::plan(&MetricRange, &asked, &context(), std::slice::from_ref(&read)).unwrap_err();
        assert_eq!(AnyTool::interpret(&MetricRange, &asked, &context(), &[read]), Err(planned.clone()));
        planned.to_string()
    };
    let sum = told(json!({ "samples": "time", "transform": "cumulative" }));
    assert!(sum.contains("more than 1000 rows") && sum.ends_with("ask for a shorter window or more filters"), "{sum}");
    let few = told(json!({ "samples": "time", "transform": "cumulative", "limit": 2 }));
    assert!(few.contains("more than 2 rows") && few.contains("raise `limit`"), "{few}");
}

/// One sample: when, of which GPU, and its value.
fn sample(at: i64, gpu: &str, value: f64) -> Vec<Cell> {
    vec![t(at), s("x"), s("c1"), s("n1"), s(gpu), s(""), f(value)]
}

#[test]
fn what_is_computed_from_samples_is_of_one_stored_series() {
    let read = |more: Value, rows: &dyn Fn(&Query) -> Vec<Vec<Cell>>| {
        let mut asked = json!({ "samples": "time", "transform": "delta" });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        run(&MetricRange, &args(asked), rows).map(|(_, output)| output)
    };
    // Scraped at one instant, or one after the other.
    for apart in [0, 7] {
        let error = read(json!({}), &|_| {
            vec![sample(0, "0", 60.0), sample(apart, "1", 80.0), sample(15, "0", 61.0), sample(15 + apart, "1", 81.0)]
        });
        let told = error.unwrap_err().to_string();
        assert!(told.contains("add `gpu` to `group_by`") && !told.contains("`node`"), "{told}");
    }
    // Told apart, each has changes of its own.
    let by_gpu = |_: &Query| {
        let row = |at, gpu: &str, value| vec![t(at), s(gpu), s("x"), s("c1"), s("n1"), s(""), f(value)];
        vec![row(0, "0", 60.0), row(0, "1", 80.0), row(15, "0", 61.0), row(15, "1", 78.0)]
    };
    let output = read(json!({ "group_by": ["gpu"] }), &by_gpu).unwrap();
    let values: Vec<f64> = output.evidence[0].series.iter().flat_map(|s| &s.points).map(|p| p.value).collect();
    assert_eq!(values, [1.0, -2.0]);
    // Series that only a label tells apart show by two values of one instant; a sample written twice is one.
    let label = read(json!({}), &|_| vec![sample(0, "0", 60.0), sample(0, "0", 80.0), sample(15, "0", 61.0)]);
    assert!(label.unwrap_err().to_string().contains("a label"));
    let twice = read(json!({}), &|_| vec![sample(0, "0", 60.0), sample(0, "0", 60.0), sample(15, "0", 61.0)]).unwrap();
    assert_eq!(twice.evidence[0].series[0].points.iter().map(|p| p.value).collect::<Vec<_>>(), [1.0]);
    // Every metric as one series is said to be a mixture, but two values of one instant have no order to take changes in.
    let every = |times: [i64; 2]| {
        read(json!({ "metric": "*" }), &move |_| vec![vec![t(times[0]), f(1.0)], vec![t(times[1]), f(9.0)]])
    };
    assert!(every([0, 0]).unwrap_err().to_string().contains("add what tells them apart"));
    assert!(every([0, 7]).unwrap().data_health.iter().any(|line| line.contains("mix metrics")));
}

#[test]
fn the_last_samples_of_several_series_are_changes_of_each() {
    let row = |at: i64, gpu: &str, value: f64| {
        vec![t(at), s("x"), s("c1"), s("n1"), s(gpu), s(""), n(4), f(50.0), f(90.0), f(value)]
    };
    let asked = args(json!({ "aggregation": "last", "step_seconds": 60, "transform": "delta" }));
    let (_, two) = run(&MetricRange, &asked, |_| {
        vec![row(0, "0", 60.0), row(0, "1", 80.0), row(60, "0", 61.0), row(60, "1", 78.0)]
    })
    .unwrap();
    let changes = |output: &ToolOutput| -> Vec<(Option<String>, f64)> {
        let of = |s: &Series| (s.entity.get("gpu").cloned(), s.points[0].value);
        output.evidence[0].series.iter().map(of).collect()
    };
    assert_eq!(changes(&two), [(Some("0".to_owned()), 1.0), (Some("1".to_owned()), -2.0)]);
    let (_, one) = run(&MetricRange, &asked, |_| vec![row(0, "0", 60.0), row(60, "0", 61.0)]).unwrap();
    assert_eq!(changes(&one), [(None, 1.0)], "one series needs no name");
}

#[test]
fn picked_samples_have_no_statistics_of_the_window() {
    let piece = |more: Value, truncated: bool| {
        let asked = args(more);
        let query = planned(&MetricRange, &asked).remove(0);
        let mut read = fetched(0, &query, samples(&query));
        read.result.truncated = truncated;
        AnyTool::interpret(&MetricRange, &asked, &context(), &[read]).unwrap().evidence.remove(0)
    };
    let all = piece(json!({ "samples": "time", "group_by": ["node"] }), false);
    assert_eq!((all.stats.unwrap().mean, all.series.len()), (75.0, 2));
    for (order, truncated) in
        [("highest", true), ("highest", false), ("lowest", true), ("latest", true), ("time", true)]
    {
        let picked = piece(json!({ "samples": order, "group_by": ["node"] }), truncated);
        // A mean is computed from series wherever it is cited.
        assert_eq!((picked.stats, picked.series.len(), picked.rows.len()), (None, 0, 4), "{order}");
    }
}

#[test]
fn what_grows_with_the_samples_is_told_in_all() {
    let told = |aggregation: &str, values: [f64; 2]| {
        // Nine samples in the first step and one in the second, of 50 to 90.
        let rows = move |_: &Query| {
            [(0, 9, values[0]), (60, 1, values[1])]
                .map(|(at, count, value)| vec![t(at), s("x"), n(count), f(50.0), f(90.0), f(value)])
                .into()
        };
        let asked = args(json!({ "aggregation": aggregation, "step_seconds": 60, "to": text(120) }));
        let (_, output) = run(&MetricRange, &asked, rows).unwrap();
        assert_eq!(output.evidence[0].coverage.seen, 10);
        read_out(&output).remove(0)
    };
    let number = told("count", [9.0, 1.0]);
    assert!(number.ends_with("was 10 in all"), "{number}");
    let sum = told("sum", [540.0, 60.0]);
    assert!(sum.ends_with("was 600 °C in all"), "{sum}");
    let spread = told("stddev", [4.0, 2.0]);
    assert!(spread.contains("averaged 3.8") && spread.contains("between 2") && spread.contains("and 4"), "{spread}");
    let same = told("count", [5.0, 5.0]);
    assert!(same.ends_with("was 10 in all"), "{same}");
}

#[test]
fn a_window_shorter_than_a_step_is_one_number() {
    let step = |from: &str, to: &str| {
        let mut asked = args(json!({ "step_seconds": 0 }));
        asked["from"] = json!(format!("2026-05-03T12:00:{from}Z"));
        asked["to"] = json!(format!("2026-05-03T12:00:{to}Z"));
        let query = planned(&MetricRange, &asked).remove(0);
        // What is planned is valid.
        let read = fetched(0, &query, Vec::new());
        match &read.query.query().shape {
            Shape::Series { step_ms, align: Align::Window, .. } => *step_ms,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(step("00.2", "00.7"), 1000);
    // From .9995 to 3.0004 are 2000.9 ms, and 2001 of those that the window is read in.
    assert_eq!(step("00.9995", "03.0004"), 2001);
}

#[test]
fn what_is_computed_stands_before_what_it_is_computed_from() {
    let rows = |_: &Query| steps("n1", "x", &[10.0, 14.0, 11.0]);
    let computed = |transform: &str, points: Value| {
        let asked = args(
            json!({ "group_by": ["node"], "step_seconds": 60, "transform": transform, "points": points, "to": text(180) }),
        );
        run(&MetricRange, &asked, rows).unwrap().1
    };
    let delta = computed("delta", Value::Null);
    let values = |output: &ToolOutput| output.evidence[0].series[0].points.iter().map(|p| p.value).collect::<Vec<_>>();
    assert_eq!(values(&delta), [4.0, -3.0]);
    assert_eq!(
        read_out(&delta),
        ["the change from point to point of ⟨gpu_temperature⟩ of node ⟨n1⟩ averaged 0.500 °C, between -3 °C and 4 °C"]
    );
    let [head, parts] = delta.evidence.as_slice() else { panic!("{} pieces", delta.evidence.len()) };
    assert_eq!(head.aggregation.as_deref(), Some("avg per 60 s, difference to the point before"));
    assert!(head.sql.is_none() && parts.sql.is_some() && parts.series[0].points.len() == 3);
    assert_eq!(values(&computed("moving_average", json!(2))), [10.0, 12.0, 12.5]);
    assert_eq!(values(&computed("cumulative", Value::Null)), [10.0, 24.0, 35.0]);
    let single = |_: &Query| steps("n1", "x", &[10.0]);
    let asked = args(json!({ "group_by": ["node"], "step_seconds": 60, "transform": "delta" }));
    assert_eq!(run(&MetricRange, &asked, single).unwrap().1.outcome, Some(Outcome::InsufficientData));
}

fn is_divisor(q: &Query) -> bool {
    q.metric.as_deref() == Some("gpu_power")
}

#[test]
fn a_ratio_says_where_it_has_none() {
    let asked = args(json!({ "divide_by": "gpu_power", "group_by": ["node"], "step_seconds": 60 }));
    let rows = |q: &Query| {
        if is_divisor(q) { steps("n1", "p", &[20.0, 0.0, 10.0]) } else { steps("n1", "x", &[10.0, 14.0, 20.0, 5.0]) }
    };
    let (_, output) = run(&MetricRange, &asked, rows).unwrap();
    insta::assert_snapshot!("a_ratio", read_out(&output).join("\n"));
    let [ratio, above, below] = output.evidence.as_slice() else { panic!("{} pieces", output.evidence.len()) };
    assert_eq!(ratio.series[0].points.iter().map(|p| p.value).collect::<Vec<_>>(), [0.5, 2.0]);
    assert!(ratio.sql.is_none() && above.sql.is_some() && below.sql.is_some());
    assert!(output.data_health.iter().any(|line| line.contains("not zero")));
    // Nothing to divide by at all is explained as for any metric.
    let never = |q: &Query| if is_divisor(q) { Vec::new() } else { steps("n1", "x", &[10.0]) };
    let (_, none) = run(&MetricRange, &asked, never).unwrap();
    assert_eq!(none.outcome, Some(Outcome::InsufficientData));
    assert!(read_out(&none)[0].starts_with("⟨gpu_power⟩ is not collected"), "{:?}", read_out(&none));
    // Zero throughout: no ratio, and no number in its place.
    let zero = |q: &Query| steps("n1", "x", &[if is_divisor(q) { 0.0 } else { 10.0 }]);
    let (_, none) = run(&MetricRange, &asked, zero).unwrap();
    assert_eq!((none.outcome, none.evidence[0].series.len()), (Some(Outcome::InsufficientData), 0));
    assert_eq!(read_out(&none), ["1 steps have no ratio: what it is divided by is missing or zero there"]);
}

#[test]
fn arguments_that_do_not_go_together_say_what_would() {
    let bad = [
        json!({ "metric": "*", "aggregation": "rate" }),
        json!({ "aggregation": "fraction_above" }),
        json!({ "threshold": 3 }),
        json!({ "limit": 5 }),
        json!({ "per": ["node"] }),
        json!({ "samples": "latest", "step_seconds": 60 }),
        json!({ "samples": "latest", "limit": 0 }),
        json!({ "samples": "latest", "limit": 1001 }),
        json!({ "samples": "latest", "transform": "delta" }),
        json!({ "samples": "biggest" }),
        json!({ "metric": "ttft", "samples": "latest" }),
        json!({ "transform": "moving_average" }),
        json!({ "transform": "moving_average", "points": 1 }),
        json!({ "points": 5 }),
        json!({ "transform": "delta", "step_seconds": 0 }),
        json!({ "transform": "delta", "divide_by": "gpu_power" }),
        json!({ "divide_by": "gpu_temperature" }),
        json!({ "divide_by": "no_such_metric_at_all" }),
        json!({ "divide_by": "*" }),
        json!({ "metric": "*", "divide_by": "gpu_power" }),
        json!({ "align": "noon" }),
    ];
    let told = bad.map(|more| {
        AnyTool::plan(&MetricRange, &args(more.clone()), &context(), &[])
            .map_or_else(|e| e.to_string(), |_| format!("{more} was taken"))
    });
    insta::assert_snapshot!("metric_range_bad_arguments", told.join("\n"));
}
