//! `POST /v1/chat`: one question, answered as JSON or as server-sent events; `DELETE /v1/chat/{id}` stops one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use sightline_core::{AskError, Earlier, Event, Events, Question, answer_question};
use sightline_model::audit::ModelUse;
use sightline_model::{Answer, ConversationId, Principal, QuestionId, Read};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::auth::Asker;
use super::problem::Problem;
use super::progress::{Progress, Running};
use super::service::Service;
use crate::answers::Kept;

/// Longest a question may take before it is stopped.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// When to ask again where every place for questions is taken, seconds: most answers take less.
const BUSY_RETRY_S: u64 = 5;

/// The body of a question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatRequest {
    /// The question.
    question: String,
    /// The conversation it continues.
    conversation_id: Option<String>,
    /// The asker's zone, an IANA name; UTC if left out.
    time_zone: Option<String>,
    /// The instant to take as now; not in the future.
    as_of: Option<Timestamp>,
}

/// How a question ended.
enum Ended {
    Answered(Arc<Answer>),
    Failed(AskError),
    Stopped(&'static str),
    Crashed,
}

/// Sends events into a channel. Nobody listening is no fault.
struct Channel {
    events: mpsc::UnboundedSender<Event>,
    progress: Progress,
}

impl Channel {
    fn new(events: mpsc::UnboundedSender<Event>) -> Self {
        Self { events, progress: Progress::default() }
    }

    fn send(&self, event: Event) {
        drop(self.events.send(event));
    }
}

impl Events for Channel {
    fn emit(&self, event: Event) {
        match event {
            // Sent once its evidence is kept: who reads it may ask for the points at once.
            Event::Answer(_) => {}
            event @ (Event::Accepted { .. }
            | Event::Plan { .. }
            | Event::ToolCall(_)
            | Event::ToolResult { .. }
            | Event::Claim(_)) => self.send(event),
        }
    }

    fn closing(&self) {
        self.progress.closing();
    }

    fn read(&self, exactly: Read) {
        self.progress.read(exactly);
    }

    fn asked_model(&self, used: &ModelUse) {
        self.progress.asked_model(used);
    }
}

/// Stops the question when the one who waits for it is gone.
pub(super) struct StopOnDrop {
    pub(super) service: Service,
    pub(super) question_id: String,
    pub(super) principal: String,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.service.stop(&self.question_id, &self.principal);
    }
}

/// A question under way.
struct Started {
    question_id: String,
    events: mpsc::UnboundedReceiver<Event>,
    ended: oneshot::Receiver<Ended>,
    stop: StopOnDrop,
}

/// Handles `POST /v1/chat`.
pub(super) async fn chat(
    State(service): State<Service>,
    Asker(principal): Asker,
    headers: HeaderMap,
    body: Result<Json<ChatRequest>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(request) = body.map_err(|rejection| Problem::new(rejection.status(), unreadable(&rejection)))?;
    let started = start(&service, principal, request).await?;
    let wants_events =
        headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("text/event-stream"));
    if wants_events { stream(started).await } else { wait(started).await }
}

/// Handles `DELETE /v1/chat/{question_id}`.
pub(super) async fn cancel(
    State(service): State<Service>,
    Asker(principal): Asker,
    Path(question_id): Path<String>,
) -> Result<StatusCode, Problem> {
    if service.stop(&question_id, &principal.id) {
        Ok(StatusCode::ACCEPTED)
    } else {
        Err(Problem::new(StatusCode::NOT_FOUND, "no question of yours with this id is being answered"))
    }
}

fn unreadable(rejection: &JsonRejection) -> String {
    match rejection {
        JsonRejection::MissingJsonContentType(_) => {
            "send the question as JSON with the header `Content-Type: application/json`".to_owned()
        }
        JsonRejection::JsonDataError(_) | JsonRejection::JsonSyntaxError(_) => {
            format!(
                "the body cannot be read as a question ({}); send, for example, {{\"question\": \"why was training job J123 slow yesterday?\"}}",
                rejection.body_text()
            )
        }
        other if other.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            "the body is too large; a question has at most 8192 bytes".to_owned()
        }
        other => other.body_text(),
    }
}

