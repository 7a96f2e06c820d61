//! What must hold before the text may be parsed. The parser recurses over left-deep chains when it clones or drops them and ends
//! the process on an overflow, so length, depth and chains are counted on the bare text first. Counting goes over strings and
//! comments too: it can only overestimate what the parser will see.

use crate::check::fault::{Fault, FaultKind};
use crate::mapping::Mapping;

/// Longest text, bytes. Ours are under 3 KiB with every filter and dimension there may be; values are not part of them.
const MAX_BYTES: usize = 8192;
/// Most words and signs. Ours have under 1,100.
const MAX_TOKENS: usize = 2048;
/// Most repetitions of a word that chains (AND, IN, NOT). Ours have at most 23 of them: 16 filters and the scope.
const MAX_CHAIN: usize = 48;
/// Most words that are no part of our shape. Such a text is refused anyway; this many may be parsed to say why.
const MAX_FOREIGN_WORDS: usize = 128;
/// Most operator signs. Ours have one per condition.
const MAX_OPERATORS: usize = 96;
/// Deepest nesting of brackets of any kind. Ours have at most 10.
const MAX_DEPTH: usize = 12;

/// Words of the shape that cannot make the parser's tree deeper, sorted.
const FLAT_WORDS: [&str; 63] = [
    "AS",
    "Array",
    "BY",
    "DESC",
    "DateTime64",
    "FROM",
    "Float64",
    "GROUP",
    "L1Norm",
    "LIMIT",
    "ORDER",
    "PREWHERE",
    "SELECT",
    "String",
    "Tuple",
    "UTC",
    "WHERE",
    "argMax",
    "argMin",
    "arrayDifference",
    "arrayDotProduct",
    "arrayJoin",
    "arrayPopBack",
    "arrayPopFront",
    "arraySort",
    "arraySum",
    "avg",
    "count",
    "divide",
    "duration_us",
    "empty",
    "end_time",
    "greater",
    "groupArray",
    "isFinite",
    "labels",
    "less",
    "mapKeys",
    "match",
    "max",
    "metric",
    "min",
    "negate",
    "notEmpty",
    "nullIf",
    "plus",
    "position",
    "positionCaseInsensitiveUTF8",
    "quantileExactInclusive",
    "startsWith",
    "stddevPop",
    "submit",
    "sum",
    "t",
    "time",
    "toDateTime64",
    "toFloat64",
    "toIntervalMillisecond",
    "toStartOfInterval",
    "toString",
    "toUnixTimestamp64Milli",
    "tupleElement",
    "value",
];

/// Counts; refuses before anything is parsed.
pub(crate) fn check(text: &str, mapping: &Mapping) -> Result<(), Fault> {
    if text.len() > MAX_BYTES {
        return Err(too_big(format!("{} bytes, of {MAX_BYTES} that are parsed", text.len())));
    }
    let mut counts = Counts::default();
    let mut word_start: Option<usize> = None;
    for (at, character) in text.char_indices() {
        let in_word = character.is_alphanumeric() || character == '_';
        match (word_start, in_word) {
            (None, true) => word_start = Some(at),
            (Some(start), false) => {
                counts.word(text.get(start..at).unwrap_or_default(), mapping);
                word_start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
        if !in_word {
            counts.sign(character);
        }
    }
    if let Some(start) = word_start {
        counts.word(text.get(start..).unwrap_or_default(), mapping);
    }
    counts.verdict()
}

#[derive(Default)]
struct Counts {
    tokens: usize,
    and: usize,
    member: usize,
    not: usize,
    foreign: usize,
    operators: usize,
    depth: usize,
    deepest: usize,
}

impl Counts {
    fn word(&mut self, word: &str, mapping: &Mapping) {
        self.tokens = self.tokens.saturating_add(1);
        if word.eq_ignore_ascii_case("and") {
            self.and = self.and.saturating_add(1);
        } else if word.eq_ignore_ascii_case("in") {
            self.member = self.member.saturating_add(1);
        } else if word.eq_ignore_ascii_case("not") {
            self.not = self.not.saturating_add(1);
        } else if !is_ours(word, mapping) {
            self.foreign = self.foreign.saturating_add(1);
        }
    }

    fn sign(&mut self, sign: char) {
        match sign {
            ' ' | '\n' | '\r' | '\t' => return,
            ',' | '.' | '\'' => {}
            '(' | '[' | '{' => {
                self.depth = self.depth.saturating_add(1);
                self.deepest = self.deepest.max(self.depth);
            }
            ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
            ':' => {}
            _ => self.operators = self.operators.saturating_add(1),
        }
        self.tokens = self.tokens.saturating_add(1);
    }

    fn verdict(self) -> Result<(), Fault> {
        let Self { tokens, and, member, not, foreign, operators, depth: _, deepest } = self;
        let caps = [
            (tokens, MAX_TOKENS, "words and signs"),
            (and, MAX_CHAIN, "`AND`s"),
            (member, MAX_CHAIN, "`IN`s"),
            (not, MAX_CHAIN, "`NOT`s"),
            (foreign, MAX_FOREIGN_WORDS, "words that are no part of a query"),
            (operators, MAX_OPERATORS, "operators"),
            (deepest, MAX_DEPTH, "levels of brackets"),
        ];
        match caps.into_iter().find(|(number, cap, _)| number > cap) {
            Some((number, cap, what)) => Err(too_big(format!("{number} {what}, of {cap} that are parsed"))),
            None => Ok(()),
        }
    }
}

/// Whether a word belongs to the shape or the mapping, and cannot chain.
fn is_ours(word: &str, mapping: &Mapping) -> bool {
    is_numbered(word)
        || FLAT_WORDS.binary_search(&word).is_ok()
        || mapping
            .tables()
            .iter()
            .any(|table| table.database == word || table.table == word || table.column_type(word).is_some())
}

/// `a12`, `p3`, or a number.
fn is_numbered(word: &str) -> bool {
    let digits = word.strip_prefix(['a', 'p']).unwrap_or(word);
    !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn too_big(what: String) -> Fault {
    Fault::new(FaultKind::TooBig, format!("the text has {what}"))
}

#[cfg(test)]
mod tests {
    use super::FLAT_WORDS;

    #[test]
    fn words_are_sorted_so_that_they_are_found() {
        assert!(FLAT_WORDS.is_sorted());
    }
}
