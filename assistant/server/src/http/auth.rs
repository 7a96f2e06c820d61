//! Who a request comes from: a bearer credential or a session's cookie, and nothing else in the request.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sightline_model::Principal;

use super::cookie;
use super::problem::Problem;
use super::service::Service;
use super::site::Site;
use crate::identity::{Identified, Identity, Proof, Refused, Why, csrf_token, same_text};

/// The header in which a page sends its session's CSRF token.
const CSRF_HEADER: &str = "x-csrf-token";

/// An authenticated asker. [`identify`] alone puts one on a request, from its credential.
#[derive(Clone, Debug)]
pub(super) struct Asker(pub(super) Principal);

impl FromRequestParts<Service> for Asker {
    type Rejection = Problem;

    /// A handler that takes an asker on a route that was not identified is a fault of ours, and lets nobody in.
    async fn from_request_parts(parts: &mut Parts, _service: &Service) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| no_identity(parts))
    }
}

/// How an asker proved who it is.
#[derive(Clone)]
pub(super) struct ProvedBy(pub(super) Proof);

impl FromRequestParts<Service> for ProvedBy {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _service: &Service) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| no_identity(parts))
    }
}

fn no_identity(parts: &Parts) -> Problem {
    tracing::error!(path = parts.uri.path(), "a handler wants an asker on a route without identity");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this route has no identity; report it")
}

/// Stands before every identified route: without a valid credential the handler is not called.
pub(super) async fn identify(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let Identified { principal, proof } = identified(&parts, &service).await?;
    parts.extensions.insert(Asker(principal));
    parts.extensions.insert(ProvedBy(proof));
    Ok(next.run(Request::from_parts(parts, body)).await)
}

async fn identified(parts: &Parts, service: &Service) -> Result<Identified, Problem> {
    let (identity, site) = (service.identity(), service.site());
    if let Some(text) = bearer(&parts.headers) {
        let peer = refuse_from_afar(parts, identity).await?;
        let identified = identity.bearer(text, peer).await.map_err(refusal)?;
        identity.within_pace(&identified.principal).map_err(refusal)?;
        return Ok(identified);
    }
    let Some(id) = cookie::session_id(&parts.headers, site) else { return Err(refusal(Refused::Unknown)) };
    let peer = refuse_from_afar(parts, identity).await?;
    let identified = identity.session(id, peer).await.map_err(refusal)?;
    identity.within_pace(&identified.principal).map_err(refusal)?;
    if changes_something(&parts.method) {
        let refused =
            refuse_foreign_origin(&parts.headers, site).map_err(|problem| (Why::ForeignOrigin, problem)).and_then(
                |()| refuse_without_csrf_token(&parts.headers, id).map_err(|problem| (Why::NoCsrfToken, problem)),
            );
        if let Err((why, problem)) = refused {
            identity.turned_away(Some(peer), Some(&identified.principal), why).await;
            return Err(problem);
        }
    }
    Ok(identified)
}

/// The bearer credential of a request. Two such headers are none: which of them a proxy in front looked at cannot be told.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, credential) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| credential.trim())
}

fn changes_something(method: &Method) -> bool {
    !(method == Method::GET || method == Method::HEAD)
}

/// A credential sent over plain HTTP from another machine has been seen by the network: it is not taken. Gives back the address.
pub(super) async fn refuse_from_afar(parts: &Parts, identity: &Identity) -> Result<IpAddr, Problem> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    match peer {
        Some(ip) if ip.is_loopback() => Ok(ip),
        Some(_) | None => {
            identity.turned_away(None, None, Why::FromAfar).await;
            Err(Problem::new(
                StatusCode::FORBIDDEN,
                "tokens are not taken over plain HTTP from another machine; put a TLS proxy on this machine in front and ask through it",
            ))
        }
    }
}

/// A browser says which page sends a request. Another site's page is refused, whatever cookies came along.
pub(super) fn refuse_foreign_origin(headers: &HeaderMap, site: &Site) -> Result<(), Problem> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_ours = match (origins.next(), origins.next()) {
        // Browsers send it with every request that changes something; what sends none is no browser.
        (None, _) => true,
        (Some(origin), None) => origin.to_str().is_ok_and(|origin| site.is_own_origin(origin, host)),
        (Some(_), Some(_)) => false,
    };
    if is_ours {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "this request comes from a page of another site; if Sightline is reached under another name, set `server.public_url`",
    ))
}

fn refuse_without_csrf_token(headers: &HeaderMap, session_id: &str) -> Result<(), Problem> {
    let sent = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
    if sent.is_some_and(|sent| same_text(sent, &csrf_token(session_id))) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "a session's request that changes something needs its CSRF token in the header `X-CSRF-Token`; GET /v1/session gives it",
    ))
}

/// The problem of a credential that lets nobody in.
pub(super) fn refusal(refused: Refused) -> Problem {
    let (status, retry_after_s) = match &refused {
        Refused::Unknown
        | Refused::Expired { .. }
        | Refused::Revoked
        | Refused::ProviderExpired
        | Refused::ProviderEarly
        | Refused::NoRights
        | Refused::SessionEnded
        | Refused::NoPrincipal => (StatusCode::UNAUTHORIZED, None),
        Refused::LockedOut { seconds } | Refused::TooFast { seconds } => {
            (StatusCode::TOO_MANY_REQUESTS, Some(*seconds))
        }
        Refused::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
    };
    let problem = Problem::new(status, refused.to_string());
    match retry_after_s {
        Some(seconds) => problem.retry_after(seconds),
        None => problem,
    }
}
