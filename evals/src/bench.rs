//! What the benchmark measures, and how it prints it.

use std::fmt::Write as _;

/// The median of some durations, milliseconds; none for no durations.
pub fn median(mut millis: Vec<f64>) -> Option<f64> {
    millis.sort_by(f64::total_cmp);
    let last = millis.len().checked_sub(1)?;
    let low = millis.get(last / 2)?;
    let high = millis.get(last.div_ceil(2))?;
    Some((low + high) / 2.0)
}

/// What one question cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub question: String,
    /// Times from request to answer, milliseconds.
    pub millis: Vec<f64>,
    /// Queries run for it.
    pub queries: u64,
    /// Rows read for it.
    pub rows_read: u64,
}

/// The report: absolute times of this machine, and ratios to one round trip to the engine, which carry over to others.
pub fn report(round_trip_ms: f64, cold_ask_ms: f64, asked: &[Asked]) -> String {
    let mut text = format!("engine round trip (select 1 over HTTP)   {round_trip_ms:8.2} ms\n");
    let _ = writeln!(text, "`sightline ask` from the shell, warm engine {cold_ask_ms:6.0} ms");
    let _ = writeln!(
        text,
        "\n{:<55} {:>9} {:>8} {:>12} {:>12}",
        "question (median)", "ms", "queries", "rows read", "round trips"
    );
    for one in asked {
        let Some(ms) = median(one.millis.clone()) else { continue };
        let trips = ms / round_trip_ms;
        let _ = writeln!(text, "{:<55} {ms:>9.0} {:>8} {:>12} {trips:>12.0}", one.question, one.queries, one.rows_read);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(vec![5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_report_gives_ratios_to_the_round_trip() {
        let asked = [Asked { question: "q".to_owned(), millis: vec![100.0], queries: 3, rows_read: 7 }];
        assert!(report(5.0, 200.0, &asked).lines().last().unwrap().ends_with("          20"));
    }
}
