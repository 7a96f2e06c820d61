//! Looking into the audit log: by whom, and recorded before anything of it is shown. The HTTP routes and the CLI both come through here.

mod files;
mod query;
mod verification;

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_audit::AuditError;
use sightline_core::Clock;
use sightline_model::Principal;
use sightline_model::audit::{AuditLog, AuditUnavailable, Event, EventKind, EventOutcome};
use sightline_policies::{Action, Policies};

use crate::tally::{Report, Tally};
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

/// A denial, as denials are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Denial {
    principal: String,
    action: &'static str,
    reason: String,
}

/// Denials that were counted. A service has one, so that whoever asks in a loop for what is denied does not fill the log.
#[derive(Default)]
pub struct Denials(Tally<Denial>);

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
    /// Where its denials are counted; each is recorded by itself where there is none.
    pub denials: Option<&'a Denials>,
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

    /// Whether the rules let this principal; a denial is recorded, repeated ones a minute at a time.
    ///
    /// # Errors
    /// When they do not, or the denial could not be written.
    pub async fn may(&self, action: Action) -> Result<(), ReviewError> {
        let decision = self.policies.check(self.principal, action, "");
        if decision.allowed() {
            return Ok(());
        }
        let reason = decision.reasons().join("; ");
        let denial = Denial { principal: self.principal.id.clone(), action: action.id(), reason: reason.clone() };
        let reports = match self.denials {
            Some(Denials(tally)) => tally.count(&denial, "denied", self.clock.monotonic_ms()),
            None => vec![Report { of: denial, counts: [("denied", 1)].into() }],
        };
        for report in reports {
            self.log.event(denied(report, self.clock.now(), self.entrance)).await?;
        }
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

impl Denials {
    /// Records those that were counted and not recorded yet: those whose minute is over, or all of them when the service ends.
    pub(crate) async fn record(&self, log: &dyn AuditLog, clock: &dyn Clock, ends: bool) {
        let reports = if ends { self.0.rest() } else { self.0.due(clock.monotonic_ms()) };
        for report in reports {
            // It was denied whether or not that can be recorded.
            if let Err(error) = log.event(denied(report, clock.now(), "http")).await {
                tracing::error!(%error, "denials were not recorded");
            }
        }
    }
}

fn denied(report: Report<Denial>, at: Timestamp, entrance: &str) -> Event {
    let attempts = report.attempts().to_string();
    let Denial { principal, action, reason } = report.of;
    let detail = [("action", action.to_owned()), ("attempts", attempts), ("reason", reason)];
    Event {
        at,
        event: EventKind::Denied,
        principal: Some(principal),
        entrance: entrance.to_owned(),
        outcome: EventOutcome::Denied,
        detail: detail.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}
