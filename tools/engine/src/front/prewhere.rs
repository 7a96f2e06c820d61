//! What a reader may write into PREWHERE: comparisons of columns, which cannot fail.
//!
//! PREWHERE is computed before the tenant filters (measured on 26.5.3), so an expression in it that fails, or takes long, for some
//! rows tells of rows of other tenants. WHERE comes after them, as long as the engine moves none of it.

use super::error::QueryError;
use super::lexer::{Token, TokenKind};
use super::reader::name_of;

/// Words that begin what follows PREWHERE.
const ENDING: [&str; 13] = [
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "QUALIFY",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "SETTINGS",
    "UNION",
    "EXCEPT",
    "INTERSECT",
];

/// Refuses a text whose PREWHERE holds more than comparisons of columns with values.
pub(super) fn check_prewhere(text: &[u8], tokens: &[Token]) -> Result<(), QueryError> {
    for (index, token) in tokens.iter().enumerate() {
        if token.is_word(text, "PREWHERE") {
            let (before, after) =
                (tokens.get(..index).unwrap_or_default(), tokens.get(index + 1..).unwrap_or_default());
            let alias = alias_before(text, before);
            if !is_plain(text, after, alias.as_deref()) || has_lambda(text, tokens) {
                return Err(refusal());
            }
            if alias.is_some_and(|alias| !always_the_table(text, tokens, &alias)) {
                return Err(refusal());
            }
        }
    }
    Ok(())
}

fn refusal() -> QueryError {
    QueryError::access(
        "in PREWHERE the reader may compare columns with values, like `FROM a.b AS t PREWHERE t.x IN {p0:Array(String)}`, and no more",
    )
}

/// The name in `… AS t PREWHERE`.
fn alias_before(text: &[u8], before: &[Token]) -> Option<String> {
    match before {
        [.., keyword, alias] if keyword.is_word(text, "AS") => name_of(text, alias),
        _ => None,
    }
}

/// Whether that name means the table wherever it stands by itself: an expression of the same name would be computed in the place of
/// a column.
fn always_the_table(text: &[u8], tokens: &[Token], alias: &str) -> bool {
    tokens.iter().enumerate().all(|(index, token)| {
        let is_alias = name_of(text, token).is_some_and(|name| name == alias);
        let byte_at = |at: Option<usize>, byte| at.and_then(|at| tokens.get(at)).is_some_and(|t| t.is_byte(byte));
        let is_part = byte_at(Some(index + 1), b'.') || byte_at(index.checked_sub(1), b'.');
        let word_at = |at: Option<usize>, word| at.and_then(|at| tokens.get(at)).is_some_and(|t| t.is_word(text, word));
        !is_alias || is_part || (word_at(index.checked_sub(1), "AS") && word_at(Some(index + 1), "PREWHERE"))
    })
}

/// What the grammar of PREWHERE expects next. A word that ends the clause does so only where a comparison is whole: elsewhere
/// the engine takes `offset`, `window` or `limit` for a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Operand,
    Operator,
}

fn is_plain(text: &[u8], mut rest: &[Token], alias: Option<&str>) -> bool {
    let mut depth = 0_u32;
    let mut next = Next::Operand;
    loop {
        let step = match next {
            Next::Operand => operand(text, rest, alias, &mut depth),
            Next::Operator => match rest {
                [] => return depth == 0,
                [end, ..] if depth == 0 && (is_one_of(text, end, &ENDING) || end.is_byte(b')')) => return true,
                _ => operator(text, rest, &mut depth),
            },
        };
        let Some((after, then)) = step else { return false };
        (rest, next) = (after, then);
    }
}

