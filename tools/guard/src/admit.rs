//! `Guard::admit`: the only way to an [`ExecutableQuery`].

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use sightline_model::{QueryId, TimeRange};
use sightline_policies::{Decision, Limits, RowScope};
use sightline_query::{Align, Shape, ValidQuery};

use crate::amount::step_at_least;
use crate::bounds::Bounds;
use crate::check::{self, Meant, Passed};
use crate::cost::{BytesLeft, Estimate, row_bytes};
use crate::emit::emit;
use crate::executable::{ExecutableQuery, tied_keys};
use crate::fence::Fence;
use crate::lower::lower;
use crate::mapping::{Mapping, TENANT, TimeShape};
use crate::refusal::Refusal;
use crate::series;
use crate::suggestion::{Fits, Suggestion};

/// The engine's `DateTime64(9)` ends in 2262; 1970 is where its clock begins.
const CALENDAR_END_SECONDS: i64 = 9_183_110_400;

/// On what terms a query is put to the guard.
#[derive(Clone, Debug)]
pub struct Admission<'a> {
    /// What the rules said about it.
    pub decision: &'a Decision,
    /// The asker's limits.
    pub limits: &'a Limits,
    /// Now.
    pub now: Timestamp,
    /// The id it will run under.
    pub query_id: QueryId,
    /// What is left of the day's bytes; `None` where no budget is kept.
    pub bytes_left: Option<BytesLeft>,
    /// What it would read, where that is known.
    pub estimate: Option<Estimate>,
}

/// Turns valid queries into executable ones, or refuses.
#[derive(Clone, Debug)]
pub struct Guard {
    mapping: Mapping,
    passed: Passed,
}

impl Guard {
    /// A guard over these tables.
    pub fn new(mapping: Mapping) -> Self {
        Self { mapping, passed: Passed::default() }
    }

    /// The tables.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The texts that passed under these tables.
    pub(crate) fn passed(&self) -> &Passed {
        &self.passed
    }

    /// Admits a query: decision, bounds, text, second check.
    ///
    /// # Errors
    /// The first bound that does not hold, with what would fit.
    pub fn admit(&self, query: &ValidQuery, admission: Admission<'_>) -> Result<ExecutableQuery, Refusal> {
        let Admission { decision, limits, now, query_id, bytes_left, estimate } = admission;
        let scope = allowed(decision)?;
        let tenants = scope.tenants();
        let dataset = query.dataset();
        let unmapped = || Refusal::Unmapped { dataset, what: "table".to_owned() };
        let table = self.mapping.table(dataset).ok_or_else(unmapped)?;

        let window = window(query.range(), now)?;
        // Jobs are few: what overlaps a year of them is still a short list.
        if table.time == TimeShape::Instant {
            check_range(window, limits)?;
        }
        check_size(query, window, limits)?;
        series::check_named(query, limits)?;
        check_budget(limits, bytes_left, estimate)?;

        let (meant, params) = lower(query, table, scope, window)?;
        let sql = emit(&meant);
        let meant_with = Meant { select: &meant, params: &params, scope, mapping: &self.mapping };
        check::verify(&sql, meant_with, &self.passed).map_err(|faults| Refusal::Unverified { faults })?;

        let bounds = Bounds::of(limits, bytes_left, meant.limit, table.force_primary_key);
        let mapped = self.mapping.tables().iter().map(|t| (t.database(), t.table(), TENANT));
        Ok(ExecutableQuery {
            query_id,
            sql,
            params,
            columns: query.columns(),
            tied_keys: tied_keys(&meant),
            bounds,
            tenants: tenants.clone(),
            database: table.database.clone(),
            tables: vec![table.table.clone()],
            row_limit: query.limit(),
            row_bytes: row_bytes(query),
            fence: Fence::new(mapped, tenants),
        })
    }
}

/// The rows that a decision opens.
fn allowed(decision: &Decision) -> Result<&RowScope, Refusal> {
    if !decision.allowed() {
        return Err(Refusal::Denied { reasons: decision.reasons().to_vec() });
    }
    decision.scope().filter(|scope| !scope.tenants().is_empty()).ok_or(Refusal::NoRows)
}

/// Every bound on a query of which only its size is known, in the order of [`Guard::admit`]; gives back the tenants that are open.
pub(crate) fn sizes<'a>(
    admission: &Admission<'a>,
    range: TimeRange,
    of_instants: bool,
    step_points: Option<u64>,
    row_limit: u32,
) -> Result<&'a BTreeSet<String>, Refusal> {
    let Admission { decision, limits, now, query_id: _, bytes_left, estimate } = admission;
    let tenants = allowed(decision)?.tenants();
    let window = window(range, *now)?;
    if of_instants {
        check_range(window, limits)?;
    }
    if let Some(asked) = step_points.filter(|points| *points > limits.max_points) {
        return Err(Refusal::TooManyPoints { asked, limit: limits.max_points, fits: Fits::Nothing });
    }
    check_result_rows(u64::from(row_limit), limits)?;
    check_budget(limits, *bytes_left, *estimate)?;
    Ok(tenants)
}

