//! What can go wrong with the log, and what to do about it.

use std::path::Path;

use rusqlite::ErrorCode;
use sightline_model::audit::AuditUnavailable;

/// Why the audit log could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// No room left.
    #[error("no space left for `{path}`; free space on its disk, the next question is tried again")]
    Full {
        /// The file.
        path: String,
    },
    /// The file or its folder may not be written.
    #[error("`{path}` cannot be written; give this user write access to the file and its folder")]
    ReadOnly {
        /// The file.
        path: String,
    },
    /// Another process holds the write lock.
    #[error("`{path}` is locked by another process; end whatever holds it, for example an open database shell")]
    Locked {
        /// The file.
        path: String,
    },
    /// The file cannot be opened.
    #[error("`{path}` cannot be opened: {what}; check that its folder exists and may be used by this user")]
    Open {
        /// The file.
        path: String,
        /// What the system said.
        what: String,
    },
    /// The file was unlinked, moved or replaced while it was open.
    #[error(
        "`{path}` was moved or replaced while it was open, or a file beside it was; put it back or restart the service so that a new log begins"
    )]
    Moved {
        /// The file.
        path: String,
    },
    /// It is no audit log, or a damaged one.
    #[error("`{path}` is damaged or no audit log; keep it, restore it from a copy and run `sightline audit verify`")]
    Damaged {
        /// The file.
        path: String,
    },
    /// A newer program wrote it.
    #[error("`{path}` has format {found}, this program knows {known}; use the newer program that wrote it")]
    Newer {
        /// The file.
        path: String,
        /// Its format.
        found: i64,
        /// The newest format this program knows.
        known: i64,
    },
    /// The key file is unusable.
    #[error("key file `{path}` {what}")]
    Key {
        /// The key file.
        path: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// The log was signed with another key.
    #[error("`{path}` was signed with key {signed_by}, the key file holds {given}; put the right key file back")]
    OtherKey {
        /// The log.
        path: String,
        /// The id of the key that signed it.
        signed_by: String,
        /// The id of the key that was given.
        given: String,
    },
    /// The key is to be replaced by itself.
    #[error("key {key} signs the log already; make a new key")]
    SameKey {
        /// Its id.
        key: String,
    },
    /// A copy of checkpoints cannot be read.
    #[error("the copy of checkpoints `{path}` cannot be read: {what}; check the path and this user's rights to it")]
    Copy {
        /// The copy.
        path: String,
        /// What the system said.
        what: String,
    },
    /// The head of the chain is not as it was left.
    #[error(
        "`{path}` was changed from outside at or before record {seq}; keep the file, run `sightline audit verify`, then move it away so that a new log begins"
    )]
    Tampered {
        /// The log.
        path: String,
        /// The record that the head names.
        seq: u64,
    },
    /// What the log needs to go on is gone, or is nothing that this program writes.
    #[error(
        "`{path}` was changed from outside: {what}; keep the file, run `sightline audit verify`, then move it away so that a new log begins"
    )]
    Changed {
        /// The log.
        path: String,
        /// What is gone or changed.
        what: String,
    },
    /// The record cannot be put into canonical form.
    #[error("the record cannot be written: {what}")]
    Record {
        /// Why.
        what: String,
    },
    /// A stored record cannot be read back.
    #[error("record {seq} cannot be read: {what}; run `sightline audit verify`")]
    Unreadable {
        /// Its number.
        seq: u64,
        /// Why.
        what: String,
    },
    /// The writer has ended.
    #[error("the writer of the audit log has ended; restart the service")]
    Ended,
    /// An export could not be written out.
    #[error("the export cannot be written: {what}")]
    Export {
        /// What the system said.
        what: String,
    },
    /// Anything else that SQLite said.
    #[error("`{path}`: {what}; restart the service, and if it stays so check the disk")]
    Other {
        /// The file.
        path: String,
        /// What SQLite said.
        what: String,
    },
}

impl AuditError {
    /// What an error of SQLite means for the log at this path.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.display().to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::CannotOpen) => Self::Open { path, what: "the system refused".to_owned() },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { path },
            Some(_) => Self::Other { path, what: error.to_string() },
            // The database did its part: it holds something else than was written.
            None => Self::Changed { path, what: format!("what is stored cannot be read ({error})") },
        }
    }

    /// The error as the port of the log reports it.
    pub(crate) fn unavailable(&self) -> AuditUnavailable {
        AuditUnavailable { reason: self.to_string() }
    }
}