/// A column, a value, or what may stand before one.
fn operand<'a>(text: &[u8], rest: &'a [Token], alias: Option<&str>, depth: &mut u32) -> Option<(&'a [Token], Next)> {
    match rest {
        [not, after @ ..] if not.is_word(text, "NOT") => Some((after, Next::Operand)),
        [null, after @ ..] if null.is_word(text, "NULL") => Some((after, Next::Operator)),
        [open, after @ ..] if open.is_byte(b'(') => {
            *depth += 1;
            Some((after, Next::Operand))
        }
        // The second sign of `<=`, `>=`, `!=`, `<>` and `==`.
        [sign, after @ ..] if [b'=', b'>'].iter().any(|byte| sign.is_byte(*byte)) => Some((after, Next::Operand)),
        [open, name, colon, after @ ..]
            if open.is_byte(b'{') && name.kind == TokenKind::Word && colon.is_byte(b':') =>
        {
            let close = after.iter().position(|token| token.is_byte(b'}'))?;
            Some((after.get(close + 1..).unwrap_or_default(), Next::Operator))
        }
        [table, dot, column, after @ ..] if dot.is_byte(b'.') => {
            let of_table = name_of(text, table).is_some_and(|name| Some(name.as_str()) == alias);
            let ends = !after.first().is_some_and(|next| [b'[', b'.', b'('].iter().any(|byte| next.is_byte(*byte)));
            (of_table && name_of(text, column).is_some() && ends).then_some((after, Next::Operator))
        }
        [function, open, of @ ..] if function.is_word(text, "toStartOfInterval") && open.is_byte(b'(') => {
            step_of_time(text, of, alias).map(|after| (after, Next::Operator))
        }
        [value, after @ ..] if matches!(value.kind, TokenKind::Text | TokenKind::Number) => {
            Some((after, Next::Operator))
        }
        _ => None,
    }
}

/// What follows `t.time, toIntervalMillisecond(300000))`: the step that a row's time lies in. It cannot fail for an instant, takes the
/// same time for each, and is what a window of kept steps goes by.
fn step_of_time<'a>(text: &[u8], rest: &'a [Token], alias: Option<&str>) -> Option<&'a [Token]> {
    let [table, dot, column, comma, interval, open, length, close, end, after @ ..] = rest else { return None };
    let is_time = name_of(text, table).is_some_and(|name| Some(name.as_str()) == alias)
        && dot.is_byte(b'.')
        && column.is_word(text, "time");
    let is_step = comma.is_byte(b',')
        && interval.is_word(text, "toIntervalMillisecond")
        && open.is_byte(b'(')
        && length.kind == TokenKind::Number
        && close.is_byte(b')')
        && end.is_byte(b')');
    let ends = !after.first().is_some_and(|next| [b'[', b'.', b'('].iter().any(|byte| next.is_byte(*byte)));
    (is_time && is_step && ends).then_some(after)
}

/// What may stand after a column or a value.
fn operator<'a>(text: &[u8], rest: &'a [Token], depth: &mut u32) -> Option<(&'a [Token], Next)> {
    match rest {
        [close, after @ ..] if close.is_byte(b')') && *depth > 0 => {
            *depth -= 1;
            // `(…)[…]`, `(…).1`, `(…)(…)`
            let goes_on = after.first().is_some_and(|next| [b'[', b'.', b'('].iter().any(|byte| next.is_byte(*byte)));
            (!goes_on).then_some((after, Next::Operator))
        }
        [not, after @ ..] if not.is_word(text, "NOT") => match after {
            [word, after @ ..] if word.is_word(text, "IN") || word.is_word(text, "BETWEEN") => {
                Some((after, Next::Operand))
            }
            _ => None,
        },
        [word, after @ ..] if is_one_of(text, word, &["AND", "OR", "IN", "BETWEEN", "IS"]) => {
            Some((after, Next::Operand))
        }
        [sign, after @ ..] if [b',', b'<', b'>', b'=', b'!'].iter().any(|byte| sign.is_byte(*byte)) => {
            Some((after, Next::Operand))
        }
        _ => None,
    }
}

/// Whether a text holds a lambda: one that is named `equals`, `in` or `and` takes the place of that operator, in PREWHERE too.
fn has_lambda(text: &[u8], tokens: &[Token]) -> bool {
    let arrow = |pair: &[Token]| matches!(pair, [dash, head] if dash.is_byte(b'-') && head.is_byte(b'>'));
    tokens.windows(2).any(arrow)
        || tokens.iter().any(|token| name_of(text, token).is_some_and(|name| name.eq_ignore_ascii_case("lambda")))
}

fn is_one_of(text: &[u8], token: &Token, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(text, word))
}

#[cfg(test)]
mod tests {
    use super::check_prewhere;
    use crate::front::lexer::Lexer;

    fn passes(text: &str) -> bool {
        check_prewhere(text.as_bytes(), &Lexer::all(text.as_bytes()).unwrap()).is_ok()
    }

