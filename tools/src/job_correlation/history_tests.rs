use serde_json::json;
use sightline_model::{CauseStatus, Cell, Dataset, Outcome};
use sightline_query::{Query, Shape};

use crate::job_correlation::JobCorrelation;
use crate::testing::{context, f, labels, n, run, s, t};
use crate::tool::ToolOutput;

/// A run: its id, hours of start and end, how many GPUs of the four on each of two nodes, its image and its step time.
type Run = (&'static str, i64, i64, i64, &'static str, f64);

const OWN: Run = ("J9", 0, 6, 4, "trainer:2", 1.3);

fn cells(query: &Query, cell: impl Fn(&str) -> Cell) -> Vec<Cell> {
    context().catalogue.check(query).unwrap().columns().iter().map(|c| cell(&c.name)).collect()
}

fn gpus(count: i64) -> impl Iterator<Item = (&'static str, String)> {
    ["a1", "a2"].into_iter().flat_map(move |node| (0..count).map(move |g| (node, g.to_string())))
}

/// Whether a query asks for that job, by a filter of its own.
fn asks_for(query: &Query, job: &str) -> bool {
    let filters = format!("{:?}", query.filters);
    filters.contains(job) || filters.contains("Name")
}

fn answer(query: &Query, runs: &[Run], newer: bool) -> Vec<Vec<Cell>> {
    let asked = runs.iter().filter(|(job, ..)| asks_for(query, job));
    match (query.dataset, &query.shape) {
        (Dataset::Jobs, _) => asked
            .map(|(job, from, to, _, image, _)| {
                cells(query, |name| match name {
                    "time" | "submit" => t(from * 3600),
                    "end" => t(to * 3600),
                    "job_id" => s(job),
                    "labels" => labels(&[("image", image)]),
                    other => s(other),
                })
            })
            .collect(),
        (Dataset::JobGpus, _) => asked
            .flat_map(|(job, from, to, count, ..)| {
                gpus(*count).map(move |(node, gpu)| {
                    cells(query, |name| match name {
                        "time" => t(from * 3600),
                        "end" => t(to * 3600),
                        "job_id" => s(job),
                        "node" => s(node),
                        "gpu" => s(&gpu),
                        other => s(other),
                    })
                })
            })
            .collect(),
        (Dataset::Metrics, Shape::Distinct { of, .. }) if of.iter().any(|d| d.as_str() == "driver_version") => {
            let version = |node: &str| if newer && node == "a2" { "550.54.14" } else { "535.104.05" };
            ["a1", "a2"].map(|node| vec![s(node), s(version(node)), n(9), t(0), t(540)]).to_vec()
        }
        (Dataset::Metrics, Shape::Series { step_ms, .. }) => {
            let step = i64::try_from(*step_ms).unwrap() / 1000;
            let metrics = crate::job_correlation::tests::asked(query);
            asked
                .flat_map(|run| metrics.iter().map(move |metric| (run, metric)))
                .flat_map(|(run, metric)| series(query, metric, run, step, newer))
                .collect()
        }
        (_, _) => Vec::new(),
    }
}

fn series(query: &Query, metric: &str, run: &Run, step: i64, newer: bool) -> Vec<Vec<Cell>> {
    let (job, from, to, _, _, pace) = run;
    let wobble = |second: i64| ((second as f64 * 0.7).sin() * 43758.5).fract() * 0.02;
    let ranks: Vec<(usize, (&str, String))> = gpus(4).enumerate().collect();
    let members = if metric == "step_time" { ranks.get(..1).unwrap().to_vec() } else { ranks };
    let value = |node: &str| match metric {
        "step_time" => Some(("train_step_time_seconds", *pace)),
        "forward_backward_time" => {
            Some(("train_compute_seconds", if newer && node == "a2" { 1.2 * pace } else { 0.9 * pace }))
        }
        _ => None,
    };
    (from * 3600..to * 3600)
        .filter(|second| second % step == 0)
        .flat_map(|second| members.iter().map(move |member| (second, member)))
        .filter_map(|(second, (rank, (node, gpu)))| {
            let (name, level) = value(node)?;
            Some(cells(query, |column| match column {
                "bucket" => t(second),
                "node" => s(node),
                "gpu" => s(gpu),
                "rank" => s(&rank.to_string()),
                "job" => s(job),
                "metric" => s(name),
                "count" => n(2),
                "value" | "min" | "max" => f(level + wobble(second + 17 * i64::try_from(*rank).unwrap())),
                _ => s(""),
            }))
        })
        .collect()
}

fn why(runs: &[Run], newer: bool) -> ToolOutput {
    run(&JobCorrelation, &json!({ "job": OWN.0 }), |query| answer(query, runs, newer)).unwrap().1
}

fn status(output: &ToolOutput, id: &str) -> CauseStatus {
    output.causes.iter().find(|c| c.id == id).unwrap().status
}

#[test]
fn a_job_that_is_slower_than_its_last_run_with_another_image_has_regressed() {
    let output = why(&[("J8", -30, -24, 4, "trainer:1", 1.0), OWN], false);
    assert_eq!(output.outcome, Some(Outcome::Answered));
    assert_eq!(status(&output, "software_regression"), CauseStatus::Supported);
    let cause = output.causes.iter().find(|c| c.id == "software_regression").unwrap();
    assert!(cause.claims.iter().any(|c| c.text.starts_with("Its image is")), "{:?}", cause.claims);
}

#[test]
fn a_run_on_fewer_gpus_and_one_as_slow_prove_nothing() {
    for earlier in [("J8", -30, -24, 2, "trainer:1", 1.0), ("J8", -30, -24, 4, "trainer:1", 1.28)] {
        assert_eq!(status(&why(&[earlier, OWN], false), "software_regression"), CauseStatus::RuledOut, "{earlier:?}");
    }
}

#[test]
fn drivers_are_read_from_the_labels_of_the_samples() {
    let output = why(&[OWN], true);
    assert_eq!(status(&output, "driver_regression"), CauseStatus::Supported);
    let cause = output.causes.iter().find(|c| c.id == "driver_regression").unwrap();
    assert_eq!(cause.components.iter().flat_map(|c| c.values()).collect::<Vec<_>>(), vec!["a2"]);
    assert_eq!(status(&why(&[OWN], false), "driver_regression"), CauseStatus::RuledOut);
}
