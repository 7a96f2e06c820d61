//! Why the store of tokens and sessions cannot be used.

use std::path::PathBuf;

use super::store::VERSION;

/// Why tokens and sessions cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be made, read or moved.
    #[error("`{}` cannot be used: {source}; check that the data folder is yours and the disk is not full", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not one of ours.
    #[error("`{}` is damaged: {reason}; move it away and make new tokens with `sightline token new`", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file is from a newer version.
    #[error("`{}` has format {found}, newer than this version's {known}; use the newer `sightline`", path.display(), known = VERSION)]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// Another process holds the file.
    #[error("`{}` is held by another process; find out which one with `fuser`, and try again", path.display())]
    Locked {
        /// Which file.
        path: PathBuf,
    },
    /// The database failed in another way.
    #[error("`{}` cannot be used: {source}; check that the data folder is yours and the disk is not full", path.display())]
    Database {
        /// Which file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// No randomness.
    #[error("the system gives no randomness for a secret: {reason}")]
    Randomness {
        /// What the system says.
        reason: String,
    },
}
