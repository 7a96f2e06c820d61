//! The service around the line: configuration, the stations opened, HTTP, tokens, and what the subcommands do.
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
pub mod output;
pub mod process;
pub mod quota;
pub mod room;
pub mod stations;
mod tokens;

pub use answers::{Answers, AnswersError, Lookup};
pub use audit_watch::WatchedAudit;
pub use config::{Config, ConfigError, Flags};
pub use tokens::{TokenError, Tokens};
