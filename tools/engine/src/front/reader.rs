//! The second fence around the reader: what its statement may touch, decided from tokens.
//!
//! The guard emits the text and checks it; this holds if both are wrong. It rests on the measured behaviour of
//! libchdb 26.5.3 under `readonly=1` with `additional_table_filters`: filters hold against alias and lambda tricks, but
//! `merge(…)` reads past them, a scalar `file(…)` returns files, `dictHas(…)` looks into other tables, a parameter of type
//! `Identifier` names a table, and DESCRIBE of `url(…)` opens a connection. So the reader gets SELECT and EXPLAIN ESTIMATE only, no
//! table function, no function that reads more than its arguments, no system table, and no table without a filter.

use std::collections::BTreeSet;

use super::error::QueryError;
use super::lexer::{Lexer, Token, TokenKind};
use super::prewhere::check_prewhere;
use super::settings::TableFilters;

/// Table functions that make rows of their own and read nothing.
const HARMLESS_FUNCTIONS: [&str; 4] = ["numbers", "numbers_mt", "zeros", "zeros_mt"];

/// The first word of a type that a parameter may have. An `Identifier` would name a table or a column out of the text's sight.
const PARAMETER_TYPES: [&str; 12] = [
    "String",
    "Array",
    "Tuple",
    "Map",
    "Nullable",
    "DateTime",
    "DateTime64",
    "Date",
    "Float64",
    "Int64",
    "UInt64",
    "UInt32",
];

/// What the engine has that a reader's text could name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catalogue {
    /// Every table, as (database, table), outside the system databases.
    pub(super) tables: BTreeSet<(String, String)>,
    /// Every table function, in lower case.
    pub(super) table_functions: BTreeSet<String>,
    /// Every function that reads more than its arguments, in lower case.
    pub(super) impure_functions: BTreeSet<String>,
}

/// Refuses a reader's statement that could touch more than its filters cover.
pub(super) fn check_reader(
    text: &[u8],
    database: &str,
    filters: Option<&TableFilters>,
    catalogue: &Catalogue,
) -> Result<(), QueryError> {
    let tokens = Lexer::all(text).map_err(|error| QueryError::syntax(&error.to_string()))?;
    if is_verification(text, &tokens) {
        return Ok(());
    }
    let Some(filters) = filters else {
        return Err(QueryError::access(
            "a request of the reader needs `additional_table_filters` with the tenant filter of every table it reads",
        ));
    };
    check_kind(text, &tokens)?;
    check_plain(text, &tokens)?;
    if is_system(database) {
        return Err(QueryError::access("the reader may not work in a system database"));
    }
    check_parameters(text, &tokens)?;
    check_prewhere(text, &tokens)?;
    check_functions(text, &tokens, catalogue)?;
    check_relations(text, &tokens, database, filters, catalogue)
}

/// `SELECT count() FROM system.processes WHERE query_id = …`: whether a killed query is gone.
fn is_verification(text: &[u8], tokens: &[Token]) -> bool {
    const SHAPE: [&str; 11] =
        ["SELECT", "count", "(", ")", "FROM", "system", ".", "processes", "WHERE", "query_id", "="];
    if tokens.len() < SHAPE.len() {
        return false;
    }
    let (head, value) = tokens.split_at(SHAPE.len());
    let head_fits = head.iter().zip(SHAPE).all(|(token, word)| {
        token.kind != TokenKind::QuotedName && token.of(text).eq_ignore_ascii_case(word.as_bytes())
    });
    head_fits
        && match value {
            [literal] => literal.kind == TokenKind::Text,
            [open, name, colon, kind, close] => {
                open.is_byte(b'{')
                    && name.kind == TokenKind::Word
                    && colon.is_byte(b':')
                    && kind.is_word(text, "String")
                    && close.is_byte(b'}')
            }
            _ => false,
        }
}

fn check_kind(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    let fits = match tokens {
        [explain, estimate, select, ..] if explain.is_word(text, "EXPLAIN") => {
            estimate.is_word(text, "ESTIMATE") && select.is_word(text, "SELECT")
        }
        [first, ..] => first.is_word(text, "SELECT") || first.is_word(text, "WITH"),
        [] => false,
    };
    if fits { Ok(()) } else { Err(QueryError::readonly("the reader may send SELECT and EXPLAIN ESTIMATE SELECT only")) }
}

