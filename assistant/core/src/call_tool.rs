//! A typed call from outside: begin, run, ground, complete. It is its own question, and `run_tool` is its only way to data.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;
use sightline_model::audit::{AuditUnavailable, Begin};
use sightline_model::{
    AnswerId, AuditRef, Candidate, Cause, Claim, Cost, Evidence, Outcome, Principal, QuestionId, Verification,
};
use sightline_policies::Action;
use sightline_tools::AnyTool;
use tracing::Instrument as _;

use crate::answer_question::{within_rate, zone_name};
use crate::assemble::{Spent, renumber_ranks, settle};
use crate::assistant::Assistant;
use crate::digest::digest_answer;
use crate::events::{Event, Events};
use crate::fetch::readable;
use crate::ground::Grounder;
use crate::ports::ToolCall;
use crate::quota::TooManyQuestions;
use crate::records::{Ending, NO_PLANNER, complete};
use crate::run_tool::{Caller, ToolRun, run_tool};
use crate::shown::shown_audit;
use crate::tool_failure::ToolFailure;

/// The most of a tool's name that is recorded as the question: what is longer names no tool.
const MAX_NAME: usize = 64;

/// A typed call with all the host knows about it.
#[derive(Clone, Debug)]
pub struct TypedCall {
    /// Its id, made by the entrance, which needs it for a cancel.
    pub id: QuestionId,
    /// The tool.
    pub tool: String,
    /// Its arguments: untrusted.
    pub arguments: Value,
    /// Who calls; from a credential.
    pub principal: Principal,
    /// Through which entrance.
    pub entrance: &'static str,
    /// The instant taken as now.
    pub as_of: Timestamp,
    /// The caller's zone, for the times in sentences.
    pub time_zone: TimeZone,
}

/// What a typed call brought: the evidence, and what may be said of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolAnswer {
    /// Its id: `/v1/evidence/{answer_id}.E1` serves the points.
    pub answer_id: AnswerId,
    /// The call's own id in the audit log.
    pub question_id: QuestionId,
    /// The tool.
    pub tool: String,
    /// The instant the call was taken to be made at.
    pub as_of: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// The sentence to lead with, where one was borne out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headline: Option<Claim>,
    /// Causes, from the diagnosing tools.
    pub causes: Vec<Cause>,
    /// Sentences, each verified.
    pub claims: Vec<Claim>,
    /// The evidence.
    pub evidence: Vec<Evidence>,
    /// Choices, with outcome `clarify`.
    pub choices: Vec<Candidate>,
    /// What to do.
    pub next_steps: Vec<String>,
    /// Runbook ids.
    pub runbooks: Vec<String>,
    /// What is missing, stale or suspicious about the data.
    pub data_health: Vec<String>,
    /// What it cost.
    pub cost: Cost,
    /// How the sentences fared.
    pub verification: Verification,
    /// Where the call stands in the audit log.
    pub audit: AuditRef,
}

