//! The planner that answers: the built-in one, or the one that asks a model and has the built-in one to fall back on.

use std::sync::Arc;

use sightline_core::offline::{LiveWords, OfflinePlanner};
use sightline_core::quota::Quota;
use sightline_core::{Clock, Planner};
use sightline_llm::{LlmPlanner, Parts, SharedPlanner};
use sightline_policies::LivePolicies;
use sightline_query::Catalogue;

use super::OpenError;
use crate::config::{Config, LlmSettings, PlannerChoice};

/// The stations that a planner knows.
pub(super) struct Around<'a> {
    pub(super) catalogue: &'a Arc<Catalogue>,
    pub(super) words: &'a Arc<LiveWords>,
    pub(super) policies: &'a Arc<LivePolicies>,
    pub(super) quota: &'a Arc<dyn Quota>,
    pub(super) clock: &'a Arc<dyn Clock>,
}

/// A planner, and a second handle on it where it asks a model.
pub(super) type Chosen = (Box<dyn Planner>, Option<Arc<LlmPlanner>>);

/// The planner that the configuration names.
pub(super) fn planner(config: &Config, around: &Around<'_>) -> Result<Chosen, OpenError> {
    let offline = OfflinePlanner::over(Arc::clone(around.catalogue), Arc::clone(around.words));
    let settings = match (config.planner, &config.llm) {
        (PlannerChoice::Offline, _) => return Ok((Box::new(offline), None)),
        (PlannerChoice::Llm, None) => return Err(OpenError::NoModel),
        (PlannerChoice::Llm, Some(LlmSettings(settings))) => settings.clone(),
    };
    let parts = Parts {
        offline,
        catalogue: Arc::clone(around.catalogue),
        policies: Arc::clone(around.policies),
        tools: sightline_tools::tools(),
        quota: Arc::clone(around.quota),
        clock: Arc::clone(around.clock),
    };
    let planner = Arc::new(LlmPlanner::new(settings, parts)?);
    Ok((Box::new(SharedPlanner(Arc::clone(&planner))), Some(planner)))
}
