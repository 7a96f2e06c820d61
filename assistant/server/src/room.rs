//! The data folder and, unless the site has a ClickHouse of its own, the embedded engine in it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sightline_engine::{EmbeddedEngine, EmbeddedError, EmbeddedOptions, EngineCredentials};

use crate::config::Config;

/// How long the engine may take until it can be asked: it opens in under a second, a large folder on a slow disk takes longer.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Why they cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// The data folder cannot be made.
    #[error("the data folder `{}` cannot be used: {source}; choose another with --data-dir", path.display())]
    DataDir {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The running binary cannot be found, so it cannot be started as the engine.
    #[error("the running binary cannot be found: {0}; start it by its full path")]
    Program(std::io::Error),
    /// No randomness for the engine's passwords.
    #[error("the system gives no randomness for the engine's passwords: {0}")]
    Randomness(String),
    /// The embedded engine cannot be used.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
}

/// An open data folder with its engine.
pub struct Room {
    /// The embedded engine; none with a server of one's own.
    pub embedded: Option<EmbeddedEngine>,
}

impl Room {
    /// Makes the folder where it is missing, and attaches to its living engine, else starts one.
    ///
    /// # Errors
    /// When either cannot be used.
    pub async fn open(config: &Config) -> Result<Self, RoomError> {
        make_data_dir(&config.data_dir)
            .map_err(|source| RoomError::DataDir { path: config.data_dir.clone(), source })?;
        if config.clickhouse.is_some() {
            return Ok(Self { embedded: None });
        }
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(|error| RoomError::Randomness(error.to_string()))?;
        let engine = EmbeddedEngine::attach_or_start(EmbeddedOptions {
            program: config.program.clone().map_or_else(std::env::current_exe, Ok).map_err(RoomError::Program)?,
            arguments: arguments(config),
            data_dir: config.data_dir.clone(),
            credentials: EngineCredentials::from_random(random),
            start_timeout: START_TIMEOUT,
        })
        .await?;
        Ok(Self { embedded: Some(engine) })
    }
}

/// Makes the data folder where it is missing. Every tenant's rows lie in it, so it is for its owner's eyes.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_data_dir(path: &Path) -> Result<(), std::io::Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// What makes the binary an engine of this folder that takes its passwords from its parent.
fn arguments(config: &Config) -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> =
        vec!["engine".into(), "--child".into(), "--data-dir".into(), config.data_dir.clone().into()];
    if let Some(library) = &config.library {
        arguments.extend(["--library".into(), library.clone().into()]);
    }
    arguments
}
