//! Letting go, on time, of what is kept for so many days only: at the start of the service and every hour, and recorded.

use std::time::Duration;

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
    answers: &Answers,
    audit: &dyn AuditLog,
    clock: &dyn Clock,
    entrance: &str,
) -> Result<Swept, AnswersError> {
    let now = clock.now();
    let swept = answers.sweep(now)?;
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

/// Sweeps now and every hour, until it is dropped.
pub(crate) async fn keep_sweeping(answers: &Answers, audit: &dyn AuditLog, clock: &dyn Clock) {
    let mut hourly = tokio::time::interval(EVERY);
    loop {
        hourly.tick().await;
        if let Err(error) = sweep(answers, audit, clock, "service").await {
            tracing::error!(%error, "what is past its days could not be let go of; it is tried again in an hour");
        }
    }
}
