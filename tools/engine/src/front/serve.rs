//! The life of the engine's process: take the folder, load the library, serve, end cleanly.

use std::io::{self, BufRead, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::serve::ListenerExt;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, oneshot};

use crate::embedded::ffi::Chdb;
use crate::embedded::folder::{DataFolder, DataFolderError};
use crate::embedded::library::{LibraryNotFound, LibrarySearch};

use super::credentials::EngineCredentials;
use super::running::Running;
use super::{Front, FrontLimits, KnownCatalogue, handle};

/// How a process of the engine is started.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The folder that holds the data, the lock and `engine.json`.
    pub data_dir: PathBuf,
    /// The port on 127.0.0.1; 0 for a free one.
    pub port: u16,
    /// Where libchdb is looked for.
    pub library: LibrarySearch,
    /// Whence the passwords come.
    pub credentials: CredentialSource,
    /// What is let through at once and in one piece.
    pub limits: FrontLimits,
}

/// Whence an engine's passwords come.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// From the caller; the engine ends on SIGTERM or SIGINT.
    Given(EngineCredentials),
    /// From the parent, as the first line of standard input, together with the port. The engine tells its port in one line on standard output,
    /// and ends as soon as standard input does: that is how it ends with its parent, however that one ends.
    Parent,
}

/// The line that a parent writes to its child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ParentLine {
    pub(crate) credentials: EngineCredentials,
    /// The port, 0 for a free one.
    pub(crate) port: u16,
}

/// The line that a child engine writes when it can be asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadyLine {
    pub(crate) port: u16,
}

/// Why the engine's process cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineProcessError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
    /// There is no library.
    #[error(transparent)]
    Library(#[from] LibraryNotFound),
    /// The library is there and does not load.
    #[error("cannot load `{}`: {reason}; run `make engine` to fetch it anew, or set `clickhouse.url` for a server of your own", .path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        reason: String,
    },
    /// The library does not open the data.
    #[error("the engine cannot open its data in `{}`; the lines above on stderr say why", .0.display())]
    Open(PathBuf),
    /// The port is taken or may not be used.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; give another port, or 0 for a free one")]
    Listen {
        /// The port.
        port: u16,
        /// The system's reason.
        source: io::Error,
    },
    /// The parent closed the pipe before it sent the passwords.
    #[error("no credentials on standard input: {0}")]
    Parent(io::Error),
    /// The server broke down.
    #[error("the engine's front broke down: {0}")]
    Serve(io::Error),
}

/// How long running queries have to end after a KILL when the engine ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs the engine until it is told to end: by SIGTERM, SIGINT or the end of its parent.
pub async fn serve_engine(options: EngineOptions) -> Result<(), EngineProcessError> {
    let folder = DataFolder::take(&options.data_dir)?;
    let (credentials, port, parent) = match options.credentials {
        CredentialSource::Given(credentials) => (credentials, options.port, None),
        CredentialSource::Parent => {
            let (ParentLine { credentials, port }, ended) = read_parent().await.map_err(EngineProcessError::Parent)?;
            (credentials, port, Some(ended))
        }
    };
    let path = options.library.find()?;
    let chdb = Chdb::load(&path).map_err(|error| EngineProcessError::Load { path, reason: error.to_string() })?;
    let database = folder.database();
    // The engine starts with its first connection and ends with its last, so one stays open throughout.
    let keeper = chdb.connect(&database).ok_or_else(|| EngineProcessError::Open(database.clone()))?;
    let listen = |source| EngineProcessError::Listen { port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(listen)?;
    let port = listener.local_addr().map_err(listen)?.port();
    folder.publish(port, &credentials)?;
    let front = Arc::new(Front {
        chdb,
        database,
        folder,
        credentials,
        limits: options.limits,
        running: Arc::new(Running::default()),
        places: Arc::new(Semaphore::new(options.limits.concurrent_queries)),
        closing: AtomicBool::new(false),
        requests: AtomicU64::new(0),
        catalogue: std::sync::Mutex::new(KnownCatalogue::default()),
    });
    if parent.is_some() {
        tell_parent(port).map_err(EngineProcessError::Parent)?;
    }
    tracing::info!(port, "engine is ready");
    let result = serve(Arc::clone(&front), listener, parent).await;
    front.folder.withdraw();
    end_queries(&front).await;
    drop(keeper);
    tracing::info!("engine has ended");
    result
}

async fn serve(
    front: Arc<Front>,
    listener: TcpListener,
    parent: Option<oneshot::Receiver<()>>,
) -> Result<(), EngineProcessError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(EngineProcessError::Serve)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(EngineProcessError::Serve)?;
    let router = Router::new()
        .route("/", get(root).post(handle::query))
        .route("/ping", get(|| async { "Ok.\n" }))
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(&front));
    // Small answers go out at once; waiting to fill a packet costs up to 40 ms on loopback.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
    });
    let server = async { axum::serve(listener, router).await.map_err(EngineProcessError::Serve) };
    let parent_ended = async {
        match parent {
            Some(ended) => drop(ended.await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = server => result,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        () = parent_ended => Ok(()),
    }
}

async fn root(
    state: axum::extract::State<Arc<Front>>,
    request: axum::extract::Request,
) -> axum::http::Response<axum::body::Body> {
    let asks =
        form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).any(|(key, _)| key == "query");
    if asks { handle::query(state, request).await } else { axum::http::Response::new("Ok.\n".into()) }
}

/// Kills what still runs. A connection that is open when the process ends crashes it, so one that will not close ends
/// the process the hard way; the data are safe, since the engine writes parts whole.
async fn end_queries(front: &Arc<Front>) {
    front.closing.store(true, Ordering::SeqCst);
    let drained = tokio::time::timeout(DRAIN, async {
        loop {
            let ended = front.running.any_ended();
            let ids = front.running.ids();
            if ids.is_empty() {
                return;
            }
            futures::future::join_all(ids.iter().map(|id| front.kill(id))).await;
            let _ = tokio::time::timeout(super::KILL_INTERVAL, ended).await;
        }
    });
    if drained.await.is_err() {
        tracing::error!(queries = front.running.ids().len(), "queries did not end; the engine is aborted");
        std::process::abort();
    }
}

async fn read_parent() -> io::Result<(ParentLine, oneshot::Receiver<()>)> {
    let (send_line, line) = oneshot::channel();
    let (send_ended, ended) = oneshot::channel();
    // A thread of its own: a read of standard input cannot be cancelled, and must not hold up the runtime's end.
    std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        let mut text = String::new();
        let read = input.read_line(&mut text).and_then(|_| serde_json::from_str(&text).map_err(io::Error::from));
        let _ = send_line.send(read);
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = send_ended.send(());
    })?;
    let line = line.await.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))??;
    Ok((line, ended))
}

fn tell_parent(port: u16) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &ReadyLine { port })?;
    output.write_all(b"\n")?;
    output.flush()
}
