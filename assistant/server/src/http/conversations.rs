//! `GET /v1/conversations`, `GET /v1/conversations/{id}`, and deleting them: one's own alone.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use sightline_model::audit::{EventKind, EventOutcome};

use super::auth::Asker;
use super::problem::Problem;
use super::service::Service;
use crate::answers::{AnswersError, ConversationFile, Conversations};

/// Conversations on a page unless told otherwise.
const A_PAGE: u32 = 50;

/// Which page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    cursor: Option<String>,
    limit: Option<u32>,
}

/// What was deleted.
#[derive(Debug, Serialize)]
pub(super) struct Deleted {
    deleted: u64,
}

/// Handles `GET /v1/conversations`.
pub(super) async fn list(
    State(service): State<Service>,
    Asker(principal): Asker,
    Query(page): Query<PageQuery>,
) -> Result<Json<Conversations>, Problem> {
    let limit = page.limit.unwrap_or(A_PAGE);
    let found =
        service.answers().ask(move |answers| answers.conversations(&principal.id, page.cursor.as_deref(), limit)).await;
    found.map(Json).map_err(|error| unavailable(&error))
}

/// Handles `GET /v1/conversations/{id}`.
pub(super) async fn open(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(id): Path<String>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ConversationFile>, Problem> {
    let found =
        service.answers().ask(move |answers| answers.conversation(&id, &principal, page.cursor.as_deref())).await;
    found.map_err(|error| unavailable(&error))?.map(Json).ok_or_else(unknown)
}

/// Handles `DELETE /v1/conversations/{id}`.
pub(super) async fn delete(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    match delete_and_record(&service, &principal.id, Some(&id)).await? {
        0 => Err(unknown()),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Handles `DELETE /v1/conversations`: all of one's own.
pub(super) async fn delete_all(
    State(service): State<Service>,
    Asker(principal): Asker,
) -> Result<Json<Deleted>, Problem> {
    let deleted = delete_and_record(&service, &principal.id, None).await?;
    Ok(Json(Deleted { deleted }))
}

/// The record first: what was deleted cannot be asked afterwards.
async fn delete_and_record(service: &Service, principal: &str, id: Option<&str>) -> Result<u64, Problem> {
    let (whose, which) = (principal.to_owned(), id.map(str::to_owned));
    let (count, whose, which) = service
        .answers()
        .ask(move |answers| Ok((answers.count_conversations(&whose, which.as_deref())?, whose, which)))
        .await
        .map_err(|error| unavailable(&error))?;
    if count == 0 && id.is_some() {
        return Ok(0);
    }
    let detail = [
        ("conversations".to_owned(), count.to_string()),
        ("conversation_id".to_owned(), id.unwrap_or("all").to_owned()),
        ("of".to_owned(), principal.to_owned()),
    ];
    service
        .record(EventKind::ConversationsDeleted, principal, EventOutcome::Done, detail.into())
        .await
        .map_err(|error| Problem::audit(&error))?;
    let deleted = service.answers().ask(move |answers| answers.delete_conversations(&whose, which.as_deref())).await;
    deleted.map_err(|error| unavailable(&error))
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no conversation of yours with this id")
}

fn unavailable(error: &AnswersError) -> Problem {
    match error {
        AnswersError::Cursor => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        AnswersError::Database(_)
        | AnswersError::Newer { .. }
        | AnswersError::Json(_)
        | AnswersError::Time(_)
        | AnswersError::Crashed(_) => {
            tracing::error!(%error, "conversations could not be looked up");
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "conversations cannot be looked up or changed now; try again in a moment",
            )
        }
    }
}
