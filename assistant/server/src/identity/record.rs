//! What the audit log says of credentials: public ids, addresses, counts; never a secret.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use sightline_core::Clock;
use sightline_model::Principal;
use sightline_model::audit::{AuditLog, Event, EventKind, EventOutcome};

use super::gate::Refused;
use super::lockout::Attempts;
use super::sessions::OpenedBy;
use crate::tally::Report;

/// An event without its time.
pub(super) struct Draft {
    kind: EventKind,
    outcome: EventOutcome,
    principal: Option<String>,
    detail: BTreeMap<String, String>,
}

pub(super) fn login(principal: &Principal, opened_by: &OpenedBy, peer: IpAddr) -> Draft {
    let credential = match opened_by {
        OpenedBy::Token { id } => ("token_id", id.clone()),
        OpenedBy::Provider { issuer, claims: _ } => ("issuer", issuer.clone()),
    };
    Draft {
        kind: EventKind::Login,
        outcome: EventOutcome::Done,
        principal: Some(principal.id.clone()),
        detail: facts([credential, ("peer", peer.to_string())]),
    }
}

pub(super) fn logout(principal: &str) -> Draft {
    Draft {
        kind: EventKind::Logout,
        outcome: EventOutcome::Done,
        principal: Some(principal.to_owned()),
        detail: BTreeMap::new(),
    }
}

/// Failed attempts of one kind.
pub(super) fn failures(report: &Report<Attempts>) -> Draft {
    let mut detail = about(&report.of);
    detail.insert("attempts".to_owned(), report.attempts().to_string());
    detail.insert("reasons".to_owned(), report.reasons());
    denied(EventKind::LoginFailed, &report.of, detail)
}

/// A lock that has begun.
pub(super) fn locked_out(whose: &Attempts, seconds: u64) -> Draft {
    let mut detail = about(whose);
    detail.insert("seconds".to_owned(), seconds.to_string());
    denied(EventKind::LockedOut, whose, detail)
}

fn denied(kind: EventKind, whose: &Attempts, detail: BTreeMap<String, String>) -> Draft {
    // Whom the credential names; that it was that person is just what is not known.
    let principal = match whose {
        Attempts::Token { principal, .. } | Attempts::Named { principal, .. } => Some(principal.clone()),
        Attempts::Other { .. } | Attempts::Afar => None,
    };
    Draft { kind, outcome: EventOutcome::Denied, principal, detail }
}

/// Writes events. It is cheap to clone, so that what writes them need not be the request, which ends when its client hangs up.
#[derive(Clone)]
pub(super) struct Recorder {
    pub(super) audit: Arc<dyn AuditLog>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Recorder {
    /// Writes an event; when this returns, it is durable.
    pub(super) async fn write(&self, draft: Draft) -> Result<(), Refused> {
        let Draft { kind, outcome, principal, detail } = draft;
        let event =
            Event { at: self.clock.now(), event: kind, principal, entrance: "http".to_owned(), outcome, detail };
        self.audit.event(event).await.map_err(|error| {
            tracing::error!(%error, "an event of a credential was not recorded");
            Refused::Unavailable(
                "the audit log cannot be written, and nobody comes in unrecorded; see `/readyz`".to_owned(),
            )
        })
    }

    /// Writes what was refused, to its end even if the caller goes away. Who fails stays out whether or not it can be recorded, so a log
    /// that cannot be written is told of in the service's own log.
    pub(super) async fn write_all(&self, drafts: Vec<Draft>) {
        if drafts.is_empty() {
            return;
        }
        let recorder = self.clone();
        let writing = tokio::spawn(async move {
            for draft in drafts {
                let _ = recorder.write(draft).await;
            }
        });
        if let Err(error) = writing.await {
            tracing::error!(%error, "failed credentials were not recorded");
        }
    }
}

fn about(whose: &Attempts) -> BTreeMap<String, String> {
    match whose {
        Attempts::Token { peer, id, principal: _ } => facts([("peer", peer.to_string()), ("token_id", id.clone())]),
        Attempts::Named { peer, principal: _ } | Attempts::Other { peer } => facts([("peer", peer.to_string())]),
        Attempts::Afar => facts([("peer", "other machines".to_owned())]),
    }
}

fn facts<const N: usize>(facts: [(&str, String); N]) -> BTreeMap<String, String> {
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