/// Only what both lexers surely cut alike.
fn check_plain(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    for token in tokens {
        let plain = match token.kind {
            TokenKind::Comment | TokenKind::Heredoc | TokenKind::Foreign => false,
            TokenKind::QuotedName => !token.of(text).contains(&b'\\'),
            TokenKind::Word | TokenKind::Text | TokenKind::Number | TokenKind::Punctuation(_) => true,
        };
        if !plain {
            let found = String::from_utf8_lossy(token.of(text));
            return Err(QueryError::access(&format!(
                "the reader's text may hold no comment, heredoc, escaped name or non-ASCII byte outside a string; found `{found}`"
            )));
        }
    }
    Ok(())
}

/// No table function is called, and no function that reads more than its arguments is named at all: a function may be handed to
/// another by its bare name. After a dot it is a column.
fn check_functions(text: &[u8], tokens: &[Token], catalogue: &Catalogue) -> Result<(), QueryError> {
    for (index, token) in tokens.iter().enumerate() {
        let Some(name) = name_of(text, token) else { continue };
        let lower = name.to_ascii_lowercase();
        let is_called = tokens.get(index + 1).is_some_and(|next| next.is_byte(b'('));
        let is_column = index.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|token| token.is_byte(b'.'));
        let is_table_function =
            is_called && catalogue.table_functions.contains(&lower) && !HARMLESS_FUNCTIONS.contains(&lower.as_str());
        let is_impure = (is_called || !is_column) && catalogue.impure_functions.contains(&lower);
        if is_table_function || is_impure {
            return Err(QueryError::readonly(&format!("the reader may not call `{name}`")));
        }
    }
    Ok(())
}

/// `{p0:String}`: a parameter is a value, never a name.
fn check_parameters(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    for window in tokens.windows(4) {
        let [open, name, colon, kind] = window else { continue };
        let is_parameter = open.is_byte(b'{') && name.kind == TokenKind::Word && colon.is_byte(b':');
        if is_parameter && !PARAMETER_TYPES.iter().any(|known| kind.of(text) == known.as_bytes()) {
            let found = String::from_utf8_lossy(kind.of(text)).into_owned();
            return Err(QueryError::access(&format!(
                "the reader's parameters are values; `{found}` is no type of one"
            )));
        }
    }
    Ok(())
}

/// Every name that could mean a table must be one that has a filter. A column or alias of a table's name is refused
/// too: better than to guess which of the two is meant.
fn check_relations(
    text: &[u8],
    tokens: &[Token],
    database: &str,
    filters: &TableFilters,
    catalogue: &Catalogue,
) -> Result<(), QueryError> {
    for (index, token) in tokens.iter().enumerate() {
        let Some(name) = name_of(text, token) else { continue };
        let dotted = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is_byte(b'.'));
        let after_dot = dotted(index.checked_sub(1));
        let before_dot = dotted(Some(index + 1));
        if before_dot && is_system(&name) {
            return Err(QueryError::access(&format!("the reader may not read `{name}`")));
        }
        let second = tokens.get(index + 2).and_then(|token| name_of(text, token));
        let table = match second.filter(|_| before_dot) {
            Some(table) => Some((name.clone(), table)),
            None if !before_dot && !after_dot => Some((database.to_owned(), name.clone())),
            None => None,
        };
        let Some((of_database, table)) = table.filter(|table| catalogue.tables.contains(table)) else { continue };
        let qualified = format!("{of_database}.{table}");
        if !filters.contains_key(&qualified) {
            return Err(QueryError::access(&format!(
                "table `{qualified}` has no filter in `additional_table_filters`"
            )));
        }
    }
    Ok(())
}

fn is_system(database: &str) -> bool {
    database.eq_ignore_ascii_case("system") || database.eq_ignore_ascii_case("information_schema")
}

/// The name that a token spells, if it is one.
pub(super) fn name_of(text: &[u8], token: &Token) -> Option<String> {
    let bytes = match token.kind {
        TokenKind::Word => token.of(text).to_vec(),
        TokenKind::QuotedName => super::lexer::unquote(token.of(text))?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod reader_tests;
