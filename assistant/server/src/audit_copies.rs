//! Copies of the audit log's checkpoints: into the embedded engine, and back out of every place for verification.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sightline_audit::{AuditReader, Checkpoint, CheckpointCopy, Copied, FileCopy, Hex};
use sightline_engine::{
    EmbeddedEngine, EngineUser, Writer, keep_checkpoint, kept_checkpoints, make_checkpoint_table, newest_checkpoint,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::stations::endpoint;

/// What the engine's table is called in the log.
const NAME: &str = "engine table audit_checkpoint";
/// How long an orderly end waits for the last copies.
const FINISH: Duration = Duration::from_secs(5);

/// Copies checkpoints into a table of the engine, beside the writing of the log: a slow engine holds up no record.
#[derive(Clone)]
pub struct EngineCopy {
    /// Told at each checkpoint; who sends an answer's address hears when all of them are copied.
    made: UnboundedSender<Option<oneshot::Sender<()>>>,
    /// Why the last try failed, until the log has been told.
    failed: Arc<Mutex<Option<String>>>,
}

impl EngineCopy {
    /// Starts copying the checkpoints of the log at this path.
    pub fn start(writer: Writer, log: PathBuf) -> Self {
        let (made, waiting) = unbounded_channel();
        let failed = Arc::new(Mutex::new(None));
        tokio::spawn(copy(writer, log, waiting, Arc::clone(&failed)));
        Self { made, failed }
    }

    /// Waits until every checkpoint of the log is copied, or cannot be, or it takes too long: the next process makes
    /// up for it.
    pub async fn finish(&self) {
        let (done, all) = oneshot::channel();
        if self.made.send(Some(done)).is_ok() && tokio::time::timeout(FINISH, all).await.is_err() {
            tracing::warn!("checkpoints of the audit log are not all copied to the engine; the next start copies them");
        }
    }
}

impl CheckpointCopy for EngineCopy {
    fn name(&self) -> &str {
        NAME
    }

    fn newest(&mut self, _log_id: &Hex<16>) -> Result<Option<u64>, String> {
        // The table itself is asked, each time.
        Ok(None)
    }

    fn put(&mut self, _checkpoint: &Checkpoint) -> Result<(), String> {
        self.made.send(None).map_err(|_ended| "what copies to the engine has ended".to_owned())?;
        // What failed is copied with the next: the log holds it. It is only told here.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Copies what the log has and the table lacks, each time one was made.
async fn copy(
    writer: Writer,
    log: PathBuf,
    mut waiting: UnboundedReceiver<Option<oneshot::Sender<()>>>,
    failed: Arc<Mutex<Option<String>>>,
) {
    while let Some(first) = waiting.recv().await {
        let mut told = vec![first];
        while let Ok(next) = waiting.try_recv() {
            told.push(next);
        }
        if let Err(what) = catch_up(&writer, &log).await {
            tracing::error!(what, "checkpoints of the audit log cannot be copied to the engine");
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        }
        for done in told.into_iter().flatten() {
            let _gone = done.send(());
        }
    }
}

async fn catch_up(writer: &Writer, log: &std::path::Path) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    if !log.exists() {
        return Ok(());
    }
    let log_id = AuditReader::open(log).and_then(|reader| reader.log_id()).map_err(|error| text(&error))?.to_string();
    make_checkpoint_table(writer).await.map_err(|error| text(&error))?;
    let newest = newest_checkpoint(writer, &log_id).await.map_err(|error| text(&error))?;
    let missing = AuditReader::open(log).and_then(|reader| reader.checkpoints(newest)).map_err(|error| text(&error))?;
    for checkpoint in missing {
        let json = serde_json::to_string(&checkpoint).map_err(|error| text(&error))?;
        keep_checkpoint(writer, &log_id, checkpoint.segment, &json).await.map_err(|error| text(&error))?;
    }
    Ok(())
}

/// The embedded engine of the data folder, where one lives. None is started.
///
/// # Errors
/// When one lives and cannot be asked.
pub fn living_engine(config: &Config) -> Result<Option<Writer>, String> {
    if config.clickhouse.is_some() {
        return Ok(None);
    }
    let engine = EmbeddedEngine::attach(&config.data_dir).map_err(|error| format!("{NAME}: {error}"))?;
    Ok(engine.map(|engine| Writer::new(&endpoint(&engine, EngineUser::Writer))))
}

/// What every second place holds, for verification. A place that cannot be read is named.
pub async fn copied(config: &Config, writer: Option<&Writer>) -> Vec<Result<Copied, String>> {
    let mut places = Vec::new();
    if let Some(file) = &config.checkpoint_copy {
        places.push(FileCopy::read(file).map_err(|error| error.to_string()));
    }
    if let Some(writer) = writer {
        places.push(engine_copied(writer).await.map_err(|error| format!("{NAME}: {error}")));
    }
    places
}

async fn engine_copied(writer: &Writer) -> Result<Copied, sightline_engine::WriteError> {
    make_checkpoint_table(writer).await?;
    let mut copied = Copied { name: NAME.to_owned(), ..Copied::default() };
    for line in kept_checkpoints(writer).await? {
        match serde_json::from_str(&line) {
            Ok(checkpoint) => copied.checkpoints.push(checkpoint),
            Err(_not_one) => copied.unreadable = copied.unreadable.saturating_add(1),
        }
    }
    Ok(copied)
}
