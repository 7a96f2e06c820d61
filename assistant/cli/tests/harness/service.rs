//! A running `sightline serve`, its tokens, its log, and the requests that tests make.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use sightline_audit::{AuditKey, AuditReader, Filter, QuestionLine, Verdict};
use sightline_engine::engine_address;
use sightline_server::{IdentityStore, TokenOrder};

use crate::harness::canary::Watch;
use crate::harness::{command, signal, wait_until};

/// Who has a token.
const PRINCIPALS: [&str; 4] = ["viewer@atlas", "operator@atlas", "operator@borealis", "auditor"];

/// A service on a data folder.
pub(crate) struct Service {
    watch: Watch,
    process: Child,
    log: Arc<Mutex<String>>,
    data_dir: PathBuf,
    tokens: Vec<(&'static str, String)>,
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
}

impl Service {
    /// Makes the tokens, starts the service at log level info, and waits until it listens.
    pub(crate) fn start(data_dir: &Path) -> Self {
        Self::start_with(data_dir, &[("SIGHTLINE_LOG", "info")])
    }

    /// The same, with these in its environment.
    pub(crate) fn start_with(data_dir: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_for(data_dir, &PRINCIPALS, environment)
    }

    /// The same, with tokens for these principals.
    pub(crate) fn start_for(data_dir: &Path, principals: &[&'static str], environment: &[(&str, &str)]) -> Self {
        let tokens = tokens(data_dir, principals);
        let mut process = command(data_dir, &["serve", "--listen", "127.0.0.1:0"])
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let mut url = None;
        wait_until("the service listens", || {
            let text = log.lock().unwrap().clone();
            assert!(process.try_wait().unwrap().is_none(), "the service ended: {text}");
            url = text.lines().find_map(|line| line.split_once("listens on ")).map(|(_, url)| url.trim().to_owned());
            url.is_some()
        });
        let watch = Watch::new(data_dir);
        let url = overheard(&url.unwrap(), watch.seen());
        Self { watch, process, log, data_dir: data_dir.to_owned(), tokens, url, client: crate::harness::http() }
    }

    /// What it has written to stderr.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(crate) fn token(&self, principal: &str) -> &str {
        self.tokens.iter().find(|(who, _)| *who == principal).map(|(_, token)| token.as_str()).unwrap()
    }

    /// A request as a principal.
    pub(crate) fn request(&self, principal: &str, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(self.token(principal))
    }

    /// A question as JSON.
    pub(crate) fn chat(&self, principal: &str, body: &Value) -> RequestBuilder {
        self.request(principal, Method::POST, "/v1/chat").json(body)
    }

    /// A typed call, made as of an instant.
    pub(crate) fn call(&self, principal: &str, tool: &str, arguments: &Value, as_of: Timestamp) -> RequestBuilder {
        self.request(principal, Method::POST, &format!("/v1/tools/{tool}?as_of={as_of}")).json(arguments)
    }

    /// A question that is answered.
    pub(crate) async fn answer(&self, principal: &str, question: &str, as_of: Timestamp) -> Value {
        let response = self.chat(principal, &json!({ "question": question, "as_of": as_of })).send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A question whose events are streamed.
    pub(crate) async fn stream(&self, principal: &str, question: &str, as_of: Timestamp) -> Response {
        let response = self
            .chat(principal, &json!({ "question": question, "as_of": as_of }))
            .header("Accept", "text/event-stream")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// The process of the engine that this service runs on.
    pub(crate) fn engine_pid(&self) -> u32 {
        engine_address(&self.data_dir).unwrap().unwrap().pid
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        signal(self.process.id(), "TERM");
        self.wait()
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the service ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The audited questions that hold this text, newest first.
    pub(crate) fn audited(&self, text: &str) -> Vec<QuestionLine> {
        audited(&self.data_dir, text)
    }
}

/// A token for each of these.
fn tokens(data_dir: &Path, principals: &[&'static str]) -> Vec<(&'static str, String)> {
    let store = IdentityStore::open(data_dir).unwrap();
    let token = |who: &&'static str| {
        let (label, created) = (String::new(), Timestamp::UNIX_EPOCH);
        let order = TokenOrder { principal: (*who).to_owned(), label, created, expires: None };
        (*who, store.new_token(&order).unwrap().text)
    };
    principals.iter().map(token).collect()
}

/// An address that leads to the service; what it answers is kept.
fn overheard(url: &str, seen: Arc<Mutex<Vec<u8>>>) -> String {
    let service = url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            // A service that has ended takes no connection, and neither does this address then.
            let Ok(server) = TcpStream::connect(&service) else { continue };
            let (to_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            std::thread::spawn(move || pass_on(client, to_server, Shutdown::Both, |_| ()));
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                // The client may still be sending: what it sends is taken until it has read the answer and goes.
                pass_on(server, to_client, Shutdown::Write, |bytes| seen.lock().unwrap().extend_from_slice(bytes))
            });
        }
    });
    url
}

