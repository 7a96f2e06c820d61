//! A quota without a memory, for whoever examines the product over recorded incidents of their own: a suite asks faster than a person may,
//! and what it reads is nobody's day. What one query may do is bounded as ever.

use std::time::Duration;

use super::{Budget, Left, NoPlace, Place, Quota, QuotaError, Reservation, TooManyQuestions};
use sightline_model::{BoxFuture, Principal};

/// Every question is in time, every place free, every budget whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmetered;

impl Quota for Unmetered {
    fn question(&self, _: &Principal, _: u64) -> Result<(), TooManyQuestions> {
        Ok(())
    }

    fn place<'a>(&'a self, _: &'a Principal, _: u64, _: Duration) -> BoxFuture<'a, Result<Place, NoPlace>> {
        Box::pin(std::future::ready(Ok(Place::new(()))))
    }

    fn left<'a>(&'a self, budget: Budget<'a>) -> BoxFuture<'a, Result<Left, QuotaError>> {
        Box::pin(std::future::ready(Ok(Left { amount: budget.limit, resets: budget.now })))
    }

    fn reserve<'a>(&'a self, _: Budget<'a>, amount: u64) -> BoxFuture<'a, Result<Reservation, QuotaError>> {
        Box::pin(std::future::ready(Ok(Reservation::new(amount, drop))))
    }
}
