//! How a suite fared: every question, and what they come to.

mod table;

use std::collections::BTreeMap;

use serde::Serialize;
use sightline_model::{Component, Cost, Outcome};

use crate::ablation::{Borne, Removal, by_metric};
use crate::planned::{ModelTotals, Planned};
use crate::score::{Score, Share};
use crate::suite::Expectation;

/// So many places count as "among the first" for the baseline as for the product.
const FEW: usize = 3;

/// The causes of services and of the platform by family; every other cause is one of training.
const FAMILIES: [(&str, &[&str]); 3] = [
    (
        "serving",
        &[
            "queue_saturation",
            "kv_cache_pressure",
            "prefix_cache_loss",
            "batching_inefficiency",
            "tokenizer_bottleneck",
            "gpu_saturation",
            "cold_start",
            "rate_limiting",
            "traffic_surge",
            "traffic_mix_shift",
        ],
    ),
    ("services", &["network_delay", "cpu_contention", "memory_pressure", "dependency_failure", "error_spike"]),
    ("platform", &["telemetry_gap", "telemetry_artifact", "noisy_neighbour", "config_mismatch", "ambient_variation"]),
];

/// Which family a question belongs to: its cause's, or what it tests instead.
pub fn family(expect: &Expectation) -> &'static str {
    match expect.outcomes.first() {
        Some(Outcome::NoFault) => return "controls",
        Some(Outcome::InsufficientData) => return "insufficient data",
        Some(Outcome::Answered | Outcome::Clarify | Outcome::Refused) | None => {}
    }
    let Some(cause) = expect.causes.first() else { return "other" };
    let of = |(_, causes): &&(&str, &[&str])| causes.contains(&cause.as_str());
    FAMILIES.iter().find(of).map_or("training", |(name, _)| name)
}

/// What an answer said, in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Said {
    /// How it ended.
    pub outcome: Outcome,
    /// Its first sentence.
    pub headline: String,
    /// The supported causes, by rank.
    pub causes: Vec<String>,
    /// Whom the first of them names.
    pub components: Vec<Component>,
    /// Statements that were taken out because they could not be verified.
    pub dropped: u64,
    /// Statements that were sent.
    pub checked: u64,
}

/// Where the baseline puts the culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Baseline {
    /// From 1; none where one of them is not among the components at all.
    pub place: Option<usize>,
    /// Among so many components.
    pub of: usize,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuestionReport {
    /// The incident's id, with a number where it has several questions.
    pub id: String,
    /// The question.
    pub question: String,
    /// The suite's half it is in.
    pub half: Option<String>,
    /// The family of its cause.
    pub family: &'static str,
    /// The outcome that is expected.
    pub expected_outcome: Outcome,
    /// The cause that is expected.
    pub expected_cause: Option<String>,
    /// The culprits that are expected.
    pub expected_components: Vec<Component>,
    /// Whether the answer is right.
    pub right: bool,
    /// How it fared by each criterion; none without an answer.
    pub score: Option<Score>,
    /// What it said; none without an answer.
    pub said: Option<Said>,
    /// Why there is no answer.
    pub error: Option<String>,
    /// What it cost.
    pub cost: Cost,
    /// A model's part in it; none where no model plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// Where the baseline puts the culprits; none where none are asked for.
    pub baseline: Option<Baseline>,
    /// The same question without single metrics, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<Removal>,
}

/// What some questions come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Questions.
    pub questions: usize,
    /// Those without an answer.
    pub errors: usize,
    /// Right in all that is asked.
    pub right: Share,
    /// Outcome as expected.
    pub outcome: Share,
    /// A right cause in first place.
    pub cause: Share,
    /// A right cause among the first three.
    pub cause_top3: Share,
    /// The culprits named before anybody innocent.
    pub component: Share,
    /// The culprits named before more than two innocents.
    pub component_top3: Share,
    /// Onset within a minute.
    pub onset: Share,
    /// Controls that ended in `no_fault`.
    pub controls: Share,
    /// Questions without enough data that were not judged.
    pub abstained: Share,
    /// Answers that assert nothing that must not be said.
    pub discreet: Share,
    /// Expected evidence that is cited.
    pub evidence: Share,
    /// Expected numbers that the evidence bears out.
    pub facts: Share,
    /// Answers all of whose statements are verified.
    pub verified: Share,
    /// The baseline: culprits in first place.
    pub baseline_component: Share,
    /// The baseline: culprits among the first three.
    pub baseline_component_top3: Share,
    /// Median wall time of an answer, milliseconds.
    pub median_ms: f64,
    /// Longest.
    pub longest_ms: f64,
    /// Median rows read for an answer.
    pub median_rows: f64,
    /// Median queries for an answer.
    pub median_queries: f64,
}

