//! One query of a tool, and the record that stands before its rows are handed on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sightline_guard::{EngineError, ExecutableQuery, Refusal, check_result};
use sightline_model::audit::{Call, DecisionRecord};
use sightline_model::{Dataset, Principal, QueryId, Read, ResultSet};
use sightline_policies::{Action, Decision, JobRows, Limits, Request};
use sightline_query::{Query, ValidQuery};
use sightline_tools::Fetched;
use tracing::Instrument as _;

use crate::admission::{Admitted, Terms, admit, explain};
use crate::assistant::Assistant;
use crate::digest::digest_rows;
use crate::ports::ToolCall;
use crate::quota::Reservation;
use crate::run_tool::Caller;
use crate::shown::shown_read;
use crate::tool_failure::ToolFailure;

/// On whose behalf a query runs, and for which call.
#[derive(Clone, Copy)]
pub(crate) struct Behalf<'a> {
    pub(crate) assistant: &'a Assistant,
    pub(crate) caller: Caller<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) tool: &'static str,
    pub(crate) call: &'a ToolCall,
    /// The job that the call resolved to, for who may read own jobs only.
    pub(crate) job: Option<&'a Arc<JobRows>>,
}

/// A query that ran.
pub(crate) struct Ran {
    /// What the tool is given: reads as this asker is shown them.
    pub(crate) fetched: Fetched,
    /// What was read to the row and the byte.
    pub(crate) read_exactly: Read,
}

/// One query: check, decide, admit, run, record. The rows are handed on only once the record is durable.
pub(crate) async fn fetch(behalf: Behalf<'_>, round: usize, query: &Query) -> Result<Ran, ToolFailure> {
    let Behalf { assistant, caller, limits, tool, call, job } = behalf;
    let checked = tracing::info_span!("catalogue_check", tool).in_scope(|| assistant.catalogue.check(query));
    let valid = match checked {
        Ok(valid) => valid,
        Err(error) => return Err(attempted(assistant, caller, call, error.into()).await),
    };
    let decision = decide(assistant, caller.principal, tool, valid.dataset(), job);
    let query_id = QueryId::new(assistant.ids.next());
    let terms =
        Terms { principal: caller.principal, limits, decision: &decision, as_of: caller.as_of, query_id: &query_id };
    let Admitted { executable, mut reservation, place } = match admit(assistant, terms, &valid).await {
        Ok(admitted) => admitted,
        Err(failure) => {
            assistant.audit.call(record(assistant, caller, call, &decision, None, Some(&failure))).await?;
            return Err(failure);
        }
    };
    reservation.begin();
    let ran = assistant
        .engine
        .run(&executable)
        .instrument(tracing::info_span!("engine_run", tool, query_id = %executable.query_id()))
        .await;
    settle(reservation, &ran);
    if let Ok(result) = &ran {
        caller.events.read(result.read);
    }
    let read = ran.as_ref().map(|result| result.read).unwrap_or_default();
    let outcome = match ran {
        Ok(result) => check_result(&valid, &result, limits).map(|()| result).map_err(ToolFailure::from),
        Err(error) => Err(explain(assistant, terms, &valid, &executable, error).await),
    };
    drop(place);
    let sent = Sent { executable: &executable, read, result: outcome.as_ref().ok() };
    let record = record(assistant, caller, call, &decision, Some(sent), outcome.as_ref().err());
    assistant.audit.call(record).instrument(tracing::info_span!("audit_call", tool)).await?;
    let mut result = outcome?;
    name_columns(&mut result, &valid);
    result.read = shown_read(caller.principal, read);
    let (sql, params) = (executable.sql().to_owned(), sent_params(&executable));
    Ok(Ran { fetched: Fetched { round, query: valid, result, sql, params }, read_exactly: read })
}

/// Charges what was read. An engine that broke off does not say how much that was, so all that was set aside is charged.
pub(crate) fn settle(reservation: Reservation, ran: &Result<ResultSet, EngineError>) {
    let spent = match ran {
        Ok(result) => result.read.bytes,
        Err(error) if error.may_have_read() => reservation.amount(),
        Err(_) => 0,
    };
    reservation.settle(spent);
}

/// The datasets this principal may read through this tool.
pub(crate) fn readable(assistant: &Assistant, principal: &Principal, tool: &str) -> BTreeSet<Dataset> {
    let may = |dataset: &Dataset| assistant.policies.now().check(principal, Action::Read(*dataset), tool).allowed();
    Dataset::ALL.into_iter().filter(may).collect()
}

