//! Looking into the audit log: by whom, and recorded before anything of it is shown. The HTTP routes and the CLI both come through here.

mod files;
mod query;
mod verification;

use std::collections::BTreeMap;

use sightline_audit::AuditError;
use sightline_core::Clock;
use sightline_model::Principal;
use sightline_model::audit::{AuditLog, AuditUnavailable, Event, EventKind, EventOutcome};
use sightline_policies::{Action, Policies};

pub use files::{AuditFiles, verify_files};
pub use query::{SearchQuery, UsageQuery};
pub use verification::{Remark, Verification};

/// Why nothing of the log is shown.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The rules said no; that is in the log, too.
    #[error("{reason}")]
    Denied {
        /// Why, and whom to ask.
        reason: String,
    },
    /// The look could not be recorded, so it was not taken.
    #[error(transparent)]
    Unrecorded(#[from] AuditUnavailable),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] AuditError),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Query(String),
    /// There is no such question.
    #[error("there is no question with this id in the audit log; it may be older than what the log keeps")]
    Unknown,
    /// The key is not where it should be.
    #[error(
        "the audit log's key `{file}` is not there; set `audit.key_file` to where it lies, or verify with --public-key"
    )]
    NoKey {
        /// Its file.
        file: String,
    },
    /// Somebody else verifies.
    #[error("the log is being verified already; ask again when that is done")]
    Busy,
    /// Reading it broke down.
    #[error("reading the audit log failed inside Sightline: {0}; report it")]
    Crashed(String),
}

/// Who looks, and where that is recorded.
#[derive(Clone, Copy)]
pub struct Reviewer<'a> {
    /// Who.
    pub principal: &'a Principal,
    /// The rules in force.
    pub policies: &'a Policies,
    /// The log that is looked into, and in which the look is recorded.
    pub log: &'a dyn AuditLog,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Through which entrance.
    pub entrance: &'static str,
}

impl Reviewer<'_> {
    /// Records a look, or the denial of it, durable. Nothing may be shown before it resolves.
    ///
    /// # Errors
    /// When the rules do not let this principal, or the record could not be written.
    pub async fn record(
        &self,
        action: Action,
        event: EventKind,
        detail: BTreeMap<String, String>,
    ) -> Result<(), ReviewError> {
        self.may(action).await?;
        self.write(event, EventOutcome::Done, detail).await
    }

    /// Whether the rules let this principal; a denial is recorded.
    ///
    /// # Errors
    /// When they do not, or the denial could not be written.
    pub async fn may(&self, action: Action) -> Result<(), ReviewError> {
        let decision = self.policies.check(self.principal, action, "");
        if decision.allowed() {
            return Ok(());
        }
        let reason = decision.reasons().join("; ");
        let detail = [("action".to_owned(), action.id().to_owned()), ("reason".to_owned(), reason.clone())];
        self.write(EventKind::Denied, EventOutcome::Denied, detail.into()).await?;
        Err(ReviewError::Denied { reason })
    }

    /// Records what verifying found, after it was found: a log that takes no record anymore is the one that must be
    /// verified. That the look could not be recorded stands beside the verdict.
    ///
    /// # Errors
    /// The error that ended verifying.
    pub async fn record_verified(&self, found: Result<Verification, ReviewError>) -> Result<Verification, ReviewError> {
        let mut detail = BTreeMap::new();
        let outcome = match &found {
            Ok(Verification { whole, first_bad, compared, .. }) => {
                let word = match whole {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "unproved",
                };
                detail.insert("whole".to_owned(), word.to_owned());
                detail.insert("compared".to_owned(), compared.to_string());
                detail.extend(first_bad.map(|seq| ("first_bad".to_owned(), seq.to_string())));
                if *whole == Some(true) { EventOutcome::Done } else { EventOutcome::Failed }
            }
            Err(error) => {
                detail.insert("error".to_owned(), error.to_string());
                EventOutcome::Failed
            }
        };
        let recorded = self.write(EventKind::AuditVerified, outcome, detail).await;
        if let Err(error) = &recorded {
            tracing::error!(%error, "that the audit log was verified cannot be recorded");
        }
        found.map(|found| Verification {
            unrecorded: recorded.err().map(|error| format!("this look could not be recorded: {error}")),
            ..found
        })
    }

    /// Writes an event of this principal.
    ///
    /// # Errors
    /// When the log takes no record.
    pub async fn write(
        &self,
        event: EventKind,
        outcome: EventOutcome,
        detail: BTreeMap<String, String>,
    ) -> Result<(), ReviewError> {
        let event = Event {
            at: self.clock.now(),
            event,
            principal: Some(self.principal.id.clone()),
            entrance: self.entrance.to_owned(),
            outcome,
            detail,
        };
        Ok(self.log.event(event).await?)
    }
}
