//! From a draft and the evidence to the answer as it is sent: only verified sentences, evidence without its points.

use jiff::tz::TimeZone;
use sightline_model::{Answer, AnswerId, AuditRef, CauseStatus, Cost, Evidence, Outcome, Read};

use crate::answer_question::Question;
use crate::ground::Grounder;
use crate::ports::{Draft, Gathered};
use crate::run_tool::ToolRun;

/// What was spent so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    /// Pieces of evidence gathered.
    pub(crate) evidence: usize,
    /// Queries run.
    pub(crate) queries: u64,
    /// Rows read.
    pub(crate) rows_read: u64,
    /// Bytes read.
    pub(crate) bytes_read: u64,
    /// What was read to the row and the byte: for the audit log.
    pub(crate) exactly: Read,
    /// Wall time, milliseconds.
    pub(crate) wall_ms: f64,
    /// Tokens of a model.
    pub(crate) llm_tokens: u64,
}

impl Spent {
    /// Adds a run.
    pub(crate) fn add(&mut self, run: &ToolRun) {
        self.evidence += run.output.evidence.len();
        self.queries += run.queries;
        self.rows_read = self.rows_read.saturating_add(run.read.rows);
        self.bytes_read = self.bytes_read.saturating_add(run.read.bytes);
        self.exactly.rows = self.exactly.rows.saturating_add(run.read_exactly.rows);
        self.exactly.bytes = self.exactly.bytes.saturating_add(run.read_exactly.bytes);
    }
}

/// Grounds the draft and puts the answer together; its times are told in `zone`.
pub(crate) fn assemble(
    answer_id: String,
    question: &Question,
    zone: &TimeZone,
    draft: Draft,
    gathered: Vec<Gathered>,
    spent: Spent,
    audit: AuditRef,
) -> Answer {
    let evidence: Vec<Evidence> =
        gathered.into_iter().filter_map(|g| g.outcome.ok()).flat_map(|output| output.evidence).collect();
    let mut grounder = Grounder::new(&evidence, &question.text, zone.clone());
    let headline = draft.headline.as_ref().and_then(|headline| grounder.claim(headline));
    let mut causes: Vec<_> = draft.causes.iter().filter_map(|cause| grounder.cause(cause)).collect();
    renumber_ranks(&mut causes);
    let claims: Vec<_> = draft.claims.iter().filter_map(|claim| grounder.claim(claim)).collect();
    let outcome = settle(draft.outcome, draft.headline.is_some(), headline.is_some(), &causes);
    let headline = headline.map(|claim| claim.text).unwrap_or_else(|| match causes.first() {
        Some(cause) if cause.status == CauseStatus::Supported => cause.why.clone(),
        Some(_) | None if draft.headline.is_none() => draft.plain_headline.clone(),
        Some(_) | None => {
            "The data does not bear out what was to be said; see the evidence, and report this answer.".to_owned()
        }
    });
    let verification = grounder.verification();
    Answer {
        answer_id: AnswerId::new(answer_id),
        conversation_id: question.conversation_id.clone(),
        question: question.text.clone(),
        as_of: question.as_of,
        time_range: draft.time_range,
        outcome,
        headline,
        causes,
        claims,
        evidence,
        choices: draft.choices,
        suggestions: draft.suggestions,
        next_steps: draft.next_steps,
        runbooks: draft.runbooks,
        data_health: draft.data_health,
        cost: Cost {
            queries: spent.queries,
            rows_read: spent.rows_read,
            bytes_read: spent.bytes_read,
            wall_ms: spent.wall_ms,
            llm_tokens: spent.llm_tokens,
        },
        verification,
        audit,
    }
}

/// The outcome that the verified sentences bear: a diagnosis all of whose sentences fell is no answer.
pub(crate) fn settle(
    drafted: Option<Outcome>,
    had_headline: bool,
    kept_headline: bool,
    causes: &[sightline_model::Cause],
) -> Outcome {
    let drafted = drafted.unwrap_or(Outcome::InsufficientData);
    let kept_something = kept_headline || causes.iter().any(|cause| cause.status == CauseStatus::Supported);
    match drafted {
        Outcome::Answered | Outcome::NoFault if had_headline && !kept_something => Outcome::InsufficientData,
        Outcome::Answered | Outcome::NoFault | Outcome::InsufficientData | Outcome::Clarify | Outcome::Refused => {
            drafted
        }
    }
}

/// Ranks are dense from 1 among the supported, whatever was taken out.
pub(crate) fn renumber_ranks(causes: &mut [sightline_model::Cause]) {
    causes.sort_by_key(|cause| (cause.status != CauseStatus::Supported, cause.rank));
    let mut next = 1;
    for cause in causes {
        if cause.status == CauseStatus::Supported {
            cause.rank = next;
            next += 1;
        } else {
            cause.rank = 0;
        }
    }
}