pub(crate) fn decide(
    assistant: &Assistant,
    principal: &Principal,
    tool: &str,
    dataset: Dataset,
    job: Option<&Arc<JobRows>>,
) -> Decision {
    assistant.policies.now().decide(&Request { principal, tool, dataset, known_tenants: &assistant.tenants, job })
}

/// The engine names its columns `a0`, `a1`, …; a tool knows them by what it asked for.
fn name_columns(result: &mut ResultSet, valid: &ValidQuery) {
    result.columns = valid.columns();
}

/// What was decided: by the rules, unless something else refused it.
pub(crate) fn decision_record(decision: &Decision, refusal: Option<&ToolFailure>) -> DecisionRecord {
    DecisionRecord {
        allowed: decision.allowed() && refusal.is_none(),
        rules: decision.rules().to_vec(),
        reasons: match refusal {
            Some(refusal) => vec![refusal.to_string()],
            None => decision.reasons().to_vec(),
        },
    }
}

pub(crate) fn sent_params(executable: &ExecutableQuery) -> BTreeMap<String, String> {
    executable.params().iter().map(|p| (p.name().to_owned(), p.text().to_owned())).collect()
}

/// A query that was sent.
struct Sent<'a> {
    executable: &'a ExecutableQuery,
    read: Read,
    /// What is handed on of it; none when it failed or is withheld.
    result: Option<&'a ResultSet>,
}

fn record(
    assistant: &Assistant,
    caller: Caller<'_>,
    call: &ToolCall,
    decision: &Decision,
    ran: Option<Sent<'_>>,
    failure: Option<&ToolFailure>,
) -> Call {
    let executable = ran.as_ref().map(|ran| ran.executable);
    let result = ran.as_ref().and_then(|ran| ran.result);
    let read = ran.as_ref().map(|ran| ran.read).unwrap_or_default();
    // A result of too many series was read and is refused all the same.
    let refusal = failure.filter(|failure| executable.is_none() || matches!(failure, ToolFailure::Refused(_)));
    Call {
        question_id: caller.question_id.clone(),
        at: assistant.clock.now(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        decision: decision_record(decision, refusal),
        sql: executable.map(|e| e.sql().to_owned()),
        params: executable.map(sent_params).unwrap_or_default(),
        query_id: executable.map(|e| e.query_id().clone()),
        tables: executable.map(|e| e.tables().to_vec()).unwrap_or_default(),
        rows_read: read.rows,
        bytes_read: read.bytes,
        wall_ms: read.wall_ms,
        result_rows: result.map_or(0, |r| r.rows.len() as u64),
        result_digest: result.map(digest_rows),
        error: failure.map(ToString::to_string),
    }
}

/// Decides and records a call that needs no query: it reads nobody's rows, and stands in the log all the same.
///
/// # Errors
/// When policy lets the asker call no tools, or the record could not be kept.
pub(crate) async fn without_query(
    assistant: &Assistant,
    caller: Caller<'_>,
    call: &ToolCall,
    tool: &str,
) -> Result<(), ToolFailure> {
    let decision = assistant.policies.now().check(caller.principal, Action::CallTool, tool);
    let denied =
        (!decision.allowed()).then(|| ToolFailure::Refused(Refusal::Denied { reasons: decision.reasons().to_vec() }));
    assistant.audit.call(record(assistant, caller, call, &decision, None, denied.as_ref())).await?;
    denied.map_or(Ok(()), Err)
}

/// Records a call that failed before it came to a query, and gives its failure back: every attempt stands in the log.
pub(crate) async fn attempted(
    assistant: &Assistant,
    caller: Caller<'_>,
    call: &ToolCall,
    failure: ToolFailure,
) -> ToolFailure {
    let record = Call {
        question_id: caller.question_id.clone(),
        at: assistant.clock.now(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        decision: DecisionRecord { allowed: false, rules: Vec::new(), reasons: vec![failure.to_string()] },
        sql: None,
        params: BTreeMap::new(),
        query_id: None,
        tables: Vec::new(),
        rows_read: 0,
        bytes_read: 0,
        wall_ms: 0.0,
        result_rows: 0,
        result_digest: None,
        error: Some(failure.to_string()),
    };
    match assistant.audit.call(record).instrument(tracing::info_span!("audit_call", tool = %call.tool)).await {
        Ok(()) => failure,
        Err(unavailable) => unavailable.into(),
    }
}
