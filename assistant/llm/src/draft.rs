//! From a model's answer to a draft. What the tools found stays whole: the model chooses the words in front of it and the order where its
//! reason holds; a cause that it leaves out stands beside.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::ground::Grounder;
use sightline_core::{Ask, Draft, ToolCall};
use sightline_model::{AskedRange, CauseStatus, DraftCause, DraftClaim, Outcome, TimeRange};
use sightline_tools::ToolOutput;

use crate::answer::{ModelAnswer, RankedCause};
use crate::findings::Findings;
use crate::reference;
use crate::words::{self, Vocabulary};

/// Tells who exists, and is no part of an answer to anything else.
const LOOKUP: &str = "find_entities";
/// The tools that judge: where one of them spoke, it says how the question ended.
const JUDGES: [&str; 2] = ["job_correlation", "service_correlation"];
/// How many findings that the model did not use are added, so that no fact of weight is lost by its choice.
const MAX_ADDED: usize = 12;

/// What a draft is made from.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) zone: &'a TimeZone,
    pub(crate) findings: &'a Findings,
    pub(crate) vocabulary: &'a Vocabulary,
    /// The windows that the question's words mean.
    pub(crate) windows: &'a [AskedRange],
}

/// A draft, and what of the answer did not hold.
pub(crate) struct Compiled {
    pub(crate) draft: Draft,
    /// Which part, and why.
    pub(crate) failed: Vec<(String, String)>,
    /// How many of the model's sentences hold.
    pub(crate) held: usize,
}

/// Makes a draft of an answer.
pub(crate) fn compile(stage: Stage<'_>, answer: &ModelAnswer) -> Compiled {
    let mut failed = Vec::new();
    let mut held = 0;
    let mut take = |which: String, text: &str| match stage.sentence(text) {
        Ok(claim) => {
            held += 1;
            Some(claim)
        }
        Err(reason) => {
            failed.push((which, reason));
            None
        }
    };
    let headline = answer.headline.as_deref().and_then(|text| take("headline".to_owned(), text));
    let mut claims: Vec<DraftClaim> = Vec::new();
    for (index, text) in answer.claims.iter().enumerate() {
        let claim = take(format!("claim {}", index + 1), text);
        claims.extend(claim.filter(|claim| !claims.contains(claim)));
    }
    let ranked: Vec<(&RankedCause, Option<DraftClaim>)> = answer
        .causes
        .iter()
        .map(|cause| {
            (cause, cause.why.as_deref().and_then(|why| take(format!("cause {}", cause_name(&cause.id)), why)))
        })
        .collect();
    for (cause, _) in &ranked {
        if !stage.supported().contains(cause.id.as_str()) {
            failed.push((format!("cause {}", cause_name(&cause.id)), "no tool found that it is supported".to_owned()));
        }
    }
    let mut notes = Vec::new();
    let causes = order(stage.causes(), &ranked, &mut notes);
    let main = stage.main();
    let headline = headline.or_else(|| main.and_then(|(_, _, output)| output.headline.clone()));
    stage.add_findings(&mut claims, headline.as_ref());
    let draft = Draft {
        outcome: Some(stage.outcome()),
        time_range: stage.time_range(&mut notes),
        headline,
        plain_headline: "There is nothing to say from the data.".to_owned(),
        claims,
        causes,
        choices: stage.findings.outputs().flat_map(|(_, _, output)| output.choices.clone()).collect(),
        suggestions: stage.each(|output| &output.suggestions),
        next_steps: stage.each(|output| &output.next_steps),
        runbooks: stage.each(|output| &output.runbooks),
        data_health: notes.into_iter().chain(stage.each(|output| &output.data_health)).collect(),
    };
    Compiled { draft, failed, held }
}

/// A cause's id is the model's own text until it is known.
fn cause_name(id: &str) -> String {
    crate::safe_text::value(&id.chars().take(40).collect::<String>())
}

impl<'a> Stage<'a> {
    /// A sentence that holds: a finding by its name, or words with references.
    fn sentence(&self, text: &str) -> Result<DraftClaim, String> {
        if let Some(finding) = self.findings.named(text.trim().trim_matches(['{', '}', '[', ']', '.'])) {
            return Ok(finding.claim.clone());
        }
        let claim = reference::claim(text, &self.findings.evidence)?;
        words::check(&reference::own_words(text), &self.ask.text, self.vocabulary, &self.supported())?;
        let grounder = Grounder::new(&self.findings.evidence, &self.ask.text, self.zone.clone());
        grounder.try_claim(&claim).map_err(|reason| reason.to_string())?;
        Ok(claim)
    }

    /// The causes of the last judgement.
    fn causes(&self) -> Vec<DraftCause> {
        let judged = self.findings.outputs().rev().find(|(_, _, output)| !output.causes.is_empty());
        judged.map(|(_, _, output)| output.causes.clone()).unwrap_or_default()
    }