/// A suite's run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// A model's part in the answers, with the version of its prompt; none where no model plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelTotals>,
    /// All questions together.
    pub totals: Totals,
    /// By half, where the suite has halves.
    pub by_half: BTreeMap<String, Totals>,
    /// By family of causes.
    pub by_family: BTreeMap<&'static str, Totals>,
    /// By metric that was taken away, over the questions that were right with it; empty unless that was asked for.
    pub ablation: BTreeMap<String, Borne>,
    /// Every question.
    pub questions: Vec<QuestionReport>,
}

impl Report {
    /// Adds everything up.
    pub fn of(questions: Vec<QuestionReport>) -> Self {
        let mut halves: BTreeMap<String, Vec<&QuestionReport>> = BTreeMap::new();
        let mut families: BTreeMap<&'static str, Vec<&QuestionReport>> = BTreeMap::new();
        for question in &questions {
            families.entry(question.family).or_default().push(question);
            if let Some(half) = &question.half {
                halves.entry(half.clone()).or_default().push(question);
            }
        }
        let all: Vec<&QuestionReport> = questions.iter().collect();
        let removals = questions.iter().filter(|question| question.right).flat_map(|question| &question.removals);
        Self {
            model: ModelTotals::of(&questions),
            totals: totals(&all),
            by_half: halves.into_iter().map(|(half, questions)| (half, totals(&questions))).collect(),
            by_family: families.into_iter().map(|(family, questions)| (family, totals(&questions))).collect(),
            ablation: by_metric(removals),
            questions,
        }
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// When a number cannot be written.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// As text for a terminal.
    pub fn text(&self) -> String {
        table::text(self)
    }
}

fn totals(questions: &[&QuestionReport]) -> Totals {
    let mut totals = Totals { questions: questions.len(), ..Totals::default() };
    for question in questions {
        totals.right.count(question.right);
        totals.errors += usize::from(question.error.is_some());
        if let Some(baseline) = question.baseline {
            totals.baseline_component.count(baseline.place == Some(1));
            totals.baseline_component_top3.count(baseline.place.is_some_and(|place| place <= FEW));
        }
        add(&mut totals, question);
    }
    let answered = || questions.iter().filter(|question| question.score.is_some());
    totals.median_ms = median(answered().map(|question| question.cost.wall_ms));
    totals.longest_ms = answered().map(|question| question.cost.wall_ms).fold(0.0, f64::max);
    totals.median_rows = median(answered().map(|question| question.cost.rows_read as f64));
    totals.median_queries = median(answered().map(|question| question.cost.queries as f64));
    totals
}

/// What one question adds; without an answer it fares badly in all that it asks.
fn add(totals: &mut Totals, question: &QuestionReport) {
    let score = question.score.as_ref();
    let outcome = score.is_some_and(|score| score.outcome);
    totals.outcome.count(outcome);
    match question.expected_outcome {
        Outcome::NoFault => totals.controls.count(outcome),
        Outcome::InsufficientData => totals.abstained.count(outcome),
        Outcome::Answered | Outcome::Clarify | Outcome::Refused => {}
    }
    let Some(score) = score else {
        if question.expected_outcome == Outcome::Answered && question.expected_cause.is_some() {
            totals.cause.count(false);
            totals.cause_top3.count(false);
        }
        if !question.expected_components.is_empty() {
            totals.component.count(false);
            totals.component_top3.count(false);
        }
        return;
    };
    for (share, hit) in [
        (&mut totals.cause, score.cause),
        (&mut totals.cause_top3, score.cause_top3),
        (&mut totals.component, score.component),
        (&mut totals.component_top3, score.component_top3),
        (&mut totals.onset, score.onset),
        (&mut totals.discreet, Some(score.said.is_empty() && score.wrong_cause.is_none())),
        (&mut totals.verified, Some(score.verified)),
    ] {
        if let Some(hit) = hit {
            share.count(hit);
        }
    }
    for (share, part) in [(&mut totals.evidence, score.evidence), (&mut totals.facts, score.facts)] {
        share.hit += part.hit;
        share.of += part.of;
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
#[path = "report/report_tests.rs"]
mod report_tests;
