use std::collections::BTreeSet;

use serde_json::json;
use sightline_model::{Aggregation, Cell, Dataset, Dim, Outcome};
use sightline_query::{Filter, Match, Query, Shape};

use super::JobCorrelation;
use crate::testing::{at, context, f, labels, n, planned, run, s, t, text};
use crate::tool::{AnyTool, Step, Tool, ToolOutput};

/// Eight GPUs on two nodes, six hours, one sample a minute; GPU 3 of `a1` is hot from the fourth hour on.
struct World {
    hot: bool,
    ended: bool,
    remapped: bool,
}

/// The metrics that a query reads, by canonical name.
pub(super) fn asked(query: &Query) -> Vec<String> {
    let by_name = query.filters.iter().find_map(|filter| match filter {
        Filter::Dim { dim: Dim::Metric, matches: Match::In(names) } => Some(names),
        Filter::Dim { .. } | Filter::Value { .. } => None,
    });
    let known = |name: &String| context().catalogue.by_stored(name).unwrap().id().to_owned();
    let mut all: Vec<String> = by_name.map_or_else(Vec::new, |names| names.iter().map(known).collect());
    all.extend(query.metric.clone());
    all.dedup();
    all
}

const HOURS: i64 = 6;
const ONSET: i64 = 3 * 3600 + 1260;

fn wobble(seed: i64) -> f64 {
    let x = (seed as f64 * 12.9898).sin() * 43758.5453;
    x - x.floor() - 0.5
}

impl World {
    fn rows(&self, query: &Query) -> Vec<Vec<Cell>> {
        match (query.dataset, &query.shape) {
            (Dataset::Jobs, _) => vec![self.job(query)],
            (Dataset::JobGpus, _) => gpus().map(|(i, node, gpu)| self.held(query, i, node, &gpu)).collect(),
            (Dataset::Metrics, Shape::Series { step_ms, .. }) => {
                self.series(query, i64::try_from(*step_ms).unwrap() / 1000, false)
            }
            (Dataset::Metrics, Shape::Samples { .. }) => self.series(query, 60, true),
            (Dataset::Metrics, Shape::Distinct { of, .. }) if of.iter().any(|d| d.as_str() == "driver_version") => {
                ["a1", "a2"].map(|node| vec![s(node), s("535.104.05"), n(9), t(0), t(540)]).to_vec()
            }
            (Dataset::Metrics, Shape::Distinct { .. }) => gpus()
                .map(|(_, node, gpu)| vec![s(node), s(&gpu), s(&format!("00000000:0{gpu}:00.0")), n(9), t(0), t(540)])
                .collect(),
            (Dataset::Logs | Dataset::Events | Dataset::Spans, _) => Vec::new(),
            (Dataset::Metrics, Shape::Rank { .. }) => self.whole(query),
            (Dataset::Metrics, Shape::Rows { .. } | Shape::LabelKeys { .. }) => {
                panic!("{query:?} is not asked")
            }
        }
    }

    /// The cells of a row by the names of its columns.
    fn named(query: &Query, cell: impl Fn(&str) -> Cell) -> Vec<Cell> {
        context().catalogue.check(query).unwrap().columns().iter().map(|c| cell(&c.name)).collect()
    }

    fn end(&self) -> Cell {
        if self.ended { t(HOURS * 3600) } else { Cell::Null }
    }

    fn job(&self, query: &Query) -> Vec<Cell> {
        Self::named(query, |name| match name {
            "time" => t(0),
            "end" => self.end(),
            "submit" => t(-60),
            "cluster" => s("atlas-1"),
            "job_id" => s("J123"),
            "kind" => s("training"),
            "state" => s("running"),
            "labels" => labels(&[]),
            _ => s("x"),
        })
    }

    fn held(&self, query: &Query, rank: i64, node: &str, gpu: &str) -> Vec<Cell> {
        Self::named(query, |name| match name {
            "time" => t(0),
            "end" => self.end(),
            "cluster" => s("atlas-1"),
            "job_id" => s("J123"),
            "node" => s(node),
            "gpu" => s(gpu),
            "rank" => s(&rank.to_string()),
            "attempt" => s("0"),
            _ => s("x"),
        })
    }

