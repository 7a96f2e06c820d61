//! The report as text: totals, what was missed and what was said instead.

use std::fmt::Write as _;

use sightline_model::Component;

use super::{QuestionReport, Report, Totals};
use crate::ablation::Borne;
use crate::score::Share;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!(
        "{:<20}{:>6}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "", "asked", "right", "outcome", "cause", "top 3", "component", "top 3", "onset"
    ));
    for (name, totals) in rows(report) {
        line(format!(
            "{name:<20}{:>6}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            totals.questions,
            share(totals.right),
            share(totals.outcome),
            share(totals.cause),
            share(totals.cause_top3),
            share(totals.component),
            share(totals.component_top3),
            share(totals.onset),
        ));
    }
    line(String::new());
    line(format!(
        "{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{:>10}{:>10}",
        "", "controls", "abstained", "discreet", "cited", "facts", "verified", "med. ms", "max. ms"
    ));
    for (name, totals) in rows(report) {
        line(format!(
            "{name:<20}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{:>10.0}{:>10.0}",
            share(totals.controls),
            share(totals.abstained),
            share(totals.discreet),
            share(totals.evidence),
            share(totals.facts),
            share(totals.verified),
            totals.median_ms,
            totals.longest_ms,
        ));
    }
    if let Some(model) = &report.model {
        line(format!("\n{}", model.line()));
    }
    line(String::new());
    line(
        "Component, beside the baseline (robust z-score of each gauge against its own past, told the onset):"
            .to_owned(),
    );
    for (name, totals) in rows(report).filter(|(_, totals)| totals.baseline_component.of > 0) {
        line(format!(
            "  {name:<18} first {:>10} against {:>10}   first three {:>10} against {:>10}",
            share(totals.component),
            share(totals.baseline_component),
            share(totals.component_top3),
            share(totals.baseline_component_top3),
        ));
    }
    let fallen: Vec<String> = report.questions.iter().filter_map(fallen).collect();
    if !fallen.is_empty() {
        line(format!(
            "\n{} answered by the built-in planner in the model's place:\n{}",
            fallen.len(),
            fallen.join("\n")
        ));
    }
    let missed: Vec<&QuestionReport> = report.questions.iter().filter(|question| !question.right).collect();
    if !missed.is_empty() {
        line(format!("\n{} missed:", missed.len()));
    }
    for question in missed {
        line(miss(question));
    }
    let off = |question: &&QuestionReport| {
        question.right && question.score.as_ref().is_some_and(|score| score.onset == Some(false))
    };
    let late: Vec<String> = report.questions.iter().filter(off).map(onset_off).collect();
    if !late.is_empty() {
        line(format!("\nRight but for the onset: {}", late.join(", ")));
    }
    if !report.ablation.is_empty() {
        line("\nWithout a metric, over the questions that are right with it:".to_owned());
        line(format!("  {:<44}{:>10}{:>8}{:>14}{:>8}", "metric", "optional", "right", "says missing", "wrong"));
        for (metric, Borne { optional, right, says_missing, wrong }) in &report.ablation {
            let optional = if *optional { "yes" } else { "" };
            line(format!("  {metric:<44}{optional:>10}{right:>8}{says_missing:>14}{wrong:>8}"));
        }
    }
    text
}

/// All, each half, each family.
fn rows(report: &Report) -> impl Iterator<Item = (&str, &Totals)> {
    let halves = report.by_half.iter().map(|(name, totals)| (name.as_str(), totals));
    let families = report.by_family.iter().map(|(name, totals)| (*name, totals));
    [("all", &report.totals)].into_iter().chain(halves).chain(families)
}

/// `17/20 0.85`, or a dash where nothing was asked.
fn share(share: Share) -> String {
    share.fraction().map_or_else(|| "-".to_owned(), |part| format!("{}/{} {part:.2}", share.hit, share.of))
}

impl QuestionReport {
    /// One line for the progress.
    pub(crate) fn line(&self) -> String {
        let verdict = if self.right { "right" } else { "MISSED" };
        format!("{verdict:<7}{:<44} {:>6.0} ms  {}", self.id, self.cost.wall_ms, self.instead())
    }

    /// What was said, in a few words.
    fn instead(&self) -> String {
        match (&self.said, &self.error) {
            (_, Some(error)) => format!("no answer: {error}"),
            (Some(said), None) => {
                let causes = said.causes.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
                let named = components(&said.components);
                [said.outcome.as_str(), &causes, &named]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(" · ")
            }
            (None, None) => String::new(),
        }
    }
}

/// Why a model's place was taken.
fn fallen(question: &QuestionReport) -> Option<String> {
    let why = question.planned.as_ref()?.fell_back.as_ref()?;
    Some(format!("  {}: {why}", question.id))
}

/// By how much an onset is off.
fn onset_off(question: &QuestionReport) -> String {
    match question.score.as_ref().and_then(|score| score.onset_off_s) {
        Some(seconds) => format!("{} ({seconds:+.0} s)", question.id),
        None => format!("{} (none given)", question.id),
    }
}

/// What was expected, what was said, and by which criteria it fails.
fn miss(question: &QuestionReport) -> String {
    let mut text = format!("  {} “{}”\n", question.id, question.question);
    let expected = [
        question.expected_outcome.as_str().to_owned(),
        question.expected_cause.clone().unwrap_or_default(),
        components(&question.expected_components),
    ];
    let expected = expected.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    let _ = writeln!(text, "    expected  {expected}");
    let _ = write!(text, "    answered  {}", question.instead());
    if let Some(said) = &question.said {
        let _ = write!(text, "\n    said      {}", said.headline);
    }
    if let Some(score) = &question.score {
        for hit in &score.said {
            let _ = write!(text, "\n    asserted  {hit}");
        }
        if let Some(wrong) = &score.wrong_cause {
            let _ = write!(text, "\n    must not  {wrong} in first place");
        }
        if !score.verified {
            let _ = write!(text, "\n    verified  no");
        }
    }
    text
}

fn components(components: &[Component]) -> String {
    let of = |component: &Component| {
        component.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    };
    let mut named: Vec<String> = components.iter().take(3).map(of).collect();
    if components.len() > named.len() {
        named.push(format!("and {} more", components.len() - named.len()));
    }
    named.join("; ")
}
