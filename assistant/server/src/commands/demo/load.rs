//! Loading the demo fleet: the whole of it, or the tail since it was last loaded.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sightline_engine::native::DatabaseName;
use sightline_engine::{
    EncodedRows, EngineUser, RowEncoder, Scope, Writer, clear_jobs, drop_database, insert_stream, native,
};
use sightline_fixtures::{Batch, DemoFleet};
use sightline_query::catalogue::LabelAliases;
use tokio::sync::mpsc;

use super::super::{CommandError, failed};
use super::{Loaded, Place};
use crate::config::Config;
use crate::output;
use crate::room::Room;
use crate::stations::endpoint;

/// The seed of the demo fleet.
const SEED: u64 = 1;
/// Rows are handed to the engine in pieces of about this many bytes: large enough for few inserts, small enough to hold two.
const PIECE_BYTES: usize = 32 * 1024 * 1024;

/// What the data folder remembers of the fleet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    seed: u64,
    anchor: Timestamp,
    loaded_until: Timestamp,
}

/// See [`super::load`].
pub(super) async fn load(config: &Config, room: &Room, place: Place, now: Timestamp) -> Result<Loaded, CommandError> {
    let engine = room.embedded.as_ref().ok_or_else(|| {
        CommandError::Usage("the demo needs the embedded engine; unset `clickhouse.url` to use it".to_owned())
    })?;
    let writer = &Writer::new(&endpoint(engine, EngineUser::Writer));
    let path = config.data_dir.join(place.state);
    let database = DatabaseName::new(place.database).map_err(failed)?;
    let (fleet, from, to) = match missing(&path, now) {
        // A fleet that stands still is whole already.
        Some((fleet, from, to)) if from == to => {
            return loaded(&fleet);
        }
        Some(tail) => {
            clear_jobs(writer, &database).await.map_err(failed)?;
            tail
        }
        None => {
            drop_database(writer, &database).await.map_err(failed)?;
            native::create(writer, &database).await.map_err(failed)?;
            let fleet = DemoFleet::new(SEED, now);
            let (start, anchor) = (fleet.start(), fleet.anchor());
            (fleet, start, anchor)
        }
    };
    let (anchor, first) = (fleet.anchor(), loaded(&fleet)?);
    // Forgotten before and remembered after: a load that is cut off leaves no state, so the next start makes the whole anew
    // instead of loading the same rows twice.
    forget(&path)?;
    insert(writer, &database, fleet, from, to).await?;
    remember(&path, State { seed: SEED, anchor, loaded_until: to })?;
    Ok(first)
}

fn loaded(fleet: &DemoFleet) -> Result<Loaded, CommandError> {
    let question = fleet
        .truths()
        .first()
        .map(|truth| truth.question.clone())
        .ok_or_else(|| CommandError::Failed("the demo fleet has no question; report this".to_owned()))?;
    Ok(Loaded { question })
}

/// The fleet that is loaded already and what it lacks until now; `None` when there is none that can be continued.
fn missing(path: &Path, now: Timestamp) -> Option<(DemoFleet, Timestamp, Timestamp)> {
    let state: State = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    if state.seed != SEED {
        return None;
    }
    let fleet = DemoFleet::new(state.seed, state.anchor);
    let (from, to) = fleet.missing(state.loaded_until, now)?;
    Some((fleet, from, to))
}

fn forget(path: &Path) -> Result<(), CommandError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remember(path: &PathBuf, state: State) -> Result<(), CommandError> {
    let text = serde_json::to_string(&state).map_err(failed)?;
    std::fs::write(path, text).map_err(failed)
}

/// Generates on one thread and inserts from another.
async fn insert(
    writer: &Writer,
    database: &DatabaseName,
    fleet: DemoFleet,
    from: Timestamp,
    to: Timestamp,
) -> Result<(), CommandError> {
    let aliases = LabelAliases::builtin().map_err(failed)?;
    // Every row of the fleet names its own.
    let scope = Scope { tenant: "default".to_owned(), cluster: "default".to_owned() };
    let (send, receive) = mpsc::channel::<EncodedRows>(2);
    let bar = progress(from, to);
    let counter = bar.clone();
    let generator = tokio::task::spawn_blocking(move || {
        let mut encoder = RowEncoder::new(aliases, scope);
        fleet.world().generate(from, to, &mut |batch| {
            match batch {
                Batch::Metrics(series, samples) => {
                    counter.inc(samples.len() as u64);
                    encoder.series(&series.metric, &series.labels, samples.iter().map(|s| (s.time, s.value)));
                }
                Batch::Logs(rows) => encoder.logs(rows),
                Batch::Events(rows) => encoder.events(rows),
                Batch::Jobs(rows) => encoder.jobs(rows),
                Batch::JobGpus(rows) => encoder.job_gpus(rows),
            }
            if encoder.buffered_bytes() > PIECE_BYTES {
                // A closed channel means the insert failed; its error is the one to tell.
                drop(send.blocking_send(encoder.take()));
            }
        });
        drop(send.blocking_send(encoder.take()));
    });
    insert_stream(writer, database, receive).await.map_err(failed)?;
    generator.await.map_err(failed)?;
    bar.finish_and_clear();
    output::note(&format!("loaded {} samples of the demo fleet, {from} to {to}", bar.position()));
    Ok(())
}

fn progress(from: Timestamp, to: Timestamp) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let hours = to.duration_since(from).as_secs_f64() / 3600.0;
    bar.set_message(format!("loading {hours:.1} hours of the demo fleet"));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {human_pos} samples, {per_sec}, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
