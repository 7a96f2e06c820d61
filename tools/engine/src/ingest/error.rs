//! What can go wrong when files are loaded.

use crate::bundle::BundleError;
use crate::client::WriteError;

/// Why a bundle was not loaded. Nothing of it stays in the engine then.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The files are not what a bundle's files are.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The engine could not be used.
    #[error(transparent)]
    Engine(#[from] WriteError),
    /// The engine cannot read a file's footer.
    #[error("`{file}` is damaged: its footer cannot be read (engine code {code}); write it again")]
    BadFooter {
        /// The file.
        file: String,
        /// The engine's code.
        code: i32,
    },
    /// The engine cannot read a file's rows.
    #[error("`{file}` is damaged: its rows cannot be read (engine code {code}); write it again")]
    BadRows {
        /// The file.
        file: String,
        /// The engine's code.
        code: i32,
    },
    /// A column is of a type that does not fit.
    #[error("`{file}`: column `{column}` must be {expected}, found `{found}`")]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What fits.
        expected: &'static str,
        /// What the file has, as ClickHouse names it.
        found: String,
    },
    /// A column that is needed is not there.
    #[error("`{file}` has no column `{column}`; it has {found}")]
    NoColumn {
        /// The file.
        file: String,
        /// The column.
        column: &'static str,
        /// The columns it has.
        found: String,
    },
    /// No row at all.
    #[error("`{dir}` holds no row that can be used: {why}")]
    Empty {
        /// The folder.
        dir: String,
        /// What was dropped, if anything.
        why: String,
    },
    /// A database was made by another version.
    #[error(
        "database `{database}` has tables of version {found}, this binary knows version {known}; use the newer binary, or another data folder"
    )]
    Version {
        /// The database.
        database: String,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
}
