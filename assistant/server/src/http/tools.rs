//! `GET /v1/tools`: the tools this principal may call; `POST /v1/tools/{name}`: one typed call, its body being the arguments.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sightline_core::{CallError, ToolAnswer, TypedCall, call_tool, callable};
use sightline_model::{Principal, QuestionId};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::auth::Asker;
use super::chat::{DEADLINE, StopOnDrop, instant_and_zone, place};
use super::problem::Problem;
use super::progress::{Progress, Running};
use super::service::Service;
use crate::answers::Whose;

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
    let permit = place(&service)?;
    let (call_id, caller) = (call.id.to_string(), call.principal.id.clone());
    let stopped = service.enter(&call_id, &caller);
    let stop = StopOnDrop { service: service.clone(), question_id: call_id.clone(), principal: caller };
    // A task of its own: a caller that goes away must not take the complete record with it.
    let ended = tokio::spawn(run(service, call, stopped, permit)).await;
    drop(stop);
    match ended {
        Ok(Some(Ok(answer))) => Ok(Json(answer.as_ref()).into_response()),
        Ok(Some(Err(problem))) => Err(problem.about(&call_id)),
        Ok(None) | Err(_) => {
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

/// Runs the call, unless it is stopped first; none when it panicked.
async fn run(
    service: Service,
    call: TypedCall,
    stopped: watch::Receiver<bool>,
    permit: OwnedSemaphorePermit,
) -> Option<Result<Arc<ToolAnswer>, Problem>> {
    let progress = Progress::default();
    let running = Running { service: &service, id: &call.id, is_planned: false, progress: &progress };
    let ended = running.work(until_stopped(running, &call, stopped)).await;
    drop(permit);
    ended
}

/// Dropping the line's future stops the query at the engine.
async fn until_stopped(
    running: Running<'_>,
    call: &TypedCall,
    mut stopped: watch::Receiver<bool>,
) -> Result<Arc<ToolAnswer>, Problem> {
    let Running { service, progress, .. } = running;
    let mut calling = Box::pin(call_tool(service.assistant(), call, progress));
    let by_itself = tokio::select! {
        biased;
        answered = &mut calling => Ok(answered),
        _ = stopped.wait_for(|stop| *stop) => Err("the call was stopped"),
        () = tokio::time::sleep(DEADLINE) => Err("the call took longer than two minutes and was stopped; ask about a shorter time range"),
    };
    let answered = match by_itself {
        Ok(answered) => answered,
        Err(_) if progress.is_closing() => calling.await,
        Err(reason) => {
            drop(calling);
            running.cancelled(reason).await;
            return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, reason));
        }
    };
    ended(service, call, answered).await
}

/// An answer whose evidence cannot be kept is still an answer; its points cannot be looked at later, and the log says why.
async fn ended(
    service: &Service,
    call: &TypedCall,
    answered: Result<ToolAnswer, CallError>,
) -> Result<Arc<ToolAnswer>, Problem> {
    let answer = answered.map_err(|error| Problem::of_call(&error))?;
    let now = service.assistant().clock.now();
    let (answer, asker) = (Arc::new(answer), call.principal.clone());
    let keeping = Arc::clone(&answer);
    let kept = service
        .answers()
        .ask(move |answers| {
            let whose = Whose { answer_id: &keeping.answer_id, question_id: &keeping.question_id, asker: &asker };
            answers.keep_evidence(whose, &keeping.evidence, now)
        })
        .await;
    if let Err(error) = kept {
        tracing::error!(%error, answer_id = %answer.answer_id, "the evidence of a typed call was not kept");
    }
    Ok(answer)
}