    /// What stands still: remapped rows, which GPU 2 of `a2` has one more of at the end.
    fn whole(&self, query: &Query) -> Vec<Vec<Cell>> {
        if !asked(query).contains(&"row_remap_correctable".to_owned()) {
            return Vec::new();
        }
        let rows = gpus().map(|(_, node, gpu)| {
            let most = if self.remapped && (node, gpu.as_str()) == ("a2", "2") { 3.0 } else { 2.0 };
            Self::named(query, |column| match column {
                "node" => s(node),
                "gpu" => s(&gpu),
                "metric" => s("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"),
                "count" => n(HOURS * 60),
                "min" => f(2.0),
                "max" | "value" => f(most),
                "at" => t(HOURS * 3600 - 60),
                other => panic!("no column {other}"),
            })
        });
        rows.collect()
    }

    fn series(&self, query: &Query, step: i64, raw: bool) -> Vec<Vec<Cell>> {
        let metrics = asked(query);
        let members: Vec<(i64, String, String)> = match &query.placement {
            Some(pairs) => gpus()
                .map(|(i, node, gpu)| (i, node.to_owned(), gpu))
                .filter(|(_, node, gpu)| pairs.contains(&(node.clone(), gpu.clone())))
                .collect(),
            None => vec![(0, String::new(), String::new())],
        };
        let mut rows = Vec::new();
        let (from, to) =
            (query.range.from().as_second() - at(0).as_second(), query.range.to().as_second() - at(0).as_second());
        for second in (from..to.min(HOURS * 3600)).filter(|second| second % step == 0) {
            for ((i, node, gpu), metric) in members.iter().flat_map(|m| metrics.iter().map(move |metric| (m, metric))) {
                let hot = self.hot && second >= ONSET;
                let Some((name, value)) =
                    sample(metric, hot, (node.as_str(), gpu.as_str()) == ("a1", "3"), second + 7919 * i)
                else {
                    continue;
                };
                rows.push(Self::named(query, |column| match column {
                    "bucket" | "time" => t(second),
                    "node" => s(node),
                    "gpu" => s(gpu),
                    "metric" => s(name),
                    "count" => n(if raw { 1 } else { step / 60 }),
                    "value" | "min" | "max" => f(value),
                    other => panic!("no column {other}"),
                }));
            }
        }
        rows
    }
}

fn gpus() -> impl Iterator<Item = (i64, &'static str, String)> {
    (0..8).map(|i| (i, if i < 4 { "a1" } else { "a2" }, (i % 4).to_string()))
}

/// A metric's stored name and value; none when it is not collected.
fn sample(metric: &str, hot: bool, culprit: bool, seed: i64) -> Option<(&'static str, f64)> {
    let w = wobble(seed);
    Some(match metric {
        "step_time" => ("train_step_time_seconds", if hot { 1.9 } else { 1.1 } + 0.03 * w),
        "sm_clock" => ("DCGM_FI_DEV_SM_CLOCK", if hot && culprit { 1130.0 } else { 1965.0 } + 10.0 * w),
        "gpu_temperature" => ("DCGM_FI_DEV_GPU_TEMP", if hot && culprit { 89.0 } else { 66.0 } + w),
        "gpu_power" => ("DCGM_FI_DEV_POWER_USAGE", if hot { 440.0 } else { 640.0 } + 8.0 * w),
        "gpu_utilization" => ("DCGM_FI_DEV_GPU_UTIL", 99.0 + w),
        _ => return None,
    })
}

fn why(world: &World) -> ToolOutput {
    run(&JobCorrelation, &json!({ "job": "J123" }), |query| world.rows(query)).unwrap().1
}

#[test]
fn a_hot_gpu_is_named_and_dated_to_the_minute() {
    let output = why(&World { hot: true, ended: true, remapped: false });
    let first = &output.causes[0];
    assert_eq!((output.outcome, first.id.as_str(), first.rank), (Some(Outcome::Answered), "thermal_throttling", 1));
    let component: Vec<&str> = first.components[0].values().map(String::as_str).collect();
    assert_eq!((component, first.components.len()), (vec!["3", "a1"], 1));
    assert_eq!(first.onset, Some(at(ONSET)));
    assert_eq!(output.runbooks, vec!["thermal-throttling"]);
}

