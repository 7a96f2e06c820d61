//! The tool over a small shop: what it asks for, and what it makes of it.

use serde_json::json;
use sightline_model::{Cell, Dataset, Dim, Outcome};
use sightline_query::{Filter, Match, MetricPart, Query, Shape};

use crate::ServiceCorrelation;
use crate::testing::{at, f, labels, n, run, s, t, text};
use crate::tool::AnyTool;

/// The window: an hour until noon and an hour.
const FROM: i64 = 0;
const TO: i64 = 3_600;

/// The fault begins here.
const ONSET: i64 = 1_800;

const STORED: [&str; 3] = ["service_latency_avg_seconds", "service_requests", "cpu"];
const SERVICES: [&str; 3] = ["front", "cart", "db"];

fn value(metric: &str, service: &str, seconds: i64) -> f64 {
    let wave = 1.0 + 0.02 * ((seconds / 60 % 7) as f64 - 3.0) / 3.0;
    match (metric, service) {
        ("service_latency_avg", "front") => wave * if seconds >= ONSET { 0.4 } else { 0.1 },
        ("service_latency_avg", "cart") => wave * if seconds >= ONSET { 0.35 } else { 0.05 },
        ("service_latency_avg", _) => wave * 0.02,
        ("cpu", "cart") => wave * if seconds >= ONSET { 95.0 } else { 30.0 },
        ("cpu", _) => wave * 30.0,
        _ => wave * 100.0,
    }
}

/// The engine's place: the rows of each query.
fn rows(query: &Query) -> Vec<Vec<Cell>> {
    let (from, to) =
        (query.range.from().as_second() - at(0).as_second(), query.range.to().as_second() - at(0).as_second());
    let seen = || vec![n(10), t(from), t(to - 1)];
    match (query.dataset, &query.shape) {
        (Dataset::Metrics, Shape::Distinct { of, .. }) => {
            let keyed = |keys: &[&str]| keys.iter().map(|key| s(key)).chain(seen()).collect::<Vec<_>>();
            match of.as_slice() {
                [Dim::Metric] => STORED.iter().map(|metric| keyed(&[metric])).collect(),
                [Dim::Metric, Dim::Service] => {
                    STORED.iter().flat_map(|m| SERVICES.map(|service| keyed(&[m, service]))).collect()
                }
                [Dim::Label(_), Dim::Label(_)] => vec![keyed(&["front", "cart"]), keyed(&["cart", "db"])],
                _ => Vec::new(),
            }
        }
        (Dataset::Metrics, Shape::Series { step_ms, group_by, .. }) => {
            let step = i64::try_from(*step_ms / 1000).unwrap();
            let by_pod = group_by.contains(&Dim::Label("pod".to_owned()));
            let metric = query.metric.clone().unwrap_or_else(|| "cpu".to_owned());
            let mut rows = Vec::new();
            for bucket in (from - from.rem_euclid(step)..to).step_by(usize::try_from(step).unwrap()) {
                for service in SERVICES {
                    let level = value(&metric, service, bucket);
                    let mut row = vec![t(bucket), s(service)];
                    if by_pod {
                        row.push(s(&format!("{service}-1")));
                    }
                    row.extend([s("stored"), n(1), f(level), f(level), f(level)]);
                    rows.push(row);
                }
            }
            rows
        }
        (Dataset::Spans, Shape::Rank { .. } | Shape::Distinct { .. }) | (Dataset::Logs, _) => Vec::new(),
        (Dataset::Events, Shape::Rows { .. }) => {
            vec![vec![t(60), s("c"), s(""), s(""), s("db"), s("deploy"), s("db v2"), labels(&[])]]
        }
        (dataset, shape) => panic!("{dataset:?} is not expected in {shape:?}"),
    }
}

