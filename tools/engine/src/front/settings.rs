//! The settings of a request: which ones a user may set, and the SET statements that carry them to a connection.

use std::collections::BTreeMap;

use super::credentials::EngineUser;
use super::error::QueryError;
use super::lexer::{Lexer, Token, TokenKind, string_literal, unquote};

/// Settings that only mean something to an HTTP server; the front knows them or does without.
const HTTP_ONLY: [&str; 9] = [
    "buffer_size",
    "wait_end_of_query",
    "enable_http_compression",
    "http_zlib_compression_level",
    "send_progress_in_http_headers",
    "cancel_http_readonly_queries_on_client_close",
    "http_write_exception_in_output_format",
    "add_http_cors_header",
    "client_protocol_version",
];

/// What the reader may set: bounds, the tenant filters, and how numbers are printed. Nothing that widens what is read.
const READER_MAY_SET: [&str; 35] = [
    "additional_table_filters",
    "allow_ddl",
    "allow_introspection_functions",
    "empty_result_for_aggregation_by_empty_set",
    "force_primary_key",
    "function_range_max_elements_in_block",
    "group_by_overflow_mode",
    "join_overflow_mode",
    "join_use_nulls",
    "log_queries",
    "max_ast_depth",
    "max_ast_elements",
    "max_block_size",
    "max_bytes_in_join",
    "max_bytes_to_read",
    "max_estimated_execution_time",
    "max_execution_time",
    "max_expanded_ast_elements",
    "max_memory_usage",
    "max_query_size",
    "max_result_bytes",
    "max_result_rows",
    "max_rows_in_join",
    "max_rows_to_group_by",
    "max_rows_to_read",
    "max_subquery_depth",
    "max_threads",
    "optimize_move_to_prewhere",
    "output_format_json_quote_64bit_integers",
    "output_format_json_quote_denormals",
    "prefer_column_name_to_alias",
    "priority",
    "read_overflow_mode",
    "result_overflow_mode",
    "timeout_overflow_mode",
];

/// Bounds of a reader that sets none: they stop an accident, the guard's own are tighter.
const READER_DEFAULTS: [(&str, &str); 2] = [("max_execution_time", "300"), ("max_memory_usage", "4000000000")];

/// What the reader's connection always has, so that a condition of the text is computed after the tenant filters and sees no row that
/// they keep out: one that fails for a foreign row would tell of it. A join's runtime filter computes the join's keys in the
/// same step as the tenant filters. And one label of a map stays an expression over the map, since a column of its own is none of what a
/// table keeps by steps (measured: no slower where nothing is kept).
const READER_ALWAYS: [(&str, &str); 4] = [
    ("optimize_move_to_prewhere", "0"),
    ("query_plan_merge_filters", "0"),
    ("enable_join_runtime_filters", "0"),
    ("optimize_functions_to_subcolumns", "0"),
];

/// Tenant filters: `database.table` to the condition that its rows must meet.
pub(super) type TableFilters = BTreeMap<String, String>;

/// The settings of one request, checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RequestSettings {
    plain: Vec<(String, String)>,
    /// The tenant filters; the reader must have them.
    pub(super) filters: Option<TableFilters>,
}

