//! Who a request comes from: a bearer token, and nothing else in the request.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sightline_model::Principal;

use super::problem::Problem;
use super::service::Service;

/// An authenticated asker. [`identify`] alone puts one on a request, from its credential.
#[derive(Clone, Debug)]
pub(super) struct Asker(pub(super) Principal);

impl FromRequestParts<Service> for Asker {
    type Rejection = Problem;

    /// A handler that takes an asker on a route that was not identified is a fault of ours, and lets nobody in.
    async fn from_request_parts(parts: &mut Parts, _service: &Service) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!(path = parts.uri.path(), "a handler wants an asker on a route without identity");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this route has no identity; report it")
        })
    }
}

/// Stands before every identified route: without a valid credential the handler is not called.
pub(super) async fn identify(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let asker = asker(&parts, &service)?;
    parts.extensions.insert(asker);
    Ok(next.run(Request::from_parts(parts, body)).await)
}

fn asker(parts: &Parts, service: &Service) -> Result<Asker, Problem> {
    let unknown = || {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "this needs a valid token in the header `Authorization: Bearer …`; the operator of this service hands them out",
        )
    };
    let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim).ok_or_else(unknown)?;
    refuse_from_afar(parts)?;
    let principal = service.tokens().principal(token).map(str::to_owned).ok_or_else(unknown)?;
    // A token of a principal that the policy no longer knows stands for nobody.
    service.assistant().policies.now().principal(&principal).map(Asker).ok_or_else(unknown)
}

/// A token sent over plain HTTP from another machine has been seen by the network: it is not taken.
fn refuse_from_afar(parts: &Parts) -> Result<(), Problem> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    match peer {
        Some(ip) if ip.is_loopback() => Ok(()),
        Some(_) | None => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "tokens are not taken over plain HTTP from another machine; put a TLS proxy on this machine in front and ask through it",
        )),
    }
}