/// A place among all that is answered at once.
pub(super) fn place(service: &Service) -> Result<OwnedSemaphorePermit, Problem> {
    Arc::clone(service.slots()).try_acquire_owned().map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many questions are being answered at once; ask again in a few seconds",
        )
        .retry_after(BUSY_RETRY_S)
    })
}

/// Checks the request, enters the question as running and begins to answer it on a task of its own.
async fn start(service: &Service, principal: Principal, request: ChatRequest) -> Result<Started, Problem> {
    let permit = place(service)?;
    let (question, continues) = question(service, principal, request).await?;
    let question_id = question.id.to_string();
    let asker = question.principal.id.clone();
    let stopped = service.enter(&question_id, &asker);
    let (send_event, events) = mpsc::unbounded_channel();
    let (send_end, ended) = oneshot::channel();
    let stop = StopOnDrop { service: service.clone(), question_id: question_id.clone(), principal: asker };
    let service = service.clone();
    tokio::spawn(async move {
        let channel = Channel::new(send_event);
        let running = Running { service: &service, id: &question.id, is_planned: true, progress: &channel.progress };
        let end = running.work(run(running, &question, continues, &channel, stopped, permit)).await;
        drop(send_end.send(end.unwrap_or(Ended::Crashed)));
    });
    Ok(Started { question_id, events, ended, stop })
}

/// The question, and whether it continues a conversation.
async fn question(service: &Service, principal: Principal, request: ChatRequest) -> Result<(Question, bool), Problem> {
    let (as_of, time_zone) = instant_and_zone(service, request.as_of, request.time_zone.as_deref())?;
    let continues = request.conversation_id.is_some();
    let conversation_id = match request.conversation_id {
        Some(id) if id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => {
            own_conversation(service, &id, &principal).await?;
            id
        }
        Some(_) => {
            return Err(unprocessable(
                "`conversation_id` is not one of ours; leave it out to begin a new conversation".to_owned(),
            ));
        }
        None => service.assistant().ids.next(),
    };
    let before = if continues { before(service, &conversation_id, &principal).await? } else { Vec::new() };
    let question = Question {
        id: QuestionId::new(service.assistant().ids.next()),
        conversation_id: ConversationId::new(conversation_id),
        text: request.question,
        before,
        principal,
        entrance: "http",
        as_of,
        time_zone,
    };
    Ok((question, continues))
}

/// The questions that a question of a conversation goes on from.
async fn before(service: &Service, id: &str, principal: &Principal) -> Result<Vec<Earlier>, Problem> {
    let (id, who) = (id.to_owned(), principal.clone());
    service.answers().ask(move |answers| answers.before(&id, &who)).await.map_err(|error| {
        tracing::error!(%error, "a conversation could not be read");
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "conversations cannot be read now; try again in a moment, or leave out `conversation_id`",
        )
    })
}

/// A question joins a conversation of its asker's own; one of somebody else is told like one that does not exist.
async fn own_conversation(service: &Service, id: &str, principal: &Principal) -> Result<(), Problem> {
    let (id, who, now) = (id.to_owned(), principal.id.clone(), service.assistant().clock.now());
    match service.answers().ask(move |answers| answers.may_continue(&id, &who, now)).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "there is no conversation of yours with this `conversation_id`; leave it out to begin a new one",
        )),
        Err(error) => {
            tracing::error!(%error, "a conversation could not be looked up");
            Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "conversations cannot be looked up now; try again in a moment, or leave out `conversation_id`",
            ))
        }
    }
}

/// The instant to take as now, and the asker's zone.
pub(super) fn instant_and_zone(
    service: &Service,
    as_of: Option<Timestamp>,
    zone: Option<&str>,
) -> Result<(Timestamp, TimeZone), Problem> {
    let now = service.assistant().clock.now();
    let as_of = as_of.unwrap_or(now);
    if as_of > now {
        return Err(unprocessable(format!("`as_of` {as_of} lies in the future; leave it out to ask as of now")));
    }
    let time_zone = TimeZone::get(zone.unwrap_or("UTC")).map_err(|_| {
        unprocessable("`time_zone` is no IANA time zone; use a name such as `Europe/Berlin`".to_owned())
    })?;
    Ok((as_of, time_zone))
}

