//! The typed tools a planner may call, one file each: arguments, a pure plan, a pure reading of what was fetched.
//!
//! A tool can neither decide nor run: it names datasets, metrics and dimensions, and gets rows back. This crate knows no SQL,
//! opens no sockets and reads no clock.

mod absence;
pub mod args;
pub mod compare;
pub mod find_entities;
pub mod job_correlation;
mod job_scope;
pub mod list_events;
mod list_rows;
mod listing;
mod measure;
pub mod metric_range;
pub mod own_job;
pub mod reading;
pub mod registry;
pub mod search_logs;
pub mod search_runbooks;
mod sentence;
pub mod service_correlation;
pub mod tool;
pub mod top_k;

pub use compare::Compare;
pub use find_entities::FindEntities;
pub use job_correlation::JobCorrelation;
pub use list_events::ListEvents;
pub use metric_range::MetricRange;
pub use registry::{SentTool, find, sent_tools, tools, tools_with};
pub use search_logs::SearchLogs;
pub use search_runbooks::{LiveKnowledge, SearchRunbooks, builtin_knowledge};
pub use service_correlation::ServiceCorrelation;
pub use sightline_diagnosis::{Knowledge, SiteRunbook};
pub use tool::{AnyTool, Fetched, MAX_ROUNDS, Step, Tool, ToolContext, ToolError, ToolOutput, evidence_id};
pub use top_k::TopK;

/// What a cause is called in a sentence; none for an id that no check has.
pub fn cause_title(id: &str) -> Option<&'static str> {
    sightline_diagnosis::cause_info(id).map(|info| info.title.as_str())
}

#[cfg(test)]
mod testing;
