//! Sockets: binding with a clear error, header caps and timeouts, and an end that lets running answers finish.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

/// Longest a client may take to send its headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest head of a request, bytes (hyper's own minimum is 8 KiB).
const MAX_HEAD: usize = 16 * 1024;
/// Most header lines.
const MAX_HEADERS: usize = 64;
/// Longest a running answer may take to finish once the service is asked to stop.
const GRACE: Duration = Duration::from_secs(20);

/// Why the service cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The port is taken.
    #[error("{address} is already in use; stop what listens there, or choose another with `--listen 127.0.0.1:0`")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}; choose an address of this machine with `--listen`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Binds an address.
///
/// # Errors
/// When it is taken or not of this machine.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ListenError::InUse { address },
        _ => ListenError::Bind { address, source },
    })
}

/// Serves until `stop` resolves, then lets running requests finish within a bound.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let mut services = router.into_make_service_with_connect_info::<SocketAddr>();
    let graceful = GracefulShutdown::new();
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS);
    builder.http2().timer(TokioTimer::new()).max_header_list_size(MAX_HEAD as u32).max_concurrent_streams(64);
    tokio::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: wait for some to come back instead of spinning.
                    tracing::error!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        connection(&builder, &graceful, &mut services, stream, peer).await;
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(GRACE) => tracing::warn!("some answers did not finish in time and were cut off"),
    }
}

async fn connection(
    builder: &Builder<TokioExecutor>,
    graceful: &GracefulShutdown,
    services: &mut IntoMakeServiceWithConnectInfo<Router, SocketAddr>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let service = match services.call(Peer(peer)).await {
        Ok(service) => TowerToHyperService::new(service),
        Err(never) => match never {},
    };
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    let watched = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = watched.await {
            tracing::debug!(%error, %peer, "a connection ended with an error");
        }
    });
}

/// The peer's address, as axum's connect info wants it.
struct Peer(SocketAddr);

impl axum::extract::connect_info::Connected<Peer> for SocketAddr {
    fn connect_info(peer: Peer) -> Self {
        peer.0
    }
}
