//! What askers may do across their questions: how often, how many queries at once, how much a day.
//!
//! Rates and places live in this process and begin anew with it; budgets live in a file that every process of the data folder shares.

mod desk;
mod ledger;
#[cfg(test)]
mod ledger_tests;
mod places;
#[cfg(test)]
mod quotas_tests;
pub(crate) mod rate;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sightline_core::Clock;
use sightline_core::quota::{Budget, Left, NoPlace, Place, Quota, QuotaError, Reservation, Spend, TooManyQuestions};
use sightline_model::{BoxFuture, Principal};

use self::desk::Desk;
pub use self::ledger::LedgerError;
use self::ledger::{Entry, Ledger, Reserved};
use self::places::Places;
use self::rate::Rates;

/// How long a query waits for others of the same asker to end, besides the time that one of them may run. A query of ours takes tens of
/// milliseconds, so one that waits this long stands behind several that are far too big.
const PATIENCE: Duration = Duration::from_secs(10);
/// When a reservation of a process that ended without settling it is given back. A question is stopped after two minutes, so none
/// that is older is still being spent.
const RESERVED_FOR: SignedDuration = SignedDuration::from_mins(5);
const SECONDS_PER_DAY: i64 = 86_400;

/// The quotas of a data folder.
pub struct Quotas {
    rates: Rates,
    places: Places,
    ledger: Arc<Desk>,
    clock: Arc<dyn Clock>,
}

impl Quotas {
    /// Opens the ledger of a data folder, or makes it.
    ///
    /// # Errors
    /// When the ledger cannot be used, or is newer than this program.
    pub fn open(data_dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, LedgerError> {
        let ledger = Ledger::open(&data_dir.join("budget.db"), day_of(clock.now()))?;
        Ok(Self {
            rates: Rates::new(Arc::clone(&clock)),
            places: Places::new(PATIENCE),
            ledger: Arc::new(Desk::open(ledger)?),
            clock,
        })
    }

    /// The same with another patience with those who wait for a place.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { places: Places::new(patience), ..self }
    }
}

impl Quota for Quotas {
    fn question(&self, principal: &Principal, per_minute: u64) -> Result<(), TooManyQuestions> {
        self.rates.question(&principal.id, per_minute)
    }

    fn place<'a>(
        &'a self,
        principal: &'a Principal,
        at_once: u64,
        longer: Duration,
    ) -> BoxFuture<'a, Result<Place, NoPlace>> {
        Box::pin(self.places.place(&principal.id, at_once, longer))
    }

    fn left<'a>(&'a self, budget: Budget<'a>) -> BoxFuture<'a, Result<Left, QuotaError>> {
        let Owned { account, now, day, spend, limit } = Owned::of(budget);
        let job = move |ledger: &Ledger| ledger.left(Entry { account: &account, day, spend }, limit, now);
        Box::pin(async move {
            let amount = self.ledger.ask(job).await.map_err(unavailable)?;
            Ok(Left { amount, resets: midnight_after(day) })
        })
    }

    fn reserve<'a>(&'a self, budget: Budget<'a>, amount: u64) -> BoxFuture<'a, Result<Reservation, QuotaError>> {
        let Owned { account, now, day, spend, limit } = Owned::of(budget);
        let expires = now.checked_add(RESERVED_FOR).unwrap_or(Timestamp::MAX);
        let (desk, clock) = (Arc::clone(&self.ledger), Arc::clone(&self.clock));
        let job = move |ledger: &Ledger| {
            let reserved = ledger.reserve(Entry { account: &account, day, spend }, amount, limit, now, expires)?;
            // Made here and not where it is waited for: one that nobody waits for any more is given back at once.
            Ok(reserved.map(|Reserved { id, amount }| {
                Reservation::new(amount, move |spent| settle(&desk, id, account, (day, spend), spent, clock))
            }))
        };
        Box::pin(async move {
            let reserved = self.ledger.ask(job).await.map_err(unavailable)?;
            reserved.ok_or_else(|| QuotaError::NothingLeft { spend, limit, resets: midnight_after(day) })
        })
    }
}

/// A budget that goes to the ledger's thread.
struct Owned {
    account: String,
    now: Timestamp,
    day: i64,
    spend: Spend,
    limit: u64,
}

impl Owned {
    fn of(budget: Budget<'_>) -> Self {
        let Budget { account, now, spend, limit } = budget;
        Self { account: account.to_owned(), now, day: day_of(now), spend, limit }
    }
}

/// Has a reservation settled. Comes before whatever is asked of the ledger after it.
fn settle(desk: &Desk, id: i64, account: String, (day, spend): (i64, Spend), spent: u64, clock: Arc<dyn Clock>) {
    let failed = |error: LedgerError| {
        tracing::error!(%error, "what a question has read could not be charged to its budget");
    };
    let job = move |ledger: &Ledger| {
        let settled = ledger.settle(id, Entry { account: &account, day, spend }, spent, clock.now());
        settled.unwrap_or_else(failed);
    };
    desk.leave(job).unwrap_or_else(failed);
}

/// The days since 1970, UTC.
fn day_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(SECONDS_PER_DAY)
}

fn midnight_after(day: i64) -> Timestamp {
    let seconds = day.saturating_add(1).saturating_mul(SECONDS_PER_DAY);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// The system's words are for whoever runs the service; they name its files.
fn unavailable(error: LedgerError) -> QuotaError {
    tracing::error!(%error, "the daily budgets cannot be looked at; check that the data folder is yours and the disk is not full");
    QuotaError::Unavailable
}