fn unprocessable(detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Answers, unless it is stopped first. Dropping the line's future stops the query at the engine.
async fn run(
    running: Running<'_>,
    question: &Question,
    continues: bool,
    events: &Channel,
    mut stopped: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) -> Ended {
    let service = running.service;
    let mut answering = Box::pin(answer_question(service.assistant(), question, events));
    let by_itself = tokio::select! {
        biased;
        answered = &mut answering => Ok(answered),
        _ = stopped.wait_for(|stop| *stop) => Err("the question was stopped"),
        () = tokio::time::sleep(DEADLINE) => Err("the question took longer than two minutes and was stopped; ask about a shorter time range"),
    };
    let answered = match by_itself {
        Ok(answered) => answered,
        Err(_) if events.progress.is_closing() => answering.await,
        Err(reason) => {
            drop(answering);
            running.cancelled(reason).await;
            return Ended::Stopped(reason);
        }
    };
    ended(service, question, continues, events, answered).await
}

async fn ended(
    service: &Service,
    question: &Question,
    continues: bool,
    events: &Channel,
    answered: Result<Answer, AskError>,
) -> Ended {
    match answered {
        Ok(answer) => {
            let answer = Arc::new(answer);
            keep(service, &answer, &question.principal, continues).await;
            events.send(Event::Answer(Box::new(answer.as_ref().clone())));
            Ended::Answered(answer)
        }
        Err(error) => Ended::Failed(error),
    }
}

/// An answer that cannot be kept is still an answer; it cannot be looked at later, and the log says why.
async fn keep(service: &Service, answer: &Arc<Answer>, asker: &Principal, continues: bool) {
    let now = service.assistant().clock.now();
    let (keeping, asker) = (Arc::clone(answer), asker.clone());
    match service.answers().ask(move |answers| answers.keep(&keeping, &asker, now, continues)).await {
        Ok(Kept::Stored) => {}
        Ok(Kept::ConversationGone) => {
            tracing::info!(answer_id = %answer.answer_id, "an answer was not kept: its conversation was deleted meanwhile");
        }
        Err(error) => tracing::error!(%error, answer_id = %answer.answer_id, "an answer was not kept"),
    }
}

async fn wait(started: Started) -> Result<Response, Problem> {
    let Started { question_id, events, ended, stop } = started;
    let ended = ended.await;
    drop((events, stop));
    match ended {
        Ok(Ended::Answered(answer)) => Ok(Json(answer.as_ref()).into_response()),
        Ok(Ended::Failed(error)) => Err(Problem::of(&error).about(&question_id)),
        Ok(Ended::Stopped(reason)) => Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, reason).about(&question_id)),
        Ok(Ended::Crashed) | Err(_) => Err(crashed().about(&question_id)),
    }
}

fn crashed() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "answering failed inside Sightline; report the question id")
}

/// Events as they come; `answer` or `error` is the last. A question that ends before it was accepted is a plain problem with its
/// status: one too many a minute, for example.
async fn stream(mut started: Started) -> Result<Response, Problem> {
    let Some(first) = started.events.recv().await else { return wait(started).await };
    let Started { question_id, events, ended, stop } = started;
    let events = futures::stream::once(futures::future::ready(first)).chain(UnboundedReceiverStream::new(events));
    let steps = events.map(|event| sse(event.name(), &event));
    let end = futures::stream::once(async move {
        let problem = match ended.await {
            Ok(Ended::Answered(_)) => return None,
            Ok(Ended::Failed(error)) => Problem::of(&error),
            Ok(Ended::Stopped(reason)) => Problem::new(StatusCode::GATEWAY_TIMEOUT, reason),
            Ok(Ended::Crashed) | Err(_) => crashed(),
        };
        Some(sse("error", &problem.about(&question_id)))
    })
    .filter_map(futures::future::ready);
    // The guard lives as long as the stream: a client that goes away stops its question.
    let guarded = steps.chain(end).map(move |event| {
        let _held = &stop;
        Ok::<_, Infallible>(event)
    });
    Ok(Sse::new(guarded).keep_alive(KeepAlive::default()).into_response())
}

fn sse<T: serde::Serialize>(name: &'static str, data: &T) -> SseEvent {
    match serde_json::to_string(data) {
        Ok(json) => SseEvent::default().event(name).data(json),
        Err(error) => {
            tracing::error!(%error, "an event could not be written as JSON");
            SseEvent::default().event("error").data("{\"title\":\"Internal Server Error\",\"status\":500}")
        }
    }
}
