//! What happens while a question is answered, for those who wait.

use serde::Serialize;
use serde_json::Value;
use sightline_model::audit::ModelUse;
use sightline_model::{Answer, Claim, QuestionId, Read};

/// One thing that happened. Serialised as the data of a server-sent event whose name is [`Event::name`].
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// The question was accepted and its begin record is durable.
    Accepted {
        /// The question's id: what a cancel names.
        question_id: QuestionId,
    },
    /// The planner decided on calls.
    Plan {
        /// Tool names with their arguments.
        calls: Vec<PlannedCall>,
    },
    /// A call begins.
    ToolCall(PlannedCall),
    /// A call ended.
    ToolResult {
        /// The tool.
        tool: String,
        /// The evidence it brought.
        evidence: Vec<String>,
        /// Queries run for it.
        queries: u64,
        /// Rows read for it.
        rows_read: u64,
        /// Bytes read for it.
        bytes_read: u64,
        /// Wall time, milliseconds.
        wall_ms: f64,
        /// What went wrong, in our words.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A sentence passed verification.
    Claim(Claim),
    /// The answer.
    Answer(Box<Answer>),
}

/// A call as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

impl Event {
    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Plan { .. } => "plan",
            Self::ToolCall(_) => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::Claim(_) => "claim",
            Self::Answer(_) => "answer",
        }
    }
}

/// Where events go. Must not block.
pub trait Events: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);

    /// Planning and reading are over and the complete record is being written. A question that is stopped from here on has to be
    /// let end, or it would be recorded twice.
    fn closing(&self) {}

    /// One query was answered and read so much, to the row and the byte. Never for the asker: it is what the complete record says
    /// of a question that is stopped before its end.
    fn read(&self, _exactly: Read) {}

    /// A turn of a model has ended; all that it was asked so far. For the same record, and as little for the asker.
    fn asked_model(&self, _used: &ModelUse) {}
}

/// Nobody waits.
#[derive(Clone, Copy, Debug)]
pub struct NoEvents;

impl Events for NoEvents {
    fn emit(&self, _event: Event) {}
}