#[test]
fn a_job_without_a_fault_is_not_blamed() {
    let output = why(&World { hot: false, ended: true, remapped: false });
    assert_eq!((output.outcome, output.causes[0].id.as_str()), (Some(Outcome::NoFault), "compute_bound"));
}

#[test]
fn a_job_that_runs_while_its_telemetry_stopped_is_not_called_healthy() {
    let output = why(&World { hot: false, ended: false, remapped: false });
    assert_eq!((output.outcome, output.causes[0].id.as_str()), (Some(Outcome::InsufficientData), "telemetry_gap"));
}

#[test]
fn evidence_is_named_without_gaps_and_every_citation_stands() {
    let output = why(&World { hot: true, ended: true, remapped: false });
    let ids: Vec<&str> = output.evidence.iter().map(|e| e.id.as_str()).collect();
    let expected: Vec<String> = (1..=ids.len()).map(|i| format!("E{i}")).collect();
    assert_eq!(ids, expected);
    let known: BTreeSet<&str> = ids.into_iter().collect();
    let claims = output.causes.iter().flat_map(|c| c.claims.iter().chain([&c.why])).chain(&output.claims);
    assert!(claims.flat_map(|c| &c.citations).all(|id| known.contains(id.as_str())));
    let metrics: Vec<_> = output.evidence.iter().filter_map(|e| e.metric.as_deref()).collect();
    assert!(metrics.contains(&"DCGM_FI_DEV_GPU_TEMP") && metrics.contains(&"DCGM_FI_DEV_SM_CLOCK"), "{metrics:?}");
}

#[test]
fn an_unknown_job_has_no_data() {
    let output = run(&JobCorrelation, &json!({ "job": "J9" }), |_| Vec::new()).unwrap().1;
    assert_eq!((output.outcome, output.causes.len()), (Some(Outcome::InsufficientData), 0));
}

#[test]
fn a_job_that_did_not_run_in_the_window_has_no_data() {
    let args = json!({ "job": "J123", "from": text(40_000), "to": text(50_000) });
    let world = World { hot: true, ended: true, remapped: false };
    let output = run(&JobCorrelation, &args, |query| world.rows(query)).unwrap().1;
    assert_eq!(output.outcome, Some(Outcome::InsufficientData));
}

#[test]
fn logs_and_events_are_asked_for_only_by_who_may_read_them() {
    let world = World { hot: true, ended: true, remapped: false };
    let args = json!({ "job": "J123" });
    let (fetched, _) = run(&JobCorrelation, &args, |query| world.rows(query)).unwrap();
    let may_read = BTreeSet::from([Dataset::Metrics, Dataset::Jobs, Dataset::JobGpus]);
    let narrow = crate::ToolContext { may_read: &may_read, ..context() };
    let first: Vec<_> = fetched.iter().filter(|f| f.round == 0).cloned().collect();
    let Step::Fetch(queries) = AnyTool::plan(&JobCorrelation, &args, &narrow, &first).unwrap() else {
        panic!("no survey")
    };
    assert!(queries.iter().all(|q| !matches!(q.dataset, Dataset::Logs | Dataset::Events)));
    let output = AnyTool::interpret(&JobCorrelation, &args, &narrow, &first).unwrap();
    assert!(
        output.data_health.iter().any(|l| l.contains("logs and events were not looked at")),
        "{:?}",
        output.data_health
    );
}

#[test]
fn every_metric_is_read_on_the_jobs_own_gpus_nodes_or_label() {
    let world = World { hot: true, ended: true, remapped: false };
    let (fetched, _) = run(&JobCorrelation, &json!({ "job": "J123" }), |query| world.rows(query)).unwrap();
    assert!(fetched.iter().map(|f| f.round).max() == Some(2));
    for one in fetched.iter().filter(|f| f.query.dataset() == Dataset::Metrics) {
        let filters = one.query.filters();
        let by = |name: &str| {
            filters.iter().any(|filter| match filter {
                Filter::Dim { dim, matches: Match::Eq(_) | Match::In(_) } => dim.as_str() == name,
                Filter::Dim { .. } | Filter::Value { .. } => false,
            })
        };
        assert!(by("cluster") && (one.query.placement().is_some() || by("node") || by("job")), "{:?}", one.query);
    }
}

