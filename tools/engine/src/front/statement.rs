//! What a request asks for: one statement, of which kind, and where the data of an INSERT begin.

use super::error::QueryError;
use super::lexer::{Lexer, Token, TokenKind};

/// One statement, taken apart as far as the front needs it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// A query with rows as its result, which may be streamed.
    Select {
        /// The name in its FORMAT clause.
        format: Option<String>,
        /// Whether its result can be sent block by block.
        streamable: bool,
    },
    /// An INSERT whose data come with the request.
    Insert(Insert),
    /// KILL QUERY for one query id.
    Kill(Kill),
    /// Anything else: DDL, SHOW, DESCRIBE, EXPLAIN, INSERT … SELECT.
    Other {
        /// The name in its FORMAT clause.
        format: Option<String>,
    },
}

/// `INSERT INTO t (…) ⟨head⟩ FROM INFILE … ⟨tail: SETTINGS … FORMAT …⟩` and the data after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Insert {
    /// The text up to where the source of the data is named.
    pub(super) head: Vec<u8>,
    /// The settings and the format.
    pub(super) tail: Vec<u8>,
    /// The data that followed in the same text.
    pub(super) data: Vec<u8>,
}

/// `KILL QUERY WHERE query_id = …`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kill {
    /// Which query.
    pub(super) id: KillId,
    /// Whether to answer only when the query is gone (SYNC).
    pub(super) wait: bool,
}

/// How a KILL names its query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KillId {
    /// In the text.
    Literal(Vec<u8>),
    /// As a bound parameter of this name.
    Parameter(String),
}

const MORE_THAN_ONE: &str = "more than one statement in a request, or it cannot be told; send them one by one";
const KILL_FORM: &str = "KILL is served in the form `KILL QUERY WHERE query_id = '…' [ASYNC|SYNC]`";

/// Takes a request's text apart.
pub(super) fn parse_statement(text: &[u8]) -> Result<Statement, QueryError> {
    let mut lexer = Lexer::new(text);
    let first = loop {
        match lexer.next_token().map_err(syntax)? {
            None => return Err(QueryError::syntax("the query is empty")),
            Some(token) if token.kind == TokenKind::Comment => {}
            Some(token) => break token,
        }
    };
    if first.is_word(text, "INSERT")
        && let Some(insert) = insert_with_data(text, &mut lexer)?
    {
        return Ok(Statement::Insert(insert));
    }
    let all = Lexer::all(text).map_err(syntax)?;
    refuse_second_statement(text, &all)?;
    let tokens: Vec<Token> =
        all.into_iter().filter(|token| token.kind != TokenKind::Comment && !token.is_byte(b';')).collect();
    if has_outfile(text, &tokens) {
        return Err(QueryError::access("INTO OUTFILE and FROM INFILE are not served; send data in the request's body"));
    }
    if first.is_word(text, "KILL") {
        return parse_kill(text, &tokens).map(Statement::Kill);
    }
    let format = format_clause(text, &tokens);
    let selects = first.is_word(text, "SELECT") || first.is_word(text, "WITH") || first.is_byte(b'(');
    if !selects || tokens.iter().any(|token| token.is_word(text, "INSERT")) {
        return Ok(Statement::Other { format });
    }
    // The block that carries totals or extremes has no place in a stream of blocks.
    let streamable = !tokens.iter().any(|token| token.is_word(text, "TOTALS") || token.is_word(text, "EXTREMES"));
    Ok(Statement::Select { format, streamable })
}

/// Puts the query ids of the front in the place of the engine's own wherever `system.processes` is read.
///
/// libchdb makes a query id of its own for every statement and takes none from outside, so the id that a client sent
/// travels as `log_comment`.
pub(super) fn with_client_query_ids(text: &[u8]) -> Vec<u8> {
    const PROCESSES: &[u8] = b"(SELECT * REPLACE (if(Settings['log_comment'] = '', query_id, Settings['log_comment']) AS query_id) FROM system.processes)";
    let Ok(tokens) = Lexer::all(text) else { return text.to_vec() };
    let mut rewritten = Vec::with_capacity(text.len());
    let mut copied = 0;
    for window in tokens.windows(4) {
        let [before, database, dot, table] = window else { continue };
        let reads = before.is_word(text, "FROM") || before.is_word(text, "JOIN");
        if reads && database.is_word(text, "system") && dot.is_byte(b'.') && table.is_word(text, "processes") {
            rewritten.extend_from_slice(text.get(copied..database.start).unwrap_or_default());
            rewritten.extend_from_slice(PROCESSES);
            copied = table.end;
        }
    }
    rewritten.extend_from_slice(text.get(copied..).unwrap_or_default());
    rewritten
}

fn syntax(error: super::lexer::Unterminated) -> QueryError {
    QueryError::syntax(&error.to_string())
}

