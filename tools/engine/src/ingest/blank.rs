//! DCGM's words for "no value", as SQL.

/// The sentinels as they are once stored as 64-bit floats; the catalogue's `is_blank` says the same of a value in this process.
const SENTINELS: [&str; 9] = [
    "2147483632",
    "2147483633",
    "2147483634",
    "2147483635",
    "9223372036854775808",
    "140737488355328",
    "140737488355329",
    "140737488355330",
    "140737488355331",
];

/// The condition that a sample of `metric` is such a sentinel.
pub(super) fn condition(metric: &str, value: &str) -> String {
    format!("(startsWith({metric}, 'DCGM_') AND {value} IN ({}))", SENTINELS.join(", "))
}

#[cfg(test)]
mod tests {
    use sightline_query::catalogue::is_blank;

    use super::SENTINELS;

    #[test]
    fn the_sentinels_are_those_of_the_catalogue() {
        for text in SENTINELS {
            let value: f64 = text.parse().unwrap();
            assert!(is_blank(value), "{text}");
            let known = |value: f64| SENTINELS.iter().any(|text| text.parse::<f64>().unwrap() == value);
            for neighbour in [value - 1.0, value + 1.0] {
                assert_eq!(is_blank(neighbour), known(neighbour), "{neighbour}");
            }
        }
    }
}
