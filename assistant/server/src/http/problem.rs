//! Errors over HTTP: RFC 9457 problem documents, worded for the person who reads them.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sightline_core::{AskError, CallError, ToolFailure};
use sightline_guard::Refusal;
use sightline_model::audit::AuditUnavailable;
use sightline_tools::ToolError;

/// A problem document. `type` is left out: it is `about:blank`, and the status says the kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The status text.
    title: String,
    /// The status code.
    status: u16,
    /// One sentence: what happened and what to do.
    detail: String,
    /// The question, where there is one: what to name in a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<String>,
    /// Sent as `Retry-After`: whole seconds after which it is worth asking again.
    #[serde(skip)]
    retry_after_s: Option<u64>,
}

impl Problem {
    /// A problem with this status and sentence.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        Self { title, status: status.as_u16(), detail: detail.into(), question_id: None, retry_after_s: None }
    }

    /// The same, naming a question.
    #[must_use]
    pub fn about(mut self, question_id: &str) -> Self {
        self.question_id = Some(question_id.to_owned());
        self
    }

    /// The same, saying when it is worth asking again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The problem of something that the audit log could not take, so that it was not done. Why names files of this machine: that is for the
    /// service's log.
    pub fn audit(error: &AuditUnavailable) -> Self {
        tracing::error!(%error, "the audit log took no record");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the audit log cannot be written, so nothing was done; try again in a moment, and have an admin look at /readyz",
        )
    }

    /// The problem of a typed call that brought nothing, in the words of its failure.
    pub fn of_call(error: &CallError) -> Self {
        if let CallError::Audit(error) | CallError::Tool(ToolFailure::Audit(error)) = error {
            return Self::audit(error);
        }
        let status = match error {
            CallError::TooManyQuestions(_) => StatusCode::TOO_MANY_REQUESTS,
            CallError::MayNotCall { .. } => StatusCode::FORBIDDEN,
            CallError::Audit(_) => StatusCode::SERVICE_UNAVAILABLE,
            CallError::Tool(failure) => status_of(failure),
        };
        let problem = Self::new(status, error.to_string());
        match error {
            CallError::TooManyQuestions(full) => problem.retry_after(full.retry_after_s),
            CallError::MayNotCall { .. } | CallError::Audit(_) | CallError::Tool(_) => problem,
        }
    }

    /// The problem of a question that got no answer.
    pub fn of(error: &AskError) -> Self {
        if let AskError::Audit(error) | AskError::Tool(ToolFailure::Audit(error)) = error {
            return Self::audit(error);
        }
        let status = match error {
            AskError::Empty => StatusCode::UNPROCESSABLE_ENTITY,
            AskError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            AskError::TooManyQuestions(_) => StatusCode::TOO_MANY_REQUESTS,
            AskError::MayNotAsk { .. } => StatusCode::FORBIDDEN,
            AskError::Audit(_) => StatusCode::SERVICE_UNAVAILABLE,
            AskError::Planner(_) | AskError::NoEnd => StatusCode::INTERNAL_SERVER_ERROR,
            AskError::Tool(failure) => match failure {
                ToolFailure::Engine(_) | ToolFailure::Audit(_) | ToolFailure::Quota(_) => {
                    StatusCode::SERVICE_UNAVAILABLE
                }
                ToolFailure::UnknownTool { .. }
                | ToolFailure::Tool(_)
                | ToolFailure::Query(_)
                | ToolFailure::Refused(_)
                | ToolFailure::TooManyRounds { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            },
        };
        let problem = Self::new(status, error.to_string());
        match error {
            AskError::TooManyQuestions(full) => problem.retry_after(full.retry_after_s),
            AskError::Empty
            | AskError::TooLong { .. }
            | AskError::MayNotAsk { .. }
            | AskError::Audit(_)
            | AskError::Planner(_)
            | AskError::Tool(_)
            | AskError::NoEnd => problem,
        }
    }
}

/// The status of a failed tool call, for one who made it: what asking differently can mend is 422, what only others can is not.
fn status_of(failure: &ToolFailure) -> StatusCode {
    match failure {
        ToolFailure::UnknownTool { .. } => StatusCode::NOT_FOUND,
        ToolFailure::Tool(ToolError::Arguments { .. } | ToolError::Cut { .. }) | ToolFailure::Query(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ToolFailure::Tool(ToolError::Result { .. }) | ToolFailure::TooManyRounds { .. } => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        ToolFailure::Refused(refusal) => match refusal {
            Refusal::Denied { .. } | Refusal::NoRows => StatusCode::FORBIDDEN,
            Refusal::TooManyAtOnce { .. } | Refusal::BudgetSpent { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Unverified { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Refusal::InTheFuture { .. }
            | Refusal::OutsideCalendar
            | Refusal::RangeTooLong { .. }
            | Refusal::TooManyPoints { .. }
            | Refusal::TooManySeries { .. }
            | Refusal::TooManyResultRows { .. }
            | Refusal::TooManyRows { .. }
            | Refusal::TooManyBytes { .. }
            | Refusal::OverBudget { .. }
            | Refusal::Unmapped { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        },
        ToolFailure::Engine(_) if !failure.is_fatal() => StatusCode::UNPROCESSABLE_ENTITY,
        ToolFailure::Engine(_) | ToolFailure::Audit(_) | ToolFailure::Quota(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after_s;
        let mut response = (status, Json(self)).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"sightline\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_takes_no_record_is_told_without_its_place_on_the_disk() {
        let audit = || AuditUnavailable { reason: "no space left for `/srv/secret/audit.db`".to_owned() };
        for problem in [
            Problem::of(&AskError::Audit(audit())),
            Problem::of(&AskError::Tool(ToolFailure::Audit(audit()))),
            Problem::of_call(&CallError::Audit(audit())),
            Problem::of_call(&CallError::Tool(ToolFailure::Audit(audit()))),
        ] {
            assert_eq!(problem.status, 503);
            assert!(problem.detail.contains("audit log") && !problem.detail.contains("srv"), "{problem:?}");
        }
    }
}
