//! Gets a provider's key set: from a file, or over HTTPS within bounds.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::uri::Scheme;
use axum::http::{StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use sightline_policies::JwksSource;
use tokio::sync::OnceCell;

use super::keys::Keys;

/// The largest key set that is read, bytes; real ones have a few KiB.
const MOST: usize = 256 * 1024;
/// Longest that fetching may take: somebody waits to be let in.
const TIMEOUT: Duration = Duration::from_secs(5);

type Https = HttpsConnector<HttpConnector>;

/// Fetches key sets. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Fetcher {
    /// Made when it is first needed: this machine's certificates are hundreds of files.
    https: Arc<OnceCell<Https>>,
}

impl Fetcher {
    /// Reads the set from where it is.
    pub(super) async fn fetch(&self, source: &JwksSource) -> Result<Keys, String> {
        let bytes = match tokio::time::timeout(TIMEOUT, self.read(source)).await {
            Ok(read) => read?,
            Err(_) => return Err(format!("no answer within {} s", TIMEOUT.as_secs())),
        };
        Keys::parse(&bytes)
    }

    async fn read(&self, source: &JwksSource) -> Result<Vec<u8>, String> {
        match source {
            JwksSource::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.map_err(|error| error.to_string())?
            }
            JwksSource::Url(url) => self.download(url).await,
        }
    }

    async fn download(&self, url: &str) -> Result<Vec<u8>, String> {
        let url: Uri = url.parse().map_err(|_| "its address is no URL".to_owned())?;
        if url.scheme() == Some(&Scheme::HTTPS) {
            get(self.https.get_or_try_init(https).await?.clone(), url).await
        } else {
            get(HttpConnector::new(), url).await
        }
    }
}

/// Reads a key set's file as the service would, to say beforehand whether it can.
///
/// # Errors
/// Why nobody's token could be checked with it.
pub(crate) fn read_key_file(path: &Path) -> Result<(), String> {
    Keys::parse(&read_file(path)?).map(|_keys| ())
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MOST as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > MOST { Err(too_large()) } else { Ok(bytes) }
}

/// The system's certificates, so that a site's own authority counts, and ring by name: nothing depends on a default. They are read from
/// the disk, on a thread that may wait for it; those that are put there later count after a restart.
async fn https() -> Result<Https, String> {
    let read = tokio::task::spawn_blocking(|| {
        let provider = rustls::crypto::ring::default_provider();
        let builder = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        Ok::<Https, std::io::Error>(builder.https_only().enable_http1().build())
    });
    let unusable = |error: String| format!("this machine's certificates cannot be used: {error}");
    read.await.map_err(|error| unusable(error.to_string()))?.map_err(|error| unusable(error.to_string()))
}

/// A redirect is not followed: keys come from the address that the policy names, and from no other.
async fn get<C: Connect + Clone + Send + Sync + 'static>(connector: C, url: Uri) -> Result<Vec<u8>, String> {
    let client: Client<C, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let response = client.get(url).await.map_err(|error| chain(&error))?;
    if response.status() != StatusCode::OK {
        return Err(format!("the answer is {}", response.status()));
    }
    let body = axum::body::to_bytes(Body::new(response.into_body()), MOST).await;
    body.map(|bytes| bytes.to_vec()).map_err(|error| format!("it breaks off, or {}: {}", too_large(), chain(&error)))
}

fn too_large() -> String {
    format!("it is larger than {} KiB", MOST / 1024)
}

/// The error with what caused it: its own text says only that something failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
