//! A scripted server of chat completions that holds every request against the protocol. It speaks HTTP by hand, so that it can break off anywhere.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What the server does about a request.
#[derive(Clone, Debug)]
pub(crate) enum Reaction {
    /// A reply, streamed in odd pieces.
    Message(Value),
    /// The same as one JSON document.
    Document(Value),
    /// A status with a body.
    Status(u16, &'static str),
    /// These bytes with this status and content type, with a pause after each piece; then the end, or none.
    Raw { status: u16, kind: String, pieces: Vec<Vec<u8>>, pause: Duration, hangs: bool },
}

type Script = dyn Fn(&Value, usize) -> Reaction + Send + Sync;

struct Inner {
    script: Box<Script>,
    requests: Mutex<Vec<Value>>,
    faults: Mutex<Vec<String>>,
    headers: Mutex<Vec<BTreeMap<String, String>>>,
    targets: Mutex<Vec<String>>,
}

/// The server; it ends with the test's runtime.
pub(crate) struct Server {
    address: SocketAddr,
    inner: Arc<Inner>,
}

impl Server {
    /// A server that reacts to each request, which it is told with its number.
    pub(crate) async fn start(script: impl Fn(&Value, usize) -> Reaction + Send + Sync + 'static) -> Self {
        let inner = Arc::new(Inner {
            script: Box::new(script),
            requests: Mutex::default(),
            faults: Mutex::default(),
            headers: Mutex::default(),
            targets: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&inner);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // A client that goes away in the middle is part of the tests.
                let inner = Arc::clone(&served);
                tokio::spawn(async move { serve(inner, socket).await.ok() });
            }
        });
        Self { address, inner }
    }

    /// One that sends these messages in turn, and the last one again after that.
    pub(crate) async fn replies(messages: Vec<Value>) -> Self {
        Self::start(move |_, number| Reaction::Message(messages[number.min(messages.len() - 1)].clone())).await
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.root())
    }

    pub(crate) fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What each request asked for: a path, or a whole address where the server is taken for a proxy.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.inner.targets.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> Vec<Value> {
        self.inner.requests.lock().unwrap().clone()
    }

    pub(crate) fn headers(&self) -> Vec<BTreeMap<String, String>> {
        self.inner.headers.lock().unwrap().clone()
    }

    /// What of the protocol was broken.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.inner.faults.lock().unwrap().clone()
    }
}

/// One connection, one request.
async fn serve(inner: Arc<Inner>, mut socket: TcpStream) -> std::io::Result<()> {
    // Else each small piece waits for the one before it to be acknowledged.
    socket.set_nodelay(true)?;
    let Some((target, headers, body)) = request(&mut socket).await? else { return Ok(()) };
    let request: Value = serde_json::from_slice(&body).unwrap();
    inner.targets.lock().unwrap().push(target);
    inner.faults.lock().unwrap().extend(broken(&request));
    inner.headers.lock().unwrap().push(headers);
    let number = {
        let mut requests = inner.requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    let reaction = (inner.script)(&request, number);
    let (status, kind, pieces, pause, hangs) = match reaction {
        Reaction::Message(message) => {
            let pieces = odd_pieces(events(&message).as_bytes());
            (200, "text/event-stream; charset=utf-8".to_owned(), pieces, Duration::ZERO, false)
        }
        Reaction::Document(message) => {
            let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
            let whole = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
                "usage": { "prompt_tokens": 11, "completion_tokens": 7 } });
            let text = serde_json::to_string_pretty(&whole).unwrap();
            (200, "application/json".to_owned(), vec![text.into_bytes()], Duration::ZERO, false)
        }
        Reaction::Status(status, body) => {
            (status, "application/json".to_owned(), vec![body.as_bytes().to_vec()], Duration::ZERO, false)
        }
        Reaction::Raw { status, kind, pieces, pause, hangs } => (status, kind, pieces, pause, hangs),
    };
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\nretry-after: 0\r\nlocation: /elsewhere\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await?;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        tokio::time::sleep(pause).await;
        let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        socket.write_all(&framed).await?;
    }
    if hangs {
        std::future::pending::<()>().await;
    }
    socket.write_all(b"0\r\n\r\n").await?;
    socket.shutdown().await
}

/// What a request asks for, its headers in small letters, its body.
type Asked = (String, BTreeMap<String, String>, Vec<u8>);

