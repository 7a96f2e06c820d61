//! `sightline incident`: recorded incidents in the embedded engine.

use std::path::Path;

use sightline_engine::{LoadedBundle, list_bundles};

use super::{CommandError, failed};
use crate::config::Config;
use crate::output;
use crate::stations::{Data, Stations};

/// `sightline incident load DIR`
///
/// # Errors
/// When the bundle cannot be read or the engine not be used.
pub async fn load(config: &Config, dir: &Path) -> Result<(), CommandError> {
    let stations = Stations::open(config, Data::Bundle(dir.to_owned())).await.map_err(failed)?;
    let loaded = stations.bundle.clone();
    stations.close().await;
    match loaded {
        Some(bundle) => output::result(&described(&bundle)).map_err(failed),
        None => Err(CommandError::Failed("nothing was loaded; report this".to_owned())),
    }
}

/// `sightline incident list`
///
/// # Errors
/// When the engine cannot be used.
pub async fn list(config: &Config) -> Result<(), CommandError> {
    let stations = Stations::open(config, Data::Own).await.map_err(failed)?;
    let listed = match &stations.writer {
        Some(writer) => list_bundles(writer).await.map_err(failed),
        None => Err(CommandError::Usage(
            "bundles are kept by the embedded engine; unset `clickhouse.url` to use it".to_owned(),
        )),
    };
    stations.close().await;
    let bundles = listed?;
    if bundles.is_empty() {
        output::note("no bundle is loaded; load one with `sightline incident load DIR`");
    }
    bundles.iter().try_for_each(|bundle| output::result(&described(bundle)).map_err(failed))
}

fn described(bundle: &LoadedBundle) -> String {
    let rows: Vec<String> = bundle.rows.iter().map(|(dataset, count)| format!("{count} {dataset}")).collect();
    let mut text = format!(
        "{} ({}): {}; tenants {}; clusters {}; until {}",
        bundle.name,
        bundle.database,
        rows.join(", "),
        bundle.tenants.join(", "),
        bundle.clusters.join(", "),
        bundle.latest
    );
    for warning in &bundle.warnings {
        text.push_str("\n  warning: ");
        text.push_str(warning);
    }
    text
}
