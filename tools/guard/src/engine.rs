//! The port to the engine, and what can go wrong behind it.

use sightline_model::{BoxFuture, QueryId, ResultSet};

use crate::amount;
use crate::bounds::Bounds;
use crate::cost::Estimate;
use crate::executable::ExecutableQuery;

/// Runs queries that the guard admitted, and nothing else.
pub trait Engine: Send + Sync {
    /// Runs it.
    fn run<'a>(&'a self, query: &'a ExecutableQuery) -> BoxFuture<'a, Result<ResultSet, EngineError>>;

    /// What it would read, told from the engine's index without reading rows.
    fn estimate<'a>(&'a self, query: &'a ExecutableQuery) -> BoxFuture<'a, Result<Estimate, EngineError>>;

    /// Stops the query of that id, and comes back once it is gone.
    fn cancel<'a>(&'a self, id: &'a QueryId) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Whether it answers.
    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>>;
}

/// Why the engine gave no result. Worded for people; never carries text of the engine, which quotes rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// No answer from it.
    #[error("the engine cannot be reached; try again in a moment, and run `sightline doctor` if it stays so")]
    Unreachable,
    /// It took too long.
    #[error("the query was stopped after {seconds} s, its time limit; ask about a shorter time range or fewer nodes")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// It would have read too many rows.
    #[error(
        "the query needs more than {} rows, the most that may be read; ask about a shorter time range or fewer nodes", amount::count(*limit)
    )]
    TooManyRows {
        /// The limit.
        limit: u64,
    },
    /// It would have read too many bytes.
    #[error(
        "the query needs to read more than {}, the most that may be read; ask about a shorter time range or fewer nodes", amount::bytes(*limit)
    )]
    TooManyBytes {
        /// The limit.
        limit: u64,
    },
    /// It needed too much memory.
    #[error(
        "the query needs more than {} of memory, its limit; group by fewer dimensions or ask about a shorter time range", amount::bytes(*limit)
    )]
    OutOfMemory {
        /// The limit.
        limit: u64,
    },
    /// Its result was too big.
    #[error(
        "the result is larger than {} rows or {}, its limit; ask for a longer step, fewer groups or a smaller limit", amount::count(*rows), amount::bytes(*bytes)
    )]
    ResultTooLarge {
        /// The limit in rows.
        rows: u64,
        /// The limit in bytes.
        bytes: u64,
    },
    /// Too many queries at once.
    #[error("the engine has too many queries at once; try again in a moment")]
    Busy,
    /// Someone stopped it.
    #[error("the query was cancelled")]
    Cancelled,
    /// The disk is full.
    #[error("the engine's disk is full; free space under the data folder or let old data expire")]
    DiskFull,
    /// The mapped table or a column of it is not there.
    #[error("a mapped table or column does not exist in the engine; run `sightline doctor` to see which")]
    NotMapped,
    /// The engine's user may not do it.
    #[error("the engine's user lacks a right this query needs; run `sightline doctor` to see which")]
    NotGranted,
    /// The read could not use the sort key.
    #[error("the query would scan the whole table; name a metric or a shorter time range")]
    FullScan,
    /// It said no for another reason.
    #[error(
        "the engine refused the query (code {code}); this is a fault of Sightline or of its mapping, report the code and the query id"
    )]
    Rejected {
        /// ClickHouse's error code.
        code: i32,
    },
    /// Its answer could not be read.
    #[error(
        "the engine's answer could not be read; check that the engine's version is a supported one with `sightline doctor`"
    )]
    Malformed,
}

