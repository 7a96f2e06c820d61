//! `service_correlation`: why a service is slow or fails. An inference service by phase (queue, prefill, decode, KV cache, traffic); any
//! other by its own time, its callees, its resources and its errors.
//!
//! Four rounds at most: what is recorded about the service; the survey; a closer look at what changed. A service may have
//! both kinds of telemetry, and then both are looked at.

mod both;
mod inventory;
mod services;
mod serving;

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::Dataset;

use crate::args::Instant;
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};
use inventory::{Found, Inventory};

const NAME: &str = "service_correlation";

/// Which service, and when.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceCorrelationArgs {
    /// Or its model; all services unless given.
    #[serde(default)]
    service: Option<String>,
    // An hour before the end unless given; what is not said in the schema is not paid for in every turn.
    #[serde(default)]
    from: Option<Instant>,
    #[serde(default)]
    to: Option<Instant>,
}

/// Why a service is slow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceCorrelation;

impl Tool for ServiceCorrelation {
    type Args = ServiceCorrelationArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Metrics, Dataset::Spans];
    const DESCRIPTION: &'static str = "Why a service is slow or fails: phases, callees, errors, ranked causes.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let rounds = fetched.iter().map(|f| f.round + 1).max().unwrap_or(0);
        if rounds == 0 {
            return Ok(Step::fetch(inventory::queries(args, context)?));
        }
        let inventory = match inventory::read(args, context, fetched)? {
            Found::Inventory(inventory) => inventory,
            Found::Unknown(_) => {
                let probes = if rounds == 1 { inventory::probes(args, context)? } else { Vec::new() };
                return Ok(Step::fetch(probes));
            }
        };
        let mut queries = Vec::new();
        if inventory.is_engine() {
            queries.extend(serving::queries(context, &inventory, rounds, fetched)?);
        }
        if inventory.is_traced_or_measured() {
            queries.extend(services::queries(context, &inventory, rounds, fetched)?);
        }
        Ok(Step::fetch(queries))
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        match inventory::read(args, context, fetched)? {
            Found::Unknown(output) => Ok(*output),
            Found::Inventory(inventory) => judged(context, &inventory, fetched),
        }
    }
}

/// An inference service is judged by its phases, any other by its spans and metrics; one that has both by both.
fn judged(context: &ToolContext<'_>, inventory: &Inventory, fetched: &[Fetched]) -> Result<ToolOutput, ToolError> {
    if !inventory.is_engine() {
        return services::judged(context, inventory, fetched);
    }
    let engine = serving::judged(context, inventory, fetched)?;
    if !inventory.is_traced_or_measured() {
        return Ok(engine);
    }
    Ok(both::together(engine, services::judged(context, inventory, fetched)?))
}

#[cfg(test)]
#[path = "service_correlation_tests.rs"]
mod tests;
