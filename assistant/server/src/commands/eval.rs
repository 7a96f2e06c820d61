//! What `sightline eval` stands on: questions about one recorded incident after another, all on one engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::quota::Unmetered;
use sightline_core::{Earlier, NoEvents, Question, answer_question};
use sightline_engine::native::DatabaseName;
use sightline_engine::{Bundle, SeriesShift, Writer, drop_database, series_shifts};
use sightline_llm::Exchange;
use sightline_model::audit::ModelUse;
use sightline_model::{Answer, ConversationId, QuestionId};
use sightline_query::catalogue::LabelAliases;
use tokio::sync::Mutex;

use super::ask::choose_principal;
use super::{CommandError, failed};
use crate::config::{Config, LlmSettings};
use crate::stations::{Data, Recorded, Stations, Tapped};

/// One question about a recorded incident.
#[derive(Clone, Debug)]
pub struct BundleQuestion<'a> {
    /// The bundle's folder.
    pub bundle: &'a Path,
    /// The question.
    pub text: &'a str,
    /// The questions before it in its conversation, the oldest first.
    pub before: &'a [Earlier],
    /// Who asks.
    pub principal: &'a str,
    /// The instant taken as now; the bundle's latest sample without.
    pub as_of: Option<Timestamp>,
    /// The asker's zone.
    pub time_zone: &'a str,
    /// Metrics that are taken to be unknown.
    pub without: &'a BTreeSet<String>,
    /// Where the replies of a model come from, if one plans.
    pub exchange: Exchange,
}

/// The stations, and the bundles that are loaded.
pub struct BundleLine {
    config: Config,
    stations: Stations,
    loaded: Mutex<BTreeMap<PathBuf, Recorded>>,
}

impl BundleLine {
    /// Opens the engine, the policies and the audit log, once for all questions.
    ///
    /// # Errors
    /// When one of them cannot be opened, or the engine is a server of one's own.
    pub async fn open(config: &Config) -> Result<Self, CommandError> {
        let stations = Stations::open(config, Data::Own).await.map_err(failed)?;
        if stations.writer.is_none() {
            stations.close().await;
            let what = "recorded incidents need the embedded engine; unset `clickhouse.url` to use it";
            return Err(CommandError::Usage(what.to_owned()));
        }
        Ok(Self { config: config.clone(), stations, loaded: Mutex::default() })
    }

    /// The engine's writing user, for making bundles.
    pub fn writer(&self) -> Option<&Writer> {
        self.stations.writer.as_ref()
    }

    /// Answers a question, and says what a model was asked for it. It is recorded like any other; its answer is not kept.
    ///
    /// # Errors
    /// When the bundle cannot be loaded, nobody of that name may ask, or the line meets a fault.
    pub async fn answer(&self, asked: &BundleQuestion<'_>) -> Result<(Answer, Option<ModelUse>), CommandError> {
        let recorded = self.recorded(asked.bundle).await?;
        let mut config = self.config.clone();
        if let Some(LlmSettings(settings)) = &mut config.llm {
            settings.exchange = asked.exchange.clone();
            if let Exchange::Replayed(transcript) = &asked.exchange {
                settings.model.clone_from(&transcript.model);
            }
        }
        let over = self.stations.assistant_over(&config, &recorded, asked.without, Arc::new(Unmetered));
        let mut assistant = over.map_err(failed)?;
        let tapped = Arc::new(Tapped::over(Arc::clone(&assistant.audit)));
        assistant.audit = Arc::clone(&tapped) as _;
        let principal = choose_principal(&assistant.policies.now(), Some(asked.principal), true, &assistant.tenants)?;
        let as_of = asked.as_of.or(recorded.latest).unwrap_or_else(|| assistant.clock.now());
        let time_zone = TimeZone::get(asked.time_zone)
            .map_err(|_| CommandError::Usage(format!("`{}` is no IANA time zone", asked.time_zone)))?;
        let question = Question {
            id: QuestionId::new(assistant.ids.next()),
            conversation_id: ConversationId::new(assistant.ids.next()),
            text: asked.text.to_owned(),
            before: asked.before.to_vec(),
            principal,
            entrance: "cli",
            as_of,
            time_zone,
        };
        let answer = answer_question(&assistant, &question, &NoEvents).await.map_err(failed)?;
        Ok((answer, tapped.model()))
    }

    /// Loads a bundle ahead of its questions; what goes wrong is told when it is asked about.
    pub async fn prepare(&self, bundle: &Path) {
        drop(self.recorded(bundle).await);
    }

    /// How each recorded series of a bundle changed at an instant.
    ///
    /// # Errors
    /// When the bundle cannot be loaded or the engine not be asked.
    pub async fn shifts(&self, bundle: &Path, split: Timestamp) -> Result<Vec<SeriesShift>, CommandError> {
        let recorded = self.recorded(bundle).await?;
        let database = DatabaseName::new(&recorded.bundle.database).map_err(failed)?;
        let Some(writer) = self.writer() else { return Ok(Vec::new()) };
        series_shifts(writer, &database, split).await.map_err(failed)
    }

    /// Drops what was loaded of a bundle; its files stay.
    ///
    /// # Errors
    /// When the folder is no bundle or the engine refuses.
    pub async fn forget(&self, bundle: &Path) -> Result<(), CommandError> {
        self.loaded.lock().await.remove(bundle);
        let aliases = LabelAliases::builtin().map_err(failed)?;
        let opened = Bundle::open(bundle, &aliases).map_err(failed)?;
        let Some(writer) = self.writer() else { return Ok(()) };
        drop_database(writer, &opened.database).await.map_err(failed)
    }

    /// Ends the engine if it was started here.
    pub async fn close(self) {
        self.stations.close().await;
    }

    async fn recorded(&self, dir: &Path) -> Result<Recorded, CommandError> {
        if let Some(recorded) = self.loaded.lock().await.get(dir) {
            return Ok(recorded.clone());
        }
        let recorded = self.stations.record(dir).await.map_err(failed)?;
        self.loaded.lock().await.insert(dir.to_owned(), recorded.clone());
        Ok(recorded)
    }
}
