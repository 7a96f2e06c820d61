//! Who may read own jobs only: the job that a call names is looked up through the same line, as queries of the call, and the rows of
//! everything after it are narrowed to it.
//!
//! A job of somebody else is looked for among the asker's own and not found, like one that does not exist; nothing after that depends
//! on whether it does.

use std::sync::Arc;

use sightline_guard::Refusal;
use sightline_policies::JobRows;
use sightline_query::Query;
use sightline_tools::own_job::{
    Places, Run, asked, named, no_places, none_of_yours, places, places_query, run, runs_query,
};
use sightline_tools::{AnyTool, ToolContext, ToolOutput};

use crate::fetch::{Behalf, Ran, attempted, fetch};
use crate::run_tool::Reads;
use crate::tool_failure::ToolFailure;

/// What the call may read.
pub(crate) enum Scope {
    /// What policy opens.
    Whole,
    /// That the asker's jobs exist, and nothing of them: the call names none.
    OwnJobs,
    /// The rows of this job.
    OwnJob {
        job: Arc<JobRows>,
        /// In how many attempts it held GPUs.
        attempts: usize,
    },
    /// Nothing: the job is none of the asker's. This is all there is to say.
    NoneOfYours(Box<ToolOutput>),
}

impl Scope {
    /// What a reader should know of how the rows were narrowed.
    pub(crate) fn notes(&self) -> Vec<String> {
        match self {
            Self::Whole | Self::NoneOfYours(_) => Vec::new(),
            Self::OwnJobs => vec!["only your own jobs were looked at".to_owned()],
            Self::OwnJob { job: _, attempts } => {
                let mut notes = vec![
                    "compared with your job's own GPUs only; what its nodes measure as a whole was not looked at"
                        .to_owned(),
                ];
                if *attempts > 1 {
                    notes.push(format!(
                        "the job held GPUs in {attempts} attempts; the latest one in this window was looked at"
                    ));
                }
                notes
            }
        }
    }
}

/// The scope, and what it took to find it.
pub(crate) struct Resolved {
    pub(crate) scope: Scope,
    pub(crate) reads: Reads,
}

/// Finds out what the call may read.
///
/// # Errors
/// When the arguments cannot be used, or as for any query.
pub(crate) async fn resolve(
    behalf: Behalf<'_>,
    tool: &dyn AnyTool,
    context: &ToolContext<'_>,
) -> Result<Resolved, ToolFailure> {
    let Behalf { assistant, caller, call, .. } = behalf;
    let mut reads = Reads::default();
    let Some(user) = &caller.principal.jobs_of else { return Ok(Resolved { scope: Scope::Whole, reads }) };
    // A tool that reads nobody's rows has none to narrow.
    if tool.datasets().is_empty() {
        return Ok(Resolved { scope: Scope::Whole, reads });
    }
    // What the tool cannot use at all is told before anything is read.
    if let Err(error) = tool.plan(&call.arguments, context, &[]) {
        return Err(attempted(assistant, caller, call, error.into()).await);
    }
    let Some(id) = named(&call.arguments) else { return Ok(Resolved { scope: Scope::OwnJobs, reads }) };
    let as_of = caller.as_of;
    let window = asked(&call.arguments, as_of);
    let Some(query) = runs_query(id, as_of, context.max_rows) else {
        return Err(attempted(assistant, caller, call, Refusal::OutsideCalendar.into()).await);
    };
    let jobs = read(behalf, &query, &mut reads).await?;
    let Some(found) = run(&jobs.fetched, window, as_of)? else {
        let output = none_of_yours(tool.name(), &jobs.fetched);
        return Ok(Resolved { scope: Scope::NoneOfYours(Box::new(output)), reads });
    };
    let rows = |held: &Places| {
        let Run { tenant, cluster, .. } = found.clone();
        let Places { slots, from, to, .. } = held.clone();
        Arc::new(JobRows { job_id: id.to_owned(), user: user.clone(), tenant, cluster, slots, from, to })
    };
    let held = match places_query(id, &found, context.max_rows) {
        Some(query) => {
            // Which places are its own is what is asked here, so by places nothing can be told yet: by id and time it can.
            let unplaced = rows(&no_places(&found));
            let gpus = read(Behalf { job: Some(&unplaced), ..behalf }, &query, &mut reads).await?;
            places(&gpus.fetched, id, &found, window)?
        }
        None => no_places(&found),
    };
    Ok(Resolved { scope: Scope::OwnJob { job: rows(&held), attempts: held.attempts }, reads })
}

async fn read(behalf: Behalf<'_>, query: &Query, reads: &mut Reads) -> Result<Ran, ToolFailure> {
    let ran = fetch(behalf, 0, query).await?;
    reads.add(&ran);
    Ok(ran)
}
