//! A route: method, path, who may come in, handler. An identified route gets its identity here, and nowhere else.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter, on};

use super::auth;
use super::parameters::refuse_any;
use super::service::Service;

/// A method that routes take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

impl Verb {
    /// As it is written in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, for this reason.
    Public(&'static str),
    /// Whoever holds a valid credential: the handler finds an [`Asker`](super::auth::Asker), or is not called.
    Identified,
}

/// One route of the table.
pub struct Route {
    verb: Verb,
    path: &'static str,
    access: Access,
    takes_parameters: bool,
    handler: MethodRouter<Service>,
}

impl Route {
    /// A route that needs a credential.
    pub(super) fn identified<H, T>(verb: Verb, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Service>,
        T: 'static,
    {
        Self { verb, path, access: Access::Identified, takes_parameters: false, handler: on(verb.filter(), handler) }
    }

    /// A route for everybody, and why it may be one.
    pub(super) fn public<H, T>(verb: Verb, path: &'static str, why: &'static str, handler: H) -> Self
    where
        H: Handler<T, Service>,
        T: 'static,
    {
        Self { verb, path, access: Access::Public(why), takes_parameters: false, handler: on(verb.filter(), handler) }
    }

    /// The same, whose handler reads [`Parameters`](super::parameters::Parameters). Of every other route a query string is refused.
    pub(super) fn with_parameters(self) -> Self {
        Self { takes_parameters: true, ..self }
    }

    /// Its method.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// Its path, as axum matches it.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Who may come in.
    pub fn access(&self) -> Access {
        self.access
    }
}

/// The router of these routes. This is the one place that hands a route to axum.
pub(super) fn mount(routes: Vec<Route>, service: &Service) -> Router<Service> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let handler =
            if route.takes_parameters { route.handler } else { route.handler.route_layer(from_fn(refuse_any)) };
        let handler = match route.access {
            Access::Public(_) => handler,
            // Outermost: without a credential nothing else is told.
            Access::Identified => handler.route_layer(from_fn_with_state(service.clone(), auth::identify)),
        };
        router.route(route.path, handler)
    })
}
