//! What is asked of the rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use sightline_model::{Dataset, Principal};

/// Something a principal may or may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read rows of a dataset.
    Read(Dataset),
    /// Ask a question.
    AskQuestion,
    /// Read the audit log.
    ReadAudit,
}

impl Action {
    /// Every action, in the order of the matrix.
    pub fn all() -> impl Iterator<Item = Self> {
        Dataset::ALL.into_iter().map(Self::Read).chain([Self::AskQuestion, Self::ReadAudit])
    }

    /// Its id in the Cedar schema.
    pub fn id(self) -> &'static str {
        match self {
            Self::Read(Dataset::Metrics) => "read_metrics",
            Self::Read(Dataset::Logs) => "read_logs",
            Self::Read(Dataset::Spans) => "read_spans",
            Self::Read(Dataset::Events) => "read_events",
            Self::Read(Dataset::Jobs) => "read_jobs",
            Self::Read(Dataset::JobGpus) => "read_job_gpus",
            Self::AskQuestion => "ask_question",
            Self::ReadAudit => "read_audit",
        }
    }

    /// How a refusal says it: `no rule lets role … <words>`.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Read(dataset) => format!("read {dataset}"),
            Self::AskQuestion => "ask questions".to_owned(),
            Self::ReadAudit => "read the audit log".to_owned(),
        }
    }
}

/// A job that a call resolved to, as the job tables tell it: which rows belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRows {
    /// The job.
    pub job_id: String,
    /// The scheduler's user whose job it is.
    pub user: String,
    /// The tenant it runs for.
    pub tenant: String,
    /// The places it ran on: node and GPU.
    pub slots: BTreeSet<(String, String)>,
    /// When it began.
    pub from: Timestamp,
    /// When it ended, or the instant as of which it still runs.
    pub to: Timestamp,
}

/// What one query of a tool wants to read, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The authenticated asker.
    pub principal: &'a Principal,
    /// The tool whose query it is.
    pub tool: &'a str,
    /// The dataset it reads.
    pub dataset: Dataset,
    /// The tenants that have rows; what an admin's scope is resolved to.
    pub known_tenants: &'a BTreeSet<String>,
    /// The job that the call resolved to, if it did. Who may read own jobs only reads nothing but jobs without one.
    pub job: Option<&'a Arc<JobRows>>,
}
