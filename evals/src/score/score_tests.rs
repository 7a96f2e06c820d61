use serde_json::json;
use sightline_model::{Answer, Component, Outcome, Point, Series};

use super::*;
use crate::suite::{ExpectedEvidence, ExpectedFact};

fn component(pairs: &[(&str, &str)]) -> Component {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn gpu(node: &str, gpu: &str) -> Component {
    component(&[("node", node), ("gpu", gpu)])
}

fn expected() -> Expectation {
    Expectation {
        outcomes: vec![Outcome::Answered],
        cause: Some("thermal_throttling".to_owned()),
        causes: vec!["thermal_throttling".to_owned()],
        wrong_causes: vec!["power_capping".to_owned()],
        components: vec![vec![gpu("n1", "3")]],
        onset: Some("2026-05-03T14:10:00Z".parse().unwrap()),
        evidence: Vec::new(),
        facts: Vec::new(),
        must_not_say: vec!["data loader".to_owned()],
    }
}

fn cause(id: &str, components: &[Component], claim: &str) -> serde_json::Value {
    json!({
        "id": id, "status": "supported", "rank": 1, "components": components, "onset": "2026-05-03T14:10:30Z", "why": "It fits.",
        "claims": [{ "id": "C1", "text": claim, "citations": ["E1"], "verified": true }]
    })
}

fn answer(outcome: &str, causes: Vec<serde_json::Value>) -> Answer {
    let evidence = json!({
        "id": "E1", "tool": "job_correlation", "dataset": "metrics", "metric": "DCGM_FI_DEV_SM_CLOCK",
        "canonical_metric": "sm_clock", "labels": { "node": "n1" }, "aggregation": "avg per 60 s", "unit": "megahertz",
        "from": "2026-05-03T14:00:00Z", "to": "2026-05-03T15:00:00Z", "step_seconds": 60.0, "points": 2, "stats": null,
        "rows": [{ "entity": { "gpu": "3" }, "value": 1500.0 }],
        "coverage": { "expected": null, "seen": 2, "first": null, "last": null, "gaps": [] }, "total": 1, "returned": 1,
        "truncated": false, "read": { "rows": 1, "bytes": 1, "wall_ms": 1.0 }, "query_id": null, "sql": null, "params": {}
    });
    serde_json::from_value(json!({
        "answer_id": "a", "conversation_id": "c", "question": "why?", "as_of": "2026-05-03T15:00:00Z", "time_range": null,
        "outcome": outcome, "headline": "GPU 3 of n1 is too hot.", "causes": causes, "claims": [], "evidence": [evidence],
        "choices": [], "suggestions": [], "next_steps": [], "runbooks": [], "data_health": [],
        "cost": { "queries": 1, "rows_read": 1, "bytes_read": 1, "wall_ms": 1.0, "llm_tokens": 0 },
        "verification": { "checked": 3, "passed": 3, "dropped": 0 },
        "audit": { "question_id": "q", "hash": "00" }
    }))
    .unwrap()
}

fn scored(answer: &Answer, expect: &Expectation) -> Score {
    score(answer, expect, &Names::builtin().unwrap())
}

#[test]
fn a_right_answer_is_right_by_every_criterion() {
    let answer =
        answer("answered", vec![cause("thermal_throttling", &[gpu("n1", "3")], "It is hot, and not the data loader.")]);
    let score = scored(&answer, &expected());
    assert!(score.is_right(), "{score:?}");
    assert_eq!((score.cause, score.component, score.onset), (Some(true), Some(true), Some(true)));
    assert_eq!((score.innocents, score.onset_off_s), (0, Some(30.0)));
}

#[test]
fn each_criterion_can_fail_by_itself() {
    let hot = |components: &[Component], claim: &str| {
        answer("answered", vec![cause("thermal_throttling", components, claim)])
    };
    let right = [gpu("n1", "3")];
    let wrong_outcome = Answer { outcome: Outcome::NoFault, ..hot(&right, "Hot.") };
    assert!(!scored(&wrong_outcome, &expected()).outcome);
    let wrong_cause = answer(
        "answered",
        vec![cause("power_capping", &right, "Capped."), cause("thermal_throttling", &right, "Hot.")],
    );
    let score = scored(&wrong_cause, &expected());
    assert_eq!((score.cause, score.cause_top3), (Some(false), Some(true)));
    assert_eq!(score.wrong_cause.as_deref(), Some("power_capping"));
    let says = scored(&hot(&right, "The data loader is slow."), &expected());
    assert_eq!(says.said.len(), 1, "{says:?}");
    let mut unverified = hot(&right, "Hot.");
    unverified.verification.checked = 0;
    unverified.verification.passed = 0;
    assert!(!scored(&unverified, &expected()).verified);
    let late = Expectation { onset: Some("2026-05-03T14:09:00Z".parse().unwrap()), ..expected() };
    assert_eq!(scored(&hot(&right, "Hot."), &late).onset, Some(false));
    for failing in [&wrong_outcome, &wrong_cause, &unverified] {
        assert!(!scored(failing, &expected()).is_right());
    }
}

#[test]
fn a_culprit_counts_as_named_first_only_before_anybody_innocent() {
    let named = |components: &[Component]| {
        scored(&answer("answered", vec![cause("thermal_throttling", components, "Hot.")]), &expected())
    };
    let all: Vec<Component> = ["0", "1", "2", "3"].map(|index| gpu("n1", index)).to_vec();
    assert_eq!(named(&[gpu("n1", "3"), gpu("n1", "0")]).component, Some(true));
    assert_eq!(named(&[gpu("n1", "3"), gpu("n1", "0")]).innocents, 1);
    assert_eq!(named(&all).component, Some(false));
    assert_eq!(named(&all).component_top3, Some(false));
    assert_eq!(named(&all[1..]).component_top3, Some(true));
    assert_eq!(named(&[component(&[("node", "n1")])]).component, Some(false), "a node is less than its GPU");
    assert_eq!(named(&[]).component, Some(false));
    let node = Expectation { components: vec![vec![component(&[("node", "n1")])]], ..expected() };
    let score = scored(&answer("answered", vec![cause("thermal_throttling", &[gpu("n1", "3")], "Hot.")]), &node);
    assert_eq!(score.component, Some(true), "a GPU of the node says more than was asked");
}

#[test]
fn another_right_name_of_a_component_is_as_good() {
    let names = [component(&[("service", "Search_Fargate")]), component(&[("service", "Search")])];
    let expect = Expectation { components: vec![names.to_vec()], ..expected() };
    let score = scored(&answer("answered", vec![cause("thermal_throttling", &names[1..], "Slow.")]), &expect);
    assert_eq!(score.component, Some(true));
}

#[test]
fn a_control_is_scored_by_its_outcome_and_an_abstention_needs_no_statement() {
    let control = Expectation {
        outcomes: vec![Outcome::NoFault],
        cause: None,
        causes: vec!["none".to_owned()],
        components: Vec::new(),
        onset: None,
        ..expected()
    };
    let explained = answer("no_fault", vec![cause("compute_bound", &[], "It computes.")]);
    assert!(scored(&explained, &control).is_right());
    assert_eq!(scored(&explained, &control).cause, None);
    let accused = answer("answered", vec![cause("power_capping", &[], "Capped.")]);
    assert!(!scored(&accused, &control).is_right());
    let abstains = Expectation { outcomes: vec![Outcome::InsufficientData], ..control };
    let mut silent = answer("insufficient_data", Vec::new());
    silent.verification.checked = 0;
    silent.verification.passed = 0;
    assert!(scored(&silent, &abstains).is_right());
}

#[test]
fn evidence_is_the_same_under_a_metrics_and_a_labels_other_names() {
    let answer = answer("answered", vec![cause("thermal_throttling", &[gpu("n1", "3")], "Hot.")]);
    let wants = |dataset: &str, metric: Option<&str>, labels: &[(&str, &str)]| {
        let evidence = ExpectedEvidence {
            dataset: dataset.to_owned(),
            metric: metric.map(str::to_owned),
            labels: component(labels),
        };
        scored(&answer, &Expectation { evidence: vec![evidence], ..expected() }).evidence.hit
    };
    assert_eq!(wants("metrics", Some("DCGM_FI_DEV_SM_CLOCK"), &[("Hostname", "n1"), ("gpu", "3")]), 1);
    assert_eq!(wants("metrics", Some("sm_clock"), &[("hostname", "n1")]), 1);
    assert_eq!(wants("metrics", Some("DCGM_FI_DEV_GPU_TEMP"), &[]), 0);
    assert_eq!(wants("metrics", Some("sm_clock"), &[("gpu", "2")]), 0);
    assert_eq!(wants("logs", None, &[]), 0);
    let uncited = Answer { causes: Vec::new(), ..answer.clone() };
    let evidence = vec![ExpectedEvidence { dataset: "metrics".to_owned(), metric: None, labels: component(&[]) }];
    assert_eq!(scored(&uncited, &Expectation { evidence, ..expected() }).evidence, Share { hit: 0, of: 1 });
}

#[test]
fn facts_are_computed_anew_from_the_fetched_points() {
    let mut answer = answer("answered", vec![cause("thermal_throttling", &[gpu("n1", "3")], "Hot.")]);
    let point = |time: &str, value: f64| Point {
        time: time.parse().unwrap(),
        value,
        min: value - 10.0,
        max: value + 10.0,
        count: 4,
    };
    let points = vec![point("2026-05-03T14:00:00Z", 1980.0), point("2026-05-03T14:30:00Z", 1100.0)];
    answer.evidence[0].series = vec![Series { entity: component(&[("gpu", "3")]), points }];
    let fact = |agg: &str, value: f64, from: Option<&str>| ExpectedFact {
        metric: "DCGM_FI_DEV_SM_CLOCK".to_owned(),
        labels: component(&[("gpu", "3")]),
        agg: agg.to_owned(),
        from: from.map(str::to_owned),
        to: None,
        value,
        tolerance: 0.02,
    };
    let borne_out =
        |fact: ExpectedFact| scored(&answer, &Expectation { facts: vec![fact], ..expected() }).facts.hit == 1;
    assert!(borne_out(fact("min", 1095.0, None)));
    assert!(borne_out(fact("mean", 1540.0, None)));
    assert!(borne_out(fact("max", 1100.0, Some("2026-05-03T14:10:00Z"))));
    assert!(!borne_out(fact("max", 1100.0, None)));
    assert!(!borne_out(fact("min", 1200.0, None)));
    assert!(!borne_out(fact("mode", 1100.0, None)), "a statistic that is not known bears nothing out");
    assert!(!borne_out(ExpectedFact { labels: component(&[("gpu", "2")]), ..fact("min", 1095.0, None) }));
}
