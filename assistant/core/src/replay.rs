//! Recorded queries, run once more under the rights of the one who reviews them: are the numbers still the same?
//!
//! A replay is a question of the reviewer's own: it has its begin and complete, and each query that runs is a call of it. Nothing of a
//! record is sent as it stands there; the guard reads it back and writes it anew.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use sightline_guard::{Admission, BytesLeft, Estimate, ExecutableQuery, RecordedQuery, Refusal};
use sightline_model::audit::{AuditUnavailable, Begin, Call, DecisionRecord};
use sightline_model::{Principal, QueryId, QuestionId, Read, ResultSet};
use sightline_policies::Decision;
use tracing::Instrument as _;

use crate::admission::{Terms, bytes_left, estimate, place, reserve};
use crate::answer_question::within_rate;
use crate::assemble::Spent;
use crate::assistant::Assistant;
use crate::digest::digest_rows;
use crate::events::Events;
use crate::fetch::{decide, decision_record, sent_params, settle};
use crate::quota::{Place, Reservation, TooManyQuestions};
use crate::records::{Ending, NO_PLANNER, complete};
use crate::tool_failure::ToolFailure;

/// What is to be replayed, and for whom.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// The replay's own id, made by the entrance, which needs it for a cancel.
    pub id: QuestionId,
    /// The question whose calls are run again.
    pub of: QuestionId,
    /// Its calls, as they were recorded.
    pub calls: Vec<Call>,
    /// Who reviews; from a credential or a policy file.
    pub reviewer: Principal,
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// The replay's own id in the audit log.
    pub replay_id: QuestionId,
    /// The question whose calls were run again.
    pub question_id: QuestionId,
    /// When.
    pub at: Timestamp,
    /// How many calls gave the same rows.
    pub same: u64,
    /// Each call, in the order it was recorded.
    pub calls: Vec<ReplayedCall>,
}

/// One recorded call, and what became of it today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayedCall {
    /// The tool.
    pub tool: String,
    /// The query as it was recorded: evidence names it too.
    pub query_id: Option<QueryId>,
    /// Whether the rows are the same.
    #[serde(flatten)]
    pub verdict: ReplayVerdict,
    /// The digest of the rows then, hex.
    pub recorded_digest: Option<String>,
    /// The digest of the rows today, hex.
    pub digest: Option<String>,
}

/// Whether a recorded query gives the same rows today, or why that cannot be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum ReplayVerdict {
    /// The same rows, to the byte.
    Same,
    /// Other rows: something was added, changed or removed since.
    Different {
        /// How many there were.
        recorded_rows: u64,
        /// How many there are.
        rows: u64,
    },
    /// There are none of the rows any more.
    Gone {
        /// What is missing.
        reason: String,
    },
    /// The reviewer may not run it.
    NotAllowed {
        /// Why.
        reason: String,
    },
    /// There is nothing to compare with: it was refused, or gave no rows to record.
    NotRun {
        /// What is recorded instead.
        reason: String,
    },
    /// It failed today.
    Failed {
        /// How.
        reason: String,
    },
}

