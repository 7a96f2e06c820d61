//! Audit records and the port of the log that keeps them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::answer::AuditRef;
use crate::id::{QueryId, QuestionId};
use crate::principal::Principal;

/// Written, and durable, before anything is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The question or call.
    pub question_id: QuestionId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub principal: Principal,
    /// Through which entrance: `cli`, `http`, `tool`, `slack`, `eval`, `audit`.
    pub entrance: String,
    /// The question, or the typed call's name.
    pub question: String,
    /// Further facts of the entrance (conversation, channel, as-of time, …).
    pub detail: BTreeMap<String, String>,
}

/// What a policy said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Whether it was allowed.
    pub allowed: bool,
    /// The rules that decided.
    pub rules: Vec<String>,
    /// Their reasons, or what refused it.
    pub reasons: Vec<String>,
}

/// One tool call's query, durable before its rows leave the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The question it belongs to.
    pub question_id: QuestionId,
    /// When it ended.
    pub at: Timestamp,
    /// The tool.
    pub tool: String,
    /// Its arguments as they came: untrusted.
    pub arguments: Value,
    /// What policy and guard decided.
    pub decision: DecisionRecord,
    /// The SQL that was sent; none when it was refused.
    pub sql: Option<String>,
    /// The parameters that were sent.
    pub params: BTreeMap<String, String>,
    /// The engine's id of the query.
    pub query_id: Option<QueryId>,
    /// The tables it read.
    pub tables: Vec<String>,
    /// Rows read.
    pub rows_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Wall time, milliseconds.
    pub wall_ms: f64,
    /// Rows returned.
    pub result_rows: u64,
    /// SHA-256 of the rows, hex.
    pub result_digest: Option<String>,
    /// What went wrong, in our own words.
    pub error: Option<String>,
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Tokens it was sent, as it counted them; estimated where it does not say.
    pub tokens_in: u64,
    /// Tokens it put out.
    pub tokens_out: u64,
    /// Wall time with all tries, milliseconds.
    pub wall_ms: f64,
    /// Calls that it asked for, those among them that were repeats or too many and were not made.
    #[serde(default)]
    pub calls: u64,
    /// What came of it: `calls`, `answer`, `words`, or why nothing did.
    pub outcome: String,
}

/// What a model was asked for one question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    /// Its name, as it was asked for.
    pub model: String,
    /// The version of the prompt.
    pub prompt: String,
    /// Every request, in order.
    pub calls: Vec<ModelCall>,
    /// What all of them cost, where the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
    /// Why the built-in planner answered instead; none where the model's own draft was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fell_back: Option<String>,
}

impl ModelUse {
    /// All tokens in and out.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.calls.iter().fold(0, |sum, call| sum.saturating_add(call.tokens_in).saturating_add(call.tokens_out))
    }
}

/// Written when the question has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Complete {
    /// The question.
    pub question_id: QuestionId,
    /// When.
    pub at: Timestamp,
    /// How it ended: an outcome's name, or `error`, `cancelled`.
    pub outcome: String,
    /// SHA-256 of the answer's canonical JSON without its `audit`, hex.
    pub answer_digest: Option<String>,
    /// Statements checked.
    pub checked: u64,
    /// Statements dropped.
    pub dropped: u64,
    /// Queries run.
    pub queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Wall time, milliseconds.
    pub wall_ms: f64,
    /// The planner, and the model if there was one.
    pub planner: String,
    /// Model tokens.
    pub llm_tokens: u64,
    /// What the model was asked; left out where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUse>,
    /// What went wrong, in our own words.
    pub error: Option<String>,
}

/// What kind of thing happened beside the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A process that writes the log began its service.
    ServiceStarted,
    /// It ended in order.
    ServiceStopped,
    /// It lives: written at a steady pace, so that silence shows.
    Heartbeat,
    /// A session was opened with a credential.
    Login,
    /// A session was ended.
    Logout,
    /// Credentials that stand for nobody were sent; `detail.attempts` says how many this record speaks for.
    LoginFailed,
    /// Too many wrong credentials: more are turned away for a while.
    LockedOut,
    /// Something other than a query was denied by policy.
    Denied,
    /// Policies were read again; taken or refused as a whole.
    PolicyReload,
    /// A token was made.
    TokenCreated,
    /// A token was revoked.
    TokenRevoked,
    /// The audit log was listed, opened or searched.
    AuditRead,
    /// It was verified.
    AuditVerified,
    /// It was exported.
    AuditExported,
    /// Recorded queries were run again.
    AuditReplayed,
    /// Texts of questions were erased; their commitments stay.
    TextErased,
    /// Records older than the retention were taken out at a checkpoint.
    Retention,
    /// The log is signed with another key from here on.
    KeyRotated,
    /// The clock stood before the last record's time.
    ClockWentBack,
    /// A copy of a checkpoint could not be kept in its second place.
    CopyFailed,
    /// Feedback on an answer was kept.
    Feedback,
    /// Conversations were deleted.
    ConversationsDeleted,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventOutcome {
    /// It was done.
    Done,
    /// It was denied.
    Denied,
    /// It failed.
    Failed,
}

/// Something that happened beside the questions: a denial, a failed login, a change of policies, a look into the log itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: EventKind,
    /// Who, if that is known: a principal's id.
    pub principal: Option<String>,
    /// Through which entrance: `http`, `cli`, `service`, …
    pub entrance: String,
    /// How it ended.
    pub outcome: EventOutcome,
    /// Further facts. Never a secret, and never more of a credential than its public id.
    pub detail: BTreeMap<String, String>,
}

/// Why the log could not take a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditUnavailable {
    /// What happened, for the operator: one line that says what to do.
    pub reason: String,
}

impl std::fmt::Display for AuditUnavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the audit log cannot be written: {}", self.reason)
    }
}

impl std::error::Error for AuditUnavailable {}

/// The audit log as core needs it. Each future resolves when the record is durable.
pub trait AuditLog: Send + Sync {
    /// Writes a begin record. Nothing may be read before it resolves.
    fn begin(&self, record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>>;
    /// Writes a call record. No row may leave the process before it resolves.
    fn call(&self, record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>>;
    /// Writes a complete record. Its failure does not withhold the answer.
    fn complete(&self, record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>>;
    /// Writes an event.
    fn event(&self, record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>>;
}
