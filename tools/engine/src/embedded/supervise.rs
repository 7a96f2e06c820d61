//! Starts a crashed child again.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::EmbeddedOptions;
use super::child::Child;

/// The first wait before a restart, doubled up to the last one: a crash now and then costs a moment, an engine that
/// cannot start does not take the machine.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(10);
/// A child that lived this long has started well, and its next crash is a first one.
const STEADY: Duration = Duration::from_secs(60);

/// Keeps the engine running until it is stopped, or until the other end of `stopped` goes.
pub(super) async fn keep_alive(
    options: EmbeddedOptions,
    mut child: Child,
    pid: watch::Sender<Option<u32>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let port = child.port;
    let mut wait = FIRST_WAIT;
    let mut started = Instant::now();
    loop {
        tokio::select! {
            _ = &mut stopped => return child.end().await,
            status = child.ended() => {
                pid.send_replace(None);
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                tracing::error!(%status, "the engine has ended by itself and is started again");
            }
        }
        if started.elapsed() >= STEADY {
            wait = FIRST_WAIT;
        }
        child = loop {
            tokio::select! {
                _ = &mut stopped => return,
                () = tokio::time::sleep(wait) => {}
            }
            wait = LAST_WAIT.min(wait * 2);
            let restarted = tokio::select! {
                _ = &mut stopped => return,
                restarted = Child::start(&options, port) => restarted,
            };
            match restarted {
                Ok(child) => break child,
                Err(error) => tracing::error!(%error, "the engine does not start; it is tried again"),
            }
        };
        started = Instant::now();
        pid.send_replace(child.pid());
        tracing::info!(port, "the engine is back");
    }
}
