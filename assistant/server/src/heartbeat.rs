//! Signs of life in the audit log: that the service started, that it lives, that it ended in order. Where they are
//! missing, somebody killed it or kept its records from the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sightline_audit::HEARTBEAT_SECONDS;
use sightline_core::Clock;
use sightline_model::audit::{AuditLog, Event, EventKind, EventOutcome};
use tokio::task::JoinHandle;

use crate::audit_watch::WatchedAudit;
use crate::process;
use crate::stations::Stations;

/// The beat while the service runs.
pub(crate) struct Heartbeat {
    signs: Signs,
    beating: JoinHandle<()>,
}

#[derive(Clone)]
struct Signs {
    audit: Arc<WatchedAudit>,
    clock: Arc<dyn Clock>,
    every_seconds: u64,
}

impl Heartbeat {
    /// Says that the service started, under which policies, and that it lives every so many seconds from here on.
    pub(crate) async fn start(stations: &Stations, every_seconds: u64) -> Self {
        let signs =
            Signs { audit: Arc::clone(&stations.audit), clock: Arc::clone(&stations.assistant.clock), every_seconds };
        let policies = ("policies".to_owned(), stations.policy_files.digest());
        signs.write(EventKind::ServiceStarted, [policies].into()).await;
        let beating = tokio::spawn(beat(signs.clone()));
        Self { signs, beating }
    }

    /// Says that the service ended in order.
    pub(crate) async fn stop(self) {
        self.beating.abort();
        self.signs.write(EventKind::ServiceStopped, BTreeMap::new()).await;
    }
}

async fn beat(signs: Signs) {
    loop {
        tokio::time::sleep(Duration::from_secs(signs.every_seconds)).await;
        signs.write(EventKind::Heartbeat, BTreeMap::new()).await;
    }
}

impl Signs {
    /// A sign that cannot be written shows at `/readyz`, and questions are refused until the log takes records again.
    async fn write(&self, event: EventKind, mut detail: BTreeMap<String, String>) {
        detail.insert(HEARTBEAT_SECONDS.to_owned(), self.every_seconds.to_string());
        detail.extend(process::this().map(|process| ("process".to_owned(), process)));
        let record = Event {
            at: self.clock.now(),
            event,
            principal: None,
            entrance: "service".to_owned(),
            outcome: EventOutcome::Done,
            detail,
        };
        if let Err(error) = self.audit.event(record).await {
            tracing::error!(%error, ?event, "a sign of life cannot be written");
        }
    }
}