async fn request(socket: &mut TcpStream) -> std::io::Result<Option<Asked>> {
    let mut taken = Vec::new();
    let end = loop {
        if let Some(end) = taken.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut taken).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&taken[..end]).into_owned();
    let target = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    assert!(head.starts_with("POST ") && target.contains("/chat/completions"), "{head}");
    let headers: BTreeMap<String, String> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    let mut body = taken.split_off(end + 4);
    while body.len() < length {
        socket.read_buf(&mut body).await?;
    }
    Ok(Some((target, headers, body)))
}

/// A message as the events of a stream: words and arguments in pieces, calls side by side.
pub(crate) fn events(message: &Value) -> String {
    let mut text = String::from(": keep-alive\n\n");
    let mut event = |delta: Value, finish: Value| {
        let chunk = json!({ "id": "x", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        text.push_str(&format!("data: {chunk}\r\n\r\n"));
    };
    event(json!({ "role": "assistant", "content": null }), Value::Null);
    if let Some(content) = message.get("content").and_then(Value::as_str) {
        let signs: Vec<char> = content.chars().collect();
        for part in signs.chunks(7) {
            event(json!({ "content": part.iter().collect::<String>() }), Value::Null);
        }
    }
    if let Some(refusal) = message.get("refusal") {
        event(json!({ "refusal": refusal }), Value::Null);
    }
    let calls = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, call) in calls.iter().enumerate() {
        let name = &call["function"]["name"];
        event(
            json!({ "tool_calls": [{ "index": index, "id": call["id"], "type": "function", "function": { "name": name, "arguments": "" } }] }),
            Value::Null,
        );
        let arguments: Vec<char> = call["function"]["arguments"].as_str().unwrap_or_default().chars().collect();
        for part in arguments.chunks(11) {
            let part: String = part.iter().collect();
            event(json!({ "tool_calls": [{ "index": index, "function": { "arguments": part } }] }), Value::Null);
        }
    }
    event(json!({}), json!(if calls.is_empty() { "stop" } else { "tool_calls" }));
    text.push_str(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1234,\"completion_tokens\":56}}\n\ndata: [DONE]\n\n",
    );
    text
}

/// Cut where it suits nobody: in the middle of words, signs and line ends. What is long is cut into larger pieces: each costs a round of both
/// programs, and tens of thousands of them cost a minute.
fn odd_pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    let larger = 1 + bytes.len() / 8_192;
    for size in [1, 2, 13, 3, 97, 1, 31, 5].into_iter().cycle() {
        if rest.is_empty() {
            return pieces;
        }
        let (piece, tail) = rest.split_at((size * larger).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = tail;
    }
    pieces
}

/// What a request breaks of the protocol: each call is answered exactly once, at once, by its id; arguments are JSON objects; names are names.
fn broken(request: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |what: &str| faults.push(what.to_owned());
    if !request["model"].is_string() || request["stream"] != true {
        fault("no model, or no stream");
    }
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let roles = ["system", "user", "assistant", "tool"];
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (place, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !roles.contains(&role) || (role == "system") != (place == 0 && messages.len() > 1) {
            fault("a role in the wrong place");
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                fault("a result of no call, or a second one");
            }
            if !message["content"].is_string() {
                fault("a result without text");
            }
            continue;
        }
        if !open.is_empty() {
            fault("a call without a result");
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if id.is_empty() || !seen.insert(id.clone()) {
                fault("a call without an id of its own");
            }
            open.insert(id);
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|parsed| parsed.is_object()) {
                fault("arguments that are no JSON object");
            }
            if call["type"] != "function" || !call["function"]["name"].is_string() {
                fault("a call of no function");
            }
        }
        if message.get("tool_calls").is_none() && !message["content"].is_string() {
            fault("a message without text");
        }
    }
    if !open.is_empty() {
        fault("a call without a result");
    }
    let names: Vec<&str> =
        request["tools"].as_array().into_iter().flatten().filter_map(|t| t["function"]["name"].as_str()).collect();
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        fault("two tools of one name");
    }
    faults
}

/// A message that calls tools.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(n, (name, arguments))| {
            let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            json!({ "id": format!("call-{}-{n}", short_hash(name, &arguments)), "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    json!({ "tool_calls": calls })
}

fn short_hash(name: &str, arguments: &str) -> u32 {
    name.bytes().chain(arguments.bytes()).fold(7, |hash: u32, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)))
}

/// A message that hands in an answer.
pub(crate) fn answer(answer: Value) -> Value {
    calls(&[("answer", answer)])
}
