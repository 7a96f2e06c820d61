//! The answer as it is sent, in the order of its JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::evidence::Evidence;
use crate::id::{AnswerId, ConversationId, QuestionId};
use crate::time::AskedRange;

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// Asked why or whether, and nothing is wrong.
    NoFault,
    /// Not collected, no data in the window, or an unknown entity.
    InsufficientData,
    /// One question back, with choices.
    Clarify,
    /// Not allowed, not possible, or out of scope.
    Refused,
}

impl Outcome {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NoFault => "no_fault",
            Self::InsufficientData => "insufficient_data",
            Self::Clarify => "clarify",
            Self::Refused => "refused",
        }
    }
}

/// Whether a cause holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseStatus {
    /// The evidence speaks for it.
    Supported,
    /// The evidence speaks against it.
    RuledOut,
    /// What it needs was not collected or is missing.
    NoData,
}

/// A culprit: canonical name to value, all text, for example `node=atlas-n07, gpu=3`.
pub type Component = BTreeMap<String, String>;

/// A cause with its verified claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The cause id.
    pub id: String,
    /// Whether it holds.
    pub status: CauseStatus,
    /// Its place among the supported, from 1; 0 otherwise.
    pub rank: u32,
    /// The culprits.
    pub components: Vec<Component>,
    /// Since when.
    pub onset: Option<Timestamp>,
    /// Why it has this status.
    pub why: String,
    /// Its claims.
    pub claims: Vec<Claim>,
}

/// A choice offered with a clarifying question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// What is shown.
    pub label: String,
    /// The whole question to ask instead.
    pub question: String,
}

/// What the answer cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Queries run.
    pub queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Wall time from question to answer, milliseconds.
    pub wall_ms: f64,
    /// Model tokens; 0 with the offline planner.
    pub llm_tokens: u64,
}

/// How the statements of the answer fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Statements of the answer as sent.
    pub checked: u64,
    /// Those that passed: always equal to `checked`.
    pub passed: u64,
    /// Those taken out because they failed.
    pub dropped: u64,
}

/// Where the question stands in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRef {
    /// The question.
    pub question_id: QuestionId,
    /// The sequence number of its begin record; left out for who may not read the log, since it counts everybody's records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The hash of its begin record, hex.
    pub hash: String,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its id.
    pub answer_id: AnswerId,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The question as asked.
    pub question: String,
    /// The instant the question was taken to be asked at.
    pub as_of: Timestamp,
    /// The window that was asked about.
    pub time_range: Option<AskedRange>,
    /// How it ended.
    pub outcome: Outcome,
    /// One verified sentence.
    pub headline: String,
    /// Causes, supported first by rank.
    pub causes: Vec<Cause>,
    /// Claims that belong to no cause.
    pub claims: Vec<Claim>,
    /// The evidence.
    pub evidence: Vec<Evidence>,
    /// Choices, with outcome `clarify`.
    pub choices: Vec<Candidate>,
    /// Questions that could come next.
    pub suggestions: Vec<String>,
    /// What to do.
    pub next_steps: Vec<String>,
    /// Runbook ids.
    pub runbooks: Vec<String>,
    /// What is missing, stale or suspicious about the data.
    pub data_health: Vec<String>,
    /// What it cost.
    pub cost: Cost,
    /// How its statements fared.
    pub verification: Verification,
    /// Where it stands in the audit log.
    pub audit: AuditRef,
}