    #[test]
    fn comparisons_of_columns_with_values_pass() {
        for text in [
            "SELECT 1 FROM a.b AS t PREWHERE t.tenant IN {p0:Array(String)} AND t.time >= {p1:DateTime64(3, 'UTC')} WHERE f(t.x) > 0",
            "SELECT 1 FROM a.b AS t PREWHERE t.tenant IN {p0:Array(String)} AND (t.node, t.gpu) IN {p4:Array(Tuple(String, String))} GROUP BY t.x",
            "SELECT 1 FROM (SELECT t.x AS a0 FROM a.b AS t PREWHERE t.tenant = 'a' OR NOT (t.x != 1)) LIMIT 1",
            "SELECT 1 FROM a.b PREWHERE 1",
            "SELECT 1 FROM a.b AS t PREWHERE t.x = 1 UNION ALL SELECT 2 FROM a.c AS t PREWHERE t.y = 2",
            "SELECT prewhere_time FROM a.b",
            "SELECT 1 FROM a.b AS t PREWHERE t.x NOT IN ('a', 'b') AND t.y NOT BETWEEN 1 AND 2 AND t.z IS NOT NULL LIMIT 1",
            "SELECT 1 FROM a.b AS t PREWHERE t.x <= 1 AND t.y <> 2 OR t.z == t.x ORDER BY t.x",
            "SELECT arrayMap(x -> x, [1]) FROM a.b",
            "SELECT 1 FROM a.b AS t PREWHERE t.x IN ('a') AND toStartOfInterval(t.time, toIntervalMillisecond(300000)) >= {p2:DateTime64(3, 'UTC')} AND toStartOfInterval(t.time, toIntervalMillisecond(300000)) < {p3:DateTime64(3, 'UTC')} WHERE 1",
        ] {
            assert!(passes(text), "{text}");
        }
    }

    #[test]
    fn whatever_could_fail_for_a_row_is_refused() {
        for condition in [
            "throwIf(t.value > 1) = 0",
            "t.tenant = 'a' AND throwIf(t.value > 1) = 0",
            "(throwIf)(t.value) = 0",
            "t.value % t.x = 0",
            "1 / t.x > 0",
            "t.value DIV t.x = 0",
            "t.value MOD t.x = 0",
            "t.body::Int32 = 0",
            "CAST(t.body AS Int32) = 0",
            "t.body LIKE '%a%a%a%a'",
            "t.labels['a'] = 'b'",
            "t.a.b = 1",
            "t.x IN (SELECT 1)",
            "x = 1",
            "u.x = 1",
            "(t.a, t.b).1 = 1",
            "-t.x = 1",
            "t.x = {p0:String",
            "CASE WHEN t.x = 1 THEN 1 END",
            "t.`x`('a') = 1",
            "((t.x = 1)",
            "offset = 0",
            "t.x = 1 AND window = 0",
            "NOT limit",
            "t.x = settings",
            "(group)",
            "group + throwIf(t.value > 1)",
            "in(t.x, t.y)",
            "t.x = 1 AND",
            "t.x NOT LIKE t.y",
            "t.x t.y",
            "toStartOfInterval(t.value, toIntervalMillisecond(300000)) = 0",
            "toStartOfInterval(u.time, toIntervalMillisecond(300000)) = 0",
            "toStartOfInterval(t.time, toIntervalMillisecond(t.value)) = 0",
            "toStartOfInterval(t.time, toIntervalMillisecond(1), throwIf(t.value > 1)) = 0",
            "toStartOfInterval(throwIf(t.value > 1), toIntervalMillisecond(1)) = 0",
            "toStartOfInterval(t.time, throwIf(300000)) = 0",
            "toStartOfInterval(t.time, toIntervalMillisecond(300000))[1] = 0",
            "toStartOfInterval(t.time, toIntervalMillisecond(300000)",
        ] {
            let text = format!("SELECT 1 FROM a.b AS t PREWHERE {condition}");
            assert!(!passes(&text), "{text}");
        }
        for text in [
            "SELECT throwIf(value > 1) AS x FROM a.b PREWHERE x = 0",
            "SELECT CAST(tuple(throwIf(value > 1)), 'Tuple(x UInt8)') AS t FROM a.b AS t PREWHERE t.x = 0",
            "SELECT CAST(tuple(throwIf(value > 1)), 'Tuple(x UInt8)') t FROM a.b AS t PREWHERE t.x = 0",
            "WITH 1 AS `t` SELECT 1 FROM a.b AS t PREWHERE t.x = 0",
            "WITH (x, y) -> throwIf(x LIKE 'b%') AS equals SELECT 1 FROM a.b AS t PREWHERE t.x = 'a'",
            "WITH `lambda`(tuple(x, y), throwIf(x LIKE 'b%')) AS in SELECT 1 FROM a.b AS t PREWHERE t.x IN ('a')",
        ] {
            assert!(!passes(text), "{text}");
        }
    }
}