/// Why nothing was replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The reviewer asked too often; a replay counts as a question.
    #[error(transparent)]
    TooManyQuestions(#[from] TooManyQuestions),
    /// A record could not be written, so nothing is handed out.
    #[error(transparent)]
    Audit(#[from] AuditUnavailable),
}

/// Runs the recorded calls again, one after the other, and compares.
///
/// # Errors
/// Too many questions, or a record that could not be written. What one call meets stands with that call.
pub async fn replay(
    assistant: &Assistant,
    request: &ReplayRequest,
    events: &dyn Events,
) -> Result<Replay, ReplayError> {
    let span = tracing::info_span!("replay", question_id = %request.id, of = %request.of);
    async {
        within_rate(assistant, &request.reviewer)?;
        begin(assistant, request).await?;
        let started = assistant.clock.monotonic_ms();
        let mut spent = Spent::default();
        let replayed = replay_calls(assistant, request, events, &mut spent).await;
        events.closing();
        spent.wall_ms = assistant.clock.monotonic_ms() - started;
        let outcome = if replayed.is_ok() { "answered" } else { "error" }.to_owned();
        let error = replayed.as_ref().err().map(ToString::to_string);
        complete(assistant, &request.id, Ending { outcome, spent, planner: NO_PLANNER, error, ..Ending::default() })
            .await;
        let calls = replayed?;
        let same = calls.iter().filter(|call| call.verdict == ReplayVerdict::Same).count() as u64;
        let (replay_id, question_id) = (request.id.clone(), request.of.clone());
        Ok(Replay { replay_id, question_id, at: assistant.clock.now(), same, calls })
    }
    .instrument(span)
    .await
}

async fn begin(assistant: &Assistant, request: &ReplayRequest) -> Result<(), AuditUnavailable> {
    let record = Begin {
        question_id: request.id.clone(),
        at: assistant.clock.now(),
        principal: request.reviewer.clone(),
        entrance: "audit".to_owned(),
        question: format!("replay of {}", request.of),
        detail: [("replay_of".to_owned(), request.of.to_string())].into(),
    };
    assistant.audit.begin(record).await.map(drop)
}

async fn replay_calls(
    assistant: &Assistant,
    request: &ReplayRequest,
    events: &dyn Events,
    spent: &mut Spent,
) -> Result<Vec<ReplayedCall>, AuditUnavailable> {
    let mut replayed = Vec::new();
    for call in &request.calls {
        let (verdict, digest) = match (&call.sql, &call.result_digest) {
            (None, _) if call.decision.allowed => {
                (ReplayVerdict::NotRun { reason: "it read no rows then".to_owned() }, None)
            }
            (None, _) => {
                (ReplayVerdict::NotRun { reason: format!("refused then: {}", call.decision.reasons.join("; ")) }, None)
            }
            (Some(_), None) => {
                let what = call.error.as_deref().unwrap_or("no rows were recorded");
                (ReplayVerdict::NotRun { reason: format!("it failed then: {what}") }, None)
            }
            // Every text of ours names a parameter: the tenants.
            (Some(_), Some(_)) if call.params.is_empty() => {
                (ReplayVerdict::Gone { reason: "its parameters were erased on request".to_owned() }, None)
            }
            (Some(sql), Some(digest)) => {
                let (verdict, digest, read) = replay_call(assistant, request, call, sql, digest).await?;
                if let Some(read) = read {
                    events.read(read);
                    spent.queries += 1;
                    spent.exactly.rows = spent.exactly.rows.saturating_add(read.rows);
                    spent.exactly.bytes = spent.exactly.bytes.saturating_add(read.bytes);
                }
                (verdict, digest)
            }
        };
        replayed.push(ReplayedCall {
            tool: call.tool.clone(),
            query_id: call.query_id.clone(),
            verdict,
            recorded_digest: call.result_digest.clone(),
            digest,
        });
    }
    Ok(replayed)
}

/// One call: the verdict, the digest of today's rows, and what was read for it. Its own record is durable before anything is said of
/// today's rows, and stands there also where nothing ran.
async fn replay_call(
    assistant: &Assistant,
    request: &ReplayRequest,
    call: &Call,
    sql: &str,
    digest: &str,
) -> Result<(ReplayVerdict, Option<String>, Option<Read>), AuditUnavailable> {
    let recorded = match assistant.guard.read_recorded(sql, &call.params) {
        Ok(recorded) => recorded,
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            let reason = format!("the recorded text is none that may run here: {}", faults.join("; "));
            return not_allowed(assistant, request, call, reason).await;
        }
    };
    let Some(tool) = assistant.tools.iter().map(|tool| tool.name()).find(|name| *name == call.tool) else {
        let reason = format!("there is no tool `{}` any more", call.tool);
        return not_allowed(assistant, request, call, reason).await;
    };
    let limits = assistant.policies.now().limits(&request.reviewer);
    let decision = decide(assistant, &request.reviewer, tool, recorded.dataset(), None);
    let query_id = QueryId::new(assistant.ids.next());
    let terms = Terms {
        principal: &request.reviewer,
        limits: &limits,
        decision: &decision,
        as_of: assistant.clock.now(),
        query_id: &query_id,
    };
    let ran = run(assistant, terms, &recorded).await;
    let record = record(assistant, request, call, &decision, &ran);
    assistant.audit.call(record).await?;
    Ok(match ran {
        Ran::Refused(ToolFailure::Refused(refusal)) => {
            (ReplayVerdict::NotAllowed { reason: refusal.to_string() }, None, None)
        }
        Ran::Refused(failure) | Ran::Failed(_, failure) => {
            (ReplayVerdict::Failed { reason: failure.to_string() }, None, None)
        }
        Ran::Rows(_, result) => {
            let today = digest_rows(&result);
            (compare(call, digest, &result, &today), Some(today), Some(result.read))
        }
    })
}

/// Records an attempt that came to no query, and says why.
async fn not_allowed(
    assistant: &Assistant,
    request: &ReplayRequest,
    call: &Call,
    reason: String,
) -> Result<(ReplayVerdict, Option<String>, Option<Read>), AuditUnavailable> {
    let refused = Call {
        question_id: request.id.clone(),
        at: assistant.clock.now(),
        tool: call.tool.clone(),
        arguments: arguments(request, call),
        decision: DecisionRecord { allowed: false, rules: Vec::new(), reasons: vec![reason.clone()] },
        sql: None,
        params: BTreeMap::new(),
        query_id: None,
        tables: Vec::new(),
        rows_read: 0,
        bytes_read: 0,
        wall_ms: 0.0,
        result_rows: 0,
        result_digest: None,
        error: Some(reason.clone()),
    };
    assistant.audit.call(refused).await?;
    Ok((ReplayVerdict::NotAllowed { reason }, None, None))
}