/// Why a typed call brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The principal asked too often; a call counts as a question.
    #[error(transparent)]
    TooManyQuestions(#[from] TooManyQuestions),
    /// The principal may not call tools at all.
    #[error("{reason}")]
    MayNotCall {
        /// Why, and whom to ask.
        reason: String,
    },
    /// The begin record could not be written, so nothing was read.
    #[error(transparent)]
    Audit(#[from] AuditUnavailable),
    /// The call failed.
    #[error(transparent)]
    Tool(#[from] ToolFailure),
}

/// Answers a typed call.
///
/// # Errors
/// A refusal, or a fault of the call's form or of the host. The audit log has a complete record of every call that was begun, unless it
/// could not be written.
pub async fn call_tool(assistant: &Assistant, call: &TypedCall, events: &dyn Events) -> Result<ToolAnswer, CallError> {
    let span = tracing::info_span!("call_tool", question_id = %call.id, entrance = call.entrance);
    async {
        within_rate(assistant, &call.principal)?;
        let begun = begin(assistant, call).await?;
        events.emit(Event::Accepted { question_id: call.id.clone() });
        let mut spent = Spent::default();
        let answered = run_and_ground(assistant, call, events, begun, &mut spent).await;
        events.closing();
        complete(assistant, &call.id, ending(answered.as_ref(), spent)).await;
        answered
    }
    .instrument(span)
    .await
}

/// The tools that this principal may call: those that answer from a dataset it may read, or from nobody's rows.
pub fn callable<'a>(assistant: &'a Assistant, principal: &'a Principal) -> impl Iterator<Item = &'a dyn AnyTool> {
    assistant.tools.iter().map(Box::as_ref).filter(move |tool| {
        let may_read = readable(assistant, principal, tool.name());
        may_call(assistant, principal, tool.name()).is_ok()
            && (tool.datasets().is_empty() || tool.datasets().iter().any(|dataset| may_read.contains(dataset)))
    })
}

async fn run_and_ground(
    assistant: &Assistant,
    call: &TypedCall,
    events: &dyn Events,
    begun: AuditRef,
    spent: &mut Spent,
) -> Result<ToolAnswer, CallError> {
    let started = assistant.clock.monotonic_ms();
    may_call(assistant, &call.principal, &call.tool)?;
    let caller = Caller { question_id: &call.id, principal: &call.principal, as_of: call.as_of, events };
    let asked = ToolCall { tool: call.tool.clone(), arguments: call.arguments.clone() };
    let span = tracing::info_span!("run_tool", tool = %call.tool);
    let run = run_tool(assistant, caller, &asked).instrument(span).await?;
    spent.add(&run);
    spent.wall_ms = assistant.clock.monotonic_ms() - started;
    Ok(tracing::info_span!("ground").in_scope(|| ground(assistant.ids.next(), call, run, *spent, begun)))
}

fn ground(answer_id: String, call: &TypedCall, run: ToolRun, spent: Spent, begun: AuditRef) -> ToolAnswer {
    let output = run.output;
    let said = call.arguments.to_string();
    let mut grounder = Grounder::new(&output.evidence, &said, call.time_zone.clone());
    let headline = output.headline.as_ref().and_then(|headline| grounder.claim(headline));
    let mut causes: Vec<Cause> = output.causes.iter().filter_map(|cause| grounder.cause(cause)).collect();
    renumber_ranks(&mut causes);
    let claims = output.claims.iter().filter_map(|claim| grounder.claim(claim)).collect();
    let verification = grounder.verification();
    let drafted = Some(output.outcome.unwrap_or(Outcome::Answered));
    ToolAnswer {
        answer_id: AnswerId::new(answer_id),
        question_id: call.id.clone(),
        tool: call.tool.clone(),
        as_of: call.as_of,
        outcome: settle(drafted, output.headline.is_some(), headline.is_some(), &causes),
        headline,
        causes,
        claims,
        evidence: output.evidence,
        choices: output.choices,
        next_steps: output.next_steps,
        runbooks: output.runbooks,
        data_health: output.data_health,
        cost: Cost {
            queries: spent.queries,
            rows_read: spent.rows_read,
            bytes_read: spent.bytes_read,
            wall_ms: spent.wall_ms,
            llm_tokens: 0,
        },
        verification,
        audit: begun,
    }
}

fn may_call(assistant: &Assistant, principal: &Principal, tool: &str) -> Result<(), CallError> {
    let decision = assistant.policies.now().check(principal, Action::CallTool, tool);
    if decision.allowed() { Ok(()) } else { Err(CallError::MayNotCall { reason: decision.reasons().join("; ") }) }
}

async fn begin(assistant: &Assistant, call: &TypedCall) -> Result<AuditRef, AuditUnavailable> {
    let record = Begin {
        question_id: call.id.clone(),
        at: assistant.clock.now(),
        principal: call.principal.clone(),
        entrance: call.entrance.to_owned(),
        question: call.tool.chars().take(MAX_NAME).collect(),
        detail: [
            ("typed_call".to_owned(), "true".to_owned()),
            ("as_of".to_owned(), call.as_of.to_string()),
            ("time_zone".to_owned(), zone_name(&call.time_zone)),
        ]
        .into(),
    };
    let begun = assistant.audit.begin(record).instrument(tracing::info_span!("audit_begin")).await?;
    Ok(shown_audit(&assistant.policies.now(), &call.principal, begun))
}

fn ending(answered: Result<&ToolAnswer, &CallError>, spent: Spent) -> Ending {
    Ending {
        outcome: match answered {
            Ok(answer) => answer.outcome.as_str().to_owned(),
            Err(CallError::MayNotCall { .. } | CallError::Tool(ToolFailure::Refused(_))) => "refused".to_owned(),
            Err(CallError::TooManyQuestions(_) | CallError::Audit(_) | CallError::Tool(_)) => "error".to_owned(),
        },
        answer_digest: answered.ok().map(digest_answer),
        verification: answered.map(|answer| answer.verification).unwrap_or_default(),
        spent,
        planner: NO_PLANNER,
        model: None,
        error: answered.err().map(ToString::to_string),
    }
}