    fn supported(&self) -> BTreeSet<&'a str> {
        let all = self.findings.outputs().flat_map(|(_, _, output)| &output.causes);
        all.filter(|cause| cause.status == CauseStatus::Supported).map(|cause| cause.id.as_str()).collect()
    }

    /// The call that the answer is about: the last judgement, else the last that found something, else the last.
    fn main(&self) -> Option<(usize, &'a ToolCall, &'a ToolOutput)> {
        let outputs = || self.findings.outputs().rev();
        let answered = |output: &ToolOutput| output.outcome != Some(Outcome::InsufficientData);
        outputs()
            .find(|(_, call, _)| JUDGES.contains(&call.tool.as_str()))
            .or_else(|| outputs().find(|(_, call, output)| call.tool != LOOKUP && answered(output)))
            .or_else(|| outputs().find(|(_, _, output)| answered(output)))
            .or_else(|| outputs().next())
    }

    /// How the question ended, as the tools tell it: a model's word for it could not be checked.
    fn outcome(&self) -> Outcome {
        match self.main() {
            Some((_, _, output)) => output.outcome.unwrap_or(Outcome::Answered),
            None => Outcome::InsufficientData,
        }
    }

    /// Findings of weight that the model left out stand behind its own.
    fn add_findings(&self, claims: &mut Vec<DraftClaim>, headline: Option<&DraftClaim>) {
        let main = self.main().map(|(number, _, _)| number);
        let mut added = 0;
        for finding in &self.findings.findings {
            let of_weight = Some(finding.call) == main;
            if of_weight && added < MAX_ADDED && !claims.contains(&finding.claim) && headline != Some(&finding.claim) {
                claims.push(finding.claim.clone());
                added += 1;
            }
        }
    }

    fn each(&self, of: impl Fn(&ToolOutput) -> &Vec<String>) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (_, _, output) in self.findings.outputs() {
            for text in of(output) {
                if !all.contains(text) {
                    all.push(text.clone());
                }
            }
        }
        all
    }

    /// The window that was looked at, and whether it is the one that the words mean.
    fn time_range(&self, notes: &mut Vec<String>) -> Option<AskedRange> {
        let (number, call, _) = self.main()?;
        let argument = |name: &str| call.arguments.get(name)?.as_str()?.parse::<Timestamp>().ok();
        let given = argument("from").zip(argument("to"));
        let taken = self.findings.taken.get(number)?;
        let evidence = self.findings.evidence.get(taken.evidence.clone()?)?;
        let whole = || Some((evidence.iter().map(|e| e.from).min()?, evidence.iter().map(|e| e.to).max()?));
        let (from, to) = given.or_else(whole)?;
        let range = TimeRange::new(from, to)?;
        if let Some(meant) = self.windows.iter().find(|w| (w.from, w.to) == (range.from(), range.to())) {
            return Some(meant.clone());
        }
        let name = self.ask.time_zone.clone();
        let (first, last) = (from.to_zoned_datetime(self.zone.clone()), to.to_zoned_datetime(self.zone.clone()));
        let span = format!("{} to {} {name}", first.strftime("%Y-%m-%d %H:%M"), last.strftime("%Y-%m-%d %H:%M"));
        if let [meant] = self.windows {
            notes.push(format!("the question's words mean {}; looked at was {span}", meant.how));
        }
        Some(AskedRange { from, to, time_zone: name, how: format!("{span}, as the model chose it") })
    }
}

/// The causes in the model's order as far as it gives reasons that hold; what it leaves out follows in the checks' own order.
fn order(
    found: Vec<DraftCause>,
    ranked: &[(&RankedCause, Option<DraftClaim>)],
    notes: &mut Vec<String>,
) -> Vec<DraftCause> {
    let (mut supported, others): (Vec<DraftCause>, Vec<DraftCause>) =
        found.into_iter().partition(|cause| cause.status == CauseStatus::Supported);
    supported.sort_by_key(|cause| cause.rank);
    let first = supported.first().map(|cause| cause.id.clone());
    let mut placed: Vec<DraftCause> = Vec::new();
    for (wanted, why) in ranked {
        let Some(at) = supported.iter().position(|cause| cause.id == wanted.id) else { continue };
        // To go before one that the checks rank first takes a reason that holds.
        if at > 0 && why.is_none() {
            continue;
        }
        let mut cause = supported.remove(at);
        if let Some(why) = why.as_ref().filter(|why| !cause.claims.contains(why)) {
            cause.claims.insert(0, why.clone());
        }
        placed.push(cause);
    }
    placed.extend(supported);
    if let (Some(checks), Some(model)) = (first, placed.first().map(|cause| cause.id.clone()))
        && checks != model
    {
        notes.push(format!(
            "the model ranks {model} first, for the reason that stands with it; the checks rank {checks} first"
        ));
    }
    for (rank, cause) in (1..).zip(&mut placed) {
        cause.rank = rank;
    }
    placed.into_iter().chain(others).collect()
}
