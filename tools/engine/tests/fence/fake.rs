//! A server that speaks as much of ClickHouse's HTTP as a test needs, and can be made to be wrong.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The names and values in the URL.
    pub(crate) pairs: Vec<(String, String)>,
    /// The body as it is: the text, or a form that holds it.
    pub(crate) body: String,
}

impl Asked {
    /// Every value of that name in the URL.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Marks an answer that is not given.
const HANGS: &str = "x-hangs";

type Answer = dyn Fn(&Asked) -> Response<Body> + Send + Sync;

/// The server; it ends with the test's runtime.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone)]
struct Fake {
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Answer>,
}

impl FakeServer {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let fake = Fake { asked: Arc::clone(&asked), answer: Arc::new(answer) };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(handle).with_state(fake);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked }
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn handle(State(fake): State<Fake>, request: Request) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let pairs = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let asked = Asked { pairs, body: String::from_utf8_lossy(&body).into_owned() };
    fake.asked.lock().unwrap().push(asked.clone());
    let response = (fake.answer)(&asked);
    if response.headers().contains_key(HANGS) {
        // Longer than any test.
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
    response
}

/// An answer that never comes.
pub(crate) fn never() -> Response<Body> {
    Response::builder().header(HANGS, "1").body(Body::empty()).unwrap()
}

/// An answer that worked.
pub(crate) fn ok(text: &str) -> Response<Body> {
    Response::new(Body::from(text.to_owned()))
}

/// ClickHouse's way to say no.
pub(crate) fn refusal(code: i32, message: &str) -> Response<Body> {
    let text = format!("Code: {code}. DB::Exception: {message}. (SOMETHING)");
    Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR).body(Body::from(text)).unwrap()
}
