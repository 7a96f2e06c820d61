//! Letting go, on time, of what is kept for so many days only: at the start of the service and every hour, and recorded.

use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, ToSpan as _};
use sightline_audit::{AuditError, SqliteAudit};
use sightline_core::Clock;
use sightline_model::audit::{AuditLog, Event, EventKind, EventOutcome};

use crate::answers::{Answers, AnswersError, Swept};

/// How often the service sweeps: days are what is promised, so an hour more does not count.
const EVERY: Duration = Duration::from_secs(3_600);

/// Sweeps the answer store once; what went is an event of the audit log.
///
/// # Errors
/// When the store fails. That the log took no record is said in the service's own log: what was past its days is gone all the same.
pub(crate) async fn sweep(
    answers: &Arc<Answers>,
    audit: &dyn AuditLog,
    clock: &dyn Clock,
    entrance: &str,
) -> Result<Swept, AnswersError> {
    let now = clock.now();
    let swept = answers.ask(move |answers| answers.sweep(now)).await?;
    if swept.is_empty() {
        return Ok(swept);
    }
    let event = Event {
        at: now,
        event: EventKind::Retention,
        principal: None,
        entrance: entrance.to_owned(),
        outcome: EventOutcome::Done,
        detail: [
            ("store".to_owned(), "answers".to_owned()),
            ("evidence".to_owned(), swept.evidence.to_string()),
            ("conversations".to_owned(), swept.conversations.to_string()),
        ]
        .into(),
    };
    if let Err(error) = audit.event(event).await {
        tracing::error!(%error, "what the retention took out of the answer store was not recorded");
    }
    Ok(swept)
}

/// The audit log, and for how many days it keeps records.
pub(crate) struct KeptLog {
    pub(crate) log: Arc<SqliteAudit>,
    pub(crate) keep_days: Option<i64>,
}

/// Sweeps now and every hour, until it is dropped.
pub(crate) async fn keep_sweeping(answers: &Arc<Answers>, audit: &dyn AuditLog, clock: &dyn Clock, kept: KeptLog) {
    let mut hourly = tokio::time::interval(EVERY);
    loop {
        hourly.tick().await;
        if let Err(error) = sweep(answers, audit, clock, "service").await {
            tracing::error!(%error, "what is past its days could not be let go of; it is tried again in an hour");
        }
        if let Err(error) = sweep_log(&kept, clock.now()).await {
            tracing::error!(%error, "old records could not be taken out of the audit log; it is tried again in an hour");
        }
    }
}

/// Takes whole segments out of the log that ended before its days. The log records it together with it.
async fn sweep_log(kept: &KeptLog, now: Timestamp) -> Result<(), AuditError> {
    let Some(days) = kept.keep_days else { return Ok(()) };
    let until = now.checked_sub((days * 24).hours()).unwrap_or(Timestamp::MIN);
    kept.log.retain(until, now, "retention".to_owned()).await.map(drop)
}
