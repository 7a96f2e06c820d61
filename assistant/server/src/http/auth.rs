//! Who a request comes from: a bearer token, and nothing else in the request.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use sightline_model::Principal;

use super::problem::Problem;
use super::service::Service;

/// An authenticated asker, taken from the `Authorization` header.
#[derive(Clone, Debug)]
pub(super) struct Asker(pub(super) Principal);

impl FromRequestParts<Service> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, Problem> {
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