#[test]
fn the_queries_read_well() {
    let world = World { hot: true, ended: true, remapped: false };
    let (fetched, _) = run(&JobCorrelation, &json!({ "job": "J123" }), |query| world.rows(query)).unwrap();
    let mut text = String::new();
    for one in &fetched {
        let query = one.query.query();
        let how = match &query.shape {
            Shape::Series { step_ms, aggregation, .. } => {
                format!("{} per {} s", Aggregation::as_str(*aggregation), step_ms / 1000)
            }
            Shape::Samples { .. } => "samples".to_owned(),
            Shape::Rows { .. } => "rows".to_owned(),
            Shape::Distinct { .. } => "distinct".to_owned(),
            Shape::Rank { .. } => "rank".to_owned(),
            Shape::LabelKeys { .. } => "label keys".to_owned(),
        };
        let gpus = query.placement.as_ref().map_or(String::new(), |p| format!(", {} GPUs", p.len()));
        let metric = if query.dataset == Dataset::Metrics { asked(query).join(", ") } else { String::new() };
        let (from, to) = (query.range.from(), query.range.to());
        text.push_str(&format!("round {} {} {metric}: {how}{gpus}, {from} to {to}\n", one.round, query.dataset));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn many_signals_are_read_by_few_queries_and_each_is_evidence_of_its_own() {
    let world = World { hot: true, ended: true, remapped: false };
    let (args, wide) = (json!({ "job": "J123" }), crate::ToolContext { max_rows: 500_000, ..context() });
    let mut fetched = Vec::new();
    while let Step::Fetch(queries) = AnyTool::plan(&JobCorrelation, &args, &wide, &fetched).unwrap() {
        let round = fetched.last().map_or(0, |f: &crate::Fetched| f.round + 1);
        fetched.extend(queries.iter().map(|q| crate::testing::fetched(round, q, world.rows(q))));
    }
    let output = AnyTool::interpret(&JobCorrelation, &args, &wide, &fetched).unwrap();
    assert!(fetched.len() <= 28, "{} queries", fetched.len());
    let merged = fetched.iter().find(|f| asked(f.query.query()).contains(&"sm_clock".to_owned())).unwrap();
    assert!(merged.query.metric().is_none());
    let of = |metric: &str| output.evidence.iter().find(|e| e.metric.as_deref() == Some(metric)).unwrap();
    let (clock, heat) = (of("DCGM_FI_DEV_SM_CLOCK"), of("DCGM_FI_DEV_GPU_TEMP"));
    assert_eq!((clock.sql.as_deref(), &clock.query_id), (Some(merged.sql.as_str()), &heat.query_id));
    assert_eq!((clock.series.len(), heat.series.len()), (8, 8));
    assert!(clock.series.iter().all(|s| s.entity.keys().eq(["gpu", "node"])));
    assert!(heat.stats.unwrap().max < 100.0 && clock.stats.unwrap().min > 1000.0);
}

#[test]
fn what_stands_still_is_looked_at_once_and_what_moved_is_read_again() {
    let again = |world: &World| {
        let (fetched, _) = run(&JobCorrelation, &json!({ "job": "J123" }), |query| world.rows(query)).unwrap();
        let second = fetched.iter().filter(|f| f.round == 2);
        second.filter(|f| asked(f.query.query()).contains(&"row_remap_correctable".to_owned())).count()
    };
    let mut world = World { hot: false, ended: true, remapped: false };
    assert_eq!(again(&world), 0);
    let quiet = why(&world);
    assert!(quiet.causes.iter().any(|c| c.id == "hardware_degradation" && c.why.text.starts_with("Ruled out")));
    world.remapped = true;
    assert_eq!(again(&world), 1);
}

#[test]
fn the_schema_of_the_arguments() {
    insta::assert_json_snapshot!(AnyTool::schema(&JobCorrelation));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_what_would_fit() {
    let args = json!({ "job": "J123", "from": text(50), "to": text(10) });
    let error = AnyTool::plan(&JobCorrelation, &args, &context(), &[]).unwrap_err().to_string();
    assert!(error.contains("reversed"), "{error}");
    assert_eq!(planned(&JobCorrelation, &json!({ "job": "J123" })).len(), 2);
    assert!(
        Tool::plan(&JobCorrelation, &serde_json::from_value(json!({ "job": "J" })).unwrap(), &context(), &[]).is_ok()
    );
}
