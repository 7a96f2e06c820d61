//! Ways to a model's server: through a proxy, behind a certificate authority of one's own.

#![cfg(test)]

mod harness;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use harness::server::{Server, answer, calls};
use harness::{Line, QUESTION, config, fell_back};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use sightline_llm::LlmConfig;
use tokio_rustls::TlsAcceptor;

async fn server() -> Server {
    let look = calls(&[("job_correlation", json!({ "job": "J4711" }))]);
    let end = answer(json!({ "headline": "F1", "claims": ["It began at {E1.s0.at_change}."] }));
    Server::replies(vec![look, end]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_gone_through_with_its_own_password_and_no_other_one() {
    let proxy = server().await;
    let settings = LlmConfig {
        base_url: "http://model.invalid/v1".to_owned(),
        proxy: Some(proxy.root().replace("http://", "http://me:hunter3@").into()),
        ..config(&proxy)
    };
    let line = Line::new(settings);
    let answered = line.ask(QUESTION).await.unwrap();
    assert!(!fell_back(&answered), "{:?}", answered.data_health);
    assert_eq!(proxy.targets(), ["http://model.invalid/v1/chat/completions"; 2]);
    // The words after `Basic` are `me:hunter3`.
    assert!(proxy.headers().iter().all(|headers| headers["proxy-authorization"] == "Basic bWU6aHVudGVyMw=="));
    assert!(!format!("{answered:?} {:?}", line.last_complete()).contains("hunter3"));
}

fn pem(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// Ends TLS in front of the server.
async fn behind_tls(server: SocketAddr) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(pem("server.pem")).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(pem("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Who does not trust us goes away in the handshake.
                let Ok(mut secured) = acceptor.accept(socket).await else { return };
                let mut plain = tokio::net::TcpStream::connect(server).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut secured, &mut plain).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_of_ones_own_is_trusted_and_only_where_it_is_named() {
    let server = server().await;
    let tls = behind_tls(server.address()).await;
    let at = |ca_file: Option<PathBuf>| LlmConfig {
        base_url: format!("https://localhost:{}/v1", tls.port()),
        ca_file,
        tries: 1,
        ..config(&server)
    };
    let strange = Line::new(at(None)).ask(QUESTION).await.unwrap();
    assert!(fell_back(&strange) && strange.data_health[0].contains("llm.ca_file"), "{:?}", strange.data_health);
    assert!(server.requests().is_empty());
    let trusted = Line::new(at(Some(pem("ca.pem")))).ask(QUESTION).await.unwrap();
    assert!(!fell_back(&trusted), "{:?}", trusted.data_health);
    assert_eq!(server.requests().len(), 2);
    // A file that holds none is told when the service starts.
    for wrong in [pem("nowhere.pem"), pem("server.key")] {
        let error = sightline_llm::ChatClient::new(&at(Some(wrong))).unwrap_err().to_string();
        assert!(error.contains("llm.ca_file"), "{error}");
    }
}
