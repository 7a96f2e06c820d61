//! Opening the audit log: to add to it, to read it, to check it.

use std::path::{Path, PathBuf};

use sightline_audit::{AuditError, AuditReader, Check, Report};
use sightline_core::Clock as _;

use crate::clock::SystemClock;
use crate::config::Config;
use crate::review::ReviewError;

/// Opens it for reading.
///
/// # Errors
/// When it is not there, damaged or newer.
pub(crate) fn reader(path: &Path) -> Result<AuditReader, AuditError> {
    AuditReader::open(path)
}

/// Where the key lies.
pub(crate) fn key_file(config: &Config) -> PathBuf {
    config.audit_key_file.clone().unwrap_or_else(|| config.data_dir.join("audit.key"))
}
