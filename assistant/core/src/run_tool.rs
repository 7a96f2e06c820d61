//! One tool call, from untrusted JSON to evidence. The only way to data.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use sightline_guard::{Admission, EngineError, ExecutableQuery, Refusal};
use sightline_model::audit::{AuditUnavailable, Call, DecisionRecord};
use sightline_model::{BoxFuture, Dataset, Principal, QueryId, QuestionId, Read, ResultSet};
use sightline_policies::{Action, Decision, Limits, Request};
use sightline_query::{Query, QueryError, ValidQuery};
use sightline_tools::{AnyTool, Fetched, MAX_ROUNDS, Step, ToolContext, ToolError, ToolOutput};
use tracing::Instrument as _;

use crate::assistant::Assistant;
use crate::digest::digest_rows;
use crate::ports::ToolCall;

/// On whose behalf a call runs. Comes from the host; nothing of it from a planner.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The question or outside call it belongs to; its begin record is durable.
    pub question_id: &'a QuestionId,
    /// Who asks.
    pub principal: &'a Principal,
    /// The instant taken as now.
    pub as_of: Timestamp,
}

/// A tool's output with what it cost.
#[derive(Clone, Debug)]
pub struct ToolRun {
    /// Evidence and claims.
    pub output: ToolOutput,
    /// Queries run.
    pub queries: u64,
    /// What they read together; the wall time is that of the whole call.
    pub read: Read,
}

/// Why a call brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// No tool of that name.
    #[error("there is no tool `{name}`; there are {}", available.join(", "))]
    UnknownTool {
        /// The name.
        name: String,
        /// The names that exist.
        available: Vec<String>,
    },
    /// The tool cannot go on.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A query makes no sense.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Policy or a limit refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine gave no result.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The record could not be kept, so nothing is handed out.
    #[error(transparent)]
    Audit(#[from] AuditUnavailable),
    /// A tool wanted more rounds than there are.
    #[error("the tool `{tool}` asked for more than {MAX_ROUNDS} rounds; report this with the question id")]
    TooManyRounds {
        /// The tool.
        tool: &'static str,
    },
}

impl ToolFailure {
    /// Whether the host is at fault, so that asking differently cannot help and the question ends.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Audit(_) | Self::TooManyRounds { .. } | Self::Tool(ToolError::Result { .. }) => true,
            Self::Engine(error) => match error {
                EngineError::Unreachable
                | EngineError::Busy
                | EngineError::DiskFull
                | EngineError::NotMapped
                | EngineError::NotGranted
                | EngineError::FullScan
                | EngineError::Rejected { .. }
                | EngineError::Malformed
                | EngineError::Cancelled => true,
                EngineError::TimedOut { .. }
                | EngineError::TooManyRows { .. }
                | EngineError::TooManyBytes { .. }
                | EngineError::OutOfMemory { .. }
                | EngineError::ResultTooLarge { .. } => false,
            },
            Self::UnknownTool { .. }
            | Self::Tool(ToolError::Arguments { .. } | ToolError::Cut { .. })
            | Self::Query(_)
            | Self::Refused(_) => false,
        }
    }
}

/// Runs one call: plan, check, admit, run, record, interpret.
///
/// # Errors
/// What stopped it; see [`ToolFailure::is_fatal`] for whether asking differently can help.
pub async fn run_tool(assistant: &Assistant, caller: Caller<'_>, call: &ToolCall) -> Result<ToolRun, ToolFailure> {
    let started = assistant.clock.monotonic_ms();
    let tool = find(assistant, &call.tool)?;
    let limits = assistant.policies.limits(caller.principal);
    let may_read = readable(assistant, caller.principal, tool.name());
    let context = ToolContext {
        catalogue: &assistant.catalogue,
        as_of: caller.as_of,
        may_read: &may_read,
        max_rows: u32::try_from(limits.max_result_rows).unwrap_or(u32::MAX),
    };
    let mut fetched: Vec<Fetched> = Vec::new();
    for round in 0..=MAX_ROUNDS {
        let step = tracing::info_span!("tool_plan", tool = tool.name(), round)
            .in_scope(|| tool.plan(&call.arguments, &context, &fetched))?;
        let Step::Fetch(queries) = step else { break };
        if round == MAX_ROUNDS {
            return Err(ToolFailure::TooManyRounds { tool: tool.name() });
        }
        let at_once = usize::try_from(limits.max_concurrent).unwrap_or(1).max(1);
        // Boxed: the compiler cannot see that a stream of borrowing closures may move between threads.
        let mut runs: Vec<BoxFuture<'_, Result<Fetched, ToolFailure>>> = Vec::new();
        for query in &queries {
            runs.push(Box::pin(fetch(assistant, caller, &limits, tool.name(), call, round, query)));
        }
        fetched.extend(futures::stream::iter(runs).buffered(at_once).try_collect::<Vec<_>>().await?);
    }
    let output = tracing::info_span!("tool_interpret", tool = tool.name())
        .in_scope(|| tool.interpret(&call.arguments, &context, &fetched))?;
    let read = fetched.iter().fold(Read::default(), |sum, f| Read {
        rows: sum.rows + f.result.read.rows,
        bytes: sum.bytes + f.result.read.bytes,
        wall_ms: 0.0,
    });
    let wall_ms = assistant.clock.monotonic_ms() - started;
    Ok(ToolRun { output, queries: fetched.len() as u64, read: Read { wall_ms, ..read } })
}

