//! The typed tools a planner may call, one file each: arguments, a pure plan, a pure reading of what was fetched.
//!
//! A tool can neither decide nor run: it names datasets, metrics and dimensions, and gets rows back. This crate knows no SQL,
//! opens no sockets and reads no clock.

mod absence;
pub mod args;
mod job_scope;
mod measure;
pub mod metric_range;
pub mod reading;
mod sentence;
pub mod tool;

pub use metric_range::MetricRange;
pub use tool::{AnyTool, Fetched, MAX_ROUNDS, Step, Tool, ToolContext, ToolError, ToolOutput, evidence_id};
