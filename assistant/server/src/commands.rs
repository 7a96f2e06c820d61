//! What the subcommands of the binary do. Arguments are parsed elsewhere and come in as plain values.

pub mod ask;
pub mod audit;
pub mod check_sql;
pub mod demo;
pub mod doctor;
pub mod engine;
pub mod eval;
pub mod incident;
mod model;
pub mod policy;
pub mod questions;
pub mod serve;
pub mod token;

/// Why a command did not do its work. The message is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command was called wrongly: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// It failed: exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl CommandError {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) => 1,
        }
    }
}

/// A failure from any error: its message, with the chain of what caused it where the message leaves it out.
fn failed(error: impl std::error::Error) -> CommandError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    CommandError::Failed(text)
}
