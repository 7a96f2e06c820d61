//! The engine in a child process: starting it, keeping it alive, finding one that is there already.

mod child;
pub(crate) mod ffi;
pub(crate) mod folder;
pub(crate) mod library;
mod supervise;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::front::credentials::{EngineCredentials, EngineUser};

use child::Child;
use folder::{DataFolderError, EngineAddress, engine_address, owner};

/// How a child engine is started.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The binary, as a rule the running one.
    pub program: PathBuf,
    /// Its arguments. They must lead to [`serve_engine`](crate::serve_engine) with
    /// [`CredentialSource::Parent`](crate::CredentialSource::Parent) on `data_dir`.
    pub arguments: Vec<OsString>,
    /// The data folder.
    pub data_dir: PathBuf,
    /// The passwords to give it; they travel over its standard input, where no other user sees them.
    pub credentials: EngineCredentials,
    /// How long it may take until it can be asked.
    pub start_timeout: Duration,
}

/// Why there is no embedded engine.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The data folder cannot be used, or belongs to another engine.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
    /// The binary cannot be run.
    #[error("cannot run `{}` as the engine: {source}", .program.display())]
    Spawn {
        /// The binary.
        program: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The child ended before it could be asked; its own words say why.
    #[error("{0}")]
    Failed(String),
    /// The child does not come to be ready.
    #[error("the engine was not ready after {} s; its data folder may lie on a slow disk, or hold very many parts", .0.as_secs())]
    Slow(Duration),
}

/// An embedded engine: a child of this process, or one that another process owns.
#[derive(Debug)]
pub struct EmbeddedEngine {
    data_dir: PathBuf,
    port: u16,
    credentials: EngineCredentials,
    role: Role,
}

#[derive(Debug)]
enum Role {
    /// The engine is a child of this process, which restarts it after a crash and ends it.
    Owner { pid: watch::Receiver<Option<u32>>, stop: oneshot::Sender<()>, supervisor: JoinHandle<()> },
    /// Another process owns the engine.
    Guest,
}

impl EmbeddedEngine {
    /// Starts an engine as a child and waits until it can be asked. It ends with this value, or with this process
    /// however that ends, and is started again when it crashes, with the same port and passwords.
    pub async fn start(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        if let Some(pid) = owner(&options.data_dir)? {
            return Err(DataFolderError::Owned { path: options.data_dir, pid }.into());
        }
        let child = Child::start(&options, 0).await?;
        let (port, data_dir, credentials) = (child.port, options.data_dir.clone(), options.credentials.clone());
        let (pid_sender, pid) = watch::channel(child.pid());
        let (stop, stopped) = oneshot::channel();
        let supervisor = tokio::spawn(supervise::keep_alive(options, child, pid_sender, stopped));
        Ok(Self { data_dir, port, credentials, role: Role::Owner { pid, stop, supervisor } })
    }

    /// Finds the living engine of a data folder.
    pub fn attach(data_dir: &Path) -> Result<Option<Self>, EmbeddedError> {
        let address = engine_address(data_dir)?;
        Ok(address.map(|EngineAddress { format: _, pid: _, port, credentials }| Self {
            data_dir: data_dir.to_owned(),
            port,
            credentials,
            role: Role::Guest,
        }))
    }

    /// Finds the living engine of a data folder, else starts one.
    pub async fn attach_or_start(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let deadline = tokio::time::Instant::now() + options.start_timeout;
        loop {
            if let Some(engine) = Self::attach(&options.data_dir)? {
                return Ok(engine);
            }
            let error = match Self::start(options.clone()).await {
                Ok(engine) => return Ok(engine),
                Err(error) => error,
            };
            // Another process has taken the folder and is still starting: wait for it.
            let retry = owner(&options.data_dir)?.is_some() && tokio::time::Instant::now() < deadline;
            if !retry {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Where the engine is. It stays the same over a restart.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The passwords of both users.
    pub fn credentials(&self) -> &EngineCredentials {
        &self.credentials
    }

    /// The name and password of a user.
    pub fn login(&self, user: EngineUser) -> (&'static str, &str) {
        (user.name(), self.credentials.password(user))
    }

    /// The process of the engine; `None` while it is down.
    pub fn pid(&self) -> Option<u32> {
        match &self.role {
            Role::Owner { pid, .. } => *pid.borrow(),
            Role::Guest => engine_address(&self.data_dir).ok().flatten().map(|address| address.pid),
        }
    }

    /// Whether the engine runs now.
    pub fn is_alive(&self) -> bool {
        self.pid().is_some()
    }

    /// Whether the engine is a child of this process.
    pub fn is_owner(&self) -> bool {
        matches!(self.role, Role::Owner { .. })
    }

    /// Ends a child engine and waits until it has ended; leaves another's engine alone. Without this call a child ends
    /// as well, when the value is dropped, but nobody waits for it.
    pub async fn stop(self) {
        match self.role {
            Role::Owner { pid: _, stop, supervisor } => {
                // A supervisor that is gone has ended its child.
                let _ = stop.send(());
                let _ = supervisor.await;
            }
            Role::Guest => {}
        }
    }
}
