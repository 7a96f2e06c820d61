//! Why a query may not run, in words for people and, shorter, for a model.

use jiff::Timestamp;
use sightline_model::Dataset;

use crate::amount::{at_least, at_most, bytes, count, duration};
use crate::check::Fault;
use crate::suggestion::Fits;

/// Why a query may not run: which bound, by how much, and what would fit.
///
/// What is said of an estimate or of what is left of a budget has two digits: the exact number counts rows of others that lie beside
/// the asker's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The rules said no.
    Denied {
        /// The decision's reasons.
        reasons: Vec<String>,
    },
    /// The rules let no row through.
    NoRows,
    /// The window begins after now.
    InTheFuture {
        /// Its start.
        from: Timestamp,
        /// Now.
        now: Timestamp,
    },
    /// The window reaches beyond the times the engine can hold.
    OutsideCalendar,
    /// The window is too long.
    RangeTooLong {
        /// Its length, milliseconds.
        asked_ms: u64,
        /// The limit, milliseconds.
        limit_ms: u64,
        /// What would fit.
        fits: Fits,
    },
    /// A series would have too many points.
    TooManyPoints {
        /// How many.
        asked: u64,
        /// The limit.
        limit: u64,
        /// What would fit.
        fits: Fits,
    },
    /// There would be, or there are, too many series.
    TooManySeries {
        /// How many.
        asked: u64,
        /// The limit.
        limit: u64,
    },
    /// Too many rows were asked for.
    TooManyResultRows {
        /// How many.
        asked: u64,
        /// The limit.
        limit: u64,
    },
    /// It would read too many rows.
    TooManyRows {
        /// The estimate.
        estimated: u64,
        /// The limit.
        limit: u64,
        /// What would fit.
        fits: Fits,
    },
    /// It would read too many bytes.
    TooManyBytes {
        /// The estimate.
        estimated: u64,
        /// The limit.
        limit: u64,
        /// What would fit.
        fits: Fits,
    },
    /// It would read more than is left of the day's bytes.
    OverBudget {
        /// The estimate.
        estimated: u64,
        /// What is left.
        left: u64,
        /// When the next day's budget begins.
        resets: Timestamp,
        /// What would fit.
        fits: Fits,
    },
    /// Nothing is left of the day's bytes.
    BudgetSpent {
        /// The whole of it.
        limit: u64,
        /// When the next day's budget begins.
        resets: Timestamp,
    },
    /// The asker has as many queries running as it may, and too few ended in time.
    TooManyAtOnce {
        /// The limit.
        limit: u64,
        /// How long it waited for its turn, seconds.
        waited_s: u64,
    },
    /// The dataset's table lacks something that was asked for.
    Unmapped {
        /// The dataset.
        dataset: Dataset,
        /// What it lacks.
        what: String,
    },
    /// The text was not found to be what was meant. A fault of Sightline, never of the asker.
    Unverified {
        /// What the check found.
        faults: Vec<Fault>,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied { reasons } => write!(f, "{}", reasons.join("; ")),
            Self::NoRows => f.write_str("no tenant's rows are open to you; ask an admin for membership of a tenant"),
            Self::InTheFuture { from, now } => {
                write!(f, "the time range begins at {from:.0}, after now ({now:.0}); ask about a time that has passed")
            }
            Self::OutsideCalendar => {
                f.write_str("the time range reaches outside the years 1970 to 2260; ask about a time within them")
            }
            Self::RangeTooLong { asked_ms, limit_ms, fits } => write!(
                f,
                "the time range is {}, which is {} over your limit of {}; {}",
                duration(*asked_ms),
                duration(asked_ms.saturating_sub(*limit_ms)),
                duration(*limit_ms),
                fits.words()
            ),
            Self::TooManyPoints { asked, limit, fits } => write!(
                f,
                "each series would have {} points, {} over your limit of {}; {}",
                count(*asked),
                count(asked.saturating_sub(*limit)),
                count(*limit),
                fits.words()
            ),
            Self::TooManySeries { asked, limit } => write!(
                f,
                "there are {} series, {} over your limit of {}; group by fewer dimensions, name fewer nodes, or rank them instead",
                count(*asked),
                count(asked.saturating_sub(*limit)),
                count(*limit)
            ),
            Self::TooManyResultRows { asked, limit } => write!(
                f,
                "{} rows were asked for, {} over your limit of {}; ask for {} or fewer",
                count(*asked),
                count(asked.saturating_sub(*limit)),
                count(*limit),
                count(*limit)
            ),
            Self::TooManyRows { estimated, limit, fits } => write!(
                f,
                "it would read about {} rows, {} over your limit of {}; {}",
                count(at_most(*estimated)),
                count(at_most(*estimated).saturating_sub(*limit)),
                count(*limit),
                fits.words()
            ),
            Self::TooManyBytes { estimated, limit, fits } => write!(
                f,
                "it would read about {}, {} over your limit of {}; {}",
                bytes(at_most(*estimated)),
                bytes(at_most(*estimated).saturating_sub(*limit)),
                bytes(*limit),
                fits.words()
            ),
            Self::OverBudget { estimated, left, resets, fits } => write!(
                f,
                "it would read about {}, {} over the {} left of today's budget, which begins anew at {resets:.0}; {}",
                bytes(at_most(*estimated)),
                bytes(at_most(*estimated).saturating_sub(at_least(*left))),
                bytes(at_least(*left)),
                fits.words()
            ),
            Self::BudgetSpent { limit, resets } => write!(
                f,
                "today's budget of {} read is spent; ask again after {resets:.0}, or ask an admin for more",
                bytes(*limit)
            ),
            Self::TooManyAtOnce { limit, waited_s } => write!(
                f,
                "{} queries of yours run at once, your limit, and the turn of this one did not come within {waited_s} s; wait for one of your other questions to end, or cancel it",
                count(*limit)
            ),
            Self::Unmapped { dataset, what } => {
                write!(f, "the table of {dataset} has no `{what}`; leave it out, or have an admin map it")
            }
            Self::Unverified { faults } => {
                f.write_str("the query did not pass the second check and was not run; this is a fault of Sightline, report it with the question's id")?;
                for fault in faults {
                    write!(f, "; {fault}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The same for a model: the bound and what fits, nothing else.
    pub fn for_model(&self) -> String {
        match self {
            Self::Denied { .. } | Self::NoRows => "not allowed for this asker; do not retry".to_owned(),
            Self::InTheFuture { now, .. } => format!("range is in the future; now is {now:.0}"),
            Self::OutsideCalendar => "range outside 1970..2260".to_owned(),
            Self::RangeTooLong { fits, .. } => format!("range too long; {}", fits.for_model()),
            Self::TooManyPoints { fits, .. } => format!("too many points; {}", fits.for_model()),
            Self::TooManySeries { limit, .. } => {
                format!("over {limit} series; use fewer dimensions in group_by, a filter, or a ranking")
            }
            Self::TooManyResultRows { limit, .. } => format!("limit too high; use limit <= {limit}"),
            Self::TooManyRows { fits, .. } | Self::TooManyBytes { fits, .. } | Self::OverBudget { fits, .. } => {
                format!("reads too much; {}", fits.for_model())
            }
            Self::BudgetSpent { .. } => "today's read budget is spent; do not retry".to_owned(),
            Self::TooManyAtOnce { .. } => "too many queries at once; make fewer calls".to_owned(),
            Self::Unmapped { dataset, what } => format!("{dataset} has no `{what}`; leave it out"),
            Self::Unverified { .. } => "internal fault; do not retry".to_owned(),
        }
    }
}
