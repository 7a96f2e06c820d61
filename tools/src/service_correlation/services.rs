//! Any other service: what to fetch about its latency, callees, spans, resources and errors, and the reading of it.

use sightline_query::Query;

use crate::service_correlation::inventory::Inventory;
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput};

/// What to fetch next, `rounds` rounds being there.
pub(super) fn queries(
    _context: &ToolContext<'_>,
    _inventory: &Inventory,
    _rounds: usize,
    _fetched: &[Fetched],
) -> Result<Vec<Query>, ToolError> {
    Ok(Vec::new())
}

/// The diagnosis.
pub(super) fn judged(
    _context: &ToolContext<'_>,
    _inventory: &Inventory,
    _fetched: &[Fetched],
) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::default())
}
