//! The quotas as the line uses them: nobody but the budgets waits for a locked file, and its words stay inside.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sightline_core::Clock;
use sightline_core::quota::{Budget, Quota as _, QuotaError, Spend};

use super::Quotas;

const LIMIT: u64 = 1000;

struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic_ms(&self) -> f64 {
        0.0
    }
}

fn open(folder: &Path) -> Quotas {
    Quotas::open(folder, Arc::new(Standing)).unwrap()
}

fn budget() -> Budget<'static> {
    Budget { account: "a", now: Timestamp::UNIX_EPOCH, spend: Spend::Bytes, limit: LIMIT }
}

/// Another process that holds the file's lock, until it is dropped.
fn lock(folder: &Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(folder.join("budget.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn a_lock_held_elsewhere_holds_up_no_thread_that_serves() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = Arc::new(open(folder.path()));
    let other = lock(folder.path());
    let reserving = tokio::spawn({
        let quotas = Arc::clone(&quotas);
        async move { quotas.reserve(budget(), 10).await.map(|reservation| reservation.amount()) }
    });
    // This runtime has one thread: were it held up, the lock would not be let go of before the wait for it had ended.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!reserving.is_finished());
    drop(other);
    assert_eq!(reserving.await.unwrap(), Ok(10));
}

#[tokio::test]
async fn who_leaves_while_it_waits_has_nothing_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = open(folder.path());
    let other = lock(folder.path());
    let waiting = quotas.reserve(budget(), 10);
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
    drop(other);
    // The first question may stand before the reservation's return in the line, the second stands behind it.
    quotas.left(budget()).await.unwrap();
    assert_eq!(quotas.left(budget()).await.unwrap().amount, LIMIT);
}

#[tokio::test]
async fn what_is_settled_last_is_in_the_file_when_the_quotas_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = open(folder.path());
    let reservation = quotas.reserve(budget(), 100).await.unwrap();
    drop(quotas);
    reservation.settle(40);
    assert_eq!(open(folder.path()).left(budget()).await.unwrap().amount, LIMIT - 40);
}

#[tokio::test]
async fn a_ledger_that_fails_is_told_in_words_of_ours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = open(folder.path());
    rusqlite::Connection::open(folder.path().join("budget.db")).unwrap().execute_batch("DROP TABLE reserved").unwrap();
    let error = quotas.left(budget()).await.unwrap_err();
    assert_eq!(error, QuotaError::Unavailable);
    assert_eq!(
        error.to_string(),
        "the day's budgets cannot be looked at, so nothing was read; try again in a moment, and have an admin read the service's log if it stays so"
    );
}
