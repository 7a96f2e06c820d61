//! What the audit log says of credentials: public ids, addresses, counts; never a secret.

use std::collections::BTreeMap;
use std::net::IpAddr;

use sightline_model::Principal;
use sightline_model::audit::{Event, EventKind, EventOutcome};

use super::gate::{Identity, Refused};
use super::lockout::{Attempts, Report};
use super::sessions::OpenedBy;

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

pub(super) fn logout(principal: &Principal) -> Draft {
    Draft {
        kind: EventKind::Logout,
        outcome: EventOutcome::Done,
        principal: Some(principal.id.clone()),
        detail: BTreeMap::new(),
    }
}

/// Writes an event; when this returns, it is durable.
pub(super) async fn write(identity: &Identity, draft: Draft) -> Result<(), Refused> {
    let Draft { kind, outcome, principal, detail } = draft;
    let event =
        Event { at: identity.clock.now(), event: kind, principal, entrance: "http".to_owned(), outcome, detail };
    identity.audit.event(event).await.map_err(|error| {
        tracing::error!(%error, "an event of a credential was not recorded");
        Refused::Unavailable(
            "the audit log cannot be written, and nobody comes in unrecorded; see `/readyz`".to_owned(),
        )
    })
}

/// Failed attempts. Who fails stays out whether or not it can be recorded, so a log that cannot be written is told of in the service's
/// own log.
pub(super) async fn failures(identity: &Identity, reports: impl IntoIterator<Item = Report>) {
    for Report { whose, attempts } in reports {
        let mut detail = about(&whose);
        detail.insert("attempts".to_owned(), attempts.to_string());
        let draft = Draft { kind: EventKind::LoginFailed, outcome: EventOutcome::Denied, principal: None, detail };
        let _ = write(identity, draft).await;
    }
}

/// A lock that has begun.
pub(super) async fn locked_out(identity: &Identity, whose: &Attempts, seconds: u64) {
    let mut detail = about(whose);
    detail.insert("seconds".to_owned(), seconds.to_string());
    let draft = Draft { kind: EventKind::LockedOut, outcome: EventOutcome::Denied, principal: None, detail };
    let _ = write(identity, draft).await;
}

fn about(whose: &Attempts) -> BTreeMap<String, String> {
    match whose {
        Attempts::Token { peer, id } => facts([("peer", peer.to_string()), ("token_id", id.clone())]),
        Attempts::Other { peer } => facts([("peer", peer.to_string())]),
    }
}

fn facts<const N: usize>(facts: [(&str, String); N]) -> BTreeMap<String, String> {
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
