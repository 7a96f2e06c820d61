//! The bounds a query runs under, as engine settings.

use sightline_policies::Limits;

use crate::cost::BytesLeft;

/// Threads of one query. With more, one question takes the machine from the others; the engine's defaults would take all cores.
const MAX_THREADS: u64 = 4;
/// Caps on what the engine may parse. Ours has one level and some hundred nodes; this is the engine's own copy of our caps.
const MAX_AST_DEPTH: u64 = 100;
const MAX_AST_ELEMENTS: u64 = 2000;
const MAX_SUBQUERY_DEPTH: u64 = 4;
/// The engine's cap on the text it parses, bytes: parameters are not part of it.
const MAX_QUERY_SIZE: u64 = 65_536;

/// The bounds of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most rows read.
    pub max_rows_to_read: u64,
    /// The most bytes read.
    pub max_bytes_to_read: u64,
    /// The most memory, bytes.
    pub max_memory_usage: u64,
    /// The longest run, seconds.
    pub max_execution_seconds: u64,
    /// The most rows that come back.
    pub max_result_rows: u64,
    /// The most bytes that come back.
    pub max_result_bytes: u64,
    /// Whether a read that cannot use the sort key is refused.
    pub force_primary_key: bool,
}

impl Bounds {
    /// The bounds of these limits, with what is left of the day's bytes, for a text that ends after so many rows.
    pub(crate) fn of(limits: &Limits, bytes_left: Option<BytesLeft>, text_limit: u32, force_primary_key: bool) -> Self {
        Self {
            max_rows_to_read: limits.max_rows_read,
            max_bytes_to_read: bytes_left.map_or(limits.max_bytes_read, |left| left.bytes.min(limits.max_bytes_read)),
            max_memory_usage: limits.max_memory_bytes,
            max_execution_seconds: limits.max_seconds,
            max_result_rows: u64::from(text_limit),
            max_result_bytes: limits.max_result_bytes,
            force_primary_key,
        }
    }

    /// The settings, as the engine names them. All are sent with every query.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let Self {
            max_rows_to_read,
            max_bytes_to_read,
            max_memory_usage,
            max_execution_seconds,
            max_result_rows,
            max_result_bytes,
            force_primary_key,
        } = self;
        let throw = || "throw".to_owned();
        vec![
            ("max_rows_to_read", max_rows_to_read.to_string()),
            ("max_bytes_to_read", max_bytes_to_read.to_string()),
            // `break` gives back part of the rows and says nothing.
            ("read_overflow_mode", throw()),
            ("max_memory_usage", max_memory_usage.to_string()),
            ("max_execution_time", max_execution_seconds.to_string()),
            ("timeout_overflow_mode", throw()),
            ("max_result_rows", max_result_rows.to_string()),
            ("max_result_bytes", max_result_bytes.to_string()),
            ("result_overflow_mode", throw()),
            ("max_threads", MAX_THREADS.to_string()),
            ("max_ast_depth", MAX_AST_DEPTH.to_string()),
            ("max_ast_elements", MAX_AST_ELEMENTS.to_string()),
            ("max_subquery_depth", MAX_SUBQUERY_DEPTH.to_string()),
            ("max_query_size", MAX_QUERY_SIZE.to_string()),
            // An alias never stands for a column in a filter.
            ("prefer_column_name_to_alias", "1".to_owned()),
            // Conditions on values stay behind the scope, so that they see rows in scope only.
            ("optimize_move_to_prewhere", "0".to_owned()),
            // Nothing in the window is no row, not a row of zeros.
            ("empty_result_for_aggregation_by_empty_set", "1".to_owned()),
            ("force_primary_key", u8::from(*force_primary_key).to_string()),
            ("allow_introspection_functions", "0".to_owned()),
            ("allow_ddl", "0".to_owned()),
        ]
    }
}
