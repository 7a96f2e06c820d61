//! Policies are read again while the service runs: at a signal, and when their files have changed. All or nothing.
//!
//! Files are told apart by what stands in them, not by their times: a folder that is swapped by its link (as orchestrators do) and a
//! file that is written in place both show.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sightline_core::Clock;
use sightline_model::audit::{AuditLog, AuditUnavailable, Event, EventKind, EventOutcome};
use sightline_policies::{LivePolicies, Policies};

use super::files::{PolicyFiles, PolicyFilesError};
use crate::settled::{EVERY, settled};

/// Why the files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A signal asked for it.
    Signal,
    /// It was time.
    Poll,
}

/// What a look at the files has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// They are those in force, or those that were refused before.
    Unchanged,
    /// They are in force from here on.
    Taken,
    /// They were refused; what was in force stays.
    Refused,
    /// They changed while they were read.
    Unsettled,
    /// They could not be put in force because that could not be recorded.
    Unrecorded,
}

/// Keeps the policies in force up to date with their files.
pub struct PolicyWatch {
    dir: PathBuf,
    live: Arc<LivePolicies>,
    audit: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    /// The files in force,
    files: PolicyFiles,
    /// and what they are known by.
    in_force: String,
    /// What was refused last, by its digest or its faults.
    refused: Option<String>,
}

impl PolicyWatch {
    /// Watches this folder. `files` are those that were read at the start.
    pub fn new(
        dir: PathBuf,
        files: PolicyFiles,
        live: Arc<LivePolicies>,
        audit: Arc<dyn AuditLog>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { dir, live, audit, clock, in_force: files.digest(), files, refused: None }
    }

    /// Looks at the files at every signal and every two seconds, until it is dropped.
    pub async fn run(mut self, mut signals: tokio::signal::unix::Signal) {
        loop {
            let occasion = tokio::select! {
                got = signals.recv() => match got {
                    Some(()) => Occasion::Signal,
                    None => return,
                },
                () = tokio::time::sleep(EVERY) => Occasion::Poll,
            };
            let look = self.look(occasion).await;
            if occasion == Occasion::Signal {
                tracing::info!(?look, "policies were read again at a signal");
            }
        }
    }

    /// Looks at the files once, and puts them in force if they have changed and are whole.
    pub async fn look(&mut self, occasion: Occasion) -> Look {
        let is_in_force = |read: &Result<PolicyFiles, PolicyFilesError>| {
            read.as_ref().is_ok_and(|files| files.digest() == self.in_force)
        };
        let Some(read) = settled(|| self.read(), is_in_force).await else { return Look::Unsettled };
        let mark = match &read {
            Ok(files) => files.digest(),
            Err(error) => error.to_string(),
        };
        if read.is_ok() && mark == self.in_force {
            // What was refused is gone again.
            self.refused = None;
            self.live.note_refused(None);
            return Look::Unchanged;
        }
        if self.refused.as_ref() == Some(&mark) {
            return Look::Unchanged;
        }
        let attempt = read.and_then(|files| files.policies().map(|policies| (files, policies)));
        match attempt {
            Ok((files, policies)) => self.take(files, policies, mark, occasion).await,
            Err(error) => self.refuse(&error, mark, occasion).await,
        }
    }

    async fn read(&self) -> Option<Result<PolicyFiles, PolicyFilesError>> {
        let (dir, before) = (self.dir.clone(), self.files.clone());
        tokio::task::spawn_blocking(move || PolicyFiles::read(Some(&dir)).and_then(|files| files.since(&before)))
            .await
            .ok()
    }

    async fn take(&mut self, files: PolicyFiles, policies: Policies, digest: String, occasion: Occasion) -> Look {
        let detail = [("after", digest.clone()), ("files", files.names().join(", "))];
        // Recorded first: no question is answered under policies that the log does not know of.
        if let Err(error) = self.record(EventOutcome::Done, detail, occasion).await {
            tracing::error!(%error, "new policies wait until the audit log can take a record");
            self.live.note_refused(Some("the change of policies could not be recorded in the audit log".to_owned()));
            return Look::Unrecorded;
        }
        self.live.replace(policies);
        (self.files, self.in_force) = (files, digest);
        self.refused = None;
        tracing::info!(digest = self.in_force, "new policies are in force");
        Look::Taken
    }

    async fn refuse(&mut self, error: &PolicyFilesError, mark: String, occasion: Occasion) -> Look {
        let faults = error.faults.len();
        tracing::error!(%error, "the policies on the disk are refused; those in force stay");
        let first = error.faults.first().map(ToString::to_string).unwrap_or_default();
        let detail = [("faults", faults.to_string()), ("first_fault", first)];
        // How they are wrong is for whoever can read the log: `/readyz` is open to everybody.
        self.live.note_refused(Some(format!(
            "the files on the disk are not in force: {faults} of their lines are wrong; run `sightline policy check`"
        )));
        match self.record(EventOutcome::Failed, detail, occasion).await {
            Ok(()) => {
                self.refused = Some(mark);
                Look::Refused
            }
            Err(error) => {
                tracing::error!(%error, "the refusal of policies is recorded once the audit log can take it");
                Look::Unrecorded
            }
        }
    }

    async fn record<const N: usize>(
        &self,
        outcome: EventOutcome,
        detail: [(&str, String); N],
        occasion: Occasion,
    ) -> Result<(), AuditUnavailable> {
        let occasion = match occasion {
            Occasion::Signal => "signal",
            Occasion::Poll => "change",
        };
        let common = [("before", self.in_force.clone()), ("occasion", occasion.to_owned())];
        let detail: BTreeMap<String, String> =
            detail.into_iter().chain(common).map(|(key, value)| (key.to_owned(), value)).collect();
        let event = Event {
            at: self.clock.now(),
            event: EventKind::PolicyReload,
            principal: None,
            entrance: "service".to_owned(),
            outcome,
            detail,
        };
        self.audit.event(event).await
    }
}