fn check_result_rows(asked: u64, limits: &Limits) -> Result<(), Refusal> {
    if asked > limits.max_result_rows {
        return Err(Refusal::TooManyResultRows { asked, limit: limits.max_result_rows });
    }
    Ok(())
}

fn check_budget(limits: &Limits, bytes_left: Option<BytesLeft>, estimate: Option<Estimate>) -> Result<(), Refusal> {
    if let Some(BytesLeft { bytes: 0, resets }) = bytes_left {
        return Err(Refusal::BudgetSpent { limit: limits.bytes_per_day, resets });
    }
    estimate.map_or(Ok(()), |estimate| check_estimate(estimate, limits, bytes_left))
}

/// The window in whole milliseconds, both ends cut alike, so that windows that meet still meet.
fn window(range: TimeRange, now: Timestamp) -> Result<TimeRange, Refusal> {
    if range.from() > now {
        return Err(Refusal::InTheFuture { from: range.from(), now });
    }
    if range.from().as_second() < 0 || range.to().as_second() >= CALENDAR_END_SECONDS {
        return Err(Refusal::OutsideCalendar);
    }
    let from = range.from().as_millisecond();
    let to = range.to().as_millisecond().max(from.saturating_add(1));
    let cut = Timestamp::from_millisecond(from).ok().zip(Timestamp::from_millisecond(to).ok());
    cut.and_then(|(from, to)| TimeRange::new(from, to)).ok_or(Refusal::OutsideCalendar)
}

fn length_ms(window: TimeRange) -> u64 {
    u64::try_from(window.millis()).unwrap_or(0)
}

fn check_range(window: TimeRange, limits: &Limits) -> Result<(), Refusal> {
    let asked_ms = length_ms(window);
    let limit_ms = limits.max_range_seconds.saturating_mul(1000);
    if asked_ms <= limit_ms {
        return Ok(());
    }
    let shorter = SignedDuration::from_millis(i64::try_from(limit_ms).unwrap_or(i64::MAX));
    let from = window.to().checked_sub(shorter).unwrap_or(window.from());
    let fits = TimeRange::new(from, window.to()).unwrap_or(window);
    let fits = Fits::This(Suggestion { window: Some(fits), step_ms: None });
    Err(Refusal::RangeTooLong { asked_ms, limit_ms, fits })
}

fn check_size(query: &ValidQuery, window: TimeRange, limits: &Limits) -> Result<(), Refusal> {
    let asked_ms = length_ms(window);
    match query.query().shape {
        Shape::Series { step_ms, align, .. } => {
            let points = points(window, step_ms, align == Align::Window);
            if points > limits.max_points {
                // A window can touch one step more than fit into it.
                let whole = match align {
                    Align::Epoch => limits.max_points.saturating_sub(1).max(1),
                    Align::Window => limits.max_points,
                };
                let step_ms = Some(step_at_least(asked_ms.div_ceil(whole)));
                let fits = Fits::This(Suggestion { window: None, step_ms });
                return Err(Refusal::TooManyPoints { asked: points, limit: limits.max_points, fits });
            }
        }
        Shape::Samples { .. }
        | Shape::Rank { .. }
        | Shape::Rows { .. }
        | Shape::Distinct { .. }
        | Shape::LabelKeys { .. } => {}
    }
    check_result_rows(u64::from(query.limit()), limits)
}

/// How many steps a window touches: from its start on, or at multiples of the step.
pub(crate) fn points(window: TimeRange, step_ms: u64, from_its_start: bool) -> u64 {
    let step = step_ms.max(1);
    if from_its_start {
        return length_ms(window).div_ceil(step);
    }
    let at = |time: Timestamp| u64::try_from(time.as_millisecond()).unwrap_or(0);
    let first = at(window.from()) / step;
    let last = at(window.to()).saturating_sub(1) / step;
    last.saturating_sub(first).saturating_add(1)
}

fn check_estimate(estimate: Estimate, limits: &Limits, bytes_left: Option<BytesLeft>) -> Result<(), Refusal> {
    let Estimate { rows, bytes } = estimate;
    let fits = Fits::Untried;
    if rows > limits.max_rows_read {
        return Err(Refusal::TooManyRows { estimated: rows, limit: limits.max_rows_read, fits });
    }
    if bytes > limits.max_bytes_read {
        return Err(Refusal::TooManyBytes { estimated: bytes, limit: limits.max_bytes_read, fits });
    }
    match bytes_left {
        Some(BytesLeft { bytes: left, resets }) if bytes > left => {
            Err(Refusal::OverBudget { estimated: bytes, left, resets, fits })
        }
        Some(_) | None => Ok(()),
    }
}
