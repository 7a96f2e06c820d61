//! A thread for each second place. It catches up with the log's own checkpoints, so that a place that hangs, fails or was
//! away while the process ended holds up no record and misses nothing.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::checkpoint::Checkpoint;
use crate::copies::CheckpointCopy;
use crate::error::AuditError;
use crate::reader::AuditReader;

/// How long an orderly end waits for a place: the next process makes up for what it has not taken.
const FINISH: Duration = Duration::from_secs(5);

/// A place that has not taken a checkpoint when one of so much later is made hangs.
const SLOW: SignedDuration = SignedDuration::from_secs(30);

/// A second place as the writer of the log sees it.
pub(crate) struct Copying {
    state: CopyState,
    made: Option<Sender<()>>,
    ended: Receiver<()>,
}

/// How a second place fares.
#[derive(Clone)]
pub(crate) struct CopyState {
    name: Arc<str>,
    progress: Arc<Mutex<Progress>>,
}

#[derive(Default)]
struct Progress {
    /// The newest segment that was made.
    made: u64,
    /// The newest one that the thread has taken up, with or without success.
    tried: u64,
    /// The time of the oldest checkpoint that waits, and of the newest.
    waiting: Option<(Timestamp, Timestamp)>,
    /// Why the last try failed.
    failed: Option<String>,
    /// Whether the log has been told of what is wrong now.
    told: bool,
}

impl CopyState {
    fn with<T>(&self, act: impl FnOnce(&mut Progress) -> T) -> T {
        act(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with the place, in a line.
    pub(crate) fn fault(&self) -> Option<String> {
        self.with(|progress| progress.fault())
    }

    /// The same, once for each fault.
    fn news(&self) -> Option<String> {
        self.with(|progress| {
            let fault = progress.fault();
            let is_new = fault.is_some() && !progress.told;
            progress.told = fault.is_some();
            fault.filter(|_| is_new)
        })
    }
}

impl Progress {
    fn fault(&self) -> Option<String> {
        // One that was just made may be on its way.
        let hangs = self.waiting.is_some_and(|(oldest, newest)| newest.duration_since(oldest) >= SLOW);
        let hung = || format!("it hangs: it has taken no checkpoint after segment {}", self.tried);
        self.failed.clone().or_else(|| hangs.then(hung))
    }
}

impl Copying {
    /// Starts the thread and lets it make up for what an earlier process left.
    pub(crate) fn start(copy: Box<dyn CheckpointCopy>, log: PathBuf) -> Result<Self, AuditError> {
        let state = CopyState { name: copy.name().into(), progress: Arc::default() };
        let (made, waiting) = channel();
        let (end, ended) = channel();
        let newest = AuditReader::open(&log)?.newest_segment()?;
        state.with(|progress| (progress.made, progress.tried) = (newest, newest));
        let place = Place { copy, log: log.clone(), state: state.clone(), after: None, since: newest };
        std::thread::Builder::new()
            .name("audit-copy".to_owned())
            .spawn(move || {
                place.run(&waiting);
                let _gone = end.send(());
            })
            .map_err(|error| AuditError::Other { path: log.display().to_string(), what: error.to_string() })?;
        Ok(Self { state, made: Some(made), ended })
    }

    pub(crate) fn state(&self) -> CopyState {
        self.state.clone()
    }

    /// Tells the thread that this segment was closed.
    pub(crate) fn made(&self, checkpoint: &Checkpoint) {
        self.state.with(|progress| {
            let oldest = progress.waiting.map_or(checkpoint.at, |(oldest, _)| oldest);
            progress.waiting = Some((oldest, checkpoint.at));
            progress.made = checkpoint.segment;
        });
        if let Some(made) = &self.made {
            let _ended = made.send(());
        }
    }

    /// What the log is to be told of the place.
    pub(crate) fn news(&self) -> Option<String> {
        self.state.news()
    }

    /// Waits until everything is copied, or cannot be, or it takes too long.
    pub(crate) fn finish(&mut self) {
        self.made = None;
        if self.ended.recv_timeout(FINISH) == Err(RecvTimeoutError::Timeout) {
            let (name, made) = (self.state.name(), self.state.with(|progress| progress.made));
            let what = format!("it hangs: it has not taken the checkpoint of segment {made}");
            tracing::warn!(copy = name, "checkpoints are not all copied; the next start copies them");
            self.state.with(|progress| progress.failed = Some(what));
        }
    }
}

/// The thread's own side.
struct Place {
    copy: Box<dyn CheckpointCopy>,
    log: PathBuf,
    state: CopyState,
    /// The newest segment that the place holds; none until it was asked.
    after: Option<u64>,
    /// The newest segment when the log was opened.
    since: u64,
}

impl Place {
    fn run(mut self, waiting: &Receiver<()>) {
        loop {
            let made = self.state.with(|progress| progress.made);
            let failed = self.catch_up().err();
            if let Some(what) = &failed {
                let name = self.state.name();
                tracing::error!(copy = name, what, "a checkpoint of the audit log cannot be copied; it is tried again");
            }
            self.state.with(|progress| {
                progress.failed = failed;
                progress.tried = made;
                let newest = progress.waiting.map(|(_, newest)| newest).filter(|_| progress.made > made);
                progress.waiting = newest.map(|newest| (newest, newest));
            });
            if waiting.recv().is_err() {
                return;
            }
            // One round serves all that were made meanwhile.
            while waiting.try_recv().is_ok() {}
        }
    }

    fn catch_up(&mut self) -> Result<(), String> {
        let text = |error: AuditError| error.to_string();
        let reader = AuditReader::open(&self.log).map_err(text)?;
        let after = match self.after {
            Some(after) => after,
            None => self.copy.newest(&reader.log_id().map_err(text)?)?.unwrap_or(self.since),
        };
        self.after = Some(after);
        for checkpoint in reader.checkpoints(after).map_err(text)? {
            self.copy.put(&checkpoint)?;
            self.after = Some(checkpoint.segment);
        }
        Ok(())
    }
}
