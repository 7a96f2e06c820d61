//! The two sides: which windows, around which event, over which rows.

use jiff::Timestamp;
use sightline_model::{Dataset, Dim, Evidence, FactPath, Quantity, Relation, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Order, Query, Shape};

use crate::args::{FilterArg, filters, window};
use crate::compare::{CompareArgs, NAME};
use crate::job_scope::{JobScope, job_scope};
use crate::list_rows::list_rows;
use crate::measure::Rows;
use crate::metric_range::step;
use crate::reading::{Content, evidence};
use crate::sentence::{Sentence, fact};
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput, evidence_id};

/// The windows of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Both {
    pub(super) base: TimeRange,
    pub(super) other: TimeRange,
    /// When the event between them was, if one was asked for.
    event: Option<Timestamp>,
}

/// The windows, as far as they are known.
pub(super) enum Windows {
    Ask(Vec<Query>),
    /// There is no such event in the window.
    NoEvent,
    Known(Both),
}

impl Both {
    /// One step for both sides, so that their points mean the same.
    pub(super) fn step_ms(&self) -> u64 {
        let (longer, shorter) =
            if self.base.millis() > self.other.millis() { (self.base, self.other) } else { (self.other, self.base) };
        step::default_ms(longer, 0).min(u64::try_from(shorter.millis()).unwrap_or(1000).max(1000))
    }

    /// The event as evidence, with its own row alone.
    pub(super) fn event_evidence(&self, fetched: &[Fetched]) -> Result<Option<Evidence>, ToolError> {
        let (Some(at), Some(events)) = (self.event, events(fetched)) else { return Ok(None) };
        let rows = list_rows(events)?.into_iter().filter(|row| row.time == Some(at)).take(1).collect();
        Ok(Some(evidence(events, NAME, 1, Content::Rows(rows))))
    }
}

pub(super) fn windows(
    args: &CompareArgs,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<Windows, ToolError> {
    let fault = |reason: &str| ToolError::Arguments { tool: NAME, reason: reason.to_owned() };
    let range = window(NAME, args.from, args.to, context.as_of)?;
    let base = match (args.base_from, args.base_to) {
        (Some(from), Some(to)) => Some(window(NAME, from, to, context.as_of)?),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(fault("a base window needs both `base_from` and `base_to`"));
        }
    };
    let Some(kind) = &args.event else {
        return Ok(Windows::Known(Both { base: base.unwrap_or(range), other: range, event: None }));
    };
    if base.is_some() || args.base_filters.is_some() {
        return Err(fault(
            "with `event` the base is what lies before it; leave out `base_from`, `base_to` and `base_filters`",
        ));
    }
    if !context.may_read(Dataset::Events) {
        return Err(fault("your role may not read events; name both windows with `base_from` and `base_to`"));
    }
    let Some(events) = events(fetched) else {
        return Ok(Windows::Ask(vec![Query {
            dataset: Dataset::Events,
            metric: None,
            part: MetricPart::Samples,
            range,
            filters: vec![Filter::Dim { dim: Dim::Kind, matches: Match::Eq(kind.clone()) }],
            placement: None,
            threshold: None,
            shape: Shape::Rows { order: Order::Descending, limit: context.max_rows },
        }]));
    };
    // The latest first; one at the very edge leaves nothing to compare with.
    let rows = list_rows(events)?;
    let split = rows.iter().filter_map(|row| row.time).find_map(|at| {
        Some(Both { base: TimeRange::new(range.from(), at)?, other: TimeRange::new(at, range.to())?, event: Some(at) })
    });
    Ok(split.map_or(Windows::NoEvent, Windows::Known))
}

fn events(fetched: &[Fetched]) -> Option<&Fetched> {
    fetched.iter().find(|f| f.query.dataset() == Dataset::Events)
}

/// What there is to say where no such event is.
pub(super) fn no_event(args: &CompareArgs, fetched: &[Fetched]) -> Result<ToolOutput, ToolError> {
    let (Some(events), Some(kind)) = (events(fetched), &args.event) else { return Ok(ToolOutput::default()) };
    let id = evidence_id(1);
    let found = evidence(events, NAME, 1, Content::Rows(Vec::new()));
    let headline = Sentence::new()
        .say("no data: there is no event of kind ")
        .value(&id, "kind", kind)
        .say(" in this window with anything on both sides of it")
        .compare(fact(&id, FactPath::Total), Relation::AtMost, Quantity::Constant(0.0))
        .cite(&id)
        .finish();
    Ok(ToolOutput::no_data(vec![found], headline))
}

/// The rows of both sides, once it is known where a job ran.
pub(super) enum Sides {
    Ask(Box<Query>),
    Known([Rows; 2]),
    Unknown,
}

pub(super) fn sides(
    args: &CompareArgs,
    windows: &Both,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<Sides, ToolError> {
    let side = |range: TimeRange, conditions: &[FilterArg]| -> Result<Rows, ToolError> {
        Ok(Rows { range, filters: filters(NAME, Dataset::Metrics, conditions)?, placement: None })
    };
    let base = side(windows.base, args.base_filters.as_deref().unwrap_or(&args.filters))?;
    let other = side(windows.other, &args.filters)?;
    if base.range == other.range && base.filters == other.filters {
        return Err(ToolError::Arguments {
            tool: NAME,
            reason: "both sides are the same; name another window with `base_from` and `base_to`, an `event`, or other rows with `base_filters`"
                .to_owned(),
        });
    }
    let from = base.range.from().min(other.range.from());
    let to = base.range.to().max(other.range.to());
    // Asked for once, over both windows; each side then keeps its own.
    let both = TimeRange::new(from, to).unwrap_or(other.range);
    let scope = |rows: &Rows, range: TimeRange| {
        job_scope(context, args.job.as_deref(), Rows { range, ..rows.clone() }, fetched)
    };
    if let JobScope::Ask(query) = scope(&other, both)? {
        return Ok(Sides::Ask(query));
    }
    match (scope(&base, base.range)?, scope(&other, other.range)?) {
        (JobScope::Known(base), JobScope::Known(other)) => Ok(Sides::Known([base, other])),
        (JobScope::Ask(query), _) | (_, JobScope::Ask(query)) => Ok(Sides::Ask(query)),
        (JobScope::Unknown, _) | (_, JobScope::Unknown) => Ok(Sides::Unknown),
    }
}
