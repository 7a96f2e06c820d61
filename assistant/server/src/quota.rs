//! What askers may do across their questions: how often, how many queries at once, how much a day.
//!
//! Rates and places live in this process and begin anew with it; budgets live in a file that every process of the data folder shares.

mod ledger;
#[cfg(test)]
mod ledger_tests;
mod places;
mod rate;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sightline_core::Clock;
use sightline_core::quota::{Budget, Left, NoPlace, Place, Quota, QuotaError, Reservation, TooManyQuestions};
use sightline_model::{BoxFuture, Principal};

pub use self::ledger::LedgerError;
use self::ledger::{Entry, Ledger};
use self::places::Places;
use self::rate::Rates;

/// How long a query waits for another of the same asker to end. A query of ours takes tens of milliseconds, so one that waits this
/// long stands behind several that are far too big.
const PATIENCE: Duration = Duration::from_secs(10);
/// When a reservation of a process that ended without settling it is given back. A question is stopped after two minutes, so none
/// that is older is still being spent.
const RESERVED_FOR: SignedDuration = SignedDuration::from_mins(5);
const SECONDS_PER_DAY: i64 = 86_400;

/// The quotas of a data folder.
pub struct Quotas {
    rates: Rates,
    places: Places,
    ledger: Arc<Ledger>,
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
            ledger: Arc::new(ledger),
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

    fn place<'a>(&'a self, principal: &'a Principal, at_once: u64) -> BoxFuture<'a, Result<Place, NoPlace>> {
        Box::pin(self.places.place(&principal.id, at_once))
    }

    fn left(&self, budget: Budget<'_>) -> Result<Left, QuotaError> {
        let entry = entry(budget);
        let amount = self.ledger.left(entry, budget.limit, budget.now).map_err(unavailable)?;
        Ok(Left { amount, resets: midnight_after(entry.day) })
    }

    fn reserve(&self, budget: Budget<'_>, amount: u64) -> Result<Reservation, QuotaError> {
        let entry = entry(budget);
        let expires = budget.now.checked_add(RESERVED_FOR).unwrap_or(Timestamp::MAX);
        let reserved =
            self.ledger.reserve(entry, amount, budget.limit, budget.now, expires).map_err(unavailable)?.ok_or_else(
                || QuotaError::NothingLeft {
                    spend: budget.spend,
                    limit: budget.limit,
                    resets: midnight_after(entry.day),
                },
            )?;
        let (ledger, account) = (Arc::clone(&self.ledger), budget.account.to_owned());
        let (day, spend, clock) = (entry.day, budget.spend, Arc::clone(&self.clock));
        Ok(Reservation::new(reserved.amount, move |spent| {
            let entry = Entry { account: &account, day, spend };
            if let Err(error) = ledger.settle(reserved.id, entry, spent, clock.now()) {
                tracing::error!(%error, "what a question has read could not be charged to its budget");
            }
        }))
    }
}

fn entry(budget: Budget<'_>) -> Entry<'_> {
    Entry { account: budget.account, day: day_of(budget.now), spend: budget.spend }
}

/// The days since 1970, UTC.
fn day_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(SECONDS_PER_DAY)
}

fn midnight_after(day: i64) -> Timestamp {
    let seconds = day.saturating_add(1).saturating_mul(SECONDS_PER_DAY);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

fn unavailable(error: LedgerError) -> QuotaError {
    QuotaError::Unavailable { reason: error.to_string() }
}
