//! `GET /v1/evidence/{answer_id}.E1`: one piece of evidence with its points.

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::auth::Asker;
use super::problem::Problem;
use super::service::Service;
use crate::answers::{Lookup, RIGHTS_CHANGED};

/// Handles it. Evidence of somebody else's question is answered like evidence that does not exist.
pub(super) async fn evidence(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let now = service.assistant().clock.now();
    let looked_up =
        service.answers().ask(move |answers| answers.evidence(&id, &principal, now)).await.map_err(|error| {
            tracing::error!(%error, "evidence could not be looked up");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the evidence cannot be looked up now; try again in a moment")
        })?;
    match looked_up {
        Lookup::Found(json) => Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response()),
        Lookup::Expired => Err(Problem::new(
            StatusCode::GONE,
            "the points of this evidence are no longer kept; ask the question again",
        )),
        Lookup::RightsChanged => Err(Problem::new(StatusCode::FORBIDDEN, RIGHTS_CHANGED)),
        Lookup::Unknown => Err(Problem::new(StatusCode::NOT_FOUND, "there is no such evidence of an answer of yours")),
    }
}
