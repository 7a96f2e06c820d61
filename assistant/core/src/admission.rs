//! From a valid query to one that may run now: a place, the day's budget, an estimate where it is worth one, and, where it is
//! refused for its size, what of it would fit.

use std::time::Duration;

use jiff::Timestamp;
use sightline_guard::{Admission, BytesLeft, EngineError, Estimate, ExecutableQuery, Fits, Refusal, Suggestion};
use sightline_model::{Principal, QueryId};
use sightline_policies::{Decision, Limits};
use sightline_query::{Query, ValidQuery};
use tracing::Instrument as _;

use crate::assistant::Assistant;
use crate::quota::{Budget, Left, Place, QuotaError, Reservation, Spend, account};
use crate::tool_failure::ToolFailure;

/// How many other queries are looked at in search of one that fits. The first may change the range and the step; each after that cuts
/// the window to half at least, so the last is a sixtieth of what was asked or less: what does not fit then is too wide, not too long.
const MAX_TRIES: usize = 8;

/// Whose query it is, and on what terms it is put to the guard.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) limits: &'a Limits,
    pub(crate) decision: &'a Decision,
    /// The instant taken as now: what a window may not begin after.
    pub(crate) as_of: Timestamp,
    pub(crate) query_id: &'a QueryId,
}

/// A query that may run now.
pub(crate) struct Admitted {
    pub(crate) executable: ExecutableQuery,
    pub(crate) reservation: Reservation,
    /// Held until the query has ended.
    pub(crate) place: Place,
}

/// Admits a query.
///
/// # Errors
/// A refusal with what would fit, or a fault of the host.
pub(crate) async fn admit(
    assistant: &Assistant,
    terms: Terms<'_>,
    valid: &ValidQuery,
) -> Result<Admitted, ToolFailure> {
    match admit_now(assistant, terms, valid).await {
        Err(ToolFailure::Refused(refusal)) => {
            let span = tracing::info_span!("narrow", query_id = %terms.query_id);
            let found = narrow(assistant, terms, valid.query(), &refusal).instrument(span).await;
            Err(refusal.with(found).into())
        }
        other => other,
    }
}

async fn admit_now(assistant: &Assistant, terms: Terms<'_>, valid: &ValidQuery) -> Result<Admitted, ToolFailure> {
    // What can be told without the engine is told at once: a question that is far too big waits for nobody's place.
    by_guard(assistant, terms, valid, None, None)?;
    // Those before it in the line may be queries of the same question, and each of them may run as long as this one may.
    let turn = Duration::from_secs(terms.limits.max_seconds);
    let place = place(assistant, terms, turn).await?;
    let left = bytes_left(assistant, terms).await?;
    let (executable, expected) = within_estimate(assistant, terms, valid, left).await?;
    let reservation = reserve(assistant, terms, left, expected).await?;
    Ok(Admitted { executable, reservation, place })
}

/// Sets aside of the day's budget what a query is expected to read.
pub(crate) async fn reserve(
    assistant: &Assistant,
    terms: Terms<'_>,
    left: BytesLeft,
    expected: u64,
) -> Result<Reservation, ToolFailure> {
    let account = account(terms.principal);
    let wanted = expected.min(terms.limits.max_bytes_read);
    let reservation = assistant.quota.reserve(budget(assistant, terms, &account), wanted).await.map_err(spent)?;
    // Others may have taken the rest since it was looked at. With a part of what it needs the query would read far beyond its share
    // of the day; dropped before it begins, that part costs nothing.
    if reservation.amount() < wanted {
        let (left, resets) = (reservation.amount(), left.resets);
        return Err(Refusal::OverBudget { estimated: wanted, left, resets, fits: Fits::Untried }.into());
    }
    Ok(reservation)
}

/// A place among the asker's queries; those before it are waited for so much longer than for the usual short query.
pub(crate) async fn place(assistant: &Assistant, terms: Terms<'_>, longer: Duration) -> Result<Place, Refusal> {
    let limit = terms.limits.max_concurrent;
    let waiting = assistant.quota.place(terms.principal, limit, longer);
    let place = waiting.instrument(tracing::info_span!("quota_place")).await;
    place.map_err(|full| Refusal::TooManyAtOnce { limit, waited_s: full.waited_s })
}

/// Admits by what the query is known to read at most, or by the engine's estimate where that is unknown or near a bound. Gives the
/// bytes that are expected to be read with it.
async fn within_estimate(
    assistant: &Assistant,
    terms: Terms<'_>,
    valid: &ValidQuery,
    left: BytesLeft,
) -> Result<(ExecutableQuery, u64), ToolFailure> {
    let executable = by_guard(assistant, terms, valid, Some(left), None)?;
    let bound = Estimate::upper_bound(valid);
    match bound {
        Some(bound) if !Estimate::is_worth_asking(Some(bound), terms.limits, Some(left)) => {
            Ok((executable, bound.bytes_to_reserve()))
        }
        Some(_) | None => {
            let estimate = estimate(assistant, terms, &executable).await?;
            Ok((by_guard(assistant, terms, valid, Some(left), Some(estimate))?, estimate.bytes))
        }
    }
}

