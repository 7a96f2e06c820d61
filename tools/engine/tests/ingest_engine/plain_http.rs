//! A client over HTTP for tests that send what the product's own client would not.

#![allow(dead_code, reason = "each test binary uses its part")]

/// TLS is built without a provider of its cryptography, so that every binary chooses one; this is the product's.
pub(crate) fn client() -> reqwest::Client {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another test may have been first, with the same one.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::new()
}
