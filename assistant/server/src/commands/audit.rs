//! `sightline audit`: what is done with the audit log from the command line.

use sightline_core::Clock as _;

use super::{CommandError, failed};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::{audit_log, output};

/// `sightline audit rotate-key`: makes a new key, has both sign that it follows the old one, and prints its public half.
///
/// # Errors
/// When the new key cannot be kept or the log cannot be written.
pub async fn rotate_key(config: &Config) -> Result<(), CommandError> {
    let at = SystemClock::start().now();
    let public = audit_log::rotate_key(config, at, "command line").await.map_err(failed)?;
    output::result(&format!(
        "the log is signed with key {} from here on\npublic key: {public}\nkeep it where the service cannot write; the old one still checks the whole log",
        public.id()
    ))
    .map_err(failed)
}
