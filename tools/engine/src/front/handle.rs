//! One request from its first byte to its last.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, Response};
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::embedded::folder::SpoolFile;

use super::blocks::can_stream;
use super::compression::Encoder;
use super::credentials::EngineUser;
use super::error::QueryError;
use super::reader::check_reader;
use super::request::{BodyParts, RequestHead, checked_query_id};
use super::respond::{ResponseHead, failure, success};
use super::run::Job;
use super::statement::{Insert, Kill, KillId, Statement, parse_statement, with_client_query_ids};
use super::{Front, WAIT_FOR_PLACE};

/// Blocks that may wait between the engine and a slow client.
const BLOCKS_IN_FLIGHT: usize = 2;

pub(super) async fn query(State(front): State<Arc<Front>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut head = match RequestHead::read(&parts, &front.credentials) {
        Ok(head) => head,
        Err(error) => return failure(&error, None),
    };
    let id = head.query_id.take().unwrap_or_else(|| front.fresh_token("query id"));
    match run(&front, head, &id, body).await {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(query_id = id, code = error.code(), "query refused or failed");
            failure(&error, Some(&id))
        }
    }
}

async fn run(front: &Arc<Front>, mut head: RequestHead, id: &str, body: Body) -> Result<Response<Body>, QueryError> {
    if front.closing.load(Ordering::SeqCst) {
        return Err(QueryError::unavailable("the engine is ending"));
    }
    let started = Instant::now();
    let (text, statement, data) = read_statement(front, &mut head, body).await?;
    let (sql, format, streams) = match &statement {
        Statement::Select { format, streamable } => {
            let format = format.clone().unwrap_or_else(|| head.format.clone());
            let streams = *streamable && !head.wait_end_of_query && can_stream(&format);
            (with_client_query_ids(&text), format, streams)
        }
        Statement::Insert(insert) => (insert_from_file(insert, data.as_ref())?, "Null".to_owned(), false),
        Statement::Kill(kill) => return run_kill(front, &head, id, kill, started).await,
        Statement::Other { format } => (text.clone(), format.clone().unwrap_or_else(|| head.format.clone()), false),
    };
    if head.user == EngineUser::Reader {
        check_reader_request(front, &head, &text, &statement).await?;
    }
    let changes_tables = head.user == EngineUser::Writer && matches!(statement, Statement::Other { .. });
    // The engine holds such a result whole. The writer's exports shrink on the way to their format, so only what comes
    // out of it counts there.
    if !streams && head.user == EngineUser::Reader {
        head.settings.default_to("max_result_bytes", &front.limits.buffered_bytes.to_string());
    }
    let readonly = match (head.user, head.get) {
        (EngineUser::Reader, _) => Some("1"),
        (EngineUser::Writer, true) => Some("2"),
        (EngineUser::Writer, false) => None,
    };
    let permit = place(front).await?;
    let guard = front.running.enter(id, head.user)?;
    if head.user == EngineUser::Reader {
        // A diagnosis asks many things at once. A query on two threads takes half as much time of the cores again as on one (measured), so
        // that each does with its share while others run.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        head.settings.at_most("max_threads", (cores / front.running.number().max(1)).max(1));
    }
    let job = Job {
        guard,
        database: head.database.clone(),
        settings: head.settings.statements(head.user, id, readonly),
        sql,
        format: format.clone(),
        parameters: head.parameters,
        _data: data,
        _permit: permit,
        started,
    };
    let watch = KillOnDrop::new(front, id);
    if streams {
        return run_stream(front, job, watch, id, &format, head.accepts_lz4).await;
    }
    let worker = Arc::clone(front);
    let finished = tokio::task::spawn_blocking(move || {
        let result = job.run_whole(&worker);
        if changes_tables {
            worker.forget_catalogue();
        }
        result
    });
    let finished = finished.await.map_err(|_| worker_gone())?;
    watch.disarm();
    let (output, elapsed) = finished?;
    let mut encoder = Encoder::new(head.accepts_lz4);
    let mut bytes = encoder.part(output.bytes);
    bytes.extend(encoder.end());
    let lz4 = head.accepts_lz4;
    let head =
        ResponseHead { query_id: id, format: &format, lz4, exception_tag: None, counters: output.counters, elapsed };
    Ok(success(&head, Body::from(bytes)))
}

/// The request's query text, what it is, and its data on disk.
async fn read_statement(
    front: &Arc<Front>,
    head: &mut RequestHead,
    body: Body,
) -> Result<(Vec<u8>, Statement, Option<SpoolFile>), QueryError> {
    let limit = front.limits.request_bytes;
    if head.is_multipart() {
        head.read_form(body, limit).await?;
        let text = head.query.take().unwrap_or_default().into_bytes();
        let statement = parse_statement(&text)?;
        let data = spool_inline(front, &statement)?;
        return Ok((text, statement, data));
    }
    let mut parts = BodyParts::new(body, head.decompress);
    let Some(query) = head.query.take() else {
        let text = parts.collect(limit).await?;
        let statement = parse_statement(&text)?;
        let data = spool_inline(front, &statement)?;
        return Ok((text, statement, data));
    };
    let mut text = query.into_bytes();
    let statement = parse_statement(&text)?;
    if let Some(mut data) = spool_inline(front, &statement)? {
        while let Some(part) = parts.next().await? {
            data = write_part(data, part).await?;
        }
        return Ok((text, statement, Some(data)));
    }
    let rest = parts.collect(limit).await?;
    if rest.is_empty() {
        return Ok((text, statement, None));
    }
    text.push(b'\n');
    text.extend_from_slice(&rest);
    let statement = parse_statement(&text)?;
    Ok((text, statement, None))
}

