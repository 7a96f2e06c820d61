//! `GET /v1/tools`: the tools this principal may call; `POST /v1/tools/{name}`: one typed call, its body being the arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sightline_core::{CallError, Event, Events, ToolAnswer, TypedCall, call_tool, callable, record_cancelled};
use sightline_model::{Principal, QuestionId};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::auth::Asker;
use super::chat::{BUSY_RETRY_S, DEADLINE, StopOnDrop, instant_and_zone};
use super::problem::Problem;
use super::service::Service;

/// What stands in the query string: the body is the arguments and nothing else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallParameters {
    /// The caller's zone, an IANA name; UTC if left out.
    time_zone: Option<String>,
    /// The instant to take as now; not in the future.
    as_of: Option<Timestamp>,
}

/// A tool as it is listed.
#[derive(Debug, Serialize)]
struct ListedTool {
    name: &'static str,
    description: &'static str,
    /// The JSON schema of its arguments.
    schema: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolList {
    tools: Vec<ListedTool>,
}

/// Handles `GET /v1/tools`.
pub(super) async fn list(State(service): State<Service>, Asker(principal): Asker) -> Json<ToolList> {
    let tools = callable(service.assistant(), &principal)
        .map(|tool| ListedTool { name: tool.name(), description: tool.description(), schema: tool.schema() })
        .collect();
    Json(ToolList { tools })
}

/// Handles `POST /v1/tools/{name}`. A caller that goes away stops its call.
pub(super) async fn call(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(name): Path<String>,
    parameters: Result<Query<CallParameters>, QueryRejection>,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Problem> {
    let Query(parameters) = parameters.map_err(|rejection| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the query string takes `as_of` and `time_zone` only ({})", rejection.body_text()),
        )
    })?;
    let Json(arguments) = body.map_err(|rejection| Problem::new(rejection.status(), unreadable(&rejection)))?;
    let call = typed_call(&service, principal, name, arguments, parameters)?;
    let permit = Arc::clone(service.slots()).try_acquire_owned().map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many questions are being answered at once; call again in a few seconds",
        )
        .retry_after(BUSY_RETRY_S)
    })?;
    let (call_id, caller) = (call.id.to_string(), call.principal.id.clone());
    let stopped = service.enter(&call_id, &caller);
    let stop = StopOnDrop { service: service.clone(), question_id: call_id.clone(), principal: caller };
    // A task of its own: a caller that goes away must not take the complete record with it.
    let ended = tokio::spawn(run(service, call, stopped, permit)).await;
    drop(stop);
    match ended {
        Ok(Ok(answer)) => Ok(Json(*answer).into_response()),
        Ok(Err(problem)) => Err(problem.about(&call_id)),
        Err(_) => {
            let detail = "the call failed inside Sightline; report the question id";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).about(&call_id))
        }
    }
}

fn unreadable(rejection: &JsonRejection) -> String {
    match rejection {
        JsonRejection::MissingJsonContentType(_) => {
            "send the tool's arguments as JSON with the header `Content-Type: application/json`".to_owned()
        }
        JsonRejection::JsonDataError(_) | JsonRejection::JsonSyntaxError(_) => {
            format!(
                "the body cannot be read as arguments ({}); send the JSON object that the tool's schema at `/v1/tools` describes",
                rejection.body_text()
            )
        }
        other if other.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            "the body is too large; a tool's arguments have at most 65,536 bytes".to_owned()
        }
        other => other.body_text(),
    }
}

fn typed_call(
    service: &Service,
    principal: Principal,
    tool: String,
    arguments: Value,
    parameters: CallParameters,
) -> Result<TypedCall, Problem> {
    let CallParameters { time_zone, as_of } = parameters;
    let (as_of, time_zone): (Timestamp, TimeZone) = instant_and_zone(service, as_of, time_zone.as_deref())?;
    let id = QuestionId::new(service.assistant().ids.next());
    Ok(TypedCall { id, tool, arguments, principal, entrance: "http", as_of, time_zone })
}

/// Remembers that the complete record is being written: from then on the call is let end.
#[derive(Default)]
struct Closing(AtomicBool);

impl Events for Closing {
    fn emit(&self, _: Event) {}

    fn closing(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs the call, unless it is stopped first. Dropping the line's future stops the query at the engine.
async fn run(
    service: Service,
    call: TypedCall,
    stopped: watch::Receiver<bool>,
    permit: OwnedSemaphorePermit,
) -> Result<Box<ToolAnswer>, Problem> {
    let ended = until_stopped(&service, &call, stopped).await;
    service.leave(call.id.as_str());
    drop(permit);
    ended
}

async fn until_stopped(
    service: &Service,
    call: &TypedCall,
    mut stopped: watch::Receiver<bool>,
) -> Result<Box<ToolAnswer>, Problem> {
    let assistant = service.assistant();
    let closing = Closing::default();
    let mut calling = Box::pin(call_tool(assistant, call, &closing));
    let reason = tokio::select! {
        biased;
        answered = &mut calling => return ended(service, call, answered),
        _ = stopped.wait_for(|stop| *stop) => "the call was stopped",
        () = tokio::time::sleep(DEADLINE) => "the call took longer than two minutes and was stopped; ask about a shorter time range",
    };
    if closing.0.load(Ordering::Acquire) {
        let answered = calling.await;
        return ended(service, call, answered);
    }
    drop(calling);
    record_cancelled(assistant, &call.id, reason).await;
    Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, reason))
}

/// An answer whose evidence cannot be kept is still an answer; its points cannot be looked at later, and the log says why.
fn ended(
    service: &Service,
    call: &TypedCall,
    answered: Result<ToolAnswer, CallError>,
) -> Result<Box<ToolAnswer>, Problem> {
    let answer = answered.map_err(|error| Problem::of_call(&error))?;
    let now = service.assistant().clock.now();
    let kept = service.answers().keep_evidence(&answer.answer_id, &answer.evidence, &call.principal.id, now);
    if let Err(error) = kept {
        tracing::error!(%error, answer_id = %answer.answer_id, "the evidence of a typed call was not kept");
    }
    Ok(Box::new(answer))
}
