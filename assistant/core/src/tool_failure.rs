//! Why a tool call brought nothing.

use sightline_guard::{EngineError, Refusal};
use sightline_model::audit::AuditUnavailable;
use sightline_query::QueryError;
use sightline_tools::{MAX_ROUNDS, ToolError};

use crate::quota::QuotaError;

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
