//! The data folder of an embedded engine: one owner at a time, and how others find it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::front::credentials::EngineCredentials;

/// The form of what lies in the folder; a binary refuses a folder of a later form.
const FORMAT: u32 = 1;

const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// `engine.json`: where the living engine of a data folder is, for others of the same user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineAddress {
    /// The form of this file.
    pub format: u32,
    /// The engine's process.
    pub pid: u32,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The passwords of its users.
    pub credentials: EngineCredentials,
}

impl EngineAddress {
    /// The URL of the engine.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataFolderError {
    /// Another engine owns it.
    #[error(
        "data folder `{}` belongs to the engine with pid {pid}, which is running; use it, end it, or give another --data-dir",
        .path.display()
    )]
    Owned {
        /// The folder.
        path: PathBuf,
        /// The process that owns it.
        pid: u32,
    },
    /// A later version has written it.
    #[error("data folder `{}` has form {found}, this version reads up to {FORMAT}; use a newer version or another --data-dir", .path.display())]
    TooNew {
        /// The folder.
        path: PathBuf,
        /// The form found in it.
        found: String,
    },
    /// The engine takes paths with `*`, `?`, braces or quotes for patterns.
    #[error("data folder `{}` has one of * ? {{ }} ' \" \\ in its path, which the engine cannot use; give another --data-dir", .0.display())]
    Unusable(PathBuf),
    /// A file in it cannot be read or written.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    File {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataFolderError {
    let path = path.to_owned();
    move |source| DataFolderError::File { action, path, source }
}

/// A data folder that this process owns until this is dropped.
#[derive(Debug)]
pub(crate) struct DataFolder {
    root: PathBuf,
    spooled: AtomicU64,
    /// Holds the lock; the system frees it however the process ends.
    _lock: File,
}

impl DataFolder {
    /// Takes the folder, making it if need be.
    pub(crate) fn take(path: &Path) -> Result<Self, DataFolderError> {
        // What lies in it is for its owner's eyes.
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("make folder", path))?;
        let root = path.canonicalize().map_err(failed("find folder", path))?;
        let usable = root.to_str().is_some_and(|text| !text.contains(['*', '?', '{', '}', '\'', '"', '\\']));
        if !usable {
            return Err(DataFolderError::Unusable(root));
        }
        let lock = take_lock(&root)?;
        check_format(&root)?;
        let folder = Self { root, spooled: AtomicU64::new(0), _lock: lock };
        folder.empty_spool()?;
        Ok(folder)
    }

    /// Where libchdb keeps its data.
    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("engine")
    }

    /// A fresh file for data on their way to the engine, deleted when dropped.
    pub(crate) fn spool_file(&self) -> Result<SpoolFile, DataFolderError> {
        let number = self.spooled.fetch_add(1, Ordering::Relaxed);
        let path = self.spool().join(format!("{number}.data"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(failed("make file", &path))?;
        Ok(SpoolFile { path, file })
    }

    /// Tells others where the engine is. Only the owner's user may read it.
    pub(crate) fn publish(&self, port: u16, credentials: &EngineCredentials) -> Result<(), DataFolderError> {
        let address = EngineAddress { format: FORMAT, pid: std::process::id(), port, credentials: credentials.clone() };
        let path = address_path(&self.root);
        let text = serde_json::to_vec_pretty(&address).map_err(io::Error::from).map_err(failed("write", &path))?;
        let draft = self.root.join("engine.json.new");
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            // The mode above holds only for a file that was not there.
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
            file.write_all(&text)?;
            std::fs::rename(&draft, &path)
        };
        write().map_err(failed("write", &path))
    }

    /// Takes back what `publish` said.
    pub(crate) fn withdraw(&self) {
        // Nothing is lost when it stays: the lock is what says whether the engine lives.
        let _ = std::fs::remove_file(address_path(&self.root));
    }

    fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    fn empty_spool(&self) -> Result<(), DataFolderError> {
        let spool = self.spool();
        match std::fs::remove_dir_all(&spool) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("empty folder", &spool)(error)),
            _ => std::fs::create_dir(&spool).map_err(failed("make folder", &spool)),
        }
    }
}

