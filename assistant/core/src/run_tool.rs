//! One tool call, from untrusted JSON to evidence. The only way to data.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use sightline_guard::{EngineError, ExecutableQuery, Refusal, check_result};
use sightline_model::audit::{AuditUnavailable, Call, DecisionRecord};
use sightline_model::{BoxFuture, Dataset, Principal, QueryId, QuestionId, Read, ResultSet};
use sightline_policies::{Action, Decision, Limits, Request};
use sightline_query::{Query, QueryError, ValidQuery};
use sightline_tools::{AnyTool, Fetched, MAX_ROUNDS, Step, ToolContext, ToolError, ToolOutput};
use tracing::Instrument as _;

use crate::admission::{Admitted, Terms, admit, explain};
use crate::assistant::Assistant;
use crate::digest::digest_rows;
use crate::ports::ToolCall;
use crate::quota::{QuotaError, Reservation};

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
    /// The day's budgets cannot be looked at.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// A tool wanted more rounds than there are.
    #[error("the tool `{tool}` asked for more than {MAX_ROUNDS} rounds; report this with the question id")]
    TooManyRounds {
        /// The tool.
        tool: &'static str,
    },
}

impl ToolFailure {
    /// The same for a model, as short as can be acted on.
    pub fn for_model(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.for_model(),
            Self::Engine(error) => error.for_model().to_owned(),
            Self::UnknownTool { .. } | Self::Tool(_) | Self::Query(_) => self.to_string(),
            Self::Audit(_) | Self::Quota(_) | Self::TooManyRounds { .. } => "internal fault; do not retry".to_owned(),
        }
    }

    /// Whether the host is at fault, so that asking differently cannot help and the question ends.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Audit(_) | Self::Quota(_) | Self::TooManyRounds { .. } | Self::Tool(ToolError::Result { .. }) => true,
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
    let limits = assistant.policies.now().limits(caller.principal);
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
    let read = ran.as_ref().map(|result| result.read).unwrap_or_default();
    let outcome = match ran {
        Ok(result) => check_result(&valid, &result, limits).map(|()| result).map_err(ToolFailure::from),
        Err(error) => Err(explain(assistant, terms, &valid, &executable, error).await),
    };
    drop(place);
    let ran = Ran { executable: &executable, read, result: outcome.as_ref().ok() };
    let record = record(assistant, caller, call, &decision, Some(ran), outcome.as_ref().err());
    assistant.audit.call(record).instrument(tracing::info_span!("audit_call", tool)).await?;
    let mut result = outcome?;
    name_columns(&mut result, &valid);
    Ok(Fetched { round, query: valid, result, sql: executable.sql().to_owned(), params: sent_params(&executable) })
}

/// Charges what was read. An engine that broke off does not say how much that was, so all that was set aside is charged.
fn settle(reservation: Reservation, ran: &Result<ResultSet, EngineError>) {
    let spent = match ran {
        Ok(result) => result.read.bytes,
        Err(error) if error.may_have_read() => reservation.amount(),
        Err(_) => 0,
    };
    reservation.settle(spent);
}

fn find<'a>(assistant: &'a Assistant, name: &str) -> Result<&'a dyn AnyTool, ToolFailure> {
    assistant.tools.iter().map(Box::as_ref).find(|tool| tool.name() == name).ok_or_else(|| {
        let available = assistant.tools.iter().map(|tool| format!("`{}`", tool.name())).collect();
        ToolFailure::UnknownTool { name: name.chars().take(64).collect(), available }
    })
}

/// The datasets this principal may read through this tool.
fn readable(assistant: &Assistant, principal: &Principal, tool: &str) -> BTreeSet<Dataset> {
    let may = |dataset: &Dataset| assistant.policies.now().check(principal, Action::Read(*dataset), tool).allowed();
    Dataset::ALL.into_iter().filter(may).collect()
}

fn decide(assistant: &Assistant, principal: &Principal, tool: &str, dataset: Dataset) -> Decision {
    assistant.policies.now().decide(&Request { principal, tool, dataset, known_tenants: &assistant.tenants, job: None })
}

/// The engine names its columns `a0`, `a1`, …; a tool knows them by what it asked for.
fn name_columns(result: &mut ResultSet, valid: &ValidQuery) {
    result.columns = valid.columns();
}

fn sent_params(executable: &ExecutableQuery) -> BTreeMap<String, String> {
    executable.params().iter().map(|p| (p.name().to_owned(), p.text().to_owned())).collect()
}

/// A query that was sent.
struct Ran<'a> {
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
    ran: Option<Ran<'_>>,
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
        decision: DecisionRecord {
            allowed: decision.allowed() && refusal.is_none(),
            rules: decision.rules().to_vec(),
            reasons: match refusal {
                Some(refusal) => vec![refusal.to_string()],
                None => decision.reasons().to_vec(),
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
        error: failure.map(ToString::to_string),
    }
}