/// A file with the data that follow an INSERT in its own text, to which the body may be added.
fn spool_inline(front: &Front, statement: &Statement) -> Result<Option<SpoolFile>, QueryError> {
    let Statement::Insert(insert) = statement else { return Ok(None) };
    let mut data = front.folder.spool_file().map_err(|error| QueryError::unavailable(&error.to_string()))?;
    data.write(&insert.data).map_err(|error| disk_error(&error))?;
    Ok(Some(data))
}

async fn write_part(mut data: SpoolFile, part: Bytes) -> Result<SpoolFile, QueryError> {
    let written = tokio::task::spawn_blocking(move || data.write(&part).map(|()| data));
    written.await.map_err(|_| worker_gone())?.map_err(|error| disk_error(&error))
}

fn disk_error(error: &std::io::Error) -> QueryError {
    QueryError::unavailable(&format!("the data of the INSERT cannot be kept in the data folder: {error}"))
}

fn worker_gone() -> QueryError {
    QueryError::unavailable("the worker of this query broke down")
}

fn insert_from_file(insert: &Insert, data: Option<&SpoolFile>) -> Result<Vec<u8>, QueryError> {
    let path = data.and_then(|data| data.path().to_str()).ok_or_else(worker_gone)?;
    // INVARIANT: the data folder's path holds no quote and no pattern character.
    let source = format!(" FROM INFILE '{path}' COMPRESSION 'none' ");
    Ok([insert.head.as_slice(), source.as_bytes(), &insert.tail].concat())
}

async fn check_reader_request(
    front: &Arc<Front>,
    head: &RequestHead,
    text: &[u8],
    statement: &Statement,
) -> Result<(), QueryError> {
    if let Statement::Insert(_) = statement {
        return Err(QueryError::readonly("the reader may send SELECT and EXPLAIN ESTIMATE SELECT only"));
    }
    let worker = Arc::clone(front);
    let catalogue = tokio::task::spawn_blocking(move || worker.catalogue());
    let catalogue = catalogue.await.map_err(|_| worker_gone())??;
    check_reader(text, &head.database, head.settings.filters.as_ref(), &catalogue)
}

async fn place(front: &Front) -> Result<OwnedSemaphorePermit, QueryError> {
    let acquired = tokio::time::timeout(WAIT_FOR_PLACE, Arc::clone(&front.places).acquire_owned()).await;
    match acquired {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(QueryError::too_many_queries(front.limits.concurrent_queries)),
    }
}

async fn run_stream(
    front: &Arc<Front>,
    job: Job,
    watch: KillOnDrop,
    id: &str,
    format: &str,
    lz4: bool,
) -> Result<Response<Body>, QueryError> {
    let tag: String = front.fresh_token("exception tag").chars().take(16).collect();
    let (send_head, receive_head) = oneshot::channel();
    let (send_block, receive_block) = mpsc::channel::<Bytes>(BLOCKS_IN_FLIGHT);
    let (worker, worker_tag) = (Arc::clone(front), tag.clone());
    tokio::task::spawn_blocking(move || job.run_stream(&worker, &worker_tag, lz4, send_head, send_block));
    let (counters, elapsed) = match receive_head.await {
        Ok(Ok(head)) => head,
        Ok(Err(error)) => {
            watch.disarm();
            return Err(error);
        }
        Err(_) => return Err(worker_gone()),
    };
    let blocks = stream::unfold((receive_block, watch), |(mut blocks, watch)| async move {
        match blocks.recv().await {
            Some(block) => Some((Ok::<Bytes, std::convert::Infallible>(block), (blocks, watch))),
            None => {
                watch.disarm();
                None
            }
        }
    });
    let head = ResponseHead { query_id: id, format, lz4, exception_tag: Some(&tag), counters, elapsed };
    Ok(success(&head, Body::from_stream(blocks)))
}

async fn run_kill(
    front: &Arc<Front>,
    head: &RequestHead,
    id: &str,
    kill: &Kill,
    started: Instant,
) -> Result<Response<Body>, QueryError> {
    let target = match &kill.id {
        KillId::Literal(literal) => String::from_utf8_lossy(literal).into_owned(),
        KillId::Parameter(name) => {
            let value = head.parameters.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value);
            let value = value.ok_or_else(|| QueryError::bad_argument(&format!("parameter `{name}` is not given")))?;
            String::from_utf8_lossy(value).into_owned()
        }
    };
    let target = checked_query_id(&target)?;
    let mut answer = String::new();
    match (head.user, front.running.user_of(&target)) {
        // A query that is not the reader's is answered like one that does not run.
        (_, None) | (EngineUser::Reader, Some(EngineUser::Writer)) => {}
        (EngineUser::Writer, Some(owner)) | (EngineUser::Reader, Some(owner @ EngineUser::Reader)) => {
            let worker = Arc::clone(front);
            let killed = target.clone();
            let killing = tokio::spawn(async move { worker.kill(&killed).await });
            if kill.wait {
                killing.await.map_err(|_| worker_gone())?;
            }
            answer = format!("waiting\t{target}\t{}\n", owner.name());
        }
    }
    let response = ResponseHead {
        query_id: id,
        format: "TabSeparated",
        lz4: false,
        exception_tag: None,
        counters: crate::embedded::ffi::Counters::default(),
        elapsed: started.elapsed(),
    };
    Ok(success(&response, Body::from(answer)))
}

/// Kills a query whose client goes before its end.
struct KillOnDrop {
    target: Option<(Arc<Front>, String)>,
}

impl KillOnDrop {
    fn new(front: &Arc<Front>, id: &str) -> Self {
        Self { target: Some((Arc::clone(front), id.to_owned())) }
    }

    fn disarm(mut self) {
        self.target = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some((front, id)) = self.target.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { front.kill(&id).await });
        }
    }
}
