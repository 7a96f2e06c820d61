//! Opens everything a question passes: engine, data, policies, audit log; and closes it in order.

mod planner;
mod recorded;
mod tapped;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _};
use sightline_audit::SqliteAudit;
use sightline_core::offline::{LexiconFault, LiveWords};
use sightline_core::quota::Quota;
use sightline_core::{Assistant, Clock};
use sightline_engine::native::DatabaseName;
use sightline_engine::{
    ClickHouseEngine, EmbeddedEngine, Endpoint, EngineUser, FenceUnproved, IngestError, LoadedBundle, Proof,
    SecondFence, WriteError, Writer, load_bundle, native, tenants,
};
use sightline_guard::{Guard, Mapping};
use sightline_llm::LlmPlanner;
use sightline_policies::LivePolicies;
use sightline_query::Catalogue;
use sightline_query::catalogue::LabelAliases;
use sightline_tools::LiveKnowledge;

use crate::audit_copies::EngineCopy;
use crate::audit_log::{self, AuditLogError};
use crate::audit_watch::WatchedAudit;
use crate::clock::{SystemClock, UuidIds};
use crate::config::Config;
use crate::policies::{PolicyFiles, PolicyFilesError};
use crate::quota::{LedgerError, Quotas};
use crate::review::AuditFiles;
use crate::room::{Room, RoomError};
use crate::site_folder::{SiteError, SiteWatch};

pub use recorded::Recorded;
pub(crate) use tapped::Tapped;

/// The database of the service's own rows.
pub const OWN_DATABASE: &str = "sightline";

/// Whose rows are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// The service's own.
    Own,
    /// A recorded incident's.
    Bundle(PathBuf),
    /// Another database of the embedded engine, made if it is not there.
    Database(&'static str),
}

