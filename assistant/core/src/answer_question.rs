//! The line of one question: begin, plan, run, ground, complete.

use futures::future::join_all;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_model::audit::{AuditUnavailable, Begin};
use sightline_model::{Answer, AuditRef, BoxFuture, ConversationId, Principal, QuestionId};
use sightline_policies::Action;
use tracing::Instrument as _;

use crate::assemble::{Spent, assemble};
use crate::assistant::Assistant;
use crate::digest::digest_answer;
use crate::events::{Event, Events, PlannedCall};
use crate::ground::Grounder;
use crate::ports::{Ask, Draft, Earlier, Gathered, NoOutput, PlannerError, Planning, ToolCall, Turn};
use crate::quota::TooManyQuestions;
use crate::records::{Ending, complete};
use crate::renumber::renumber;
use crate::run_tool::{Caller, ToolRun, run_tool};
use crate::shown::shown_audit;
use crate::tool_failure::ToolFailure;

/// The longest question, bytes: two pages of text. What is longer is a paste, not a question.
pub const MAX_QUESTION_BYTES: usize = 8 * 1024;
/// The most times a planner may call tools for one question: as many as a model is given at most, and then as many as the offline
/// planner takes, should it have to answer in the model's place.
const MAX_TURNS: usize = 16;
/// The most calls in one turn.
const MAX_CALLS: usize = 8;

/// Finds out what a question is about. That there is such a job is a step on the way, no part of the answer to why it is slow,
/// so its sentences are not sent ahead of the answer.
const LOOKUP: &str = "find_entities";

/// A question with all the host knows about it.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its id, made by the entrance, which needs it for a cancel.
    pub id: QuestionId,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The question, as typed.
    pub text: String,
    /// The questions before it in its conversation, the oldest first.
    pub before: Vec<Earlier>,
    /// Who asks; from a credential or a policy file.
    pub principal: Principal,
    /// Through which entrance.
    pub entrance: &'static str,
    /// The instant taken as now.
    pub as_of: Timestamp,
    /// The asker's zone.
    pub time_zone: TimeZone,
}

