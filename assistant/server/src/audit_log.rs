//! Opens the audit log with its key: at a start, and when the key is changed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sightline_audit::{AuditError, AuditKey, CheckpointCopy, FileCopy, PublicKey, Settings, SqliteAudit};

use crate::audit_copies::EngineCopy;
use crate::config::Config;
use crate::process;

/// Why the audit log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    /// The log or its key file.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The log or its key is not there, and looking into it makes neither.
    #[error("`{}` is not there: nothing was recorded yet, or it was moved or deleted; check --data-dir and `audit.key_file`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// No randomness for its key.
    #[error("the system gives no randomness for the audit log's key: {0}")]
    Randomness(String),
    /// The new key's file cannot be written.
    #[error("the new key cannot be kept at `{}`: {source}; the old one still signs, check the folder and try again", path.display())]
    NewKey {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The log has a new key, and its file lies where it was made.
    #[error("the log is signed with the new key, but its file `{}` cannot be moved to `{}`: {source}; move it there yourself", next.display(), key.display())]
    KeyNotMoved {
        /// Where the new key lies.
        next: PathBuf,
        /// Where it belongs.
        key: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another process changes the key.
    #[error("the key is being changed by another process; the old one still signs until that is done, try again then")]
    KeyBusy,
}

/// The log's file.
pub fn path(config: &Config) -> PathBuf {
    config.data_dir.join("audit.db")
}

/// The file of the key that signs it.
pub fn key_file(config: &Config) -> PathBuf {
    config.audit_key_file.clone().unwrap_or_else(|| config.data_dir.join("audit.key"))
}

/// Where a new key lies until the log is signed with it.
fn next_key_file(config: &Config) -> PathBuf {
    let mut name = key_file(config).into_os_string();
    name.push(".next");
    name.into()
}

/// Opens the log. Its checkpoints are copied to the configured file, and to the embedded engine where that runs.
///
/// # Errors
/// What cannot be used, and what to do about it.
pub fn open(config: &Config, engine: Option<EngineCopy>) -> Result<SqliteAudit, AuditLogError> {
    match open_with(config, AuditKey::load_or_create(&key_file(config), random()?)?, engine.clone()) {
        // The key was being changed, and the process ended between the log and the key file.
        Err(AuditLogError::Audit(AuditError::OtherKey { signed_by, .. })) if next_key(config, &signed_by).is_some() => {
            take_next_key(config)?;
            open_with(config, AuditKey::load_or_create(&key_file(config), random()?)?, engine)
        }
        opened => opened,
    }
}

/// Opens a log that is there, to record a look into it. A look must not make a log, which would then be whole.
///
/// # Errors
/// When the log or its key is not there, or cannot be used.
pub fn open_existing(config: &Config) -> Result<SqliteAudit, AuditLogError> {
    match [path(config), key_file(config)].into_iter().find(|file| !file.exists()) {
        Some(path) => Err(AuditLogError::Missing { path }),
        None => open(config, None),
    }
}

fn open_with(config: &Config, key: AuditKey, engine: Option<EngineCopy>) -> Result<SqliteAudit, AuditLogError> {
    let mut for_id = [0_u8; 16];
    getrandom::fill(&mut for_id).map_err(|error| AuditLogError::Randomness(error.to_string()))?;
    let mut settings = Settings::new(key, for_id, Box::new(random_salt));
    settings.process = process::this();
    if let Some(file) = &config.checkpoint_copy {
        settings.copies.push(Box::new(FileCopy::new(file)));
    }
    if let Some(engine) = engine {
        settings.copies.push(Box::new(engine) as Box<dyn CheckpointCopy>);
    }
    // Another process may change the key while this one runs.
    let (file, next) = (key_file(config), next_key_file(config));
    settings.key_again = Some(Box::new(move |id| [&file, &next].into_iter().find_map(|file| key_with(file, id))));
    Ok(SqliteAudit::open(&path(config), settings)?)
}

/// Signs with a new key from here on. The old secret's file is replaced, but its bytes may stay on the disk and in backups.
/// Public keys stay in the log.
///
/// # Errors
/// When another process changes the key, the new key cannot be kept or the log cannot be written: the old key goes on
/// signing then. Or, as the error says, when the new one signs and lies in another file still.
pub async fn rotate_key(config: &Config, at: Timestamp, by: &str) -> Result<PublicKey, AuditLogError> {
    let _alone = lock_key(config)?;
    // Opened under the lock: a new key that an earlier process had the log take, and did not move, is moved now.
    let log = open_existing(config)?;
    let (secret, next) = (random()?, next_key_file(config));
    let new = AuditKey::from_secret(secret);
    let public = new.public();
    // The new key is on the disk before the log needs it, so that no crash leaves a log without its key. If the log does
    // not take it, it stays there unused: whether a commit that failed is on the disk cannot be known here.
    write_private(&next, &secret).map_err(|source| AuditLogError::NewKey { path: next.clone(), source })?;
    log.rotate(new, at, by.to_owned()).await?;
    match take_next_key(config) {
        // A process that opened the log meanwhile has put it in place.
        Err(_) if key_with(&key_file(config), &public.id()).is_some() => Ok(public),
        taken => taken.map(|()| public),
    }
}

/// One process at a time changes the key. The lock ends with the process, however that ends.
fn lock_key(config: &Config) -> Result<File, AuditLogError> {
    let mut name = key_file(config).into_os_string();
    name.push(".lock");
    let path = PathBuf::from(name);
    let unusable = |source| AuditLogError::NewKey { path: path.clone(), source };
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AuditLogError::KeyBusy),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

/// Puts the new key in the old one's place.
fn take_next_key(config: &Config) -> Result<(), AuditLogError> {
    let (next, key) = (next_key_file(config), key_file(config));
    std::fs::rename(&next, &key).and_then(|()| sync_folder(&key)).map_err(|source| AuditLogError::KeyNotMoved {
        next,
        key,
        source,
    })
}

/// Makes a name in this file's folder durable.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn next_key(config: &Config, id: &str) -> Option<AuditKey> {
    key_with(&next_key_file(config), id)
}

/// The key of this file, if it is there and has this id.
fn key_with(file: &Path, id: &str) -> Option<AuditKey> {
    AuditKey::load(file).ok().flatten().filter(|key| key.public().id() == id)
}

fn write_private(path: &Path, secret: &[u8; 32]) -> std::io::Result<()> {
    // One that was left behind may be readable by others; it is not written into.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{}\n", hex::encode(secret)).as_bytes())?;
    file.sync_all()?;
    sync_folder(path)
}

fn random() -> Result<[u8; 32], AuditLogError> {
    random_salt().map_err(AuditLogError::Randomness)
}

fn random_salt() -> Result<[u8; 32], String> {
    let mut salt = [0_u8; 32];
    getrandom::fill(&mut salt).map_err(|error| error.to_string())?;
    Ok(salt)
}
