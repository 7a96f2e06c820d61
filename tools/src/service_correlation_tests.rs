use std::collections::BTreeSet;

use serde_json::json;
use sightline_model::{Aggregation, Cell, Dataset, Dim, Outcome};
use sightline_query::{Filter, Match, MetricPart, Query, Shape};

use super::ServiceCorrelation;
use crate::testing::{at, context, f, labels, n, run, s, t};
use crate::tool::{AnyTool, Fetched, Step, ToolOutput};

/// Two pods of one vLLM service, sampled every 15 s for three days; from `ONSET` on the KV cache is full and requests are
/// thrown out of the batch.
#[derive(Clone, Copy)]
struct World {
    full: bool,
    phases: bool,
}

/// Half an hour before now.
const ONSET: i64 = 86_400 - 1800;
const SCRAPE: i64 = 15;
const PODS: [&str; 2] = ["chat-0", "chat-1"];

/// Level before, level when the cache is full; a rate per second, a mean of observations, or a gauge.
const METRICS: [(&str, &str, f64, f64); 11] = [
    ("time_to_first_token", "vllm:time_to_first_token_seconds", 0.3, 0.2),
    ("inter_token_latency", "vllm:inter_token_latency_seconds", 0.03, 0.07),
    ("request_latency", "vllm:e2e_request_latency_seconds", 9.0, 20.0),
    ("request_queue_time", "vllm:request_queue_time_seconds", 0.02, 0.02),
    ("request_prefill_time", "vllm:request_prefill_time_seconds", 0.25, 0.15),
    ("requests_running", "vllm:num_requests_running", 24.0, 40.0),
    ("requests_waiting", "vllm:num_requests_waiting", 0.2, 0.2),
    ("kv_cache_usage", "vllm:kv_cache_usage_perc", 0.45, 0.985),
    ("preemptions", "vllm:num_preemptions_total", 0.0, 0.6),
    ("prompt_tokens", "vllm:prompt_tokens_total", 2000.0, 2000.0),
    ("generation_tokens", "vllm:generation_tokens_total", 600.0, 600.0),
];

fn wobble(seed: i64) -> f64 {
    let x = (seed as f64 * 12.9898).sin() * 43758.5453;
    1.0 + 0.04 * (x - x.floor() - 0.5)
}

impl World {
    fn rows(self, query: &Query) -> Vec<Vec<Cell>> {
        let asked = query.filters.iter().find_map(|filter| match filter {
            Filter::Dim { dim, matches: Match::Eq(value) } => Some((dim.as_str(), value.as_str())),
            Filter::Dim { .. } | Filter::Value { .. } => None,
        });
        if query.dataset == Dataset::Spans || query.dataset == Dataset::Events {
            return Vec::new();
        }
        if let Shape::Distinct { of, .. } = &query.shape {
            return match (asked, of.as_slice()) {
                (Some(("service", "chat") | ("model", "llama-70b")), [Dim::Metric]) => {
                    let stored = METRICS.iter().filter(|(id, ..)| self.has(id)).map(|(_, stored, ..)| *stored);
                    stored.map(|name| distinct(query, &[name])).collect()
                }
                (Some(("service", "chat") | ("model", "llama-70b")), [Dim::Service, ..]) => {
                    PODS.iter().map(|pod| distinct(query, &["chat", pod, "0", "n1"])).collect()
                }
                (None, [Dim::Service]) => ["chat", "search"].iter().map(|name| distinct(query, &[name])).collect(),
                (None, [Dim::Label(_)]) => vec![distinct(query, &["llama-70b"])],
                _ => Vec::new(),
            };
        }
        self.series(query)
    }

    fn has(self, metric: &str) -> bool {
        self.phases || ["time_to_first_token", "prompt_tokens", "generation_tokens"].contains(&metric)
    }

