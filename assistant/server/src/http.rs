//! The HTTP service: routes in one table, handlers in files of their own.

mod audit;
mod auth;
mod chat;
mod conversations;
mod cookie;
mod evidence;
mod feedback;
#[cfg(test)]
mod flood_tests;
mod health;
mod listen;
mod login;
mod page;
mod problem;
mod progress;
mod route;
mod routes;
#[cfg(test)]
mod routes_tests;
mod service;
#[cfg(test)]
mod sessions_tests;
mod site;
#[cfg(test)]
mod test_service;
mod tools;
mod usage;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

pub use listen::{ListenError, bind, serve};
pub use problem::Problem;
pub use route::{Access, Route, Verb};
pub use routes::routes;
pub use service::Service;
pub use site::Site;

/// Largest request body: a question has at most 8 KiB, and JSON escapes can make six bytes of one.
const MAX_BODY: usize = 64 * 1024;

/// The router of every route in the table.
pub fn router(service: Service) -> Router {
    route::mount(routes(), &service)
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(service)
        .layer(
            ServiceBuilder::new()
                .layer(CatchPanicLayer::custom(|_| {
                    axum::response::IntoResponse::into_response(Problem::new(
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "something failed inside Sightline; the log of the service has the details",
                    ))
                }))
                .layer(fixed("x-content-type-options", "nosniff"))
                .layer(fixed("referrer-policy", "no-referrer"))
                .layer(fixed("x-frame-options", "DENY"))
                .layer(fixed(header::CACHE_CONTROL.as_str(), "no-store"))
                // Text from telemetry must never load or run anything, whatever slips through.
                .layer(fixed(
                    "content-security-policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                ))
                .layer(DefaultBodyLimit::max(MAX_BODY)),
        )
}

fn fixed(name: &'static str, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(HeaderName::from_static(name), HeaderValue::from_static(value))
}

async fn unknown(uri: Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        format!("there is nothing at `{}`", uri.path().chars().take(100).collect::<String>()),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(100).collect();
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("`{path}` does not take {method}"))
}
