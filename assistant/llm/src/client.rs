//! One request to the model, and its reply.

use std::time::Duration;

use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use futures::StreamExt as _;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use crate::config::LlmConfig;
use crate::fault::ModelFault;
use crate::reply::Reply;
use crate::service::BoundedService;
use crate::transcript::Exchange;
use crate::wire::{Chunk, Request};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// A client of one model. Guaranteed: the key is in no output of `Debug`, no log and no error.
#[derive(Clone)]
pub struct ChatClient {
    client: Client<Address>,
    timeout: Duration,
    pause: Duration,
    exchange: Exchange,
}

/// Which reply to which question a request is for; none for one that belongs to no question.
pub(crate) type Place<'a> = Option<(&'a str, usize)>;

impl std::fmt::Debug for ChatClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatClient").field("base", &self.client.config().base).finish_non_exhaustive()
    }
}

impl ChatClient {
    /// A client after these settings; nothing is sent yet.
    ///
    /// # Errors
    /// When a setting makes no client, and which.
    pub fn new(config: &LlmConfig) -> Result<Self, ModelFault> {
        let client = |reason| ModelFault::Client { reason };
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may have been first, with the same one.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            // A redirect would carry the question, and perhaps the key, to another place.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if let Some(proxy) = &config.proxy {
            let proxy = reqwest::Proxy::all(proxy.expose_secret())
                .map_err(|_| client("`llm.proxy` is no address; write it like `http://proxy:3128`"))?;
            builder = builder.proxy(proxy);
        }
        if let Some(file) = &config.ca_file {
            let pem = std::fs::read(file).map_err(|_| client("`llm.ca_file` cannot be read"))?;
            let found = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|_| client("`llm.ca_file` holds no certificates in PEM"))?;
            if found.is_empty() {
                return Err(client("`llm.ca_file` holds no certificates in PEM"));
            }
            builder = builder.tls_certs_merge(found);
        }
        let http = builder.build().map_err(|_| client("no TLS client can be built; check `llm.ca_file`"))?;
        let service = BoundedService::new(http.clone(), config.tries);
        let client = Client::build(http, Address::of(config)?).with_http_service(service);
        Ok(Self { client, timeout: config.timeout, pause: config.pause, exchange: config.exchange.clone() })
    }

    /// The reply to a request, from the server or from what was kept of one.
    pub(crate) async fn reply(
        &self,
        request: &Request<'_>,
        place: Place<'_>,
        within: Duration,
    ) -> Result<Reply, ModelFault> {
        match (&self.exchange, place) {
            (Exchange::Replayed(transcript), Some((question, number))) => transcript.reply(question, number),
            (Exchange::Replayed(_), None) => Err(ModelFault::NotRecorded),
            (Exchange::Recorded(recording), Some((question, number))) => {
                let reply = self.complete(request, within).await?;
                recording.keep(question, number, &reply);
                Ok(reply)
            }
            (Exchange::Recorded(_), None) | (Exchange::Server, _) => self.complete(request, within).await,
        }
    }

    /// Sends a request and waits for the whole reply, but no longer than `within`.
    async fn complete(&self, request: &Request<'_>, within: Duration) -> Result<Reply, ModelFault> {
        let within = within.min(self.timeout);
        // Owned: below, tries are built anew from it.
        let body = serde_json::to_value(request)
            .map_err(|_| ModelFault::Malformed { what: "the request cannot be written" })?;
        match tokio::time::timeout(within, self.read(body)).await {
            Ok(reply) => reply,
            Err(_) => Err(ModelFault::timed_out(within)),
        }
    }

    async fn read(&self, body: serde_json::Value) -> Result<Reply, ModelFault> {
        let mut pieces = self.client.chat().create_stream_byot::<_, Chunk>(body).await.map_err(fault)?;
        let mut reply = Reply::default();
        loop {
            match tokio::time::timeout(self.pause, pieces.next()).await {
                Err(_) => return Err(ModelFault::timed_out(self.pause)),
                Ok(None) => return reply.whole(),
                Ok(Some(piece)) => reply.add(piece.map_err(fault)?)?,
            }
        }
    }
}

/// What went wrong, without a word of the server's.
fn fault(error: OpenAIError) -> ModelFault {
    match error {
        OpenAIError::Boxed(ours) => match ours.downcast::<ModelFault>() {
            Ok(fault) => *fault,
            Err(_) => ModelFault::Unreachable,
        },
        OpenAIError::JSONDeserialize(..) => ModelFault::Malformed { what: "an event is no JSON of a completion" },
        OpenAIError::StreamError(_) => ModelFault::Cut,
        OpenAIError::ApiError(answer) => ModelFault::Rejected { status: answer.status_code.as_u16() },
        OpenAIError::Reqwest(_)
        | OpenAIError::FileSaveError(_)
        | OpenAIError::FileReadError(_)
        | OpenAIError::InvalidArgument(_) => ModelFault::Unreachable,
    }
}

/// Where requests go, and with which headers. The library's own configurations read the environment and panic on a key with a line break.
#[derive(Clone, Debug)]
struct Address {
    base: String,
    headers: HeaderMap,
    query: Option<(String, String)>,
    key: SecretString,
}

impl Address {
    fn of(config: &LlmConfig) -> Result<Self, ModelFault> {
        let client = |reason| ModelFault::Client { reason };
        let base = config.base_url.trim_end_matches('/');
        if !(base.starts_with("http://") || base.starts_with("https://")) {
            return Err(client("`llm.base_url` must begin with `http://` or `https://`"));
        }
        let key = config.key.clone().unwrap_or_default();
        let mut headers = HeaderMap::new();
        let (base, name, header) = match &config.azure_api_version {
            Some(_) => (
                format!("{base}/openai/deployments/{}", config.model),
                HeaderName::from_static("api-key"),
                key.expose_secret().trim().to_owned(),
            ),
            None => (base.to_owned(), AUTHORIZATION, format!("Bearer {}", key.expose_secret().trim())),
        };
        if config.key.is_some() {
            let mut value = HeaderValue::from_str(&header)
                .map_err(|_| client("`OPENAI_API_KEY` holds signs that no key has; copy it again"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let query = config.azure_api_version.clone().map(|version| ("api-version".to_owned(), version));
        Ok(Self { base, headers, query, key })
    }
}

impl Config for Address {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_shows_nowhere_and_addresses_are_those_of_the_provider() {
        let key = "sk-hunter2";
        let config =
            LlmConfig { key: Some(key.to_owned().into()), base_url: "http://h/v1/".to_owned(), ..LlmConfig::new("m") };
        let address = Address::of(&config).unwrap();
        assert_eq!(address.url("/chat/completions"), "http://h/v1/chat/completions");
        assert!(!format!("{config:?} {address:?}").contains("hunter2"));
        let azure = LlmConfig { azure_api_version: Some("2024-10-21".to_owned()), ..config.clone() };
        let azure = Address::of(&azure).unwrap();
        assert_eq!(azure.url("/chat/completions"), "http://h/v1/openai/deployments/m/chat/completions");
        assert_eq!(azure.query(), [("api-version", "2024-10-21")]);
        assert_eq!(azure.headers()["api-key"], key);
        let broken = LlmConfig { key: Some("sk-\n".to_owned().into()), ..config.clone() };
        assert!(Address::of(&broken).is_ok(), "a line break behind the key is a slip");
        let broken = LlmConfig { key: Some("sk-\nx".to_owned().into()), ..config };
        assert!(matches!(Address::of(&broken), Err(ModelFault::Client { .. })));
    }
}
