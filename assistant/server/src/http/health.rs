//! `/healthz` says the process lives; `/readyz` says it can answer.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::service::Service;

/// The process lives.
pub(super) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Engine and audit log answer; 503 with the reason otherwise. Policies on the disk that are not in force are told as well.
pub(super) async fn readyz(State(service): State<Service>) -> (StatusCode, Json<Value>) {
    let engine = service.assistant().engine.ready().await.map_err(|error| error.to_string());
    let audit = service.audit_health();
    // Old policies are policies: a mistake in a file must not take the service away from everybody.
    let policies = service.assistant().policies.refused().map_or(Ok(()), Err);
    // A second place that takes no checkpoints makes the log prove less; nobody's question waits for it.
    let copies = service.audit().copies_health();
    let ready = engine.is_ok() && audit.is_ok();
    let word = |result: Result<(), String>| result.map_or_else(Value::String, |()| Value::String("ok".to_owned()));
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({ "status": if ready { "ready" } else { "not ready" }, "engine": word(engine), "audit": word(audit), "audit_copies": word(copies), "policies": word(policies) });
    (status, Json(body))
}
