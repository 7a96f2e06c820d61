//! The HTTP layer below the client: tries again what passes, and lets through only a bounded stream of events.
//!
//! It stands below `async-openai` so that no error text of a server is read, kept or logged, and no answer takes more memory than it may.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures::{StreamExt as _, stream};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Body, Response, StatusCode};

use crate::fault::ModelFault;

/// The most bytes of one answer: some 200 times a long draft.
pub(crate) const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// The first wait before another try; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait, whatever the server asks for: somebody is waiting.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Sends requests, and again where that can help.
#[derive(Clone, Debug)]
pub(crate) struct BoundedService {
    client: reqwest::Client,
    tries: u32,
}

impl BoundedService {
    pub(crate) fn new(client: reqwest::Client, tries: u32) -> Self {
        Self { client, tries }
    }
}

impl tower::Service<HttpRequestFactory> for BoundedService {
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let Self { client, tries } = self.clone();
        Box::pin(async move {
            let mut wait = FIRST_WAIT;
            for left in (0..tries.max(1)).rev() {
                let (fault, asked) = match client.execute(factory.build().await?).await {
                    Ok(response) if response.status().is_success() => return bounded(response).map_err(boxed),
                    Ok(response) => (of_status(response.status()), retry_after(&response)),
                    Err(_) => (ModelFault::Unreachable, None),
                };
                if left == 0 || !fault.is_passing() {
                    return Err(boxed(fault));
                }
                tracing::debug!(%fault, left, "the model is asked again");
                tokio::time::sleep(asked.unwrap_or(wait).min(LONGEST_WAIT)).await;
                wait = wait.saturating_mul(2);
            }
            Err(boxed(ModelFault::Unreachable))
        })
    }
}

fn boxed(fault: ModelFault) -> OpenAIError {
    OpenAIError::Boxed(Box::new(fault))
}

fn of_status(status: StatusCode) -> ModelFault {
    let number = status.as_u16();
    match number {
        401 | 403 => ModelFault::Unauthorized { status: number },
        408 | 409 | 425 | 429 | 500..=599 => ModelFault::Overloaded { status: number },
        _ => ModelFault::Rejected { status: number },
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    header.trim().parse::<u64>().ok().map(Duration::from_secs)
}

/// The answer as a stream of events that ends where it is too large. A server that knows no streaming sends one JSON document: it becomes the
/// one event of a stream.
fn bounded(response: Response) -> Result<Response, ModelFault> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let taken = Arc::new(AtomicUsize::new(0));
    let pieces = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|_| ModelFault::Cut)?;
        let so_far = taken.fetch_add(piece.len(), Ordering::Relaxed);
        if so_far.saturating_add(piece.len()) > MAX_ANSWER {
            return Err(ModelFault::Cut);
        }
        Ok(piece)
    });
    let body = match kind.as_str() {
        "text/event-stream" => Body::wrap_stream(pieces),
        "application/json" => {
            let one = |text: &'static str| stream::iter([Ok::<_, ModelFault>(bytes_of(text))]);
            let document = pieces.map(|piece| piece.map(|piece| without_breaks(&piece)));
            Body::wrap_stream(one("data: ").chain(document).chain(one("\n\ndata: [DONE]\n\n")))
        }
        _ => return Err(ModelFault::Malformed { what: "its content type is neither an event stream nor JSON" }),
    };
    let mut rebuilt = http::Response::new(body);
    *rebuilt.status_mut() = status;
    Ok(Response::from(rebuilt))
}

fn bytes_of(text: &'static str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// A line break would end the event; in JSON it only ever stands between tokens.
fn without_breaks(piece: &[u8]) -> Vec<u8> {
    piece.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_tried_again_and_what_is_wrong_is_not() {
        for passing in [429, 500, 502, 503, 529] {
            assert!(of_status(StatusCode::from_u16(passing).unwrap()).is_passing(), "{passing}");
        }
        for lasting in [400, 401, 403, 404, 422] {
            assert!(!of_status(StatusCode::from_u16(lasting).unwrap()).is_passing(), "{lasting}");
        }
    }
}