/// A semicolon is fine at the end, or inside a plain string or name. Where comments, heredocs or foreign quotes stand in
/// the same text, the engine might see it elsewhere than we do, so then it is refused too.
fn refuse_second_statement(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    let end = text.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b';').map_or(0, |at| at + 1);
    let body = text.get(..end).unwrap_or_default();
    if !body.contains(&b';') {
        return Ok(());
    }
    let plain = tokens.iter().all(|token| match token.kind {
        TokenKind::Comment | TokenKind::Heredoc | TokenKind::Foreign => false,
        TokenKind::Word | TokenKind::QuotedName | TokenKind::Text | TokenKind::Number | TokenKind::Punctuation(_) => {
            true
        }
    });
    let separates = tokens.iter().any(|token| token.is_byte(b';') && token.start < end);
    if plain && !separates { Ok(()) } else { Err(QueryError::syntax(MORE_THAN_ONE)) }
}

fn has_outfile(text: &[u8], tokens: &[Token]) -> bool {
    tokens.windows(2).any(|pair| match pair {
        [into, file] => {
            (into.is_word(text, "INTO") && file.is_word(text, "OUTFILE"))
                || (into.is_word(text, "FROM") && file.is_word(text, "INFILE"))
        }
        _ => false,
    })
}

fn format_clause(text: &[u8], tokens: &[Token]) -> Option<String> {
    let mut depth = 0_i32;
    for pair in tokens.windows(2) {
        let [keyword, name] = pair else { continue };
        depth += depth_change(keyword);
        if depth == 0 && keyword.is_word(text, "FORMAT") && name.kind == TokenKind::Word {
            return Some(String::from_utf8_lossy(name.of(text)).into_owned());
        }
    }
    None
}

fn depth_change(token: &Token) -> i32 {
    match token.kind {
        TokenKind::Punctuation(b'(' | b'[' | b'{') => 1,
        TokenKind::Punctuation(b')' | b']' | b'}') => -1,
        _ => 0,
    }
}

/// Reads on after INSERT up to FORMAT or VALUES. `None` for an INSERT … SELECT.
fn insert_with_data(text: &[u8], lexer: &mut Lexer<'_>) -> Result<Option<Insert>, QueryError> {
    let mut depth = 0;
    let mut settings_start = None;
    while let Some(token) = lexer.next_token().map_err(syntax)? {
        depth += depth_change(&token);
        if depth != 0 || token.kind != TokenKind::Word {
            if token.is_byte(b';') || token.kind == TokenKind::Foreign {
                return Err(QueryError::syntax(MORE_THAN_ONE));
            }
            continue;
        }
        let head_end = settings_start.unwrap_or(token.start);
        let upper = token.of(text).to_ascii_uppercase();
        match upper.as_slice() {
            b"SELECT" | b"WITH" => return Ok(None),
            b"INFILE" => {
                return Err(QueryError::access("FROM INFILE is not served; send the data in the request's body"));
            }
            b"SETTINGS" => settings_start = Some(token.start),
            b"VALUES" => return Ok(Some(cut_insert(text, head_end, token.start, b"FORMAT Values", token.end))),
            b"FORMAT" => {
                let name = lexer.next_token().map_err(syntax)?;
                let Some(name) = name.filter(|name| name.kind == TokenKind::Word) else {
                    return Err(QueryError::syntax("INSERT … FORMAT needs the name of a format"));
                };
                let clause = [b"FORMAT ", name.of(text)].concat();
                return Ok(Some(cut_insert(text, head_end, token.start, &clause, name.end)));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn cut_insert(text: &[u8], head_end: usize, format_start: usize, format: &[u8], name_end: usize) -> Insert {
    let settings = text.get(head_end..format_start).unwrap_or_default();
    let mut data = text.get(name_end..).unwrap_or_default();
    while let Some((b' ' | b'\t' | b'\x0c', rest)) = data.split_first() {
        data = rest;
    }
    data = data.strip_prefix(b"\r").unwrap_or(data);
    data = data.strip_prefix(b"\n").unwrap_or(data);
    Insert {
        head: text.get(..head_end).unwrap_or_default().to_vec(),
        tail: [settings, format].concat(),
        data: data.to_vec(),
    }
}

fn parse_kill(text: &[u8], tokens: &[Token]) -> Result<Kill, QueryError> {
    let refused = || QueryError::bad_argument(KILL_FORM);
    let [kill, query, filter, column, equals, rest @ ..] = tokens else { return Err(refused()) };
    let heads = [(kill, "KILL"), (query, "QUERY"), (filter, "WHERE"), (column, "query_id")];
    if !heads.iter().all(|(token, word)| token.is_word(text, word)) || !equals.is_byte(b'=') {
        return Err(refused());
    }
    let (id, rest) = match rest {
        [literal, rest @ ..] if literal.kind == TokenKind::Text => {
            (KillId::Literal(super::lexer::unquote(literal.of(text)).ok_or_else(refused)?), rest)
        }
        [open, name, colon, kind, close, rest @ ..]
            if open.is_byte(b'{')
                && name.kind == TokenKind::Word
                && colon.is_byte(b':')
                && kind.is_word(text, "String")
                && close.is_byte(b'}') =>
        {
            (KillId::Parameter(String::from_utf8_lossy(name.of(text)).into_owned()), rest)
        }
        _ => return Err(refused()),
    };
    match rest {
        [] => Ok(Kill { id, wait: false }),
        [mode] if mode.is_word(text, "ASYNC") => Ok(Kill { id, wait: false }),
        [mode] if mode.is_word(text, "SYNC") => Ok(Kill { id, wait: true }),
        _ => Err(refused()),
    }
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod statement_tests;
