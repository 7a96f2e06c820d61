//! What stands behind the `?` of a request. A parameter that a route does not know is refused, never passed over: whoever wrote it believes
//! that it narrows what is done.

use axum::extract::{FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use super::service::Service;

/// The parameters of a route that takes some. Their type denies unknown fields.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Service> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _service: &Service) -> Result<Self, Problem> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|Query(parameters)| Self(parameters)).map_err(|rejection| {
            unusable(format!("the query string cannot be used, and nothing was done: {}", rejection.body_text()))
        })
    }
}

/// Stands before every route that takes no parameters.
pub(super) async fn refuse_any(request: Request, next: Next) -> Result<Response, Problem> {
    match request.uri().query() {
        None | Some("") => Ok(next.run(request).await),
        Some(_) => Err(unusable("this route takes no query string, and nothing was done; send the request without it")),
    }
}

fn unusable(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}
