//! Any other service: what to fetch about its latency, callees, spans, resources and errors, and the reading of it.
//!
//! The culprit is often not the service that was named, so every service of the asker is looked at: which metrics there are first,
//! then those that some cause looks at, two days back in coarse steps and the window in fine ones; spans in numbers, and whole traces
//! of a sample of them.

mod item;
mod plan;
mod read;
mod traces;

use sightline_diagnosis::{Role, diagnose_service};
use sightline_model::Evidence;
use sightline_query::Query;

use crate::job_correlation::citing::keep_what_counts;
use crate::service_correlation::inventory::Inventory;
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput};
use read::CaseFile;

/// What to fetch next, `rounds` rounds being there.
pub(super) fn queries(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    rounds: usize,
    fetched: &[Fetched],
) -> Result<Vec<Query>, ToolError> {
    match rounds {
        1 => Ok(plan::discovery(context, inventory)),
        2 => {
            let mut queries: Vec<Query> = Vec::new();
            for wanted in plan::survey(context, inventory, fetched)? {
                // Some queries serve two purposes.
                if !queries.contains(&wanted.query) {
                    queries.push(wanted.query);
                }
            }
            Ok(queries)
        }
        _ => Ok(Vec::new()),
    }
}

/// The diagnosis.
pub(super) fn judged(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    fetched: &[Fetched],
) -> Result<ToolOutput, ToolError> {
    let file = CaseFile::read(context, inventory, fetched)?;
    let observations = file.observations(inventory);
    let mut diagnosis = diagnose_service(&observations);
    let mut notes = file.notes.clone();
    if inventory.name.is_empty() {
        notes.push("no service was named: all were looked at, beginning with what no other one calls".to_owned());
    }
    diagnosis.data_health.splice(0..0, notes);
    let vital: Vec<&str> = observations
        .series
        .iter()
        .filter(|s| matches!(s.role, Role::Latency | Role::Availability | Role::Errors))
        .filter(|s| {
            s.recent
                .series
                .iter()
                .any(|series| inventory.name.is_empty() || series.entity.get("service") == Some(&inventory.name))
        })
        .map(|s| s.recent.id.as_str())
        .collect();
    let shown: Vec<String> = vital.into_iter().map(str::to_owned).collect();
    let output = ToolOutput {
        suggestions: vec![
            "which services had the highest latency?".to_owned(),
            "what was deployed in this window?".to_owned(),
        ],
        evidence: file.into_evidence(),
        ..ToolOutput::from(diagnosis)
    };
    Ok(keep_what_counts(output, |evidence: &Evidence| shown.iter().any(|id| id == evidence.id.as_str())))
}

#[cfg(test)]
#[path = "services/services_tests.rs"]
mod tests;
