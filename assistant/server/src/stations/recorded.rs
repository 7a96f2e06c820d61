//! The line over one recorded incident after another, with an engine, policies and an audit log that are open already.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _};
use sightline_core::Assistant;
use sightline_core::offline::LiveWords;
use sightline_core::quota::Quota;
use sightline_engine::native::DatabaseName;
use sightline_engine::{ClickHouseEngine, EngineUser, LoadedBundle, SecondFence, load_bundle};
use sightline_guard::{Guard, Mapping};
use sightline_query::catalogue::LabelAliases;

use super::{OpenError, Stations, catalogue, endpoint, planner};
use crate::config::Config;

/// A recorded incident that can be asked about. Guaranteed: the second fence was proved over its rows.
#[derive(Clone)]
pub struct Recorded {
    /// What was loaded.
    pub bundle: LoadedBundle,
    /// Just after its latest sample.
    pub latest: Option<Timestamp>,
    /// The tenants that have rows in it.
    pub tenants: BTreeSet<String>,
    engine: Arc<ClickHouseEngine>,
    mapping: Mapping,
}

impl Stations {
    /// Loads a bundle, or finds it loaded, and proves the second fence over it.
    ///
    /// # Errors
    /// When there is no embedded engine, the bundle cannot be loaded, or a proof fails.
    pub async fn record(&self, dir: &Path) -> Result<Recorded, OpenError> {
        let (Some(engine), Some(writer)) = (&self.embedded, &self.writer) else { return Err(OpenError::NeedsEmbedded) };
        let data = |error: String| OpenError::Data(error);
        let aliases = LabelAliases::builtin().map_err(|error| data(error.to_string()))?;
        let bundle = load_bundle(writer, dir, &aliases).await?;
        DatabaseName::new(&bundle.database).map_err(|error| data(error.to_string()))?;
        let reader = ClickHouseEngine::new(&endpoint(engine, EngineUser::Reader), SecondFence::InRequest);
        let mapping = Mapping::native(&bundle.database).map_err(|error| data(error.to_string()))?;
        let tenants: BTreeSet<String> = bundle.tenants.iter().cloned().collect();
        reader.prove_fence(&mapping, &tenants).await?;
        let latest = bundle.latest.checked_add(1.millisecond()).ok();
        Ok(Recorded { bundle, latest, tenants, engine: Arc::new(reader), mapping })
    }

    /// The line over a recorded incident, as if the metrics `without` were not known.
    ///
    /// # Errors
    /// When the bundle's metric aliases fit no metric, or the planner that the configuration names cannot be made.
    pub fn assistant_over(
        &self,
        config: &Config,
        recorded: &Recorded,
        without: &BTreeSet<String>,
        quota: Arc<dyn Quota>,
    ) -> Result<Assistant, OpenError> {
        let whole = catalogue(Some(&recorded.bundle))?;
        let catalogue = if without.is_empty() { whole } else { Arc::new(whole.without(without)) };
        let Assistant { policies, clock, .. } = self.assistant.as_ref();
        let words = Arc::new(LiveWords::new(Arc::clone(&catalogue))?);
        let around = planner::Around { catalogue: &catalogue, words: &words, policies, quota: &quota, clock };
        let (planner, _) = planner::planner(config, &around)?;
        Ok(Assistant {
            tools: sightline_tools::registry::tools(),
            policies: Arc::clone(&self.assistant.policies),
            guard: Guard::new(recorded.mapping.clone()),
            engine: Arc::clone(&recorded.engine) as _,
            quota,
            audit: Arc::clone(&self.assistant.audit),
            planner,
            catalogue,
            tenants: recorded.tenants.clone(),
            clock: Arc::clone(&self.assistant.clock),
            ids: Arc::clone(&self.assistant.ids),
        })
    }
}
