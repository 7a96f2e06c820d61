//! The record that ends a question or a typed call.

use sightline_model::audit::{Complete, ModelUse};
use sightline_model::{QuestionId, Read, Verification};
use tracing::Instrument as _;

use crate::assemble::Spent;
use crate::assistant::Assistant;

/// How it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    /// An outcome's name, or `refused`, `error`, `cancelled`.
    pub(crate) outcome: String,
    /// The digest of the answer, where there is one.
    pub(crate) answer_digest: Option<String>,
    /// How the statements fared.
    pub(crate) verification: Verification,
    /// What was spent on it, whether or not it came to an answer.
    pub(crate) spent: Spent,
    /// The planner; [`NO_PLANNER`] for a typed call.
    pub(crate) planner: &'static str,
    /// What a model was asked.
    pub(crate) model: Option<ModelUse>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

/// What stands for the planner where there was none.
pub(crate) const NO_PLANNER: &str = "none";

/// Writes the complete record. Its failure is logged for the operator and does not withhold the answer.
pub(crate) async fn complete(assistant: &Assistant, question_id: &QuestionId, ending: Ending) {
    let Ending { outcome, answer_digest, verification, spent, planner, model, error } = ending;
    let record = Complete {
        question_id: question_id.clone(),
        at: assistant.clock.now(),
        outcome,
        answer_digest,
        checked: verification.checked,
        dropped: verification.dropped,
        queries: spent.queries,
        rows_read: spent.exactly.rows,
        bytes_read: spent.exactly.bytes,
        wall_ms: spent.wall_ms,
        planner: planner.to_owned(),
        llm_tokens: model.as_ref().map_or(0, ModelUse::tokens),
        model,
        error,
    };
    let span = tracing::info_span!("audit_complete");
    if let Err(error) = assistant.audit.complete(record).instrument(span).await {
        tracing::error!(%error, "a complete record was not written; what had been found was sent all the same");
    }
}

/// What a question or a typed call had read when its entrance stopped it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadSoFar {
    /// Queries that were answered.
    pub queries: u64,
    /// What they read, exactly.
    pub read: Read,
}

impl ReadSoFar {
    /// Adds what one query read.
    pub fn add(&mut self, exactly: Read) {
        self.queries += 1;
        self.read.rows = self.read.rows.saturating_add(exactly.rows);
        self.read.bytes = self.read.bytes.saturating_add(exactly.bytes);
    }
}

/// A question, a typed call or a replay that did not come to its end.
#[derive(Clone, Copy, Debug)]
pub struct Cancelled<'a> {
    /// Its id.
    pub question_id: &'a QuestionId,
    /// Whether a planner was at work: not for typed calls and replays.
    pub is_planned: bool,
    /// What it had read by then.
    pub so_far: ReadSoFar,
    /// What a model was asked and had answered by then.
    pub model: Option<&'a ModelUse>,
    /// Why it ended.
    pub reason: &'a str,
}

/// Writes the complete record of what its entrance stopped: the asker went away, cancelled it, it took too long, or it crashed.
pub async fn record_cancelled(assistant: &Assistant, cancelled: Cancelled<'_>) {
    let Cancelled { question_id, is_planned, so_far: ReadSoFar { queries, read }, model, reason } = cancelled;
    let ending = Ending {
        outcome: "cancelled".to_owned(),
        planner: if is_planned { assistant.planner.name() } else { NO_PLANNER },
        spent: Spent { queries, exactly: read, ..Spent::default() },
        model: model.cloned(),
        error: Some(reason.to_owned()),
        ..Ending::default()
    };
    complete(assistant, question_id, ending).await;
}
