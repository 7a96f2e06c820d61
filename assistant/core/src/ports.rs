//! What core needs of the outside besides the engine and the audit log: a clock, ids, a planner.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use sightline_model::audit::ModelUse;
use sightline_model::{
    Answer, AskedRange, BoxFuture, Candidate, CauseStatus, DraftCause, DraftClaim, Outcome, Principal,
};
use sightline_tools::ToolOutput;

/// The clock. Core never reads one itself.
pub trait Clock: Send + Sync {
    /// The wall clock, for records.
    fn now(&self) -> Timestamp;
    /// Milliseconds of a clock that never goes back, for durations.
    fn monotonic_ms(&self) -> f64;
}

/// The source of ids: each call gives a new UUIDv7 as text.
pub trait Ids: Send + Sync {
    /// A new id.
    fn next(&self) -> String;
}

/// A question as a planner sees it. It holds nothing a planner could widen its scope with.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The question, as typed.
    pub text: String,
    /// The instant taken as now.
    pub as_of: Timestamp,
    /// The asker's zone, an IANA name.
    pub time_zone: String,
    /// The questions before it in its conversation, the oldest first.
    pub before: Vec<Earlier>,
    /// Who asks: to know which tenants and datasets can come up, never to set them.
    pub principal: Principal,
}

/// An earlier question of the conversation, and what its answer was about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The question, as typed.
    pub text: String,
    /// What its answer was about first: dimensions with their values.
    pub focus: Vec<(String, String)>,
}

impl Earlier {
    /// A question with what its answer was about: the component of its first supported cause, else the first thing that its evidence names.
    #[must_use]
    pub fn of(answer: &Answer) -> Self {
        let caused = answer.causes.iter().filter(|cause| cause.status == CauseStatus::Supported);
        let component = caused.flat_map(|cause| &cause.components).next();
        let rows = answer.evidence.iter().flat_map(|piece| piece.rows.iter().map(|row| &row.entity));
        let series = answer.evidence.iter().flat_map(|piece| piece.series.iter().map(|series| &series.entity));
        let named = component.or_else(|| rows.chain(series).find(|entity| !entity.is_empty()));
        let focus = named.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { text: answer.question.clone(), focus }
    }
}

/// A call a planner wants made. The arguments are untrusted JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// A call that was made, and what came of it.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The call.
    pub call: ToolCall,
    /// The output with its evidence finally named, or why there is none.
    pub outcome: Result<ToolOutput, NoOutput>,
}

/// Why a call brought nothing: what happened, and what to ask instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOutput {
    /// One sentence for the asker.
    pub for_people: String,
    /// The same for a model, as short as can be acted on: it is paid for by the token.
    pub for_model: String,
}

/// An answer before it is grounded.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// How it ends.
    pub outcome: Option<Outcome>,
    /// The window that was asked about.
    pub time_range: Option<AskedRange>,
    /// The sentence to lead with.
    pub headline: Option<DraftClaim>,
    /// What to lead with when there is no headline to verify: words without numbers, as for a refusal.
    pub plain_headline: String,
    /// Claims that belong to no cause.
    pub claims: Vec<DraftClaim>,
    /// Causes.
    pub causes: Vec<DraftCause>,
    /// Choices, with outcome `clarify`.
    pub choices: Vec<Candidate>,
    /// What could be asked next.
    pub suggestions: Vec<String>,
    /// What to do.
    pub next_steps: Vec<String>,
    /// Runbook ids.
    pub runbooks: Vec<String>,
    /// What is missing or suspicious.
    pub data_health: Vec<String>,
}

/// What a planner does next.
#[derive(Clone, Debug)]
pub enum Turn {
    /// Make these calls, together. Not empty.
    Calls(Vec<ToolCall>),
    /// Done.
    Draft(Box<Draft>),
}

/// Why a planner cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannerError {
    /// It failed in a way only its operator can mend.
    #[error("the planner `{planner}` failed: {reason}")]
    Failed {
        /// Which planner.
        planner: &'static str,
        /// What happened, and what to do.
        reason: String,
    },
}

/// A planner: it turns a question into calls and, at the end, a draft. It reaches data through its calls alone.
pub trait Planner: Send + Sync {
    /// Its name in answers and records.
    fn name(&self) -> &'static str;

    /// The zone in which the question wants its times told, where it names another than the asker's.
    fn zone(&self, _ask: &Ask) -> Option<TimeZone> {
        None
    }

    /// Takes up one question.
    fn begin<'a>(&'a self, ask: &'a Ask) -> Box<dyn Planning + 'a>;
}

/// One question in a planner's hands. What has to be remembered between turns is remembered here, and ends with the question.
pub trait Planning: Send {
    /// What to do next, given what was gathered so far.
    fn next<'a>(&'a mut self, gathered: &'a [Gathered]) -> BoxFuture<'a, Result<Turn, PlannerError>>;

    /// What a model was asked so far; none where there is no model.
    fn model(&self) -> Option<ModelUse> {
        None
    }
}
