//! Opening the audit log: to add to it, to read it, to check it.

use std::path::{Path, PathBuf};

use sightline_audit::{AuditError, AuditReader, Check, Report, SqliteAudit};

use crate::config::Config;
use crate::review::ReviewError;
use crate::stations::{self, OpenError};

/// Opens it for adding to it.
///
/// # Errors
/// When it or its key cannot be used.
pub(crate) fn open(config: &Config) -> Result<SqliteAudit, OpenError> {
    stations::audit_log(config)
}

/// Opens it for reading.
///
/// # Errors
/// When it is not there, damaged or newer.
pub(crate) fn reader(path: &Path) -> Result<AuditReader, AuditError> {
    AuditReader::open(path)
}
