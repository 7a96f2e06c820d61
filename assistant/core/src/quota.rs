//! The port that keeps a principal's bounds across its questions: how often, how many at once, and how much a day.
//!
//! What one query may do is the guard's; what all questions of one asker may do together needs a memory, and that is here.

mod unmetered;

use std::time::Duration;

use jiff::Timestamp;
use sightline_model::{BoxFuture, Principal, TenantScope};

pub use unmetered::Unmetered;

/// What a day's budget is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// Bytes that the engine reads.
    Bytes,
    /// Tokens that a model takes in and puts out.
    Tokens,
}

impl Spend {
    /// Its name in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Tokens => "tokens",
        }
    }
}

/// What is left of a day's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// How much: the limit less what was spent and what is reserved.
    pub amount: u64,
    /// When the next day's budget begins: midnight UTC.
    pub resets: Timestamp,
}

/// Why a budget gives nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// It is spent, or reserved by what runs now.
    #[error(
        "today's budget of {limit} {} is spent; ask again after {resets:.0}, or ask an admin for more",
        match spend { Spend::Bytes => "bytes read", Spend::Tokens => "model tokens" }
    )]
    NothingLeft {
        /// Of what.
        spend: Spend,
        /// The whole of it.
        limit: u64,
        /// When the next day's budget begins.
        resets: Timestamp,
    },
    /// The ledger cannot be used. Without it nobody knows what is left, so nothing is read. Why is in the service's log: the asker can
    /// do nothing about it, and is not told of the host's files.
    #[error(
        "the day's budgets cannot be looked at, so nothing was read; try again in a moment, and have an admin read the service's log if it stays so"
    )]
    Unavailable,
}

/// The principal asked too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("you asked more than {limit} questions within a minute, your limit; ask again in {retry_after_s} s")]
pub struct TooManyQuestions {
    /// The limit.
    pub limit: u64,
    /// Whole seconds after which the next question is taken.
    pub retry_after_s: u64,
}

/// Every place of the principal was taken for as long as one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace {
    /// How long was waited, seconds.
    pub waited_s: u64,
}

/// A place among the principal's queries; free again when it is dropped.
pub struct Place {
    _held: Box<dyn Send + Sync>,
}

impl Place {
    /// A place that is held as long as this value is.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// Who pays, on which day, of what, up to how much.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    /// The account; see [`account`].
    pub account: &'a str,
    /// An instant of the day, by the wall clock.
    pub now: Timestamp,
    /// Of what.
    pub spend: Spend,
    /// The whole day's budget.
    pub limit: u64,
}

/// A part of a day's budget that is set aside. Guaranteed: it is settled exactly once, when it is dropped at the latest.
pub struct Reservation {
    amount: u64,
    at_drop: u64,
    settle: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Reservation {
    /// A reservation of so much; `settle` takes what was really spent.
    pub fn new(amount: u64, settle: impl FnOnce(u64) + Send + 'static) -> Self {
        Self { amount, at_drop: 0, settle: Some(Box::new(settle)) }
    }

    /// How much is set aside.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// From here on it is being spent. A question that is cancelled does not learn how much its query had read by then, so the
    /// whole amount is charged: else many cancelled questions would read for nothing.
    pub fn begin(&mut self) {
        self.at_drop = self.amount;
    }

    /// Charges what was spent, which may be more than was set aside, and gives the rest back.
    pub fn settle(mut self, spent: u64) {
        self.close(spent);
    }

    fn close(&mut self, spent: u64) {
        if let Some(settle) = self.settle.take() {
            settle(spent);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(self.at_drop);
    }
}

/// The memory of what each principal has asked and read.
pub trait Quota: Send + Sync {
    /// Counts a question against the principal's minute.
    ///
    /// # Errors
    /// When the minute is full; then it was not counted.
    fn question(&self, principal: &Principal, per_minute: u64) -> Result<(), TooManyQuestions>;

    /// Waits for a place among the principal's queries, but not for ever: as long as a few short queries take, and so much `longer`.
    fn place<'a>(
        &'a self,
        principal: &'a Principal,
        at_once: u64,
        longer: Duration,
    ) -> BoxFuture<'a, Result<Place, NoPlace>>;

    /// What is left of a budget.
    ///
    /// # Errors
    /// When the ledger cannot be read. That nothing is left is no error here.
    fn left<'a>(&'a self, budget: Budget<'a>) -> BoxFuture<'a, Result<Left, QuotaError>>;

    /// Sets aside this amount, or what is left where that is less.
    ///
    /// # Errors
    /// When nothing is left or the ledger cannot be written.
    fn reserve<'a>(&'a self, budget: Budget<'a>, amount: u64) -> BoxFuture<'a, Result<Reservation, QuotaError>>;
}

/// Who pays for a principal: its tenant, so that a tenant has one budget however many people ask; itself when it belongs to several
/// tenants or to all, because no one of them should pay for it.
pub fn account(principal: &Principal) -> String {
    match &principal.tenants {
        TenantScope::Only(tenants) if tenants.len() == 1 => {
            tenants.first().map_or_else(|| principal.id.clone(), |tenant| format!("tenant:{tenant}"))
        }
        TenantScope::Only(_) | TenantScope::All => format!("principal:{}", principal.id),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use sightline_model::{Principal, Role, TenantScope};

    use super::{Reservation, account};

    #[test]
    fn a_tenant_pays_for_its_own_and_everybody_else_for_himself() {
        let principal = |id: &str, tenants: TenantScope| Principal {
            id: id.to_owned(),
            role: Role::Viewer,
            tenants,
            jobs_of: None,
        };
        let only = |names: &[&str]| TenantScope::Only(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(account(&principal("a@atlas", only(&["atlas"]))), "tenant:atlas");
        assert_eq!(account(&principal("b@atlas,x", only(&["atlas", "x"]))), "principal:b@atlas,x");
        assert_eq!(account(&principal("atlas", TenantScope::All)), "principal:atlas");
    }

    #[test]
    fn a_reservation_is_settled_once_and_costs_nothing_before_it_begins() {
        let charged = Arc::new(Mutex::new(Vec::new()));
        let reserve = || {
            let charged = Arc::clone(&charged);
            Reservation::new(10, move |spent| charged.lock().unwrap().push(spent))
        };
        reserve().settle(3);
        drop(reserve());
        let mut begun = reserve();
        begun.begin();
        drop(begun);
        let mut settled = reserve();
        settled.begin();
        settled.settle(12);
        assert_eq!(*charged.lock().unwrap(), [3, 0, 10, 12]);
    }
}
