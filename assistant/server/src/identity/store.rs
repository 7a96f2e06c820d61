//! The file `identity.db`: tokens and sessions, of which it keeps digests alone.
//!
//! Every process of the data folder shares it: what `sightline token revoke` writes, a running service reads at its next request.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::error::IdentityError;
use super::takeover;

/// The version of the file's format: how many of the steps below it has taken.
pub(super) const VERSION: i64 = 1;

/// How the file came to be, step by step. A step is never changed once it was shipped: the next one is added.
const MIGRATIONS: [&str; VERSION as usize] = ["
CREATE TABLE token (
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  digest BLOB NOT NULL UNIQUE,
  -- 1 for the shape of earlier versions, whose text does not name its id.
  unnamed INTEGER NOT NULL,
  label TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER,
  -- Days since 1970: a finer time would be written at every request.
  last_used_day INTEGER
) STRICT;
CREATE INDEX token_principal ON token (principal);
CREATE TABLE session (
  digest BLOB PRIMARY KEY,
  -- The principal that opened it: whom it is counted to.
  principal TEXT NOT NULL,
  -- The token that opened it;
  token_id TEXT REFERENCES token (id),
  -- or the identity provider, and what it vouched for: mapped anew at every request, so that a change of policy counts at once.
  issuer TEXT,
  claims TEXT,
  created INTEGER NOT NULL,
  idle_until INTEGER NOT NULL,
  ends INTEGER NOT NULL,
  CHECK ((token_id IS NULL) = (issuer IS NOT NULL) AND (issuer IS NULL) = (claims IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX session_principal ON session (principal, created);
CREATE INDEX session_ends ON session (ends);
"];

/// How long another process's transaction is waited for; one takes a few milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The store, open.
pub struct IdentityStore {
    path: PathBuf,
    database: Mutex<Connection>,
}

impl IdentityStore {
    /// Opens the store of a data folder, or makes it, readable by its owner alone. Tokens of an earlier version's `tokens.json` are taken
    /// over once.
    ///
    /// # Errors
    /// When it cannot be used, is damaged or newer.
    pub fn open(data_dir: &Path) -> Result<Self, IdentityError> {
        let path = data_dir.join("identity.db");
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        made.map_err(|source| IdentityError::File { path: path.clone(), source })?;
        let mut connection = Connection::open(&path).map_err(|error| fault(&path, error))?;
        prepare(&mut connection, &path)?;
        let store = Self { path, database: Mutex::new(connection) };
        takeover::tokens_file(&store, data_dir)?;
        Ok(store)
    }

    /// Runs this in one transaction that is durable when it returns.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, IdentityError> {
        let mut database = self.database();
        let whole = || {
            let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        (whole)().map_err(|error| fault(&self.path, error))
    }

    /// Reads.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, IdentityError> {
        work(&self.database()).map_err(|error| fault(&self.path, error))
    }

    /// A poisoned lock only means that a thread died; SQLite rolled its transaction back.
    fn database(&self) -> MutexGuard<'_, Connection> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Brings the file to this version's format. One of a newer format is left as it is.
fn prepare(connection: &mut Connection, path: &Path) -> Result<(), IdentityError> {
    let fail = |error| fault(path, error);
    connection.busy_timeout(LOCK_WAIT).map_err(fail)?;
    version(connection, path)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(fail)?;
    // A token that was printed, or revoked, is so after a power cut too.
    connection.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(fail)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    // Again: another process may have brought it on since.
    let found = version(&transaction, path)?;
    for (step, sql) in (1_i64..).zip(MIGRATIONS).skip_while(|(step, _)| *step <= found) {
        transaction.execute_batch(sql).map_err(fail)?;
        transaction.pragma_update(None, "user_version", step).map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

fn version(connection: &Connection, path: &Path) -> Result<i64, IdentityError> {
    let found =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|error| fault(path, error))?;
    match found {
        0..=VERSION => Ok(found),
        found => Err(IdentityError::Newer { path: path.to_owned(), found }),
    }
}

fn fault(path: &Path, error: rusqlite::Error) -> IdentityError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            IdentityError::Damaged { path, reason: error.to_string() }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => IdentityError::Locked { path },
        _ => IdentityError::Database { path, source: error },
    }
}
