//! The second fence around the reader: what its statement may touch, decided from tokens.
//!
//! The guard emits the text and checks it; this holds if both are wrong. It rests on the measured behaviour of
//! libchdb 26.5.3 under `readonly=1` with `additional_table_filters`: filters hold against alias and lambda tricks, but
//! `merge(…)` reads past them, a scalar `file(…)` returns files, `dictHas(…)` looks into other tables, a parameter of type
//! `Identifier` names a table, and DESCRIBE of `url(…)` opens a connection. So the reader gets SELECT and EXPLAIN ESTIMATE only, no
//! table function, no function that reads more than its arguments, no system table, and no table without a filter.

use std::collections::BTreeSet;

use super::error::QueryError;
use super::functions::cannot_fail;
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

/// Deepest nesting of brackets. The guard's texts have at most 10 levels; 900 ended the engine's process under its default settings.
const MAX_DEPTH: usize = 64;

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
    check_depth(&tokens)?;
    if is_system(database) {
        return Err(QueryError::access("the reader may not work in a system database"));
    }
    check_parameters(text, &tokens)?;
    check_prewhere(text, &tokens)?;
    check_functions(text, &tokens, catalogue)?;
    if check_relations(text, &tokens, database, filters, catalogue)? { check_sure(text, &tokens) } else { Ok(()) }
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
            TokenKind::Number => is_number(token.of(text)),
            TokenKind::Word | TokenKind::Text | TokenKind::Punctuation(_) => true,
        };
        if !plain {
            let found = String::from_utf8_lossy(token.of(text));
            return Err(QueryError::access(&format!(
                "the reader's text may hold no comment, heredoc, escaped name, name that begins with a digit or non-ASCII byte outside a string; found `{found}`"
            )));
        }
    }
    Ok(())
}

/// Digits, with dots and an exponent at most. To the engine a word may begin with a digit: `1x` is a name there.
fn is_number(token: &[u8]) -> bool {
    let exponent = token.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = match exponent {
        Some(at) => (token.get(..at).unwrap_or_default(), token.get(at + 1..).unwrap_or_default()),
        None => (token, b"0".as_slice()),
    };
    mantissa.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && !exponent.is_empty()
        && exponent.iter().all(u8::is_ascii_digit)
}

/// The engine's parser recurses, and on an overflow its whole process ends with every question in it.
fn check_depth(tokens: &[Token]) -> Result<(), QueryError> {
    let mut depth = 0_usize;
    for token in tokens {
        match token.kind {
            TokenKind::Punctuation(b'(' | b'[' | b'{') => depth += 1,
            TokenKind::Punctuation(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(QueryError::access(&format!("the reader's text may nest brackets {MAX_DEPTH} deep at most")));
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

/// `{p0:String}`: a parameter is a value, never a name. An open brace may begin nothing else but a map of texts.
fn check_parameters(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    for (index, _) in tokens.iter().enumerate().filter(|(_, token)| token.is_byte(b'{')) {
        let is_value = match tokens.get(index + 1..).unwrap_or_default() {
            [first, ..] if first.kind == TokenKind::Text || first.is_byte(b'}') => true,
            [name, colon, kind, ..] if name.kind == TokenKind::Word && colon.is_byte(b':') => {
                PARAMETER_TYPES.iter().any(|known| kind.of(text) == known.as_bytes())
            }
            _ => false,
        };
        if !is_value {
            let rest = tokens.get(index..).unwrap_or_default();
            let end = rest.get(3).or(rest.last()).map_or(text.len(), |token| token.end);
            let found = rest.first().and_then(|token| text.get(token.start..end)).unwrap_or_default();
            let found = String::from_utf8_lossy(found);
            return Err(QueryError::access(&format!(
                "the reader's parameters are values, like `{{p0:String}}`; `{found}` is none"
            )));
        }
    }
    Ok(())
}

/// Every name that could mean a table must be one that has a filter; says whether there is any. A column or alias of a table's name
/// is refused too: better than to guess which of the two is meant.
fn check_relations(
    text: &[u8],
    tokens: &[Token],
    database: &str,
    filters: &TableFilters,
    catalogue: &Catalogue,
) -> Result<bool, QueryError> {
    let mut reads = false;
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
        reads = true;
    }
    Ok(reads)
}

/// Where a table is read, nothing is called that could fail for one of its rows.
fn check_sure(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    let mut in_parameter = false;
    for pair in tokens.windows(2) {
        let [token, next] = pair else { continue };
        in_parameter = token.is_byte(b'{') || (in_parameter && !token.is_byte(b'}'));
        let Some(name) = name_of(text, token).filter(|_| !in_parameter && next.is_byte(b'(')) else { continue };
        if !cannot_fail(&name, token.kind == TokenKind::QuotedName) {
            return Err(QueryError::readonly(&format!(
                "the reader may not call `{name}` where it reads a table: what fails for a row would tell of rows that the filters keep out"
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
