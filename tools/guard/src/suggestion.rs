//! What of a question that is too big would fit.

use jiff::SignedDuration;
use sightline_model::TimeRange;
use sightline_query::{Query, Shape};

use crate::amount::duration;
use crate::refusal::Refusal;

/// The shortest window that is worth suggesting: below it there is one sample or none.
const SHORTEST_WINDOW_MS: u64 = 1000;

/// A change that makes a question fit. Guaranteed by whoever makes one: something of it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Another window.
    pub window: Option<TimeRange>,
    /// Another step, milliseconds.
    pub step_ms: Option<u64>,
}

impl Suggestion {
    /// What makes the one query into the other: window and step, where they differ.
    pub fn between(asked: &Query, fitting: &Query) -> Self {
        let step = |query: &Query| match query.shape {
            Shape::Series { step_ms, .. } => Some(step_ms),
            Shape::Samples { .. }
            | Shape::Rank { .. }
            | Shape::Rows { .. }
            | Shape::Distinct { .. }
            | Shape::LabelKeys { .. } => None,
        };
        Self {
            window: (asked.range != fitting.range).then_some(fitting.range),
            step_ms: step(fitting).filter(|found| step(asked) != Some(*found)),
        }
    }
}

/// What of a question would fit, as far as it was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// Nobody looked.
    Untried,
    /// This was looked at, and fits.
    This(Suggestion),
    /// Several shorter windows were looked at, and none fits.
    Nothing,
}

impl Fits {
    /// What to ask, in words for people.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Untried => "ask about a shorter time range, or name a node or a job".to_owned(),
            Self::This(Suggestion { window: Some(window), step_ms }) => {
                let step = step_ms.map_or_else(String::new, |step| format!(" with a step of {}", duration(step)));
                format!("ask about {:.0} to {:.0}{step}, for example", window.from(), window.to())
            }
            Self::This(Suggestion { window: None, step_ms: Some(step) }) => {
                format!("use a step of {} or longer", duration(*step))
            }
            Self::This(Suggestion { window: None, step_ms: None }) | Self::Nothing => {
                "no shorter time range that was tried fits, so name a node or a job".to_owned()
            }
        }
    }

    /// The same for a model.
    pub(crate) fn for_model(&self) -> String {
        match self {
            Self::Untried => "use a shorter range or filter by node or job".to_owned(),
            Self::This(Suggestion { window, step_ms }) => {
                let window = window.map(|window| format!("{:.0}..{:.0}", window.from(), window.to()));
                let step = step_ms.map(|step| format!("step >= {}", duration(step)));
                let both: Vec<String> = window.into_iter().chain(step).collect();
                format!("use {}", both.join(" and "))
            }
            Self::Nothing => "filter by node or job".to_owned(),
        }
    }
}

impl Refusal {
    /// The query to look at next, in search of one that fits: the refused one with another window or step. None where neither
    /// helps, or the window is too short to be cut again.
    pub fn next_try(&self, refused: &Query) -> Option<Query> {
        match self {
            Self::RangeTooLong { fits, .. } | Self::TooManyPoints { fits, .. } => match fits {
                Fits::This(suggestion) => Some(changed(refused, suggestion)),
                Fits::Untried | Fits::Nothing => None,
            },
            Self::TooManyRows { estimated, limit, .. } | Self::TooManyBytes { estimated, limit, .. } => {
                shortened(refused, *estimated, *limit)
            }
            Self::OverBudget { estimated, left, .. } => shortened(refused, *estimated, *left),
            Self::Denied { .. }
            | Self::NoRows
            | Self::InTheFuture { .. }
            | Self::OutsideCalendar
            | Self::TooManySeries { .. }
            | Self::TooManyResultRows { .. }
            | Self::BudgetSpent { .. }
            | Self::TooManyAtOnce { .. }
            | Self::Unmapped { .. }
            | Self::Unverified { .. } => None,
        }
    }

    /// The same refusal with what was found to fit. Only those that are about the size of what is read can say it.
    #[must_use]
    pub fn with(self, found: Fits) -> Self {
        match self {
            Self::RangeTooLong { asked_ms, limit_ms, fits: _ } => {
                Self::RangeTooLong { asked_ms, limit_ms, fits: found }
            }
            Self::TooManyPoints { asked, limit, fits: _ } => Self::TooManyPoints { asked, limit, fits: found },
            Self::TooManyRows { estimated, limit, fits: _ } => Self::TooManyRows { estimated, limit, fits: found },
            Self::TooManyBytes { estimated, limit, fits: _ } => Self::TooManyBytes { estimated, limit, fits: found },
            Self::OverBudget { estimated, left, resets, fits: _ } => {
                Self::OverBudget { estimated, left, resets, fits: found }
            }
            other @ (Self::Denied { .. }
            | Self::NoRows
            | Self::InTheFuture { .. }
            | Self::OutsideCalendar
            | Self::TooManySeries { .. }
            | Self::TooManyResultRows { .. }
            | Self::BudgetSpent { .. }
            | Self::TooManyAtOnce { .. }
            | Self::Unmapped { .. }
            | Self::Unverified { .. }) => other,
        }
    }
}

fn changed(query: &Query, suggestion: &Suggestion) -> Query {
    let mut query = query.clone();
    if let Some(window) = suggestion.window {
        query.range = window;
    }
    let length = u64::try_from(query.range.millis()).unwrap_or(0);
    if let Shape::Series { step_ms, .. } = &mut query.shape {
        // A step is never longer than its window, also where only the window is cut.
        *step_ms = suggestion.step_ms.unwrap_or(*step_ms).min(length);
    }
    query
}

/// The query over the share of its window that should fit, the end kept; over half of it at most, so that a search ends.
fn shortened(query: &Query, estimated: u64, limit: u64) -> Option<Query> {
    let length = u64::try_from(query.range.millis()).unwrap_or(0);
    let share = u128::from(length).saturating_mul(u128::from(limit)) / u128::from(estimated.max(1));
    let exact = u64::try_from(share).unwrap_or(u64::MAX).min(length / 2);
    let readable = whole(exact);
    if readable < SHORTEST_WINDOW_MS {
        return None;
    }
    let to = query.range.to();
    let from = to.checked_sub(SignedDuration::from_millis(i64::try_from(readable).ok()?)).ok()?;
    let mut query = query.clone();
    query.range = TimeRange::new(from, to)?;
    // A step is never longer than its window.
    if let Shape::Series { step_ms, .. } = &mut query.shape {
        *step_ms = (*step_ms).min(readable);
    }
    Some(query)
}

/// Whole hours, minutes or seconds, whichever is the longest there are some of: nobody types milliseconds.
fn whole(milliseconds: u64) -> u64 {
    let unit = [3_600_000, 60_000, 1000].into_iter().find(|unit| milliseconds >= *unit).unwrap_or(1);
    milliseconds - milliseconds % unit
}
