//! Digits in a claim's own words. A draft's numbers are references; what digits remain must be names, not amounts.

/// Names of the field that hold digits and are no measurements.
const NAMES: [&str; 14] =
    ["p50", "p90", "p95", "p99", "H100", "H200", "A100", "B200", "B300", "V100", "T4", "NVLink5", "UTF-8", "L40S"];

/// The first literal with a digit that is neither a name of the field nor stands in the question; none if all may stay.
pub(super) fn stray(text: &str, question: &str) -> Option<String> {
    words(text)
        .find(|word| {
            word.chars().any(|c| c.is_ascii_digit() || c.is_numeric())
                && !NAMES.contains(word)
                && !words(question).any(|asked| asked == *word)
        })
        .map(str::to_owned)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"' | '“' | '”' | '?' | '!'))
        .map(|word| word.trim_matches(|c: char| matches!(c, '.' | ':' | '\'' | '`')))
        .filter(|word| !word.is_empty())
}
