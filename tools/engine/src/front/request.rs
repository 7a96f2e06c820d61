//! Reads ClickHouse's HTTP request: URL, headers, and the three shapes of a body.

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use futures::StreamExt;

use crate::embedded::ffi::Parameter;

use super::compression::BlockDecoder;
use super::credentials::{EngineCredentials, EngineUser};
use super::error::QueryError;
use super::settings::RequestSettings;

/// A request without its body.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) user: EngineUser,
    /// The query in the URL.
    pub(super) query: Option<String>,
    pub(super) query_id: Option<String>,
    pub(super) database: String,
    /// The format of a result whose query names none.
    pub(super) format: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) settings: RequestSettings,
    pub(super) wait_end_of_query: bool,
    pub(super) decompress: bool,
    /// GET changes nothing.
    pub(super) get: bool,
    pub(super) accepts_lz4: bool,
    multipart_boundary: Option<String>,
}

impl RequestHead {
    /// Reads URL and headers and tells who asks.
    pub(super) fn read(parts: &Parts, credentials: &EngineCredentials) -> Result<Self, QueryError> {
        let pairs: Vec<(String, String)> =
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let last = |name: &str| pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let user = credentials.authenticate(&parts.headers, last("user"), last("password"))?;
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let mut head = Self {
            user,
            query: None,
            query_id: None,
            database: text("x-clickhouse-database").unwrap_or("default").to_owned(),
            format: text("x-clickhouse-format").unwrap_or("TabSeparated").to_owned(),
            parameters: Vec::new(),
            settings: RequestSettings::default(),
            wait_end_of_query: false,
            decompress: false,
            get: parts.method == Method::GET,
            accepts_lz4: accepts_lz4(&parts.headers),
            multipart_boundary: text(header::CONTENT_TYPE.as_str()).and_then(|kind| multer::parse_boundary(kind).ok()),
        };
        for (name, value) in &pairs {
            head.take_pair(name, value)?;
        }
        Ok(head)
    }

    fn take_pair(&mut self, name: &str, value: &str) -> Result<(), QueryError> {
        match name {
            "user" | "password" => {}
            "query" => self.query = Some(value.to_owned()),
            "query_id" => self.query_id = Some(checked_query_id(value)?),
            "database" => self.database = value.to_owned(),
            "default_format" => self.format = value.to_owned(),
            "decompress" => self.decompress = is_on(value),
            "compress" if is_on(value) => {
                return Err(QueryError::bad_argument(
                    "`compress=1` is not served; send `Accept-Encoding: lz4` instead",
                ));
            }
            "compress" => {}
            _ => match name.strip_prefix("param_") {
                Some(parameter) => self.parameters.push((parameter.to_owned(), value.as_bytes().to_vec())),
                None => {
                    if name == "wait_end_of_query" {
                        self.wait_end_of_query = is_on(value);
                    }
                    self.settings.push(self.user, name, value)?;
                }
            },
        }
        if self.format.is_empty() || !self.format.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(QueryError::bad_argument(&format!("`{}` is no name of a format", self.format)));
        }
        Ok(())
    }

    /// Whether the body is a form of its own rather than text or data.
    pub(super) fn is_multipart(&self) -> bool {
        self.multipart_boundary.is_some()
    }

    /// Reads a form body: `query` and `param_*` fields.
    pub(super) async fn read_form(&mut self, body: Body, limit: u64) -> Result<(), QueryError> {
        let broken = |error: multer::Error| match error {
            multer::Error::StreamSizeExceeded { .. } => QueryError::request_too_large(limit),
            error => QueryError::bad_argument(&format!("the form body is broken: {error}")),
        };
        let Some(boundary) = self.multipart_boundary.clone() else { return Ok(()) };
        let limits = multer::SizeLimit::new().whole_stream(limit);
        let constraints = multer::Constraints::new().size_limit(limits);
        let mut form = multer::Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
        while let Some(field) = form.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            let value = field.bytes().await.map_err(broken)?;
            if let Some(parameter) = name.strip_prefix("param_") {
                self.parameters.push((parameter.to_owned(), value.to_vec()));
            } else {
                let value = std::str::from_utf8(&value)
                    .map_err(|_| QueryError::bad_argument(&format!("the form field `{name}` is not UTF-8")))?;
                self.take_pair(&name, value)?;
            }
        }
        Ok(())
    }
}

/// The bytes of a body as they arrive, undone of ClickHouse's compression when the request says so.
pub(super) struct BodyParts {
    stream: axum::body::BodyDataStream,
    decoder: Option<BlockDecoder>,
}

impl BodyParts {
    pub(super) fn new(body: Body, decompress: bool) -> Self {
        Self { stream: body.into_data_stream(), decoder: decompress.then(BlockDecoder::default) }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        let Some(part) = self.stream.next().await else {
            return match self.decoder.take() {
                Some(decoder) => decoder.finish().map(|()| None),
                None => Ok(None),
            };
        };
        let part = part.map_err(|error| QueryError::bad_argument(&format!("the request's body broke off: {error}")))?;
        match &mut self.decoder {
            Some(decoder) => decoder.push(&part).map(|plain| Some(Bytes::from(plain))),
            None => Ok(Some(part)),
        }
    }

    /// All of it, up to `limit` bytes.
    pub(super) async fn collect(mut self, limit: u64) -> Result<Vec<u8>, QueryError> {
        let mut all = Vec::new();
        while let Some(part) = self.next().await? {
            if (all.len() + part.len()) as u64 > limit {
                return Err(QueryError::request_too_large(limit));
            }
            all.extend_from_slice(&part);
        }
        Ok(all)
    }
}

/// Ids stand in the engine's log comments and in KILL statements, so they are kept to a plain alphabet.
pub(super) fn checked_query_id(id: &str) -> Result<String, QueryError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    if id.is_empty() || id.len() > 128 || !id.bytes().all(plain) {
        let message = format!("`{}` is no query id: at most 128 of A-Z a-z 0-9 - _ . :", id.escape_debug());
        return Err(QueryError::bad_argument(&message));
    }
    Ok(id.to_owned())
}

fn is_on(value: &str) -> bool {
    matches!(value, "1" | "true")
}

fn accepts_lz4(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|encoding| {
        let (name, weight) = encoding.split_once(';').unwrap_or((encoding, ""));
        name.trim().eq_ignore_ascii_case("lz4") && !matches!(weight.trim(), "q=0" | "q=0.0")
    })
}
