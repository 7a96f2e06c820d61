//! `POST /v1/answers/{id}/feedback`: what the one who asked thought of an answer.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use sightline_model::audit::{EventKind, EventOutcome};

use super::auth::Asker;
use super::problem::Problem;
use super::service::Service;
use crate::answers::{AnswersError, Feedback, Verdict};

/// The longest reason, characters: a paragraph.
const MAX_REASON: usize = 2_000;

/// The body of feedback.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedbackRequest {
    /// Whether the answer helped.
    verdict: Verdict,
    /// Why, in the asker's words.
    reason: Option<String>,
}

/// Handles it. An answer of somebody else is told like one that does not exist.
pub(super) async fn feedback(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(answer_id): Path<String>,
    body: Result<Json<FeedbackRequest>, JsonRejection>,
) -> Result<StatusCode, Problem> {
    let Json(FeedbackRequest { verdict, reason }) = body.map_err(|rejection| {
        let detail = format!(
            "the body cannot be read as feedback ({}); send {{\"verdict\": \"up\"}} or {{\"verdict\": \"down\", \"reason\": \"…\"}} as JSON",
            rejection.body_text()
        );
        Problem::new(rejection.status(), detail)
    })?;
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        let detail = format!("the reason is longer than {MAX_REASON} characters; say it shorter");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    let (answer, who) = (answer_id.clone(), principal.id.clone());
    let is_own = service.answers().ask(move |answers| answers.is_own_answer(&answer, &who)).await;
    if !is_own.map_err(|error| unavailable(&error))? {
        return Err(unknown());
    }
    // The reason's text stays with the answer, where it can be deleted; the log holds that there was feedback.
    let detail = [
        ("answer_id".to_owned(), answer_id.clone()),
        ("verdict".to_owned(), verdict.as_str().to_owned()),
        ("with_reason".to_owned(), reason.is_some().to_string()),
    ];
    service
        .record(EventKind::Feedback, &principal.id, EventOutcome::Done, detail.into())
        .await
        .map_err(|error| Problem::audit(&error))?;
    let given = Feedback { verdict, reason, at: service.assistant().clock.now() };
    let kept = service.answers().ask(move |answers| answers.give_feedback(&answer_id, &principal.id, &given)).await;
    if kept.map_err(|error| unavailable(&error))? { Ok(StatusCode::NO_CONTENT) } else { Err(unknown()) }
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no answer of yours with this id; its conversation may be deleted")
}

fn unavailable(error: &AnswersError) -> Problem {
    tracing::error!(%error, "feedback could not be kept");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the feedback cannot be kept now; try again in a moment")
}
