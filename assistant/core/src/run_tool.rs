//! One tool call, from untrusted JSON to evidence. The only way to data.

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use sightline_model::{BoxFuture, Principal, QuestionId, Read};
use sightline_policies::Action;
use sightline_tools::{AnyTool, Fetched, MAX_ROUNDS, Step, ToolContext, ToolOutput};

use crate::assistant::Assistant;
use crate::events::Events;
use crate::fetch::{Behalf, Ran, attempted, fetch, readable, without_query};
use crate::own_job::{Resolved, Scope, resolve};
use crate::ports::ToolCall;
use crate::tool_failure::ToolFailure;

/// On whose behalf a call runs. Comes from the host; nothing of it from a planner.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The question or outside call it belongs to; its begin record is durable.
    pub question_id: &'a QuestionId,
    /// Who asks.
    pub principal: &'a Principal,
    /// The instant taken as now.
    pub as_of: Timestamp,
    /// Who is told what each query read.
    pub events: &'a dyn Events,
}

/// A tool's output with what it cost.
#[derive(Clone, Debug)]
pub struct ToolRun {
    /// Evidence and claims.
    pub output: ToolOutput,
    /// Queries run.
    pub queries: u64,
    /// What they read together, as this asker is shown it; the wall time is that of the whole call.
    pub read: Read,
    /// What they read to the row and the byte: for the audit log alone.
    pub read_exactly: Read,
}

/// Runs one call: plan, check, admit, run, record, interpret.
///
/// # Errors
/// What stopped it; see [`ToolFailure::is_fatal`] for whether asking differently can help. The audit log has a record of every call,
/// whether or not it came to a query.
pub async fn run_tool(assistant: &Assistant, caller: Caller<'_>, call: &ToolCall) -> Result<ToolRun, ToolFailure> {
    let started = assistant.clock.monotonic_ms();
    let tool = match find(assistant, &call.tool) {
        Ok(tool) => tool,
        Err(unknown) => return Err(attempted(assistant, caller, call, unknown).await),
    };
    let limits = assistant.policies.now().limits(caller.principal);
    let may_read = readable(assistant, caller.principal, tool.name());
    let runbooks_of =
        assistant.policies.now().tenants_where(caller.principal, Action::ReadRunbooks, &assistant.tenants);
    let context = ToolContext {
        catalogue: &assistant.catalogue,
        as_of: caller.as_of,
        may_read: &may_read,
        runbooks_of: &runbooks_of,
        max_rows: u32::try_from(limits.max_result_rows).unwrap_or(u32::MAX),
    };
    let behalf = Behalf { assistant, caller, limits: &limits, tool: tool.name(), call, job: None };
    let Resolved { scope, mut reads } = resolve(behalf, tool, &context).await?;
    let job = match &scope {
        Scope::Whole | Scope::OwnJobs => None,
        Scope::OwnJob { job, .. } => Some(job),
        Scope::NoneOfYours(output) => {
            let wall_ms = assistant.clock.monotonic_ms() - started;
            return Ok(reads.into_run((**output).clone(), wall_ms));
        }
    };
    let behalf = Behalf { job, ..behalf };
    let mut fetched: Vec<Fetched> = Vec::new();
    for round in 0..=MAX_ROUNDS {
        let planned = tracing::info_span!("tool_plan", tool = tool.name(), round)
            .in_scope(|| tool.plan(&call.arguments, &context, &fetched));
        let step = match planned {
            Ok(step) => step,
            Err(error) if fetched.is_empty() => return Err(attempted(assistant, caller, call, error.into()).await),
            Err(error) => return Err(error.into()),
        };
        let Step::Fetch(queries) = step else { break };
        if round == MAX_ROUNDS {
            return Err(ToolFailure::TooManyRounds { tool: tool.name() });
        }
        let at_once = usize::try_from(limits.max_concurrent).unwrap_or(1).max(1);
        // Boxed: the compiler cannot see that a stream of borrowing closures may move between threads.
        let mut runs: Vec<BoxFuture<'_, Result<Ran, ToolFailure>>> = Vec::new();
        for query in &queries {
            runs.push(Box::pin(fetch(behalf, round, query)));
        }
        for ran in futures::stream::iter(runs).buffered(at_once).try_collect::<Vec<_>>().await? {
            reads.add(&ran);
            fetched.push(ran.fetched);
        }
    }
    if fetched.is_empty() {
        without_query(assistant, caller, call, tool.name()).await?;
    }
    let mut output = tracing::info_span!("tool_interpret", tool = tool.name())
        .in_scope(|| tool.interpret(&call.arguments, &context, &fetched))?;
    output.data_health.extend(scope.notes());
    Ok(reads.into_run(output, assistant.clock.monotonic_ms() - started))
}

/// What the queries of a call read together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    queries: u64,
    shown: Read,
    exactly: Read,
}

impl Reads {
    pub(crate) fn add(&mut self, ran: &Ran) {
        let add = |sum: &mut Read, read: Read| {
            sum.rows = sum.rows.saturating_add(read.rows);
            sum.bytes = sum.bytes.saturating_add(read.bytes);
        };
        self.queries += 1;
        add(&mut self.shown, ran.fetched.result.read);
        add(&mut self.exactly, ran.read_exactly);
    }

    fn into_run(self, output: ToolOutput, wall_ms: f64) -> ToolRun {
        let Self { queries, shown, exactly } = self;
        ToolRun { output, queries, read: Read { wall_ms, ..shown }, read_exactly: Read { wall_ms, ..exactly } }
    }
}

fn find<'a>(assistant: &'a Assistant, name: &str) -> Result<&'a dyn AnyTool, ToolFailure> {
    assistant.tools.iter().map(Box::as_ref).find(|tool| tool.name() == name).ok_or_else(|| {
        let available = assistant.tools.iter().map(|tool| format!("`{}`", tool.name())).collect();
        ToolFailure::UnknownTool { name: name.chars().take(64).collect(), available }
    })
}
