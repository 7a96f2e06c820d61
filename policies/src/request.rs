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
    /// Open the fleet view of a tenant; what it shows is read like everything else.
    ViewFleet,
    /// Read the runbooks that a site has written for a tenant.
    ReadRunbooks,
    /// Ask a question.
    AskQuestion,
    /// Call a typed tool from outside, without a question.
    CallTool,
    /// See what its own questions have used.
    ReadOwnUsage,
    /// See what everybody's questions have used.
    ReadAllUsage,
    /// Make and revoke tokens of others.
    ManageTokens,
    /// See and delete conversations of others.
    ManageConversations,
    /// Read the audit log.
    ReadAudit,
    /// Verify the audit log.
    VerifyAudit,
    /// Export the audit log.
    ExportAudit,
    /// Run recorded queries again, under the reviewer's own rights.
    ReplayAudit,
    /// Erase the text of a question from the audit log.
    EraseText,
}

/// What an action is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Tenant,
    Assistant,
    AuditLog,
}

impl Action {
    /// Every action, in the order of the matrix.
    pub fn all() -> impl Iterator<Item = Self> {
        Dataset::ALL.into_iter().map(Self::Read).chain([
            Self::ViewFleet,
            Self::ReadRunbooks,
            Self::AskQuestion,
            Self::CallTool,
            Self::ReadOwnUsage,
            Self::ReadAllUsage,
            Self::ManageTokens,
            Self::ManageConversations,
            Self::ReadAudit,
            Self::VerifyAudit,
            Self::ExportAudit,
            Self::ReplayAudit,
            Self::EraseText,
        ])
    }

    /// The action of that id.
    pub fn parse(id: &str) -> Option<Self> {
        Self::all().find(|action| action.id() == id)
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
            Self::ViewFleet => "view_fleet",
            Self::ReadRunbooks => "read_runbooks",
            Self::AskQuestion => "ask_question",
            Self::CallTool => "call_tool",
            Self::ReadOwnUsage => "read_own_usage",
            Self::ReadAllUsage => "read_all_usage",
            Self::ManageTokens => "manage_tokens",
            Self::ManageConversations => "manage_conversations",
            Self::ReadAudit => "read_audit",
            Self::VerifyAudit => "verify_audit",
            Self::ExportAudit => "export_audit",
            Self::ReplayAudit => "replay_audit",
            Self::EraseText => "erase_text",
        }
    }

    /// What it is done to.
    pub(crate) fn resource_kind(self) -> ResourceKind {
        match self {
            Self::Read(_) | Self::ViewFleet | Self::ReadRunbooks => ResourceKind::Tenant,
            Self::AskQuestion
            | Self::CallTool
            | Self::ReadOwnUsage
            | Self::ReadAllUsage
            | Self::ManageTokens
            | Self::ManageConversations => ResourceKind::Assistant,
            Self::ReadAudit | Self::VerifyAudit | Self::ExportAudit | Self::ReplayAudit | Self::EraseText => {
                ResourceKind::AuditLog
            }
        }
    }

    /// How a refusal says it: `no rule lets role … <words>`.
    pub(crate) fn words(self) -> String {
        let words = match self {
            Self::Read(dataset) => return format!("read {dataset}"),
            Self::ViewFleet => "view the fleet",
            Self::ReadRunbooks => "read runbooks",
            Self::AskQuestion => "ask questions",
            Self::CallTool => "call tools",
            Self::ReadOwnUsage => "see its own usage",
            Self::ReadAllUsage => "see the usage of others",
            Self::ManageTokens => "make or revoke tokens of others",
            Self::ManageConversations => "see or delete conversations of others",
            Self::ReadAudit => "read the audit log",
            Self::VerifyAudit => "verify the audit log",
            Self::ExportAudit => "export the audit log",
            Self::ReplayAudit => "run recorded queries again",
            Self::EraseText => "erase texts from the audit log",
        };
        words.to_owned()
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
    /// The cluster it runs on: names of nodes, and ids of jobs, are known to repeat in another.
    pub cluster: String,
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