impl EngineError {
    /// The error for one of ClickHouse's codes, given the bounds the query ran under.
    pub fn from_code(code: i32, bounds: &Bounds) -> Self {
        match code {
            // TOO_MANY_ROWS; TOO_MANY_ROWS_OR_BYTES is for results.
            158 => Self::TooManyRows { limit: bounds.max_rows_to_read },
            // TOO_MANY_BYTES
            307 => Self::TooManyBytes { limit: bounds.max_bytes_to_read },
            // TIMEOUT_EXCEEDED, TOO_SLOW
            159 | 160 => Self::TimedOut { seconds: bounds.max_execution_seconds },
            // MEMORY_LIMIT_EXCEEDED, CANNOT_ALLOCATE_MEMORY
            241 | 173 => Self::OutOfMemory { limit: bounds.max_memory_usage },
            // TOO_MANY_ROWS_OR_BYTES, LIMIT_EXCEEDED
            396 | 290 => Self::ResultTooLarge { rows: bounds.max_result_rows, bytes: bounds.max_result_bytes },
            // TOO_MANY_SIMULTANEOUS_QUERIES, QUOTA_EXCEEDED, SERVER_OVERLOADED
            202 | 201 | 745 => Self::Busy,
            // QUERY_WAS_CANCELLED, QUERY_WAS_CANCELLED_BY_CLIENT
            394 | 735 => Self::Cancelled,
            // NOT_ENOUGH_SPACE
            243 => Self::DiskFull,
            // UNKNOWN_TABLE, UNKNOWN_DATABASE, UNKNOWN_IDENTIFIER, NOT_FOUND_COLUMN_IN_BLOCK, NO_SUCH_COLUMN_IN_TABLE
            60 | 81 | 47 | 10 | 16 => Self::NotMapped,
            // ACCESS_DENIED, AUTHENTICATION_FAILED, READONLY
            497 | 516 | 164 => Self::NotGranted,
            // INDEX_NOT_USED
            277 => Self::FullScan,
            // NETWORK_ERROR, SOCKET_TIMEOUT, ALL_CONNECTION_TRIES_FAILED
            210 | 209 | 279 => Self::Unreachable,
            other => Self::Rejected { code: other },
        }
    }

    /// The same for a model: what happened and what would help, nothing else.
    pub fn for_model(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } | Self::TooManyRows { .. } | Self::TooManyBytes { .. } => {
                "reads too much; use a shorter range or filter by node or job"
            }
            Self::OutOfMemory { .. } => "needs too much memory; use fewer dimensions in group_by or a shorter range",
            Self::ResultTooLarge { .. } => "result too large; use a longer step, fewer groups or a smaller limit",
            Self::FullScan => "reads everything; name a metric",
            Self::Unreachable
            | Self::Busy
            | Self::Cancelled
            | Self::DiskFull
            | Self::NotMapped
            | Self::NotGranted
            | Self::Rejected { .. }
            | Self::Malformed => "internal fault; do not retry",
        }
    }

    /// Whether rows may have been read before it: what a refusal before the first row never did.
    pub fn may_have_read(&self) -> bool {
        match self {
            Self::Busy | Self::NotMapped | Self::NotGranted | Self::FullScan => false,
            Self::Unreachable
            | Self::TimedOut { .. }
            | Self::TooManyRows { .. }
            | Self::TooManyBytes { .. }
            | Self::OutOfMemory { .. }
            | Self::ResultTooLarge { .. }
            | Self::Cancelled
            | Self::DiskFull
            | Self::Rejected { .. }
            | Self::Malformed => true,
        }
    }

    /// Whether the same query may well succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable | Self::Busy => true,
            Self::TimedOut { .. }
            | Self::TooManyRows { .. }
            | Self::TooManyBytes { .. }
            | Self::OutOfMemory { .. }
            | Self::ResultTooLarge { .. }
            | Self::Cancelled
            | Self::DiskFull
            | Self::NotMapped
            | Self::NotGranted
            | Self::FullScan
            | Self::Rejected { .. }
            | Self::Malformed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EngineError;
    use crate::bounds::Bounds;

    #[test]
    fn a_code_becomes_our_words_with_the_bound_that_was_hit() {
        let bounds = Bounds {
            max_rows_to_read: 1000,
            max_bytes_to_read: 2048,
            max_memory_usage: 3000,
            max_execution_seconds: 10,
            max_result_rows: 50,
            max_result_bytes: 4000,
            force_primary_key: true,
        };
        let said = |code| EngineError::from_code(code, &bounds).to_string();
        let narrow = "ask about a shorter time range or fewer nodes";
        assert_eq!(said(158), format!("the query needs more than 1,000 rows, the most that may be read; {narrow}"));
        assert_eq!(
            said(307),
            format!("the query needs to read more than 2.0 KiB, the most that may be read; {narrow}")
        );
        assert_eq!(said(159), format!("the query was stopped after 10 s, its time limit; {narrow}"));
        assert_eq!(EngineError::from_code(-1, &bounds), EngineError::Rejected { code: -1 });
        assert!(EngineError::from_code(202, &bounds).is_transient());
        assert!(!EngineError::from_code(158, &bounds).is_transient());
    }
}