/// Why the stations cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder or the embedded engine cannot be used.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// Tables cannot be made or read.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The bundle cannot be loaded.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The second fence is not proved.
    #[error(transparent)]
    Fence(#[from] FenceUnproved),
    /// A bundle or the demo was asked for with a server of one's own.
    #[error("recorded incidents and the demo need the embedded engine; unset `clickhouse.url` to use it")]
    NeedsEmbedded,
    /// The site's policies cannot be used.
    #[error(transparent)]
    Policies(#[from] PolicyFilesError),
    /// The audit log cannot be used.
    #[error(transparent)]
    Audit(#[from] AuditLogError),
    /// The site's own words or runbooks cannot be used.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The planner's word lists cannot be read.
    #[error(transparent)]
    Lexicon(#[from] LexiconFault),
    /// The model's client cannot be made.
    #[error(transparent)]
    Model(#[from] sightline_llm::ModelFault),
    /// A model is to answer, and none is named.
    #[error("no model is named; set `llm.model` or `SIGHTLINE_LLM_MODEL`, or ask with `--planner offline`")]
    NoModel,
    /// The ledger of daily budgets cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Shipped data is broken, or the bundle's aliases are.
    #[error("{0}")]
    Data(String),
}

/// Everything a question passes, and what has to be closed after it.
pub struct Stations {
    /// The line's stations.
    pub assistant: Arc<Assistant>,
    /// The planner that asks a model, where one does.
    pub model: Option<Arc<LlmPlanner>>,
    /// The audit log with its health.
    pub audit: Arc<WatchedAudit>,
    /// The audit log itself, for what is done to it beside adding records: erasing, retention, a new key.
    pub log: Arc<SqliteAudit>,
    /// Copies the log's checkpoints to the embedded engine, where that runs.
    pub copies: Option<EngineCopy>,
    /// Writes to the embedded engine; none with a server of one's own.
    pub writer: Option<Writer>,
    /// The bundle that was loaded.
    pub bundle: Option<LoadedBundle>,
    /// The instant to ask as of, for a bundle: just after its latest sample.
    pub latest: Option<Timestamp>,
    /// What was proved of the second fence before anything could be asked.
    pub proofs: Vec<Proof>,
    /// The files that the policies were read from.
    pub policy_files: PolicyFiles,
    /// The words that questions are read by.
    pub words: Arc<LiveWords>,
    /// Keeps the site's own words and runbooks up to date with their folder, where there is one.
    pub site: Option<SiteWatch>,
    embedded: Option<EmbeddedEngine>,
}

/// What depends on where the rows are.
struct Rows {
    engine: ClickHouseEngine,
    writer: Option<Writer>,
    database: String,
    tenants: BTreeSet<String>,
    bundle: Option<LoadedBundle>,
    embedded: Option<EmbeddedEngine>,
}

impl Stations {
    /// Opens them. Attaches to a living engine of the data folder, else starts one.
    ///
    /// # Errors
    /// What cannot be opened, and what to do about it.
    pub async fn open(config: &Config, data: Data) -> Result<Self, OpenError> {
        let room = Room::open(config).await?;
        Self::open_in(config, room, data).await
    }

    /// The same, with an engine that is open already.
    ///
    /// # Errors
    /// What cannot be opened, and what to do about it.
    pub async fn open_in(config: &Config, room: Room, data: Data) -> Result<Self, OpenError> {
        let label_aliases = LabelAliases::builtin().map_err(|error| OpenError::Data(error.to_string()))?;
        let policy_files = PolicyFiles::read(config.policies_dir.as_deref())?;
        let policies = policy_files.policies()?;
        let rows = match &config.clickhouse {
            Some(_) if data != Data::Own => return Err(OpenError::NeedsEmbedded),
            Some(server) => Rows {
                engine: ClickHouseEngine::new(
                    &Endpoint::new(&server.url, &server.user, &server.password.0),
                    SecondFence::AtServer,
                ),
                writer: None,
                database: server.database.clone(),
                // A server's tenants are those that principals belong to: its user may not list what it may not read.
                tenants: policies.tenants(),
                bundle: None,
                embedded: None,
            },
            None => embedded(room, data, &label_aliases).await?,
        };
        let mapping = Mapping::native(&rows.database).map_err(|error| OpenError::Data(error.to_string()))?;
        // Bundles and the demo write to the same log: its checkpoints go to the same place whatever is asked about.
        let copies = rows.writer.clone().map(|writer| EngineCopy::start(writer, audit_log::path(config)));
        // While the engine is tried, the log's files are opened.
        let opening = {
            let config = config.clone();
            let copies = copies.clone();
            tokio::task::spawn_blocking(move || audit_log::open(&config, copies))
        };
        let proofs = rows.engine.prove_fence(&mapping, &rows.tenants).await;
        let audit =
            opening.await.map_err(|error| OpenError::Data(format!("the audit log cannot be opened: {error}")))?;
        let (proofs, audit) = (proofs?, Arc::new(audit?));
        let log = Arc::clone(&audit);
        let files = AuditFiles::of(config, rows.writer.clone());
        let audit = Arc::new(WatchedAudit::new(audit).with_files(files).with_copies(Arc::clone(&log)));
        let catalogue = catalogue(rows.bundle.as_ref())?;
        let latest = rows.bundle.as_ref().and_then(|b| b.latest.checked_add(1.millisecond()).ok());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let words = Arc::new(LiveWords::new(Arc::clone(&catalogue))?);
        let knowledge = Arc::new(LiveKnowledge::new(sightline_tools::builtin_knowledge()));
        let own = (Arc::clone(&catalogue), Arc::clone(&words), Arc::clone(&knowledge));
        let site = config.site_dir.as_deref().map(|dir| SiteWatch::start(dir, own.0, own.1, own.2)).transpose()?;
        let policies = Arc::new(LivePolicies::new(policies));
        let quota: Arc<dyn Quota> = Arc::new(Quotas::open(&config.data_dir, Arc::clone(&clock))?);
        let around =
            planner::Around { catalogue: &catalogue, words: &words, policies: &policies, quota: &quota, clock: &clock };
        let (planner, model) = planner::planner(config, &around)?;
        let assistant = Assistant {
            tools: sightline_tools::tools_with(knowledge),
            policies,
            guard: Guard::new(mapping),
            engine: Arc::new(rows.engine),
            quota,
            audit: Arc::clone(&audit) as _,
            planner,
            catalogue,
            tenants: rows.tenants,
            clock,
            ids: Arc::new(UuidIds),
        };
        let assistant = Arc::new(assistant);
        Ok(Self {
            assistant,
            model,
            audit,
            log,
            copies,
            writer: rows.writer,
            bundle: rows.bundle,
            latest,
            proofs,
            policy_files,
            words,
            site,
            embedded: rows.embedded,
        })
    }

    /// The embedded engine, if that is what runs the queries.
    pub fn embedded(&self) -> Option<&EmbeddedEngine> {
        self.embedded.as_ref()
    }

    /// Ends the engine if it was started here. The audit log ends with the last handle on it.
    pub async fn close(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }
}

async fn embedded(room: Room, data: Data, aliases: &LabelAliases) -> Result<Rows, OpenError> {
    let engine = room.embedded.ok_or(OpenError::NeedsEmbedded)?;
    let writer = Writer::new(&endpoint(&engine, EngineUser::Writer));
    let reader = ClickHouseEngine::new(&endpoint(&engine, EngineUser::Reader), SecondFence::InRequest);
    let (database, bundle) = match data {
        Data::Bundle(dir) => {
            let bundle = load_bundle(&writer, &dir, aliases).await?;
            (bundle.database.clone(), Some(bundle))
        }
        Data::Own => (own(&writer, OWN_DATABASE).await?, None),
        Data::Database(name) => (own(&writer, name).await?, None),
    };
    let name = DatabaseName::new(&database).map_err(|error| OpenError::Data(error.to_string()))?;
    let tenants = tenants(&writer, &name).await?.into_iter().collect();
    Ok(Rows { engine: reader, writer: Some(writer), database, tenants, bundle, embedded: Some(engine) })
}

/// Where a user of the embedded engine asks.
pub(crate) fn endpoint(engine: &EmbeddedEngine, user: EngineUser) -> Endpoint {
    let (name, password) = engine.login(user);
    Endpoint::new(engine.url(), name, password)
}

/// Makes the database's tables where they are missing.
async fn own(writer: &Writer, name: &str) -> Result<String, OpenError> {
    let database = DatabaseName::new(name).map_err(|error| OpenError::Data(error.to_string()))?;
    native::create_or_update(writer, &database).await?;
    Ok(name.to_owned())
}

/// The catalogue that ships, with the names a bundle adds.
fn catalogue(bundle: Option<&LoadedBundle>) -> Result<Arc<Catalogue>, OpenError> {
    let shipped = Catalogue::builtin().map_err(|error| OpenError::Data(error.to_string()))?;
    let catalogue = match bundle {
        Some(bundle) if !bundle.metric_aliases.is_empty() => shipped
            .with_aliases("bundle.toml", &bundle.metric_aliases)
            .map_err(|error| OpenError::Data(error.to_string()))?,
        Some(_) | None => shipped,
    };
    Ok(Arc::new(catalogue))
}