    fn series(self, query: &Query) -> Vec<Vec<Cell>> {
        let Shape::Series { step_ms, .. } = &query.shape else { return Vec::new() };
        let step = i64::try_from(*step_ms).unwrap() / 1000;
        let metric = query.metric.clone().unwrap();
        let Some((_, stored, usual, full)) = METRICS.iter().find(|(id, ..)| *id == metric && self.has(id)) else {
            return Vec::new();
        };
        let level = |second: i64| if self.full && second >= ONSET { *full } else { *usual };
        let grows = |second: i64| match query.part {
            // Two requests a second; a sum grows by what each of them took.
            MetricPart::Count => 2.0,
            MetricPart::Sum => 2.0 * level(second) * wobble(second),
            MetricPart::Samples | MetricPart::Buckets => level(second) * wobble(second),
        };
        let zero = at(0).as_second();
        let (from, to) = (query.range.from().as_second() - zero, query.range.to().as_second() - zero);
        let mut rows = Vec::new();
        for pod in PODS {
            let mut total = 1000.0;
            for bucket in (from..to).filter(|second| second.rem_euclid(step) == 0) {
                let samples: Vec<i64> = (bucket..bucket + step).step_by(usize::try_from(SCRAPE).unwrap()).collect();
                let mut totals = Vec::new();
                for second in &samples {
                    total += grows(*second) * SCRAPE as f64;
                    totals.push(total);
                }
                let gauges: Vec<f64> = samples.iter().map(|second| level(*second) * wobble(*second)).collect();
                let mean = gauges.iter().sum::<f64>() / gauges.len() as f64;
                rows.push(named(query, |column| match column {
                    "bucket" | "first_time" => t(bucket),
                    "last_time" => t(*samples.last().unwrap()),
                    "pod" => s(pod),
                    "metric" => s(&format!("{stored}{}", query.part.suffix())),
                    "count" => n(i64::try_from(samples.len()).unwrap()),
                    "value" => f(mean),
                    "first" => f(totals[0]),
                    "last" => f(*totals.last().unwrap()),
                    "rise" => f(totals.last().unwrap() - totals[0]),
                    "min" | "max" => f(if query.part == MetricPart::Samples { mean } else { totals[0] }),
                    "labels" => labels(&[("pod", pod)]),
                    _ => s(""),
                }));
            }
        }
        rows
    }
}

fn named(query: &Query, mut cell: impl FnMut(&str) -> Cell) -> Vec<Cell> {
    context().catalogue.check(query).unwrap().columns().iter().map(|c| cell(&c.name)).collect()
}

fn distinct(query: &Query, values: &[&str]) -> Vec<Cell> {
    let mut values = values.iter();
    named(query, |column| match column {
        "count" => n(9),
        "first_time" => t(0),
        "last_time" => t(86_000),
        _ => s(values.next().unwrap_or(&"")),
    })
}

impl World {
    fn why(self, service: &str) -> (Vec<Fetched>, ToolOutput) {
        run(&ServiceCorrelation, &json!({ "service": service }), |query| self.rows(query)).unwrap()
    }
}

const FULL: World = World { full: true, phases: true };

#[test]
fn a_full_cache_is_named_and_dated() {
    let (_, output) = FULL.why("chat");
    let first = &output.causes[0];
    assert_eq!((output.outcome, first.id.as_str(), first.rank), (Some(Outcome::Answered), "kv_cache_pressure", 1));
    assert_eq!(first.components, vec![[("service".to_owned(), "chat".to_owned())].into()]);
    let onset = first.onset.unwrap().as_second() - at(0).as_second();
    assert!((onset - ONSET).abs() <= 30, "{onset}");
    assert_eq!(output.runbooks, vec!["kv-cache-pressure"]);
    let cited: BTreeSet<String> = output.evidence.iter().filter_map(|e| e.canonical_metric.clone()).collect();
    assert!(cited.contains("preemptions") && cited.contains("kv_cache_usage"), "{cited:?}");
    assert!(output.evidence.iter().all(|e| e.canonical_metric.is_none() || e.labels.contains_key("service")));
}

#[test]
fn a_model_leads_to_the_service_that_serves_it() {
    let (_, output) = FULL.why("llama-70b");
    assert_eq!(output.causes[0].components, vec![[("service".to_owned(), "chat".to_owned())].into()]);
}