/// Passes bytes on until their sender goes, and tells their reader then. A reader that takes no more may still have something to say:
/// the service refuses a body that is too long while it is being sent.
fn pass_on(mut from: TcpStream, mut to: TcpStream, end: Shutdown, seen: impl Fn(&[u8])) {
    let mut bytes = [0; 16 * 1024];
    let mut takes_more = true;
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        seen(&bytes[..read]);
        takes_more = takes_more && to.write_all(&bytes[..read]).is_ok();
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(end);
}

impl Drop for Service {
    fn drop(&mut self) {
        self.watch.saw(self.log().as_bytes());
        if self.process.try_wait().unwrap().is_some() {
            return;
        }
        // Its engine ends with its standard input, however this process ends.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the service's log:\n{}", self.log());
        }
    }
}

/// The audited questions that hold this text, newest first.
pub(crate) fn audited(data_dir: &Path, text: &str) -> Vec<QuestionLine> {
    let reader = AuditReader::open(&data_dir.join("audit.db")).unwrap();
    let filter = Filter { text: Some(text.to_owned()), limit: Some(1000), ..Filter::default() };
    reader.list(&filter).unwrap().questions
}

/// Holds that the audit log is whole.
pub(crate) fn hold_audit_log_whole(data_dir: &Path) {
    let key = AuditKey::load_or_create(&data_dir.join("audit.key"), [0; 32]).unwrap();
    let verdict = AuditReader::open(&data_dir.join("audit.db")).unwrap().verify(&key.public()).unwrap();
    assert!(!matches!(verdict, Verdict::Broken(_)), "{verdict}");
}

/// An event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Sse {
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// Reads the events that stand whole in this text.
pub(crate) fn events(text: &str) -> Vec<Sse> {
    text.split("\n\n")
        .filter_map(|block| {
            let name = block.lines().find_map(|line| line.strip_prefix("event:"))?.trim().to_owned();
            let data = block.lines().find_map(|line| line.strip_prefix("data:"))?.trim();
            Some(Sse { name, data: serde_json::from_str(data).unwrap() })
        })
        .collect()
}

/// Reads a stream until its question was accepted, and gives back the question's id.
pub(crate) async fn accepted(response: &mut Response) -> String {
    let mut text = String::new();
    loop {
        let chunk = response.chunk().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        if let Some(first) = events(&text).first() {
            assert_eq!(first.name, "accepted");
            return first.data["question_id"].as_str().unwrap().to_owned();
        }
    }
}

/// Holds that a response is a problem document of this status, and gives back its detail.
pub(crate) async fn problem(response: Response, status: u16) -> String {
    assert_eq!(response.status(), status);
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body = response.text().await.unwrap();
    assert_eq!(kind, "application/problem+json", "{body}");
    let document: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(document["status"], status, "{body}");
    let detail = document["detail"].as_str().unwrap().to_owned();
    assert!(!detail.is_empty() && document["title"].is_string(), "{body}");
    detail
}