#[test]
fn every_service_is_surveyed_and_the_one_behind_is_named() {
    let args = json!({ "service": "front", "from": text(FROM), "to": text(TO) });
    let (fetched, output) = run(&ServiceCorrelation, &args, rows).unwrap();
    assert_eq!(output.outcome, Some(Outcome::Answered));
    let first = &output.causes[0];
    assert_eq!((first.id.as_str(), first.components[0]["service"].as_str()), ("cpu_contention", "cart"));
    assert_eq!(first.onset, Some(at(ONSET)));
    assert_eq!(first.components.len(), 1);
    // Two days back in coarse steps, the window in fine ones, and nothing past the window's end.
    let series = fetched.iter().filter_map(|f| match &f.query.query().shape {
        Shape::Series { step_ms, .. } => Some((f.query.query(), *step_ms)),
        _ => None,
    });
    for (query, step_ms) in series {
        assert!(query.range.to() <= at(TO));
        assert!(query.range.to() <= at(FROM) && step_ms >= 300_000 || step_ms <= 120_000, "{query:?}");
        assert_eq!(query.part, MetricPart::Samples);
    }
    let ids: Vec<&str> = output.evidence.iter().map(|e| e.id.as_str()).collect();
    assert_eq!(ids, (1..=ids.len()).map(|i| format!("E{i}")).collect::<Vec<_>>(), "names are dense");
    assert!(
        output.evidence.iter().any(|e| e.metric.as_deref() == Some("cpu")),
        "a name that the catalogue lacks is shown as it is"
    );
}

#[test]
fn cut_rows_are_left_out_and_said() {
    let args = json!({ "service": "front", "from": text(FROM), "to": text(TO) });
    let (mut fetched, _) = run(&ServiceCorrelation, &args, rows).unwrap();
    for one in fetched.iter_mut().filter(|f| f.query.query().metric.as_deref() == Some("service_latency_avg")) {
        one.result.truncated = true;
    }
    let output = AnyTool::interpret(&ServiceCorrelation, &args, &crate::testing::context(), &fetched).unwrap();
    assert_eq!(output.outcome, Some(Outcome::InsufficientData));
    assert!(output.data_health.iter().any(|line| line.contains("left out")), "{:?}", output.data_health);
}

/// A site where each service has metrics of its own, and nothing says who calls whom.
fn column_rows(query: &Query) -> Vec<Vec<Cell>> {
    let (from, to) =
        (query.range.from().as_second() - at(0).as_second(), query.range.to().as_second() - at(0).as_second());
    let seen = || vec![n(10), t(from), t(to - 1)];
    let names = || SERVICES.iter().flat_map(|name| ["latency-50", "cpu"].map(|m| (*name, format!("{name}_{m}"), m)));
    match (query.dataset, &query.shape) {
        (Dataset::Metrics, Shape::Distinct { of, .. }) => {
            let keyed = |keys: Vec<&str>| keys.into_iter().map(s).chain(seen()).collect::<Vec<_>>();
            match of.as_slice() {
                [Dim::Metric] => names().map(|(_, stored, _)| keyed(vec![&stored])).collect(),
                [Dim::Metric, Dim::Service] => names().map(|(name, stored, _)| keyed(vec![&stored, name])).collect(),
                _ => Vec::new(),
            }
        }
        (Dataset::Metrics, Shape::Series { step_ms, group_by, .. }) => {
            let step = i64::try_from(*step_ms / 1000).unwrap();
            let by_pod = group_by.contains(&Dim::Label("pod".to_owned()));
            let wanted = query.filters.iter().find_map(|filter| match filter {
                Filter::Dim { dim: Dim::Metric, matches: Match::In(names) } => Some(names.clone()),
                Filter::Dim { .. } | Filter::Value { .. } => None,
            });
            let wanted = wanted.expect("names of one kind are read together");
            assert_eq!(wanted.len(), SERVICES.len());
            let mut rows = Vec::new();
            for bucket in (from - from.rem_euclid(step)..to).step_by(usize::try_from(step).unwrap()) {
                for (name, stored, metric) in names().filter(|(_, stored, _)| wanted.contains(stored)) {
                    let metric = if metric == "cpu" { "cpu" } else { "service_latency_avg" };
                    let level = value(metric, name, bucket);
                    let mut row = vec![t(bucket), s(name)];
                    if by_pod {
                        row.push(s(""));
                    }
                    row.extend([s(&stored), n(1), f(level), f(level), f(level)]);
                    rows.push(row);
                }
            }
            rows
        }
        _ => Vec::new(),
    }
}

#[test]
fn names_that_begin_with_their_service_are_one_metric_and_shown_as_they_are_stored() {
    let args = json!({ "from": text(FROM), "to": text(TO) });
    let (_, output) = run(&ServiceCorrelation, &args, column_rows).unwrap();
    assert_eq!(output.outcome, Some(Outcome::Answered), "{:?}", output.headline);
    let first = &output.causes[0];
    assert_eq!((first.id.as_str(), first.components[0]["service"].as_str()), ("cpu_contention", "cart"));
    assert!(output.evidence.iter().any(|e| e.metric.as_deref() == Some("cart_cpu")), "the stored name is shown");
    assert!(output.data_health.iter().any(|line| line.contains("no service was named")));
}