/// Why there is no answer. An outcome such as `refused` is an answer; this is a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The question is empty.
    #[error("the question is empty; ask, for example, `why was training job J123 slow yesterday?`")]
    Empty,
    /// The question is too long.
    #[error("the question has {bytes} bytes; at most {MAX_QUESTION_BYTES} are taken, so ask a shorter one")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The principal asked too often.
    #[error(transparent)]
    TooManyQuestions(#[from] TooManyQuestions),
    /// The principal may not ask at all.
    #[error("{reason}")]
    MayNotAsk {
        /// Why, and whom to ask.
        reason: String,
    },
    /// The begin record could not be written, so nothing was read.
    #[error(transparent)]
    Audit(#[from] AuditUnavailable),
    /// The planner failed.
    #[error(transparent)]
    Planner(#[from] PlannerError),
    /// A tool met a fault of the host.
    #[error(transparent)]
    Tool(#[from] ToolFailure),
    /// The planner did not come to an end.
    #[error("the planner made {MAX_TURNS} rounds of calls without an answer; ask a narrower question")]
    NoEnd,
}

/// Answers a question.
///
/// # Errors
/// A fault of the question's form, of the host or of the planner, or one question too many. The audit log has a complete record of
/// every question that was begun, unless it could not be written.
pub async fn answer_question(
    assistant: &Assistant,
    question: &Question,
    events: &dyn Events,
) -> Result<Answer, AskError> {
    let span = tracing::info_span!("answer_question", question_id = %question.id, entrance = question.entrance);
    async {
        check_form(question)?;
        within_rate(assistant, &question.principal)?;
        let begun = begin(assistant, question).await?;
        events.emit(Event::Accepted { question_id: question.id.clone() });
        let ask = question.brief();
        let mut planning = assistant.planner.begin(&ask);
        let mut spent = Spent::default();
        let answered = plan_run_ground(assistant, question, &ask, events, begun, planning.as_mut(), &mut spent).await;
        events.closing();
        let ending = Ending { model: planning.model(), ..ending(assistant, answered.as_ref(), spent) };
        complete(assistant, &question.id, ending).await;
        let answer = answered?;
        events.emit(Event::Answer(Box::new(answer.clone())));
        Ok(answer)
    }
    .instrument(span)
    .await
}

/// Plans and runs until the planner hands in a draft, then grounds it.
async fn plan_run_ground(
    assistant: &Assistant,
    question: &Question,
    ask: &Ask,
    events: &dyn Events,
    begun: AuditRef,
    planning: &mut (dyn Planning + '_),
    spent: &mut Spent,
) -> Result<Answer, AskError> {
    let started = assistant.clock.monotonic_ms();
    may_ask(assistant, question)?;
    let zone = assistant.planner.zone(ask).unwrap_or_else(|| question.time_zone.clone());
    let told = Told { question, zone: &zone, events };
    let mut gathered: Vec<Gathered> = Vec::new();
    for _ in 0..MAX_TURNS {
        let plan = tracing::info_span!("planner", planner = assistant.planner.name());
        let turn = planning.next(&gathered).instrument(plan).await;
        if let Some(used) = planning.model() {
            spent.llm_tokens = used.tokens();
            events.asked_model(&used);
        }
        match turn? {
            Turn::Calls(calls) => gather(assistant, told, calls, &mut gathered, spent).await?,
            Turn::Draft(draft) => {
                spent.wall_ms = assistant.clock.monotonic_ms() - started;
                return Ok(ground(assistant, told, *draft, gathered, *spent, begun));
            }
        }
    }
    Err(AskError::NoEnd)
}

/// A question, the zone in which its answer tells times, and who hears of it meanwhile.
#[derive(Clone, Copy)]
struct Told<'a> {
    question: &'a Question,
    zone: &'a TimeZone,
    events: &'a dyn Events,
}

/// Runs the calls of one turn together, names their evidence, and sends the facts that pass verification at once.
async fn gather(
    assistant: &Assistant,
    told: Told<'_>,
    calls: Vec<ToolCall>,
    gathered: &mut Vec<Gathered>,
    spent: &mut Spent,
) -> Result<(), AskError> {
    let Told { question, events, .. } = told;
    let calls: Vec<ToolCall> = calls.into_iter().take(MAX_CALLS).collect();
    let planned = |call: &ToolCall| PlannedCall { tool: call.tool.clone(), arguments: call.arguments.clone() };
    events.emit(Event::Plan { calls: calls.iter().map(planned).collect() });
    let caller = Caller { question_id: &question.id, principal: &question.principal, as_of: question.as_of, events };
    let mut runs: Vec<BoxFuture<'_, Result<ToolRun, ToolFailure>>> = Vec::new();
    for call in &calls {
        events.emit(Event::ToolCall(planned(call)));
        let span = tracing::info_span!("run_tool", tool = %call.tool);
        runs.push(Box::pin(run_tool(assistant, caller, call).instrument(span)));
    }
    let results = join_all(runs).await;
    for (call, result) in calls.into_iter().zip(results) {
        let outcome = match result {
            Ok(mut run) => {
                renumber(&mut run.output, spent.evidence);
                spent.add(&run);
                report_run(events, &call, &run);
                if call.tool != LOOKUP {
                    report_facts(told, &run);
                }
                Ok(run.output)
            }
            Err(failure) => {
                report_failure(events, &call, &failure);
                if failure.is_fatal() {
                    return Err(failure.into());
                }
                Err(NoOutput { for_people: failure.to_string(), for_model: failure.for_model() })
            }
        };
        gathered.push(Gathered { call, outcome });
    }
    Ok(())
}

fn ground(
    assistant: &Assistant,
    told: Told<'_>,
    draft: Draft,
    gathered: Vec<Gathered>,
    spent: Spent,
    begun: AuditRef,
) -> Answer {
    let span = tracing::info_span!("ground");
    span.in_scope(|| assemble(assistant.ids.next(), told.question, told.zone, draft, gathered, spent, begun))
}

fn check_form(question: &Question) -> Result<(), AskError> {
    if question.text.trim().is_empty() {
        return Err(AskError::Empty);
    }
    if question.text.len() > MAX_QUESTION_BYTES {
        return Err(AskError::TooLong { bytes: question.text.len() });
    }
    Ok(())
}

/// Comes before the begin record, so that a flood of questions cannot fill the audit log: what is turned away here has read nothing
/// and leaves nothing but a line in the service's own log.
pub(crate) fn within_rate(assistant: &Assistant, principal: &Principal) -> Result<(), TooManyQuestions> {
    let per_minute = assistant.policies.now().limits(principal).questions_per_minute;
    let taken = assistant.quota.question(principal, per_minute);
    if let Err(full) = &taken {
        tracing::info!(%principal, limit = full.limit, "a question was turned away: too many a minute");
    }
    taken
}

fn may_ask(assistant: &Assistant, question: &Question) -> Result<(), AskError> {
    let decision = assistant.policies.now().check(&question.principal, Action::AskQuestion, "");
    if decision.allowed() { Ok(()) } else { Err(AskError::MayNotAsk { reason: decision.reasons().join("; ") }) }
}

impl Question {
    /// The question as a planner sees it.
    #[must_use]
    pub fn brief(&self) -> Ask {
        Ask {
            text: self.text.clone(),
            before: self.before.clone(),
            as_of: self.as_of,
            time_zone: zone_name(&self.time_zone),
            principal: self.principal.clone(),
        }
    }
}

/// The zone's IANA name; a fixed offset has none and is printed as it is.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None => zone.to_fixed_offset().map_or_else(|_| "UTC".to_owned(), |offset| offset.to_string()),
    }
}

async fn begin(assistant: &Assistant, question: &Question) -> Result<AuditRef, AuditUnavailable> {
    let record = Begin {
        question_id: question.id.clone(),
        at: assistant.clock.now(),
        principal: question.principal.clone(),
        entrance: question.entrance.to_owned(),
        question: question.text.clone(),
        detail: [
            ("conversation_id".to_owned(), question.conversation_id.to_string()),
            ("as_of".to_owned(), question.as_of.to_string()),
            ("time_zone".to_owned(), zone_name(&question.time_zone)),
        ]
        .into(),
    };
    let begun = assistant.audit.begin(record).instrument(tracing::info_span!("audit_begin")).await?;
    Ok(shown_audit(&assistant.policies.now(), &question.principal, begun))
}

/// How the question ended, for its complete record.
fn ending(assistant: &Assistant, answered: Result<&Answer, &AskError>, spent: Spent) -> Ending {
    Ending {
        outcome: match answered {
            Ok(answer) => answer.outcome.as_str().to_owned(),
            Err(AskError::MayNotAsk { .. }) => "refused".to_owned(),
            Err(_) => "error".to_owned(),
        },
        answer_digest: answered.ok().map(digest_answer),
        verification: answered.map(|answer| answer.verification).unwrap_or_default(),
        spent,
        planner: assistant.planner.name(),
        model: None,
        error: answered.err().map(ToString::to_string),
    }
}

fn report_run(events: &dyn Events, call: &ToolCall, run: &ToolRun) {
    events.emit(Event::ToolResult {
        tool: call.tool.clone(),
        evidence: run.output.evidence.iter().map(|e| e.id.to_string()).collect(),
        queries: run.queries,
        rows_read: run.read.rows,
        bytes_read: run.read.bytes,
        wall_ms: run.read.wall_ms,
        error: None,
    });
}

fn report_failure(events: &dyn Events, call: &ToolCall, failure: &ToolFailure) {
    events.emit(Event::ToolResult {
        tool: call.tool.clone(),
        evidence: Vec::new(),
        queries: 0,
        rows_read: 0,
        bytes_read: 0,
        wall_ms: 0.0,
        error: Some(failure.to_string()),
    });
}

/// Facts are sent as soon as they are verified, so that the first one comes early.
fn report_facts(told: Told<'_>, run: &ToolRun) {
    let Told { question, zone, events } = told;
    let mut grounder = Grounder::new(&run.output.evidence, &question.text, zone.clone());
    let headline = run.output.headline.as_ref().filter(|headline| !run.output.claims.contains(headline));
    let drafts = headline.into_iter().chain(&run.output.claims);
    for claim in drafts.filter_map(|draft| grounder.claim(draft)) {
        events.emit(Event::Claim(claim));
    }
}
