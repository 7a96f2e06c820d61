//! Gets a provider's key set: from a file, or over HTTPS within bounds.

use std::sync::Once;
use std::time::Duration;

use futures::StreamExt as _;
use sightline_policies::JwksSource;
use tokio::io::AsyncReadExt as _;

use super::keys::Keys;

/// The largest key set that is read, bytes; real ones have a few KiB.
const MOST: usize = 256 * 1024;
/// Longest that fetching may take: somebody waits to be let in.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the set from where it is.
pub(super) async fn fetch(source: &JwksSource) -> Result<Keys, String> {
    let bytes = match tokio::time::timeout(TIMEOUT, read(source)).await {
        Ok(read) => read?,
        Err(_) => return Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    };
    Keys::parse(&bytes)
}

async fn read(source: &JwksSource) -> Result<Vec<u8>, String> {
    match source {
        JwksSource::File(path) => {
            let file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
            let mut bytes = Vec::new();
            file.take(MOST as u64 + 1).read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
            if bytes.len() > MOST { Err(too_large()) } else { Ok(bytes) }
        }
        JwksSource::Url(url) => download(url).await,
    }
}

async fn download(url: &str) -> Result<Vec<u8>, String> {
    let response = client()?.get(url).send().await.map_err(|error| chain(&error))?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(format!("the answer is {}", response.status()));
    }
    let mut bytes = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk.map_err(|error| chain(&error))?);
        if bytes.len() > MOST {
            return Err(too_large());
        }
    }
    Ok(bytes)
}

/// A redirect is not followed: keys come from the address that the policy names, and from no other.
fn client() -> Result<reqwest::Client, String> {
    static PROVIDER: Once = Once::new();
    // Two TLS providers may be linked in; without a choice, building a client panics. The binary has chosen before.
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(TIMEOUT)
        .build()
        .map_err(|error| chain(&error))
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
