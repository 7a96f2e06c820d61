//! The audit log over HTTP: `GET /v1/audit`, `GET /v1/audit/{id}`, `POST /v1/audit/verify`, `POST /v1/audit/{id}/replay`. Each look is
//! recorded before anything of it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Serialize;
use sightline_audit::{Entry, QuestionRecord};
use sightline_core::{Replay, ReplayError, ReplayRequest, replay};
use sightline_model::audit::{Call, EventKind};
use sightline_model::{Principal, QuestionId};
use sightline_policies::{Action, Policies};
use tokio::sync::watch;

use super::auth::Asker;
use super::chat::{DEADLINE, StopOnDrop, place};
use super::problem::Problem;
use super::progress::{Progress, Running};
use super::service::Service;
use crate::review::{AuditFiles, ReviewError, Reviewer, SearchQuery, Verification};

/// When to ask again whether the log can be verified, seconds.
const BUSY_RETRY_S: u64 = 5;

/// A page of the log.
#[derive(Debug, Serialize)]
pub(super) struct AuditPage {
    entries: Vec<Entry>,
    next_cursor: Option<String>,
}

/// Handles `GET /v1/audit`.
pub(super) async fn list(
    State(service): State<Service>,
    Asker(principal): Asker,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> Result<Json<AuditPage>, Problem> {
    let policies = service.assistant().policies.now();
    let reviewer = reviewer(&service, &principal, &policies);
    reviewer.may(Action::ReadAudit).await?;
    let Query(query) = query.map_err(|rejection| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the query string cannot be used: {}", rejection.body_text()),
        )
    })?;
    let search = query.search()?;
    reviewer.record(Action::ReadAudit, EventKind::AuditRead, query.detail()).await?;
    let found = files(&service)?.read(move |reader| Ok(reader.search(&search)?)).await?;
    Ok(Json(AuditPage { next_cursor: found.next.map(|cursor| cursor.text()), entries: found.entries }))
}

/// Handles `GET /v1/audit/{id}`.
pub(super) async fn show(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(id): Path<String>,
) -> Result<Json<QuestionRecord>, Problem> {
    let policies = service.assistant().policies.now();
    let detail = of_question(&id);
    reviewer(&service, &principal, &policies).record(Action::ReadAudit, EventKind::AuditRead, detail).await?;
    Ok(Json(question(&service, &id).await?))
}

/// Handles `POST /v1/audit/verify`.
pub(super) async fn verify(
    State(service): State<Service>,
    Asker(principal): Asker,
) -> Result<Json<Verification>, Problem> {
    let policies = service.assistant().policies.now();
    let reviewer = reviewer(&service, &principal, &policies);
    reviewer.may(Action::VerifyAudit).await?;
    let found = files(&service)?.verify().await;
    Ok(Json(reviewer.record_verified(found).await?))
}

/// Handles `POST /v1/audit/{id}/replay`.
pub(super) async fn replay_question(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(id): Path<String>,
) -> Result<Json<Replay>, Problem> {
    let permit = place(&service)?;
    let policies = service.assistant().policies.now();
    let detail = of_question(&id);
    reviewer(&service, &principal, &policies).record(Action::ReplayAudit, EventKind::AuditReplayed, detail).await?;
    let calls: Vec<Call> = question(&service, &id).await?.records.into_iter().map(|call| call.record).collect();
    let replay_id = QuestionId::new(service.assistant().ids.next());
    let request = ReplayRequest { id: replay_id, of: QuestionId::new(id), calls, reviewer: principal };
    let (name, who) = (request.id.to_string(), request.reviewer.id.clone());
    let stopped = service.enter(&name, &who);
    let stop = StopOnDrop { service: service.clone(), question_id: name, principal: who };
    // A task of its own: a reviewer who goes away must not take the complete record along.
    let replaying = tokio::spawn(async move {
        let progress = Progress::default();
        let running = Running { service: &service, id: &request.id, is_planned: false, progress: &progress };
        let ended = running.work(until_stopped(running, &request, stopped)).await;
        drop(permit);
        ended
    });
    let crashed = |error: String| Problem::from(ReviewError::Crashed(error));
    let ended = replaying.await;
    drop(stop);
    let ended = ended.map_err(|error| crashed(error.to_string()))?;
    ended.ok_or_else(|| crashed("the replay panicked".to_owned()))?.map(Json)
}

/// Dropping the line's future stops the query at the engine.
async fn until_stopped(
    running: Running<'_>,
    request: &ReplayRequest,
    mut stopped: watch::Receiver<bool>,
) -> Result<Replay, Problem> {
    let Running { service, progress, .. } = running;
    let mut replaying = Box::pin(replay(service.assistant(), request, progress));
    let by_itself = tokio::select! {
        biased;
        replayed = &mut replaying => Ok(replayed),
        _ = stopped.wait_for(|stop| *stop) => Err("the replay was stopped"),
        () = tokio::time::sleep(DEADLINE) => Err("the replay took longer than two minutes and was stopped"),
    };
    let replayed = match by_itself {
        Ok(replayed) => replayed,
        // Its complete record is being written: a second one would contradict it.
        Err(_) if progress.is_closing() => replaying.await,
        Err(reason) => {
            drop(replaying);
            running.cancelled(reason).await;
            return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, reason).about(request.id.as_str()));
        }
    };
    replayed.map_err(|error| match error {
        ReplayError::TooManyQuestions(full) => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, full.to_string()).retry_after(full.retry_after_s)
        }
        ReplayError::Audit(error) => Problem::audit(&error),
    })
}

async fn question(service: &Service, id: &str) -> Result<QuestionRecord, Problem> {
    let id = QuestionId::new(id);
    let found = files(service)?.read(move |reader| Ok(reader.question_record(&id)?)).await?;
    found.ok_or_else(|| ReviewError::Unknown.into())
}

fn of_question(id: &str) -> BTreeMap<String, String> {
    [("question_id".to_owned(), id.chars().take(64).collect())].into()
}

pub(super) fn reviewer<'a>(service: &'a Service, principal: &'a Principal, policies: &'a Policies) -> Reviewer<'a> {
    let clock = service.assistant().clock.as_ref();
    Reviewer {
        principal,
        policies,
        log: service.audit().as_ref(),
        clock,
        entrance: "http",
        denials: Some(service.denials()),
    }
}

/// The log's files.
pub(super) fn files(service: &Service) -> Result<Arc<AuditFiles>, Problem> {
    service.audit().files().ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this service keeps no audit log that can be read")
    })
}

impl From<ReviewError> for Problem {
    fn from(error: ReviewError) -> Self {
        let status = match &error {
            ReviewError::Denied { .. } => StatusCode::FORBIDDEN,
            ReviewError::Query(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ReviewError::Unknown => StatusCode::NOT_FOUND,
            ReviewError::Busy => {
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).retry_after(BUSY_RETRY_S);
            }
            ReviewError::Unrecorded(unavailable) => return Self::audit(unavailable),
            ReviewError::Log(_) | ReviewError::NoKey { .. } | ReviewError::Crashed(_) => {
                tracing::error!(%error, "the audit log could not be looked into");
                return Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the audit log cannot be read now; try again in a moment, and read the service's log if it stays so",
                );
            }
        };
        Self::new(status, error.to_string())
    }
}
