//! One run of a child engine: from spawn to ready, and to its end.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, Command};

use crate::front::{ParentLine, ReadyLine};

use super::{EmbeddedError, EmbeddedOptions};

/// How long a child has to close its connections; its own limit for running queries is 5 s.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Enough of a failed child's last words to hold its one-line reason.
const KEPT_LINES: usize = 20;

/// A running child that can be asked.
#[derive(Debug)]
pub(super) struct Child {
    process: tokio::process::Child,
    /// The child ends when this closes.
    stdin: ChildStdin,
    pub(super) port: u16,
}

impl Child {
    /// Starts the child on this port, 0 for a free one, and waits until it is ready.
    pub(super) async fn start(options: &EmbeddedOptions, port: u16) -> Result<Self, EmbeddedError> {
        let spawn_failed = |source| EmbeddedError::Spawn { program: options.program.clone(), source };
        let mut process = Command::new(&options.program)
            .args(&options.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C in the terminal is for the parent, which then ends the child in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(spawn_failed)?;
        let missing = || spawn_failed(std::io::Error::other("a pipe is missing"));
        let mut stdin = process.stdin.take().ok_or_else(missing)?;
        let stdout = process.stdout.take().ok_or_else(missing)?;
        let stderr = process.stderr.take().ok_or_else(missing)?;
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let listening = tokio::spawn(listen(stderr, Arc::clone(&last_words)));

        let line = ParentLine { credentials: options.credentials.clone(), port };
        let mut line = serde_json::to_vec(&line).map_err(|error| spawn_failed(error.into()))?;
        line.push(b'\n');
        // A child that has ended already says why below.
        let _ = stdin.write_all(&line).await;

        let mut stdout = BufReader::new(stdout);
        let mut ready = String::new();
        let read = tokio::time::timeout(options.start_timeout, stdout.read_line(&mut ready)).await;
        if read.is_err() {
            return Err(EmbeddedError::Slow(options.start_timeout));
        }
        let Ok(ReadyLine { port }) = serde_json::from_str(&ready) else {
            let status = process.wait().await.map_err(spawn_failed)?;
            let _ = listening.await;
            let words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
            let reason = words.back().cloned().unwrap_or_else(|| format!("the engine ended at once: {status}"));
            return Err(EmbeddedError::Failed(reason));
        };
        // The library may print; a full pipe would stop it.
        tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await });
        Ok(Self { process, stdin, port })
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Waits until it ends of itself.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Ends it in order, or by force when it does not.
    pub(super) async fn end(mut self) {
        drop(self.stdin);
        if tokio::time::timeout(END_TIMEOUT, self.process.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(pid = self.process.id(), "the engine did not end in time and is killed");
        if let Err(error) = self.process.kill().await {
            tracing::error!(%error, "the engine cannot be killed");
        }
    }
}

async fn listen(stderr: impl AsyncRead + Unpin, last_words: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(target: "sightline_engine::child", "{line}");
        let mut words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() == KEPT_LINES {
            words.pop_front();
        }
        words.push_back(line);
    }
}
