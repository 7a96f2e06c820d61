//! Asks every question of a suite, one after another, and scores each answer.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use sightline_model::{Answer, CauseStatus, Cost, Outcome};

use crate::ablation::{self, Removal};
use crate::answerer::{Answered, Answerer, Asked};
use crate::planned::Planned;
use crate::report::{Baseline, QuestionReport, Report, Said, family};
use crate::robust_z;
use crate::score::{Names, places, score};
use crate::suite::{Incident, Question};

/// How a suite is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Whether each question is asked again without each metric that its answer may rest on.
    pub ablate: bool,
    /// Whether what was loaded is let go of when a bundle is done with.
    pub forget: bool,
}

/// Asks everything. `tell` hears of the progress.
pub async fn run(
    answerer: &dyn Answerer,
    incidents: &[Incident],
    names: &Names,
    how: How,
    tell: &(dyn Fn(&str) + Sync),
) -> Report {
    let mut questions = Vec::new();
    for (number, incident) in incidents.iter().enumerate() {
        // The engine loads the next bundle while this one's answers are worked out.
        let ahead = async {
            if let Some(next) = incidents.get(number + 1) {
                answerer.prepare(&next.dir).await;
            }
        };
        let (asked, ()) = futures::join!(each(answerer, incident, names, how, tell), ahead);
        questions.extend(asked);
        if how.forget
            && let Err(error) = answerer.forget(&incident.dir).await
        {
            tell(&format!("· {} is still loaded: {error}", incident.id));
        }
    }
    Report::of(questions)
}

/// Every question of an incident.
async fn each(
    answerer: &dyn Answerer,
    incident: &Incident,
    names: &Names,
    how: How,
    tell: &(dyn Fn(&str) + Sync),
) -> Vec<QuestionReport> {
    let mut reports = Vec::new();
    for (number, question) in (1..).zip(&incident.questions) {
        let several = incident.questions.len() > 1;
        let id = if several { format!("{}#{number}", incident.id) } else { incident.id.clone() };
        let asked = one(answerer, incident, question, names, how).await;
        let report = QuestionReport { id, half: incident.half.clone(), ..asked };
        tell(&format!("· {}", report.line()));
        reports.push(report);
    }
    reports
}

async fn one(
    answerer: &dyn Answerer,
    incident: &Incident,
    question: &Question,
    names: &Names,
    how: How,
) -> QuestionReport {
    let nothing = BTreeSet::new();
    let mut report = QuestionReport {
        question: question.text.clone(),
        family: family(&question.expect),
        expected_outcome: question.expect.outcomes.first().copied().unwrap_or(Outcome::Answered),
        expected_cause: question.expect.cause.clone().or_else(|| question.expect.causes.first().cloned()),
        expected_components: question.expect.components.iter().filter_map(|names| names.first().cloned()).collect(),
        ..QuestionReport::default()
    };
    match answerer.answer(asked(incident, question, &nothing)).await {
        Ok(Answered { answer, model }) => {
            report.planned = model.map(Planned::from);
            let scored = score(&answer, &question.expect, names);
            report.said = Some(said(&answer));
            report.cost = answer.cost;
            report.right = scored.is_right();
            report.score = Some(scored);
            if how.ablate {
                report.removals = ablated(answerer, incident, question, &answer, names).await;
            }
        }
        Err(error) => report.error = Some(error),
    }
    report.baseline = baseline(answerer, &incident.dir, question, names).await;
    report
}

fn asked<'a>(incident: &'a Incident, question: &'a Question, without: &'a BTreeSet<String>) -> Asked<'a> {
    let Question { text, principal, as_of, time_zone, expect: _ } = question;
    Asked { incident: &incident.id, bundle: &incident.dir, text, principal, as_of: *as_of, time_zone, without }
}

/// The same question without each of the metrics that the answer may rest on, one at a time.
async fn ablated(
    answerer: &dyn Answerer,
    incident: &Incident,
    question: &Question,
    answer: &Answer,
    names: &Names,
) -> Vec<Removal> {
    let mut removals = Vec::new();
    for metric in ablation::candidates(answer) {
        let without = BTreeSet::from([metric.clone()]);
        let again = answerer.answer(asked(incident, question, &without)).await;
        let again =
            again.map(|Answered { answer: again, .. }| (score(&again, &question.expect, names).is_right(), again));
        removals.push(ablation::removal(metric, again, names));
    }
    removals
}

/// What the answer said, in short.
fn said(answer: &Answer) -> Said {
    let supported = answer.causes.iter().filter(|cause| cause.status == CauseStatus::Supported);
    Said {
        outcome: answer.outcome,
        headline: answer.headline.clone(),
        causes: supported.clone().map(|cause| cause.id.clone()).collect(),
        components: supported.take(1).flat_map(|cause| cause.components.clone()).collect(),
        dropped: answer.verification.dropped,
        checked: answer.verification.checked,
    }
}

/// Where the baseline puts the culprits; none where no culprit is asked for or nothing can be said.
async fn baseline(answerer: &dyn Answerer, bundle: &Path, question: &Question, names: &Names) -> Option<Baseline> {
    if question.expect.components.is_empty() {
        return None;
    }
    // Without a known onset an alert would look at the last hour.
    let last_hour = || question.as_of?.checked_sub(jiff::SignedDuration::from_hours(1)).ok();
    let split: Timestamp = question.expect.onset.or_else(last_hour)?;
    let shifts = answerer.shifts(bundle, split).await.ok()?;
    let ranked = robust_z::ranked(&shifts, &names.catalogue);
    Some(Baseline { place: places(&question.expect.components, ranked.iter()), of: ranked.len() })
}

impl Default for QuestionReport {
    fn default() -> Self {
        Self {
            id: String::new(),
            question: String::new(),
            half: None,
            family: "",
            expected_outcome: Outcome::Answered,
            expected_cause: None,
            expected_components: Vec::new(),
            right: false,
            score: None,
            said: None,
            error: None,
            cost: Cost::default(),
            planned: None,
            baseline: None,
            removals: Vec::new(),
        }
    }
}