/// The process that owns a data folder, if one does; 0 when it has not said yet.
pub(crate) fn owner(data_dir: &Path) -> Result<Option<u32>, DataFolderError> {
    let path = lock_path(data_dir);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", &path)(error)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&lock).unwrap_or_default())),
        Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
    }
}

/// The living engine of a data folder, if it has one.
pub fn engine_address(data_dir: &Path) -> Result<Option<EngineAddress>, DataFolderError> {
    let Some(owner) = owner(data_dir)? else { return Ok(None) };
    let path = address_path(data_dir);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        // The owner has the lock and is still starting, or is ending.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", &path)(error)),
    };
    let address: EngineAddress =
        serde_json::from_slice(&text).map_err(io::Error::from).map_err(failed("read", &path))?;
    // A file that an earlier owner left behind, while the present one is still starting.
    Ok((owner == address.pid).then_some(address))
}

fn take_lock(root: &Path) -> Result<File, DataFolderError> {
    let path = lock_path(root);
    let mut options = OpenOptions::new();
    let lock = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut lock = lock.map_err(failed("open", &path))?;
    // Whoever asks for the owner holds the lock for a moment too, so one refusal is not yet an owner.
    for attempt in 1.. {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(DataFolderError::Owned { path: root.to_owned(), pid: read_pid(&lock).unwrap_or_default() });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        }
    }
    let mut write = || -> io::Result<()> {
        lock.set_len(0)?;
        lock.rewind()?;
        writeln!(lock, "{}", std::process::id())
    };
    write().map_err(failed("write", &path))?;
    Ok(lock)
}

fn read_pid(mut lock: &File) -> Option<u32> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn check_format(root: &Path) -> Result<(), DataFolderError> {
    let path = root.join("engine.format");
    match std::fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse::<u32>() {
            Ok(found) if found <= FORMAT => Ok(()),
            _ => Err(DataFolderError::TooNew { path: root.to_owned(), found: text.trim().to_owned() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::write(&path, format!("{FORMAT}\n")).map_err(failed("write", &path))
        }
        Err(error) => Err(failed("read", &path)(error)),
    }
}

fn lock_path(root: &Path) -> PathBuf {
    root.join("engine.lock")
}

fn address_path(root: &Path) -> PathBuf {
    root.join("engine.json")
}

/// Data of an INSERT on disk.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    path: PathBuf,
    file: File,
}

impl SpoolFile {
    /// Appends to it.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        // One that stays is deleted at the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{DataFolder, DataFolderError, EngineCredentials, engine_address};

    #[test]
    fn a_second_owner_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataFolder::take(dir.path()).unwrap();
        let second = DataFolder::take(dir.path()).unwrap_err();
        let pid = std::process::id();
        assert!(matches!(second, DataFolderError::Owned { pid: owner, .. } if owner == pid));
        assert!(second.to_string().contains(&format!("the engine with pid {pid}, which is running")));
        drop(first);
        DataFolder::take(dir.path()).unwrap();
    }

    #[test]
    fn the_address_counts_only_while_its_owner_lives() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(engine_address(dir.path()).unwrap(), None);
        let folder = DataFolder::take(dir.path()).unwrap();
        assert_eq!(engine_address(dir.path()).unwrap(), None);
        let credentials = EngineCredentials::from_random([3; 32]);
        folder.publish(1234, &credentials).unwrap();
        let mode = std::fs::metadata(dir.path().join("engine.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let address = engine_address(dir.path()).unwrap().unwrap();
        assert_eq!((address.pid, address.port, &address.credentials), (std::process::id(), 1234, &credentials));
        drop(folder);
        assert_eq!(engine_address(dir.path()).unwrap(), None);
    }

    #[test]
    fn a_folder_of_a_later_form_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("engine.format"), "2\n").unwrap();
        assert!(matches!(DataFolder::take(dir.path()), Err(DataFolderError::TooNew { found, .. }) if found == "2"));
    }

    #[test]
    fn spooled_data_go_when_they_are_used() {
        let dir = tempfile::tempdir().unwrap();
        let folder = DataFolder::take(dir.path()).unwrap();
        let mut file = folder.spool_file().unwrap();
        file.write(b"x").unwrap();
        let path = file.path().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
        drop(file);
        assert!(!path.exists());
    }
}
