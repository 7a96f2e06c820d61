//! Which functions a reader may name: those that compute from their arguments alone.
//!
//! The engine has some 1,900; each has a category, and a new one comes with its category or with none. So the list is of categories
//! that read nothing else, and what stands in no such category is refused: functions that read files, dictionaries or other tables,
//! tell of the server, or call out.

use std::collections::{BTreeMap, BTreeSet};

/// Categories of `system.functions` in 26.5.3 whose functions read their arguments, the clock or a random number and nothing else.
const PURE_CATEGORIES: [&str; 29] = [
    "Arithmetic",
    "Arrays",
    "Bit",
    "Bitmap",
    "Comparison",
    "Conditional",
    "Dates and Times",
    "Distance",
    "Encoding",
    "Financial",
    "Geo",
    "Geo Polygon",
    "Hash",
    "IP Address",
    "JSON",
    "Logical",
    "Map",
    "Mathematical",
    "Null",
    "Random Number",
    "Rounding",
    "String",
    "String Replacement",
    "String Search",
    "String Splitting",
    "Tuple",
    "Type Conversion",
    "URL",
    "UUID",
];

/// What is as pure in the category `Other`, as far as it is of use in a query.
const PURE_OTHERS: [&str; 10] = [
    "bar",
    "identity",
    "ignore",
    "indexhint",
    "materialize",
    "sleep",
    "sleepeachrow",
    "throwif",
    "totypename",
    "transform",
];

/// What the reader may call where it reads a table: what the guard writes, and `toUInt64` of the proofs. None of them fails for a row.
///
/// The engine computes a function of a `LowCardinality` column over the whole dictionary of a block, with the values of rows that the
/// tenant filters have taken out (measured on 26.5.3 with `throwIf`, `toFixedString` and `base64Decode`), so one that fails for a value
/// tells of it.
const CANNOT_FAIL: [&str; 40] = [
    "L1Norm",
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
    "empty",
    "greater",
    "groupArray",
    "isFinite",
    "less",
    "mapKeys",
    "match",
    "max",
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
    "sum",
    "toDateTime64",
    "toFloat64",
    "toIntervalMillisecond",
    "toStartOfInterval",
    "toString",
    "toUInt64",
    "toUnixTimestamp64Milli",
    "tupleElement",
];

/// Words that may stand before an opening bracket and are no function there.
const KEYWORDS: [&str; 22] = [
    "ALL",
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "DISTINCT",
    "EXCEPT",
    "EXISTS",
    "FROM",
    "HAVING",
    "IN",
    "INTERSECT",
    "JOIN",
    "LIMIT",
    "NOT",
    "ON",
    "OR",
    "OVER",
    "PREWHERE",
    "SELECT",
    "WHERE",
    "WITH",
];

/// Whether the reader may call this where it reads a table; `quoted` names are no keywords.
pub(super) fn cannot_fail(name: &str, quoted: bool) -> bool {
    CANNOT_FAIL.contains(&name) || (!quoted && KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name)))
}

/// A line of `system.functions`: name, the name it is another word for, categories, and whether it aggregates.
pub(super) type FunctionRow = (String, String, String, u8);

/// What the engine is asked for them.
pub(super) const LIST: &str = "SELECT name, alias_to, categories, is_aggregate FROM system.functions";

/// The functions that a reader may not name, in lower case. Those that aggregate see nothing but the rows they are given.
pub(super) fn impure(rows: &[FunctionRow]) -> BTreeSet<String> {
    let categories: BTreeMap<&str, &str> =
        rows.iter().map(|(name, _, categories, _)| (name.as_str(), categories.as_str())).collect();
    let is_pure = |(name, alias_to, _, is_aggregate): &&FunctionRow| {
        let name = if alias_to.is_empty() { name.as_str() } else { alias_to.as_str() };
        let category = categories.get(name).copied().unwrap_or_default();
        *is_aggregate == 1
            || PURE_CATEGORIES.contains(&category)
            || PURE_OTHERS.contains(&name.to_ascii_lowercase().as_str())
    };
    let impure = rows.iter().filter(|row| !is_pure(row));
    impure.map(|(name, _, _, _)| name.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::{FunctionRow, impure};

    #[test]
    fn what_is_in_no_pure_category_is_refused_under_every_name() {
        let row = |name: &str, alias_to: &str, categories: &str, aggregates: u8| -> FunctionRow {
            (name.to_owned(), alias_to.to_owned(), categories.to_owned(), aggregates)
        };
        let rows = [
            row("plus", "", "Arithmetic", 0),
            row("SUBSTR", "substring", "", 0),
            row("substring", "", "String", 0),
            row("sum", "", "", 1),
            row("throwIf", "", "Other", 0),
            row("dictHas", "", "Dictionary", 0),
            row("joinGet", "", "Other", 0),
            row("user", "currentUser", "", 0),
            row("currentUser", "", "Other", 0),
            row("lost", "nowhere", "", 0),
            row("mine", "", "", 0),
            row("newest", "", "Something new", 0),
        ];
        let expected = ["currentuser", "dicthas", "joinget", "lost", "mine", "newest", "user"];
        assert_eq!(impure(&rows).into_iter().collect::<Vec<_>>(), expected);
    }
}
