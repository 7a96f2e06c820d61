//! What a tool is: typed arguments, a pure plan in rounds, a pure reading of what was fetched.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sightline_diagnosis::Diagnosis;
use sightline_model::{Candidate, Dataset, DraftCause, DraftClaim, Evidence, EvidenceId, Outcome, ResultSet};
use sightline_query::{Catalogue, Query, ValidQuery};

/// The most rounds of queries a tool may ask for.
pub const MAX_ROUNDS: usize = 4;

/// What a tool may know besides its arguments. It comes from the host, never from a model.
#[derive(Clone, Copy, Debug)]
pub struct ToolContext<'a> {
    /// The catalogue of metrics.
    pub catalogue: &'a Catalogue,
    /// The instant taken as now; nothing after it is asked for.
    pub as_of: Timestamp,
    /// The datasets the asker may read. A tool leaves the others out and says so; the guard would refuse them anyway.
    pub may_read: &'a BTreeSet<Dataset>,
    /// The tenants whose runbooks the asker may read.
    pub runbooks_of: &'a BTreeSet<String>,
    /// The most rows one query may return for this asker.
    pub max_rows: u32,
}

impl ToolContext<'_> {
    /// Whether the asker may read the dataset.
    pub fn may_read(&self, dataset: Dataset) -> bool {
        self.may_read.contains(&dataset)
    }
}

/// One query that ran, with its result and its proof.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The round it was asked for in, from 0.
    pub round: usize,
    /// The query.
    pub query: ValidQuery,
    /// Its rows.
    pub result: ResultSet,
    /// The text that was sent: opaque to a tool, copied into evidence.
    pub sql: String,
    /// The parameters that were sent.
    pub params: BTreeMap<String, String>,
}

/// What a tool wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// These queries, run together. Not empty.
    Fetch(Vec<Query>),
    /// Nothing more.
    Done,
}

impl Step {
    /// A round of these queries; the end where there are none to run, as when the asker may read nothing of them.
    #[must_use]
    pub fn fetch(queries: Vec<Query>) -> Self {
        if queries.is_empty() { Self::Done } else { Self::Fetch(queries) }
    }
}

/// What a tool found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The evidence, named `E1`, `E2`, … within this output; core gives the final names.
    pub evidence: Vec<Evidence>,
    /// Facts, as sentences to be grounded.
    pub claims: Vec<DraftClaim>,
    /// Causes, for the diagnosing tools.
    pub causes: Vec<DraftCause>,
    /// How the question ended, as far as this tool can tell.
    pub outcome: Option<Outcome>,
    /// The sentence to lead with.
    pub headline: Option<DraftClaim>,
    /// What is missing, stale or suspicious.
    pub data_health: Vec<String>,
    /// What to do.
    pub next_steps: Vec<String>,
    /// Runbook ids.
    pub runbooks: Vec<String>,
    /// Choices to offer, with outcome `clarify`.
    pub choices: Vec<Candidate>,
    /// Questions that could come next.
    pub suggestions: Vec<String>,
}

impl ToolOutput {
    /// There is nothing to say but that: what was looked at, and why nothing came of it.
    pub(crate) fn no_data(evidence: Vec<Evidence>, headline: DraftClaim) -> Self {
        Self {
            evidence,
            claims: vec![headline.clone()],
            headline: Some(headline),
            outcome: Some(Outcome::InsufficientData),
            ..Self::default()
        }
    }
}

/// What a diagnosis says; the evidence it rests on is added by whoever fetched it.
impl From<Diagnosis> for ToolOutput {
    fn from(diagnosis: Diagnosis) -> Self {
        let Diagnosis { outcome, headline, claims, causes, next_steps, runbooks, data_health } = diagnosis;
        Self {
            claims,
            causes,
            outcome: Some(outcome),
            headline: Some(headline),
            data_health,
            next_steps,
            runbooks,
            ..Self::default()
        }
    }
}

/// The id of the n-th piece of evidence of an output, counted from 1.
pub fn evidence_id(n: usize) -> EvidenceId {
    EvidenceId::new(format!("E{n}"))
}

/// Why a tool cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments do not fit the schema.
    #[error("the arguments of `{tool}` cannot be used: {reason}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong, and what would fit.
        reason: String,
    },
    /// What was fetched is cut, so that ranking or judging from it would mislead.
    #[error("{what} returned more than {limit} rows, so nothing can be judged from it; {narrow}")]
    Cut {
        /// What was asked for.
        what: String,
        /// The limit that cut it.
        limit: u32,
        /// How to narrow.
        narrow: String,
    },
    /// What was fetched does not have the shape that was asked for.
    #[error("the engine's result for `{tool}` lacks column `{column}`; report this with the question id")]
    Result {
        /// The tool.
        tool: &'static str,
        /// The column.
        column: String,
    },
}

/// A tool. Guaranteed of every implementation: it decides nothing, runs nothing and is deterministic.
pub trait Tool: Send + Sync {
    /// The arguments; the schema the planner sees is derived from them.
    type Args: DeserializeOwned + JsonSchema;

    /// Its name.
    const NAME: &'static str;
    /// What it answers, in one sentence for a planner.
    const DESCRIPTION: &'static str;
    /// What it answers from. Who may read none of them has no use for it; empty for a tool that reads nobody's rows.
    const DATASETS: &'static [Dataset];

    /// What to fetch next, given what is there. Called until it says `Done`, at most [`MAX_ROUNDS`] times.
    ///
    /// # Errors
    /// When the arguments make no sense or a round was cut.
    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError>;

    /// Evidence and claims from what was fetched.
    ///
    /// # Errors
    /// When what was fetched is cut or malformed.
    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError>;
}

/// A tool with its arguments as JSON: what the registry holds.
pub trait AnyTool: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it answers.
    fn description(&self) -> &'static str;
    /// See [`Tool::DATASETS`].
    fn datasets(&self) -> &'static [Dataset];
    /// The JSON schema of its arguments.
    fn schema(&self) -> Value;
    /// See [`Tool::plan`].
    ///
    /// # Errors
    /// Also when the JSON does not fit the schema.
    fn plan(&self, args: &Value, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError>;
    /// See [`Tool::interpret`].
    ///
    /// # Errors
    /// Also when the JSON does not fit the schema.
    fn interpret(&self, args: &Value, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<ToolOutput, ToolError>;
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION
    }

    fn datasets(&self) -> &'static [Dataset] {
        T::DATASETS
    }

    fn schema(&self) -> Value {
        schemars::schema_for!(T::Args).to_value()
    }

    fn plan(&self, args: &Value, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        Tool::plan(self, &parse::<T>(args)?, context, fetched)
    }

    fn interpret(&self, args: &Value, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<ToolOutput, ToolError> {
        Tool::interpret(self, &parse::<T>(args)?, context, fetched)
    }
}

fn parse<T: Tool>(args: &Value) -> Result<T::Args, ToolError> {
    T::Args::deserialize(args).map_err(|error| ToolError::Arguments { tool: T::NAME, reason: error.to_string() })
}
