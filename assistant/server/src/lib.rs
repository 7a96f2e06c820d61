//! The service around the line: configuration, the stations opened, HTTP, identity, and what the subcommands do.
//!
//! This crate is thin: it decides nothing about access and says nothing about the data.

mod answers;
pub mod audit_copies;
pub mod audit_log;
mod audit_watch;
pub mod clock;
pub mod commands;
pub mod config;
mod heartbeat;
pub mod http;
mod identity;
pub mod output;
pub mod policies;
pub mod process;
pub mod quota;
mod retention;
pub mod review;
pub mod room;
mod settled;
pub mod site_folder;
pub mod stations;
mod tally;

/// Transcripts of a model, for whoever examines one.
pub mod model {
    pub use sightline_llm::{Exchange, LlmConfig, Recording, Transcript};
}

pub use answers::{
    AnswerEntry, Answers, AnswersError, ConversationFile, ConversationLine, Conversations, Feedback, KeepDays, Kept,
    Lookup, Swept, Verdict,
};
pub use audit_watch::WatchedAudit;
pub use config::{Config, ConfigError, Flags};
pub use identity::{Identity, IdentityError, IdentityStore, NewToken, Token, TokenOrder, TokenState};
pub use sightline_core::{Earlier, render_text};
pub use sightline_model::{Answer, BoxFuture, Outcome};
