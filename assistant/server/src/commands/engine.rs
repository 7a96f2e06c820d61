//! `sightline engine`: the embedded engine as a process of its own.

use sightline_engine::{CredentialSource, EngineCredentials, EngineOptions, FrontLimits, LibrarySearch, serve_engine};

use super::{CommandError, failed};
use crate::config::Config;
use crate::room::make_data_dir;

/// What the command line said.
#[derive(Clone, Copy, Debug)]
pub struct EngineCommand {
    /// Takes its passwords from standard input and ends with it: how the service starts its own engine.
    pub child: bool,
    /// The port on 127.0.0.1; 0 for a free one.
    pub port: u16,
}

/// Runs the engine until it is told to end.
///
/// # Errors
/// When there is no library, or the folder belongs to another engine.
pub async fn engine(config: &Config, command: EngineCommand) -> Result<(), CommandError> {
    let credentials = if command.child {
        CredentialSource::Parent
    } else {
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(|error| CommandError::Failed(error.to_string()))?;
        CredentialSource::Given(EngineCredentials::from_random(random))
    };
    make_data_dir(&config.data_dir).map_err(failed)?;
    let options = EngineOptions {
        data_dir: config.data_dir.clone(),
        port: command.port,
        library: library(config),
        credentials,
        limits: FrontLimits::default(),
    };
    serve_engine(options).await.map_err(failed)
}

/// Where libchdb is looked for.
pub(super) fn library(config: &Config) -> LibrarySearch {
    LibrarySearch {
        configured: config.library.clone(),
        binary_dir: std::env::current_exe().ok().and_then(|path| path.parent().map(ToOwned::to_owned)),
        data_dir: Some(config.data_dir.clone()),
        home_dir: std::env::home_dir(),
    }
}
