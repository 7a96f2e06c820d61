//! Loading a bundle: once, whole, or not at all.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sightline_query::catalogue::LabelAliases;

use super::error::IngestError;
use super::stage;
use super::summary::{self, LoadedBundle};
use crate::bundle::Bundle;
use crate::client::{WriteError, Writer};
use crate::native::{self, DatabaseName, NATIVE_VERSION};

/// Tells the loads of this process apart.
static LOADS: AtomicU64 = AtomicU64::new(0);
/// ClickHouse's DATABASE_ALREADY_EXISTS.
const ALREADY_EXISTS: i32 = 82;
/// A half-loaded database this old, in minutes, belongs to a load that died. No load takes that long.
const STALE_MINUTES: u32 = 60;

/// Loads the bundle in that folder, or finds it loaded: equal content is loaded once. `aliases` are the ones that ship.
///
/// The rows go into a database under a passing name, which is renamed when all is in it; so a load that fails, or dies, leaves
/// nothing that could be asked about.
///
/// # Errors
/// When the files are no bundle, or the engine refuses or cannot be reached.
pub async fn load_bundle(writer: &Writer, dir: &Path, aliases: &LabelAliases) -> Result<LoadedBundle, IngestError> {
    let bundle = {
        let (dir, aliases) = (dir.to_owned(), aliases.clone());
        let opened = tokio::task::spawn_blocking(move || Bundle::open(&dir, &aliases)).await;
        opened.map_err(|_| IngestError::Engine(WriteError::Malformed))??
    };
    if let Some(loaded) = summary::find(writer, &bundle.database).await? {
        return Ok(with_manifest(loaded, &bundle));
    }
    drop_stale(writer).await?;
    let passing = passing_name(&bundle)?;
    let outcome = load_into(writer, &passing, &bundle).await;
    match outcome {
        Ok(loaded) => Ok(with_manifest(loaded, &bundle)),
        Err(error) => {
            let cleared = writer.execute(&format!("DROP DATABASE IF EXISTS {passing}")).await;
            if let Err(left) = cleared {
                // The next load drops it.
                tracing::warn!(database = %passing, error = %left, "a half-loaded database could not be dropped");
            }
            Err(error)
        }
    }
}

async fn load_into(writer: &Writer, passing: &DatabaseName, bundle: &Bundle) -> Result<LoadedBundle, IngestError> {
    for statement in native::statements(passing) {
        writer.execute(&statement).await?;
    }
    let mut warnings = bundle.manifest.warnings.clone();
    // Datasets come in an order in which jobs stand before the GPU intervals that take their tenant from them.
    for (dataset, path) in &bundle.files {
        warnings.extend(stage::load_file(writer, passing, bundle, *dataset, path).await?);
    }
    let Some(loaded) = summary::summarise(writer, passing, bundle, &warnings).await? else {
        let why = if warnings.is_empty() { "its files are empty".to_owned() } else { warnings.join("; ") };
        return Err(IngestError::Empty { dir: bundle.dir.display().to_string(), why });
    };
    summary::store(writer, passing, &loaded).await?;
    match writer.execute(&format!("RENAME DATABASE {passing} TO {}", bundle.database)).await {
        Ok(()) => Ok(loaded),
        // Another process loaded the same content meanwhile.
        Err(WriteError::Refused { code: ALREADY_EXISTS }) => {
            writer.execute(&format!("DROP DATABASE IF EXISTS {passing}")).await?;
            Ok(loaded)
        }
        Err(error) => Err(error.into()),
    }
}

/// What depends on the folder rather than on its content.
fn with_manifest(mut loaded: LoadedBundle, bundle: &Bundle) -> LoadedBundle {
    loaded.metric_aliases.clone_from(&bundle.manifest.metric_aliases);
    loaded
}

fn passing_name(bundle: &Bundle) -> Result<DatabaseName, IngestError> {
    let content = bundle.database.as_str().trim_start_matches("incident_");
    let (process, load) = (std::process::id(), LOADS.fetch_add(1, Ordering::Relaxed));
    DatabaseName::new(&format!("loading_{content}_{process}_{load}"))
        .map_err(|_| IngestError::Engine(WriteError::Malformed))
}

/// Drops what loads that died have left. (No DROP here says SYNC: the embedded engine would never come back from it.)
async fn drop_stale(writer: &Writer) -> Result<(), WriteError> {
    let sql = format!(
        "SELECT name FROM system.databases INNER JOIN (SELECT database, max(metadata_modification_time) AS touched FROM system.tables GROUP BY database) AS t ON t.database = name WHERE startsWith(name, 'loading_') AND touched < now() - INTERVAL {STALE_MINUTES} MINUTE"
    );
    for row in writer.rows(&sql, &[]).await? {
        let name = row.first().and_then(serde_json::Value::as_str).and_then(|name| DatabaseName::new(name).ok());
        if let Some(name) = name {
            writer.execute(&format!("DROP DATABASE IF EXISTS {name}")).await?;
        }
    }
    Ok(())
}

/// That a database can be read by this binary.
pub(super) async fn check_version(writer: &Writer, database: &DatabaseName) -> Result<(), IngestError> {
    match native::version(writer, database).await? {
        Some(found) if found > NATIVE_VERSION => {
            Err(IngestError::Version { database: database.to_string(), found, known: NATIVE_VERSION })
        }
        Some(_) | None => Ok(()),
    }
}
