//! What the tools found for one question, under the names by which a model may use it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::ground::Grounder;
use sightline_core::{Gathered, ToolCall};
use sightline_model::{CauseStatus, Component, DraftCause, DraftClaim, Evidence};
use sightline_tools::ToolOutput;

/// A sentence of a tool that holds.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// `F1`, `F2`, …
    pub(crate) name: String,
    pub(crate) claim: DraftClaim,
    /// With its numbers filled in.
    pub(crate) text: String,
    /// Whether it rests on data that may not leave.
    pub(crate) withheld: bool,
    /// Which call found it.
    pub(crate) call: usize,
}

/// One call with what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) call: ToolCall,
    /// Where its evidence begins and ends; none where it brought nothing.
    pub(crate) evidence: Option<std::ops::Range<usize>>,
    /// Why it brought nothing.
    pub(crate) correction: Option<String>,
    pub(crate) output: Option<ToolOutput>,
}

/// A result as it may be shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) tool: &'a str,
    pub(crate) findings: Vec<(&'a str, &'a str)>,
    pub(crate) causes: Vec<ShownCause<'a>>,
    pub(crate) notes: Vec<&'a str>,
    pub(crate) evidence: &'a [Evidence],
    /// For each piece of evidence, whether what it holds may not be shown.
    pub(crate) withheld: Vec<bool>,
}

/// A cause as it may be shown.
#[derive(Clone, Debug)]
pub(crate) struct ShownCause<'a> {
    pub(crate) id: &'a str,
    pub(crate) status: CauseStatus,
    pub(crate) rank: u32,
    pub(crate) components: &'a [Component],
    pub(crate) onset: Option<Timestamp>,
    pub(crate) why: Option<String>,
}

/// All that was gathered for a question.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) taken: Vec<Taken>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) findings: Vec<Finding>,
}

impl Findings {
    /// Takes in what was gathered since.
    pub(crate) fn absorb(
        &mut self,
        gathered: &[Gathered],
        datasets: &BTreeSet<String>,
        question: &str,
        zone: &TimeZone,
    ) {
        for gathered in gathered.iter().skip(self.taken.len()) {
            let number = self.taken.len();
            let call = gathered.call.clone();
            match &gathered.outcome {
                Err(none) => {
                    let correction = Some(none.for_model.clone());
                    self.taken.push(Taken { call, evidence: None, correction, output: None });
                }
                Ok(output) => {
                    let begin = self.evidence.len();
                    self.evidence.extend(output.evidence.iter().cloned());
                    let claims = output.headline.iter().chain(&output.claims);
                    for claim in claims {
                        self.find(number, claim, datasets, question, zone);
                    }
                    // The series are in `evidence`, and are not kept twice.
                    let output = ToolOutput { evidence: Vec::new(), ..output.clone() };
                    let evidence = Some(begin..self.evidence.len());
                    self.taken.push(Taken { call, evidence, correction: None, output: Some(output) });
                }
            }
        }
    }

    fn find(&mut self, call: usize, claim: &DraftClaim, datasets: &BTreeSet<String>, question: &str, zone: &TimeZone) {
        if self.findings.iter().any(|finding| finding.claim == *claim) {
            return;
        }
        let grounder = Grounder::new(&self.evidence, question, zone.clone());
        let Ok((text, cited)) = grounder.try_claim(claim) else { return };
        let held_back = |e: &Evidence| cited.contains(&e.id) && !datasets.contains(&e.dataset);
        let withheld = self.evidence.iter().any(held_back);
        let name = format!("F{}", self.findings.len() + 1);
        self.findings.push(Finding { name, claim: claim.clone(), text, withheld, call });
    }

    /// The finding of that name.
    pub(crate) fn named(&self, name: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.name == name)
    }

    /// A call's result as it may be shown; none for one that brought nothing.
    pub(crate) fn shown<'a>(
        &'a self,
        number: usize,
        datasets: &BTreeSet<String>,
        question: &str,
        zone: &TimeZone,
    ) -> Option<Shown<'a>> {
        let taken = self.taken.get(number)?;
        let (output, range) = (taken.output.as_ref()?, taken.evidence.clone()?);
        let evidence = self.evidence.get(range)?;
        let withheld: Vec<bool> = evidence.iter().map(|piece| !datasets.contains(&piece.dataset)).collect();
        let hides = withheld.contains(&true);
        let findings = self.findings.iter().filter(|finding| finding.call == number);
        let text =
            |finding: &'a Finding| if finding.withheld { "not shown at this site" } else { finding.text.as_str() };
        let grounder = Grounder::new(&self.evidence, question, zone.clone());
        let cause = |cause: &'a DraftCause| {
            let why = grounder.try_claim(&cause.why).ok();
            let may = !hides
                || why.as_ref().is_some_and(|(_, cited)| {
                    self.evidence.iter().all(|e| !cited.contains(&e.id) || datasets.contains(&e.dataset))
                });
            ShownCause {
                id: &cause.id,
                status: cause.status,
                rank: cause.rank,
                components: if may { cause.components.as_slice() } else { &[] },
                onset: cause.onset.filter(|_| may),
                why: why.filter(|_| may).map(|(text, _)| text),
            }
        };
        Some(Shown {
            tool: &taken.call.tool,
            findings: findings.map(|finding| (finding.name.as_str(), text(finding))).collect(),
            causes: output.causes.iter().map(cause).collect(),
            notes: if hides { Vec::new() } else { output.data_health.iter().map(String::as_str).collect() },
            evidence,
            withheld,
        })
    }

    /// The outputs of the calls that brought something, each with its call's number.
    pub(crate) fn outputs(&self) -> impl DoubleEndedIterator<Item = (usize, &ToolCall, &ToolOutput)> {
        self.taken
            .iter()
            .enumerate()
            .filter_map(|(n, taken)| taken.output.as_ref().map(|output| (n, &taken.call, output)))
    }
}
