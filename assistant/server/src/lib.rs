//! The service around the line: configuration, the stations opened, HTTP, identity, and what the subcommands do.
//!
//! This crate is thin: it decides nothing about access and says nothing about the data.

mod answers;
mod audit_watch;
pub mod clock;
pub mod commands;
pub mod config;
pub mod http;
mod identity;
pub mod output;
pub mod policies;
pub mod quota;
pub mod room;
pub mod stations;

pub use answers::{Answers, AnswersError, Lookup};
pub use audit_watch::WatchedAudit;
pub use config::{Config, ConfigError, Flags};
pub use identity::{Identity, IdentityError, IdentityStore, NewToken, Token, TokenOrder, TokenState};