#[test]
fn a_service_as_usual_is_not_blamed() {
    let (_, output) = World { full: false, phases: true }.why("chat");
    assert_eq!(output.outcome, Some(Outcome::NoFault), "{:?}", output.headline);
    assert!(output.causes.iter().all(|c| c.rank == 0 && !c.why.text.is_empty()));
    assert!(!output.evidence.is_empty() && output.headline.is_some());
}

#[test]
fn what_is_not_collected_is_named() {
    let (_, output) = World { full: true, phases: false }.why("chat");
    let lacking = "no samples of inter-token latency, queue time, prefill time";
    assert!(output.data_health.iter().any(|line| line.starts_with(lacking)), "{:?}", output.data_health);
}

/// A service of somebody else and one that does not exist are both not seen, and the words are the same.
#[test]
fn a_service_that_is_not_seen_is_asked_back_when_one_is_near() {
    let (fetched, output) = FULL.why("chatt");
    assert_eq!(output.outcome, Some(Outcome::Clarify));
    assert_eq!(output.choices.iter().map(|c| c.question.as_str()).collect::<Vec<_>>(), ["why is service chat slow?"]);
    assert!(fetched.iter().all(|f| f.round < 2));
    let (_, far) = FULL.why("zzz");
    assert_eq!((far.outcome, far.choices.len()), (Some(Outcome::InsufficientData), 0));
    let text = crate::testing::read_out(&far).join("\n");
    assert_eq!(text, "no data: service ⟨zzz⟩ has no samples and no spans in this window");
}

#[test]
fn every_query_names_the_service() {
    let (fetched, _) = FULL.why("chat");
    for one in fetched.iter().filter(|f| f.query.dataset() == Dataset::Metrics) {
        let own = |filter: &Filter| matches!(filter, Filter::Dim { matches: Match::Eq(_) | Match::In(_), .. });
        assert!(one.query.filters().iter().any(own), "{:?}", one.query);
    }
}

#[test]
fn who_may_not_read_events_is_told_so() {
    let may_read = BTreeSet::from([Dataset::Metrics]);
    let context = crate::tool::ToolContext { may_read: &may_read, ..context() };
    let args = json!({ "service": "chat" });
    let mut all: Vec<Fetched> = Vec::new();
    for round in 0..4 {
        let Step::Fetch(queries) = AnyTool::plan(&ServiceCorrelation, &args, &context, &all).unwrap() else { break };
        assert!(queries.iter().all(|q| q.dataset == Dataset::Metrics));
        let batch: Vec<Fetched> = queries.iter().map(|q| crate::testing::fetched(round, q, FULL.rows(q))).collect();
        all.extend(batch);
    }
    let output = AnyTool::interpret(&ServiceCorrelation, &args, &context, &all).unwrap();
    assert!(output.data_health.iter().any(|line| line.contains("your role may not read them")));
}

#[test]
fn the_queries_read_well() {
    let (fetched, _) = FULL.why("chat");
    let mut text = String::new();
    for one in &fetched {
        let query = one.query.query();
        let how = match &query.shape {
            Shape::Series { step_ms, aggregation, .. } => {
                format!("{} per {} s", Aggregation::as_str(*aggregation), step_ms / 1000)
            }
            Shape::Distinct { of, .. } => {
                format!("distinct {}", of.iter().map(Dim::as_str).collect::<Vec<_>>().join(", "))
            }
            Shape::Rows { .. } => "rows".to_owned(),
            Shape::Samples { .. } | Shape::Rank { .. } | Shape::LabelKeys { .. } => "other".to_owned(),
        };
        let metric = query.metric.clone().unwrap_or_default();
        let (from, to) = (query.range.from(), query.range.to());
        let part = query.part.suffix();
        text.push_str(&format!("round {} {} {metric}{part}: {how}, {from} to {to}\n", one.round, query.dataset));
    }
    insta::assert_snapshot!(text);
}