/// Which record was tried again.
fn arguments(request: &ReplayRequest, call: &Call) -> Value {
    json!({ "replay_of": request.of, "query_id": call.query_id })
}

fn compare(call: &Call, recorded: &str, result: &ResultSet, today: &str) -> ReplayVerdict {
    let rows = result.rows.len() as u64;
    if recorded == today {
        return ReplayVerdict::Same;
    }
    if rows == 0 && call.result_rows > 0 {
        let reason = format!("none of the {} rows is there any more; the data may have expired", call.result_rows);
        return ReplayVerdict::Gone { reason };
    }
    ReplayVerdict::Different { recorded_rows: call.result_rows, rows }
}

/// How a query fared today.
enum Ran {
    /// It was not sent.
    Refused(ToolFailure),
    /// It was sent and failed.
    Failed(Box<ExecutableQuery>, ToolFailure),
    /// It gave rows.
    Rows(Box<ExecutableQuery>, ResultSet),
}

/// Admits and runs it, under every bound that a question of the reviewer would have.
async fn run(assistant: &Assistant, terms: Terms<'_>, recorded: &RecordedQuery) -> Ran {
    let admitted = admit(assistant, terms, recorded).await;
    let (executable, mut reservation, place) = match admitted {
        Ok(admitted) => admitted,
        Err(failure) => return Ran::Refused(failure),
    };
    reservation.begin();
    let span = tracing::info_span!("engine_run", query_id = %executable.query_id());
    let ran = assistant.engine.run(&executable).instrument(span).await;
    settle(reservation, &ran);
    drop(place);
    let executable = Box::new(executable);
    match ran {
        Ok(result) => Ran::Rows(executable, result),
        Err(error) => Ran::Failed(executable, error.into()),
    }
}

async fn admit(
    assistant: &Assistant,
    terms: Terms<'_>,
    recorded: &RecordedQuery,
) -> Result<(ExecutableQuery, Reservation, Place), ToolFailure> {
    // What can be told without the engine is told at once.
    by_guard(assistant, terms, recorded, None, None)?;
    let place = place(assistant, terms, Duration::from_secs(terms.limits.max_seconds)).await?;
    let left = bytes_left(assistant, terms).await?;
    let executable = by_guard(assistant, terms, recorded, Some(left), None)?;
    let estimate = estimate(assistant, terms, &executable).await?;
    let executable = by_guard(assistant, terms, recorded, Some(left), Some(estimate))?;
    let reservation = reserve(assistant, terms, left, estimate.bytes).await?;
    Ok((executable, reservation, place))
}

fn by_guard(
    assistant: &Assistant,
    terms: Terms<'_>,
    recorded: &RecordedQuery,
    bytes_left: Option<BytesLeft>,
    estimate: Option<Estimate>,
) -> Result<ExecutableQuery, Refusal> {
    let Terms { principal: _, limits, decision, as_of: now, query_id } = terms;
    let admission = Admission { decision, limits, now, query_id: query_id.clone(), bytes_left, estimate };
    tracing::info_span!("guard_readmit", %query_id).in_scope(|| assistant.guard.readmit(recorded, admission))
}

fn record(assistant: &Assistant, request: &ReplayRequest, call: &Call, decision: &Decision, ran: &Ran) -> Call {
    let (executable, result, failure) = match ran {
        Ran::Refused(failure) => (None, None, Some(failure)),
        Ran::Failed(executable, failure) => (Some(executable), None, Some(failure)),
        Ran::Rows(executable, result) => (Some(executable), Some(result), None),
    };
    let read: Read = result.map(|result| result.read).unwrap_or_default();
    let refusal = failure.filter(|_| executable.is_none());
    let params: BTreeMap<String, String> = executable.map(|executable| sent_params(executable)).unwrap_or_default();
    Call {
        question_id: request.id.clone(),
        at: assistant.clock.now(),
        tool: call.tool.clone(),
        arguments: arguments(request, call),
        decision: decision_record(decision, refusal),
        sql: executable.map(|executable| executable.sql().to_owned()),
        params,
        query_id: executable.map(|executable| executable.query_id().clone()),
        tables: executable.map(|executable| executable.tables().to_vec()).unwrap_or_default(),
        rows_read: read.rows,
        bytes_read: read.bytes,
        wall_ms: read.wall_ms,
        result_rows: result.map_or(0, |result| result.rows.len() as u64),
        result_digest: result.map(digest_rows),
        error: failure.map(ToString::to_string),
    }
}
