//! The ledger of daily budgets: what each account has spent and set aside, in one SQLite file that survives a restart.
//!
//! Promise: at any moment what is spent and set aside of a day is at most its limit, except for what queries read beyond the part set
//! aside for them; each of them may do so by less than the bound on bytes that it runs under. Several processes may share the file:
//! what is left is looked at inside the transaction that takes from it.
//!
//! A call takes some tens of microseconds, but may wait for another process, so it is made on a thread of its own (`desk.rs`). A commit
//! does not wait for the disk, except the one in some hundreds that moves the write-ahead log into the file: a machine that loses power
//! may forget what was read since that one, and no more.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use sightline_core::quota::Spend;

/// The version of the file's format.
const VERSION: i32 = 1;
/// How long another process's transaction is waited for; one takes well under a millisecond. Nothing else waits meanwhile but budgets.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long the days that are over are kept: a year and a bit, for whoever asks what was used.
const KEEP_DAYS: i64 = 400;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS spent (
  account TEXT NOT NULL, day INTEGER NOT NULL, kind TEXT NOT NULL, amount INTEGER NOT NULL,
  PRIMARY KEY (account, day, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reserved (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account TEXT NOT NULL, day INTEGER NOT NULL, kind TEXT NOT NULL, amount INTEGER NOT NULL, expires INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
";

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file cannot be made.
    #[error("the ledger `{}` cannot be made: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The database failed.
    #[error(
        "the ledger of daily budgets failed: {0}; if `budget.db` in the data folder is damaged, move it away, and the day begins anew"
    )]
    Database(#[from] rusqlite::Error),
    /// Its thread cannot be started.
    #[error("the thread of the daily budgets cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// Its thread has ended: a fault of ours, which the log tells of.
    #[error("the thread of the daily budgets has ended; restart `sightline` and report what its log says")]
    Ended,
    /// The file is newer.
    #[error("the ledger `{}` has format {found}, newer than this version's {VERSION}; use the newer `sightline`", path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its format.
        found: i32,
    },
}

/// Whose budget, of which day, of what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) account: &'a str,
    /// Days since 1970, UTC.
    pub(super) day: i64,
    pub(super) spend: Spend,
}

/// A part that was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) id: i64,
    pub(super) amount: u64,
}

/// The ledger, open.
pub(super) struct Ledger {
    connection: Connection,
}

impl Ledger {
    /// Opens the file, or makes it readable by its owner alone; lets go of days long past.
    pub(super) fn open(path: &Path, today: i64) -> Result<Self, LedgerError> {
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        made.map_err(|source| LedgerError::File { path: path.to_owned(), source })?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(LOCK_WAIT)?;
        // Before anything is changed: a file of another format is left as it is.
        let known = |connection: &Connection| match connection.query_row("PRAGMA user_version", [], |row| row.get(0))? {
            0 => Ok(false),
            VERSION => Ok(true),
            found => Err(LedgerError::Newer { path: path.to_owned(), found }),
        };
        known(&connection)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Again: another process may have made it since.
        if !known(&transaction)? {
            transaction.execute_batch(SCHEMA)?;
        }
        transaction.execute("DELETE FROM spent WHERE day < ?1", [today.saturating_sub(KEEP_DAYS)])?;
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// What is left of an entry's limit.
    pub(super) fn left(&self, entry: Entry<'_>, limit: u64, now: Timestamp) -> Result<u64, LedgerError> {
        Ok(limit.saturating_sub(used(&self.connection, entry, now)?))
    }

    /// Sets aside this amount, or what is left where that is less; `None` where nothing is left.
    pub(super) fn reserve(
        &self,
        entry: Entry<'_>,
        amount: u64,
        limit: u64,
        now: Timestamp,
        expires: Timestamp,
    ) -> Result<Option<Reserved>, LedgerError> {
        let transaction = self.transaction()?;
        let left = limit.saturating_sub(used(&transaction, entry, now)?);
        if left == 0 {
            return Ok(None);
        }
        let amount = amount.min(left);
        transaction
            .prepare_cached("INSERT INTO reserved (account, day, kind, amount, expires) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![entry.account, entry.day, entry.spend.as_str(), stored(amount), expires.as_second()])?;
        let id = transaction.last_insert_rowid();
        transaction.commit()?;
        Ok(Some(Reserved { id, amount }))
    }

    /// Charges what was spent and gives back what was set aside for it; also after the reservation expired. Reservations that have
    /// expired by now are cleared away with it.
    pub(super) fn settle(&self, id: i64, entry: Entry<'_>, spent: u64, now: Timestamp) -> Result<(), LedgerError> {
        let transaction = self.transaction()?;
        transaction
            .prepare_cached("DELETE FROM reserved WHERE id = ?1 OR expires <= ?2")?
            .execute(params![id, now.as_second()])?;
        if spent > 0 {
            transaction
                .prepare_cached(
                    "INSERT INTO spent (account, day, kind, amount) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (account, day, kind) DO UPDATE SET amount = min(amount + excluded.amount, ?5)",
                )?
                // The sum of two amounts stored here is under the largest integer.
                .execute(params![entry.account, entry.day, entry.spend.as_str(), stored(spent), MOST])?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// No method calls another, so there is never one inside another.
    fn transaction(&self) -> Result<Transaction<'_>, rusqlite::Error> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
    }
}

/// What is spent, and set aside by those who have not expired.
fn used(connection: &Connection, entry: Entry<'_>, now: Timestamp) -> Result<u64, rusqlite::Error> {
    let sum: i64 = connection
        .prepare_cached(
            "SELECT coalesce((SELECT amount FROM spent WHERE account = ?1 AND day = ?2 AND kind = ?3), 0)
                  + coalesce((SELECT sum(amount) FROM reserved
                              WHERE account = ?1 AND day = ?2 AND kind = ?3 AND expires > ?4), 0)",
        )?
        .query_row(params![entry.account, entry.day, entry.spend.as_str(), now.as_second()], |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

/// The most that is stored of one amount: four exabytes, so that two of them still add up.
const MOST: i64 = i64::MAX / 2;

fn stored(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(MOST).min(MOST)
}