/// One query: check, decide, admit, run, record. The rows are handed on only once the record is durable.
async fn fetch(
    assistant: &Assistant,
    caller: Caller<'_>,
    limits: &Limits,
    tool: &'static str,
    call: &ToolCall,
    round: usize,
    query: &Query,
) -> Result<Fetched, ToolFailure> {
    let valid = tracing::info_span!("catalogue_check", tool).in_scope(|| assistant.catalogue.check(query))?;
    let decision = decide(assistant, caller.principal, tool, valid.dataset());
    let query_id = QueryId::new(assistant.ids.next());
    let admitted = tracing::info_span!("guard_admit", tool, %query_id)
        .in_scope(|| admit(assistant, &valid, &decision, limits, caller.as_of, query_id));
    let executable = match admitted {
        Ok(executable) => executable,
        Err(refusal) => {
            let record = record(assistant, caller, call, &decision, None, Err(&refusal.to_string()));
            assistant.audit.call(record).await?;
            return Err(refusal.into());
        }
    };
    let ran = assistant
        .engine
        .run(&executable)
        .instrument(tracing::info_span!("engine_run", tool, query_id = %executable.query_id()))
        .await;
    let outcome = ran.as_ref().map_err(ToString::to_string);
    let record = record(
        assistant,
        caller,
        call,
        &decision,
        Some(&executable),
        outcome.as_ref().copied().map_err(String::as_str),
    );
    assistant.audit.call(record).instrument(tracing::info_span!("audit_call", tool)).await?;
    let mut result = ran?;
    name_columns(&mut result, &valid);
    Ok(Fetched { round, query: valid, result, sql: executable.sql().to_owned(), params: sent_params(&executable) })
}

fn find<'a>(assistant: &'a Assistant, name: &str) -> Result<&'a dyn AnyTool, ToolFailure> {
    assistant.tools.iter().map(Box::as_ref).find(|tool| tool.name() == name).ok_or_else(|| {
        let available = assistant.tools.iter().map(|tool| format!("`{}`", tool.name())).collect();
        ToolFailure::UnknownTool { name: name.chars().take(64).collect(), available }
    })
}

/// The datasets this principal may read through this tool.
fn readable(assistant: &Assistant, principal: &Principal, tool: &str) -> BTreeSet<Dataset> {
    let may = |dataset: &Dataset| assistant.policies.check(principal, Action::Read(*dataset), tool).allowed();
    Dataset::ALL.into_iter().filter(may).collect()
}

fn decide(assistant: &Assistant, principal: &Principal, tool: &str, dataset: Dataset) -> Decision {
    assistant.policies.decide(&Request { principal, tool, dataset, known_tenants: &assistant.tenants })
}

fn admit(
    assistant: &Assistant,
    valid: &ValidQuery,
    decision: &Decision,
    limits: &Limits,
    now: Timestamp,
    query_id: QueryId,
) -> Result<ExecutableQuery, Refusal> {
    assistant.guard.admit(valid, Admission { decision, limits, now, query_id, bytes_left: None, estimate: None })
}

/// The engine names its columns `a0`, `a1`, …; a tool knows them by what it asked for.
fn name_columns(result: &mut ResultSet, valid: &ValidQuery) {
    result.columns = valid.columns();
}

fn sent_params(executable: &ExecutableQuery) -> BTreeMap<String, String> {
    executable.params().iter().map(|p| (p.name().to_owned(), p.text().to_owned())).collect()
}

fn record(
    assistant: &Assistant,
    caller: Caller<'_>,
    call: &ToolCall,
    decision: &Decision,
    executable: Option<&ExecutableQuery>,
    outcome: Result<&ResultSet, &str>,
) -> Call {
    let result = outcome.ok();
    let read = result.map(|r| r.read).unwrap_or_default();
    Call {
        question_id: caller.question_id.clone(),
        at: assistant.clock.now(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        decision: DecisionRecord {
            allowed: decision.allowed() && executable.is_some(),
            rules: decision.rules().to_vec(),
            reasons: match outcome {
                Err(reason) if executable.is_none() => vec![reason.to_owned()],
                Ok(_) | Err(_) => decision.reasons().to_vec(),
            },
        },
        sql: executable.map(|e| e.sql().to_owned()),
        params: executable.map(sent_params).unwrap_or_default(),
        query_id: executable.map(|e| e.query_id().clone()),
        tables: executable.map(|e| e.tables().to_vec()).unwrap_or_default(),
        rows_read: read.rows,
        bytes_read: read.bytes,
        wall_ms: read.wall_ms,
        result_rows: result.map_or(0, |r| r.rows.len() as u64),
        result_digest: result.map(digest_rows),
        error: outcome.err().map(str::to_owned),
    }
}
