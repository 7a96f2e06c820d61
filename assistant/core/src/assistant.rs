//! The stations of the line, put together once at start.

use std::collections::BTreeSet;
use std::sync::Arc;

use sightline_guard::{Engine, Guard};
use sightline_model::audit::AuditLog;
use sightline_policies::LivePolicies;
use sightline_query::Catalogue;
use sightline_tools::AnyTool;

use crate::ports::{Clock, Ids, Planner};
use crate::quota::Quota;

/// Every station a question passes. Built once by the server, the CLI or the evaluation suite.
pub struct Assistant {
    /// What metrics mean and which queries make sense.
    pub catalogue: Arc<Catalogue>,
    /// The typed tools.
    pub tools: Vec<Box<dyn AnyTool>>,
    /// Who may read what, and how much; replaced when the policy files change.
    pub policies: Arc<LivePolicies>,
    /// Makes executable queries; holds the mapping to tables.
    pub guard: Guard,
    /// Runs them.
    pub engine: Arc<dyn Engine>,
    /// Keeps what askers may do across their questions.
    pub quota: Arc<dyn Quota>,
    /// Keeps the record.
    pub audit: Arc<dyn AuditLog>,
    /// Turns questions into calls.
    pub planner: Box<dyn Planner>,
    /// The tenants that have rows: what an admin's scope is resolved to.
    pub tenants: BTreeSet<String>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn Ids>,
}
