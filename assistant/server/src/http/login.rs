//! `POST /login` and `/logout`: from a credential to a browser session and back; `GET /v1/session` says whose it is.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{RequestExt as _, http::HeaderValue};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sightline_model::{Principal, Role};

use super::auth::{Asker, ProvedBy, refusal, refuse_foreign_origin, refuse_from_afar};
use super::cookie;
use super::problem::Problem;
use super::service::Service;
use crate::identity::{NewSession, Proof, Refused, Why, csrf_token};

/// The body of a log-in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginRequest {
    /// A token of ours, or of an identity provider.
    token: String,
}

/// Whose session it is.
#[derive(Serialize)]
struct SessionView<'a> {
    principal: &'a str,
    role: Role,
    /// What a page sends as `X-CSRF-Token`; none where a bearer token was sent, which needs none.
    csrf_token: Option<String>,
    /// When the session ends at the latest.
    expires: Option<Timestamp>,
}

/// Handles `POST /login`. A browser's old session is left as it is; the new one has an id of its own.
pub(super) async fn login(State(service): State<Service>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let peer = refuse_from_afar(&parts, service.identity()).await?;
    if let Err(problem) = refuse_foreign_origin(&parts.headers, service.site()) {
        service.identity().turned_away(Some(peer), None, Why::ForeignOrigin).await;
        return Err(problem);
    }
    let LoginRequest { token } = credential(parts, body).await?;
    let (principal, session) = service.identity().log_in(token.trim(), peer).await.map_err(not_opened)?;
    let NewSession { id, csrf_token, ends } = session;
    let seconds = ends.duration_since(service.assistant().clock.now()).as_secs();
    let body = view(&principal, Some((csrf_token, ends)));
    Ok(with_cookie(Json(body).into_response(), cookie::set(service.site(), &id, seconds)))
}

/// A token came, so nobody needs to be told how to send one.
fn not_opened(refused: Refused) -> Problem {
    match refused {
        Refused::Unknown => Problem::new(
            StatusCode::UNAUTHORIZED,
            "this token is not known here; check that it was copied whole, or ask the operator of this service for one",
        ),
        Refused::Expired { .. }
        | Refused::Revoked
        | Refused::ProviderExpired
        | Refused::ProviderEarly
        | Refused::NoRights
        | Refused::SessionEnded
        | Refused::NoPrincipal
        | Refused::LockedOut { .. }
        | Refused::TooFast { .. }
        | Refused::Unavailable(_) => refusal(refused),
    }
}

/// Nothing of the body is quoted back: a credential stands in it.
async fn credential(parts: Parts, body: axum::body::Body) -> Result<LoginRequest, Problem> {
    let read: Result<Json<LoginRequest>, JsonRejection> = Request::from_parts(parts, body).extract().await;
    read.map(|Json(request)| request).map_err(|rejection| {
        Problem::new(
            rejection.status(),
            "send {\"token\": \"…\"} as JSON with the header `Content-Type: application/json`",
        )
    })
}

/// Handles `POST /logout`.
pub(super) async fn logout(
    State(service): State<Service>,
    Asker(principal): Asker,
    ProvedBy(proof): ProvedBy,
) -> Result<Response, Problem> {
    match proof {
        Proof::Session { session, id: _ } => {
            service.identity().log_out(&principal, session).await.map_err(refusal)?;
            Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), cookie::clear(service.site())))
        }
        Proof::Bearer(_) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "a bearer token has no session to end; `sightline token revoke` ends the token",
        )),
    }
}

/// Handles `GET /v1/session`.
pub(super) async fn session(Asker(principal): Asker, ProvedBy(proof): ProvedBy) -> Response {
    let session = match &proof {
        Proof::Session { session, id } => Some((csrf_token(id), session.ends)),
        Proof::Bearer(_) => None,
    };
    Json(view(&principal, session)).into_response()
}

fn view(principal: &Principal, session: Option<(String, Timestamp)>) -> SessionView<'_> {
    let (csrf_token, expires) = session.unzip();
    SessionView { principal: &principal.id, role: principal.role, csrf_token, expires }
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    // INVARIANT: an id of ours is hex, so there always is one.
    if let Some(cookie) = cookie {
        headers.append(header::SET_COOKIE, cookie);
    }
    response
}
