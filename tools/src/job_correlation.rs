//! `job_correlation`: why a training job is slow, failed or hangs. What changed, which worker, since when, and what speaks for it.
//!
//! Four rounds at most: the job and its GPUs; every signal a cause looks at, on the job's own GPUs and nodes only; a closer
//! look at what changed. So what is read follows the job's size and not the fleet's.

mod batches;
mod books;
pub(crate) mod citing;
mod events;
mod history;
mod queries;
mod read;
mod scope;
mod whole;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_diagnosis::{diagnose, focus};
use sightline_model::{Dataset, Outcome};

use crate::args::Instant;
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};
use read::CaseFile;
use scope::{Found, Scope};

const NAME: &str = "job_correlation";

/// Which job, and when.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobCorrelationArgs {
    /// The job's id.
    pub job: String,
    /// Start, UTC; the job's own start unless given.
    #[serde(default)]
    pub from: Option<Instant>,
    /// End, exclusive; the job's own end unless given.
    #[serde(default)]
    pub to: Option<Instant>,
}

/// Why a job is slow.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobCorrelation;

impl Tool for JobCorrelation {
    type Args = JobCorrelationArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Jobs];
    const DESCRIPTION: &'static str =
        "Why a training job is slow, failed or hangs: change points, stragglers, errors, ranked causes.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let range = scope::asked(args, context)?;
        let rounds = fetched.iter().map(|f| f.round + 1).max().unwrap_or(0);
        if rounds == 0 {
            return Ok(Step::fetch(scope::queries(args, context, range)));
        }
        let Found::Scope(scope) = scope::read(args, context, fetched)? else { return Ok(Step::Done) };
        let queries = match rounds {
            1 => [queries::survey(context, &scope), history::first(context, &scope, fetched)?].concat(),
            2 => {
                let file = CaseFile::read(context, &scope, fetched)?;
                let mut queries = queries::moved(context, &scope, fetched)?;
                queries.extend(queries::closer(context, &scope, &focus(&file.observations(&scope))));
                queries.extend(history::second(context, &scope, fetched)?);
                queries
            }
            _ => Vec::new(),
        };
        Ok(Step::fetch(queries))
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        match scope::read(args, context, fetched)? {
            Found::Unknown(output) => Ok(*output),
            Found::Scope(scope) => judged(context, &scope, fetched),
        }
    }
}

fn judged(context: &ToolContext<'_>, scope: &Scope, fetched: &[Fetched]) -> Result<ToolOutput, ToolError> {
    let file = CaseFile::read(context, scope, fetched)?;
    let observations = file.observations(scope);
    let mut diagnosis = diagnose(&observations);
    diagnosis.claims.extend(events::claims(&observations));
    diagnosis.data_health.splice(0..0, file.notes.clone());
    let suggestions = suggestions(scope, diagnosis.outcome);
    let output = ToolOutput { suggestions, evidence: file.into_evidence(), ..ToolOutput::from(diagnosis) };
    Ok(citing::keep_what_counts(output, read::always_shown))
}

fn suggestions(scope: &Scope, outcome: Outcome) -> Vec<String> {
    let job = &scope.job;
    match outcome {
        Outcome::Answered => {
            vec![format!("show the SM clock of job {job}"), format!("which GPU of job {job} was hottest?")]
        }
        Outcome::NoFault | Outcome::InsufficientData | Outcome::Clarify | Outcome::Refused => {
            vec![format!("what was the GPU utilisation of job {job}?"), format!("which GPU of job {job} was slowest?")]
        }
    }
}

#[cfg(test)]
#[path = "job_correlation_tests.rs"]
mod tests;