/// The engine's estimate. A server of one's own may keep its bounds on reading for an estimate too; all that is known then is that
/// they are passed. Twice of one stands for the unknown size, so that a search goes on with half of the window.
pub(crate) async fn estimate(
    assistant: &Assistant,
    terms: Terms<'_>,
    executable: &ExecutableQuery,
) -> Result<Estimate, ToolFailure> {
    let span = tracing::info_span!("engine_estimate", query_id = %terms.query_id);
    let estimated = assistant.engine.estimate(executable).instrument(span).await;
    let twice = |limit: u64| limit.saturating_mul(2);
    estimated.map_err(|error| match error {
        EngineError::TooManyRows { limit } => {
            Refusal::TooManyRows { estimated: twice(limit), limit, fits: Fits::Untried }.into()
        }
        EngineError::TooManyBytes { limit } => {
            Refusal::TooManyBytes { estimated: twice(limit), limit, fits: Fits::Untried }.into()
        }
        EngineError::Unreachable
        | EngineError::TimedOut { .. }
        | EngineError::OutOfMemory { .. }
        | EngineError::ResultTooLarge { .. }
        | EngineError::Busy
        | EngineError::Cancelled
        | EngineError::DiskFull
        | EngineError::NotMapped
        | EngineError::NotGranted
        | EngineError::FullScan
        | EngineError::Rejected { .. }
        | EngineError::Malformed => error.into(),
    })
}

/// The failure of a query that the engine broke off. One that would have read too much is refused as if that had been known before,
/// with what would fit.
pub(crate) async fn explain(
    assistant: &Assistant,
    terms: Terms<'_>,
    valid: &ValidQuery,
    executable: &ExecutableQuery,
    error: EngineError,
) -> ToolFailure {
    let too_much = matches!(error, EngineError::TooManyRows { .. } | EngineError::TooManyBytes { .. });
    if !too_much {
        return error.into();
    }
    let estimated = match estimate(assistant, terms, executable).await {
        Ok(estimate) => by_guard(assistant, terms, valid, None, Some(estimate)).err(),
        Err(ToolFailure::Refused(refusal)) => Some(refusal),
        Err(_) => None,
    };
    let Some(refusal) = estimated else { return error.into() };
    let found = match refusal.next_try(valid.query()) {
        // The query's own place is held until its failure is explained.
        Some(first) => what_fits(assistant, terms, valid.query(), first).await,
        None => Fits::Nothing,
    };
    refusal.with(found).into()
}

/// Looks for what fits in a place of the asker's: a search asks the engine several times, which is no less than a query does.
async fn narrow(assistant: &Assistant, terms: Terms<'_>, asked: &Query, refusal: &Refusal) -> Fits {
    let Some(first) = refusal.next_try(asked) else { return Fits::Nothing };
    match place(assistant, terms, Duration::ZERO).await {
        Ok(_place) => what_fits(assistant, terms, asked, first).await,
        Err(_full) => Fits::Untried,
    }
}

/// What fits. That the search failed is no reason to keep the refusal back: it says what to do without it.
async fn what_fits(assistant: &Assistant, terms: Terms<'_>, asked: &Query, first: Query) -> Fits {
    let found = search(assistant, terms, asked, first).await;
    found.unwrap_or_else(|fault| {
        tracing::debug!(query_id = %terms.query_id, %fault, "the search for what fits was given up");
        Fits::Untried
    })
}

/// Looks for a query that fits: the refused one with the window or step that its refusal suggests, and so on. Each is admitted by
/// guard and estimate like any other, so that what is suggested works when it is asked.
async fn search(assistant: &Assistant, terms: Terms<'_>, asked: &Query, first: Query) -> Result<Fits, ToolFailure> {
    let mut candidate = first;
    let left = bytes_left(assistant, terms).await?;
    for _ in 0..MAX_TRIES {
        let Ok(valid) = assistant.catalogue.check(&candidate) else { break };
        match within_estimate(assistant, terms, &valid, left).await {
            Ok(_) => return Ok(Fits::This(Suggestion::between(asked, &candidate))),
            Err(ToolFailure::Refused(refusal)) => match refusal.next_try(&candidate) {
                Some(next) => candidate = next,
                None => break,
            },
            Err(fault) => return Err(fault),
        }
    }
    Ok(Fits::Nothing)
}

fn by_guard(
    assistant: &Assistant,
    terms: Terms<'_>,
    valid: &ValidQuery,
    bytes_left: Option<BytesLeft>,
    estimate: Option<Estimate>,
) -> Result<ExecutableQuery, Refusal> {
    let Terms { principal: _, limits, decision, as_of: now, query_id } = terms;
    let admission = Admission { decision, limits, now, query_id: query_id.clone(), bytes_left, estimate };
    tracing::info_span!("guard_admit", %query_id).in_scope(|| assistant.guard.admit(valid, admission))
}

pub(crate) async fn bytes_left(assistant: &Assistant, terms: Terms<'_>) -> Result<BytesLeft, ToolFailure> {
    let account = account(terms.principal);
    let Left { amount, resets } = assistant.quota.left(budget(assistant, terms, &account)).await?;
    Ok(BytesLeft { bytes: amount, resets })
}

/// The budget is of the day on which the question is asked, whatever instant it is asked as of.
fn budget<'a>(assistant: &Assistant, terms: Terms<'_>, account: &'a str) -> Budget<'a> {
    Budget { account, now: assistant.clock.now(), spend: Spend::Bytes, limit: terms.limits.bytes_per_day }
}

fn spent(error: QuotaError) -> ToolFailure {
    match error {
        QuotaError::NothingLeft { spend: _, limit, resets } => Refusal::BudgetSpent { limit, resets }.into(),
        fault @ QuotaError::Unavailable => fault.into(),
    }
}
