//! The suite that ships: made from seeds, written as bundles, read again like any other suite.
//!
//! Each bundle is made anew, and written only where no bundle of the same content lies in the cache.

use std::path::{Path, PathBuf};

use sightline_engine::{Bundle, Writer, drop_database, export_rows};
use sightline_fixtures::{Half, Recipe, Stretch, SuiteBundle, digest};
use sightline_query::catalogue::LabelAliases;

use super::{HELD_OUT, INCIDENT_FILE, Incident, Selection, SuiteError, TUNING, checked, parse};

/// Changes whenever the same rows would be written into other files.
const CACHE_VERSION: u32 = 1;

/// Makes the bundles that are asked for below `root`, where they are not there yet, and reads them. `tell` hears of the progress.
///
/// # Errors
/// When a bundle cannot be written, or none is asked for.
pub async fn make(
    writer: &Writer,
    root: &Path,
    selection: &Selection,
    stretch: Stretch,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Incident>, SuiteError> {
    let recipes: Vec<Recipe> = sightline_fixtures::suite()
        .into_iter()
        .filter(|recipe| selection.takes(&recipe.id, Some(name(recipe.half))))
        .collect();
    let count = recipes.len();
    let mut incidents = Vec::new();
    let mut next = recipes.into_iter().enumerate();
    // The next bundle is made while the engine writes this one; more at once would only need more memory.
    let mut making = next.next().map(|(_, recipe)| made(recipe, stretch));
    while let Some(handle) = making.take() {
        let bundle = handle.await.map_err(|error| SuiteError::BuiltIn(error.to_string()))?;
        making = next.next().map(|(_, recipe)| made(recipe, stretch));
        incidents.push(kept(writer, root, bundle).await?);
        if incidents.len() % 10 == 0 || incidents.len() == count {
            tell(&format!("· {} of {count} recorded incidents are made", incidents.len()));
        }
    }
    checked(incidents, root)
}

fn made(recipe: Recipe, stretch: Stretch) -> tokio::task::JoinHandle<(SuiteBundle, u64)> {
    tokio::task::spawn_blocking(move || {
        let bundle = recipe.make(stretch);
        let digest = digest(&bundle.rows);
        (bundle, digest)
    })
}

fn name(half: Half) -> &'static str {
    match half {
        Half::Tuning => TUNING,
        Half::HeldOut => HELD_OUT,
    }
}

/// The bundle in the cache, written if it is not there.
async fn kept(writer: &Writer, root: &Path, (bundle, digest): (SuiteBundle, u64)) -> Result<Incident, SuiteError> {
    let fault = |what: String| SuiteError::BuiltIn(format!("`{}`: {what}", bundle.id));
    let truth = truth(&bundle).map_err(&fault)?;
    let mut incident = parse(&truth).map_err(&fault)?;
    let place = root.join(&bundle.id);
    let dir = place.join(format!("{CACHE_VERSION}-{digest:016x}"));
    // Written last, so that a folder with it is whole.
    let last = dir.join(INCIDENT_FILE);
    if std::fs::read_to_string(&last).is_ok_and(|there| there == truth) {
        incident.dir = dir;
        return Ok(incident);
    }
    clear(writer, &place).await.map_err(&fault)?;
    export_rows(writer, &bundle.rows, &dir, &bundle.manifest).await.map_err(|error| fault(error.to_string()))?;
    std::fs::write(&last, truth).map_err(|error| fault(error.to_string()))?;
    incident.dir = dir;
    Ok(incident)
}

/// Removes what an earlier version of a bundle left: its folder and the database it was loaded into.
async fn clear(writer: &Writer, place: &Path) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(place) else { return Ok(()) };
    let aliases = LabelAliases::builtin().map_err(|error| error.to_string())?;
    let folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    for folder in folders {
        if let Ok(bundle) = Bundle::open(&folder, &aliases) {
            drop_database(writer, &bundle.database).await.map_err(|error| error.to_string())?;
        }
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(())
}

/// The bundle's `incident.toml`, with its half.
fn truth(bundle: &SuiteBundle) -> Result<String, String> {
    let text = bundle.truth_toml().map_err(|error| error.to_string())?;
    let mut table: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
    table.insert("half".to_owned(), name(bundle.half).into());
    toml::to_string(&table).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_of_every_bundle_is_an_incident_file_with_all_its_questions() {
        // One of each half is enough: the others are made the same way.
        for recipe in sightline_fixtures::suite().into_iter().take(2) {
            let bundle = recipe.make(Stretch::NONE);
            let incident = parse(&truth(&bundle).unwrap()).unwrap();
            assert_eq!((incident.id.as_str(), incident.half.as_deref()), (recipe.id.as_str(), Some(name(recipe.half))));
            let asked: Vec<&str> = incident.questions.iter().map(|question| question.text.as_str()).collect();
            let made: Vec<&str> = bundle.questions.iter().map(|question| question.question.as_str()).collect();
            assert_eq!(asked, made);
            assert_eq!(incident.questions[0].as_of, Some(bundle.questions[0].as_of));
        }
    }
}