impl RequestSettings {
    /// Takes in one setting from the URL.
    pub(super) fn push(&mut self, user: EngineUser, name: &str, value: &str) -> Result<(), QueryError> {
        if HTTP_ONLY.contains(&name) {
            return Ok(());
        }
        let well_formed = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !well_formed {
            return Err(QueryError::bad_argument(&format!("`{name}` is no name of a setting")));
        }
        match name {
            "session_id" | "session_timeout" | "session_check" | "role" | "log_comment" | "implicit_select" => {
                return Err(QueryError::bad_argument(&format!("`{name}` is not served by the embedded engine")));
            }
            "additional_table_filters" => {
                self.filters = Some(parse_filters(value)?);
                return Ok(());
            }
            _ => {}
        }
        if user == EngineUser::Reader {
            match name {
                "readonly" if value == "1" => return Ok(()),
                "readonly" => return Err(QueryError::readonly("the reader is always at `readonly=1`")),
                _ if !READER_MAY_SET.contains(&name) => {
                    return Err(QueryError::readonly(&format!("the reader may not set `{name}`")));
                }
                _ if name.ends_with("_overflow_mode") && value != "throw" => {
                    return Err(QueryError::readonly(&format!(
                        "`{name}` must be `throw`: a cut result is not an answer"
                    )));
                }
                "allow_introspection_functions" | "allow_ddl" | "optimize_move_to_prewhere" if value != "0" => {
                    return Err(QueryError::readonly(&format!("`{name}` must be `0`")));
                }
                _ => {}
            }
        }
        self.plain.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Sets a bound unless the request has set it itself.
    pub(super) fn default_to(&mut self, name: &str, value: &str) {
        if !self.plain.iter().any(|(set, _)| set == name) {
            self.plain.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Lowers a number that the request has set, or sets it; what is no number stays as it is, for the engine to refuse.
    pub(super) fn at_most(&mut self, name: &str, most: usize) {
        match self.plain.iter_mut().rev().find(|(set, _)| set == name) {
            Some((_, value)) => {
                if value.parse::<usize>().is_ok_and(|set| set == 0 || set > most) {
                    *value = most.to_string();
                }
            }
            None => self.plain.push((name.to_owned(), most.to_string())),
        }
    }

    /// The SET statements for a fresh connection, in order; `readonly` comes last and alone.
    pub(super) fn statements(&self, user: EngineUser, query_id: &str, readonly: Option<&str>) -> Vec<Vec<u8>> {
        let own = [("allow_introspection_functions", "0"), ("implicit_select", "0"), ("log_comment", query_id)];
        let (defaults, always) = match user {
            EngineUser::Reader => (READER_DEFAULTS.as_slice(), READER_ALWAYS.as_slice()),
            EngineUser::Writer => (&[] as &[_], &[] as &[_]),
        };
        let given = self.plain.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = own.into_iter().chain(defaults.iter().copied()).chain(given).chain(always.iter().copied());
        let mut set = b"SET ".to_vec();
        for (index, (name, value)) in pairs.enumerate() {
            if index > 0 {
                set.extend_from_slice(b", ");
            }
            set.extend_from_slice(name.as_bytes());
            set.extend_from_slice(b" = ");
            set.extend_from_slice(&string_literal(value.as_bytes()));
        }
        let mut statements = vec![set];
        if let Some(filters) = &self.filters {
            statements.push(filters_statement(filters));
        }
        if let Some(level) = readonly {
            statements.push([b"SET readonly = ", string_literal(level.as_bytes()).as_slice()].concat());
        }
        statements
    }
}

fn filters_statement(filters: &TableFilters) -> Vec<u8> {
    let entries: Vec<Vec<u8>> = filters
        .iter()
        .map(|(table, condition)| {
            [string_literal(table.as_bytes()).as_slice(), b": ", &string_literal(condition.as_bytes())].concat()
        })
        .collect();
    [b"SET additional_table_filters = {", entries.join(b", ".as_slice()).as_slice(), b"}"].concat()
}

/// Reads `{'db.table': 'condition', …}`. It is printed anew for the engine, so that both sides mean the same map.
fn parse_filters(value: &str) -> Result<TableFilters, QueryError> {
    let malformed =
        || QueryError::bad_argument("`additional_table_filters` must read `{'database.table': 'condition', …}`");
    let text = value.as_bytes();
    let tokens = Lexer::all(text).map_err(|_| malformed())?;
    let [open, entries @ .., close] = tokens.as_slice() else { return Err(malformed()) };
    if !open.is_byte(b'{') || !close.is_byte(b'}') {
        return Err(malformed());
    }
    let string = |token: &Token| {
        let bytes = if token.kind == TokenKind::Text { unquote(token.of(text)) } else { None };
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(malformed)
    };
    let mut filters = TableFilters::new();
    let mut rest = entries;
    while let [table, colon, condition, after @ ..] = rest {
        let (table, condition) = (string(table)?, string(condition)?);
        if !colon.is_byte(b':') || condition.trim().is_empty() || filters.insert(table, condition).is_some() {
            return Err(malformed());
        }
        rest = match after {
            [] => return Ok(filters),
            [comma, after @ ..] if comma.is_byte(b',') && !after.is_empty() => after,
            _ => return Err(malformed()),
        };
    }
    Err(malformed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EngineUser, RequestSettings, TableFilters, filters_statement, parse_filters};

    fn refusal(name: &str, value: &str) -> String {
        RequestSettings::default().push(EngineUser::Reader, name, value).unwrap_err().to_string()
    }

    #[test]
    fn the_reader_sets_bounds_and_nothing_else() {
        assert_eq!(
            refusal("max_insert_threads", "4"),
            "Code: 164. DB::Exception: the reader may not set `max_insert_threads`. (READONLY)"
        );
        assert!(refusal("readonly", "0").contains("readonly=1"));
        assert!(refusal("read_overflow_mode", "break").contains("must be `throw`"));
        assert!(refusal("max_threads = 1, readonly", "0").contains("no name of a setting"));
        assert!(refusal("session_id", "x").contains("not served"));
    }

    #[test]
    fn readonly_is_the_last_statement() {
        let mut settings = RequestSettings::default();
        settings.push(EngineUser::Reader, "max_threads", "2' , readonly = '0").unwrap();
        settings.push(EngineUser::Reader, "additional_table_filters", r"{'a.b': 'tenant IN (\'x\')'}").unwrap();
        let statements = settings.statements(EngineUser::Reader, "q1", Some("1"));
        let statements: Vec<String> = statements.into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
        assert_eq!(
            statements,
            [
                r"SET allow_introspection_functions = '0', implicit_select = '0', log_comment = 'q1', max_execution_time = '300', max_memory_usage = '4000000000', max_threads = '2\' , readonly = \'0', optimize_move_to_prewhere = '0', query_plan_merge_filters = '0', enable_join_runtime_filters = '0', optimize_functions_to_subcolumns = '0'",
                r"SET additional_table_filters = {'a.b': 'tenant IN (\'x\')'}",
                "SET readonly = '1'",
            ]
        );
    }

    #[test]
    fn a_number_is_lowered_and_never_lifted() {
        let threads = |set: Option<&str>| {
            let mut settings = RequestSettings::default();
            if let Some(value) = set {
                settings.push(EngineUser::Reader, "max_threads", value).unwrap();
            }
            settings.at_most("max_threads", 2);
            settings.plain
        };
        for (set, now) in [(None, "2"), (Some("0"), "2"), (Some("1"), "1"), (Some("4"), "2"), (Some("many"), "many")] {
            assert_eq!(threads(set), [("max_threads".to_owned(), now.to_owned())], "{set:?}");
        }
    }

    #[test]
    fn filters_that_are_no_map_are_refused() {
        for text in
            ["", "{}", "{'a': ''}", "{'a': 'x',}", "{'a': 'x', 'a': 'y'}", "{a: 'x'}", "{'a' = 'x'}", "{'a': 'x'} x"]
        {
            assert!(parse_filters(text).is_err(), "{text}");
        }
        let filters = parse_filters("{'a.b':'x = ''1''','c.d':'1'}").unwrap();
        let expected = [("a.b", "x = '1'"), ("c.d", "1")].map(|(table, filter)| (table.to_owned(), filter.to_owned()));
        assert_eq!(filters, TableFilters::from(expected));
    }

    proptest! {
        #[test]
        fn filters_survive_the_way_to_the_engine(table in "[a-z.]{1,12}", condition in "x.{0,40}") {
            let filters = TableFilters::from([(table, condition)]);
            let statement = String::from_utf8(filters_statement(&filters)).unwrap();
            let map = statement.strip_prefix("SET additional_table_filters = ").unwrap();
            prop_assert_eq!(parse_filters(map), Ok(filters));
        }
    }
}
