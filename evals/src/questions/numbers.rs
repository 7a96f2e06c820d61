//! Whether a text states a number, to the precision with which it is printed.

/// Whether some number of the text is this one: rounded as it is printed there, in the unit or in one that people read more easily.
pub fn says_number(text: &str, value: f64, unit: Option<&str>) -> bool {
    let mut scales = vec![1.0, 1e-3, 1e3, 1e-6, 1e-9];
    if unit == Some("ratio") || unit == Some("percent") {
        scales.extend([100.0, 0.01]);
    }
    scales.extend((1..=4).map(|power| 1024.0_f64.powi(-power)));
    // Hours and minutes of a duration in seconds.
    scales.extend([1.0 / 60.0, 1.0 / 3600.0]);
    numbers(text).any(|(number, decimals)| {
        scales.iter().any(|scale| {
            let wanted = value * scale;
            let step = 10.0_f64.powi(-decimals);
            let exact = (number - wanted).abs() <= 0.5 * step + 1e-9 * wanted.abs();
            // Scaled numbers that round to nothing would fit anything.
            exact && (*scale == 1.0 || wanted.abs() >= step)
        })
    })
}

/// The numbers of a text, each with how many decimals it is printed with.
fn numbers(text: &str) -> impl Iterator<Item = (f64, i32)> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).filter_map(|part| {
        let plain: String = part.trim_matches(['.', ',']).chars().filter(|c| *c != ',').collect();
        let decimals = plain.split_once('.').map_or(0, |(_, decimals)| i32::try_from(decimals.len()).unwrap_or(0));
        Some((plain.parse().ok()?, decimals))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_stated_as_precisely_as_it_is_printed() {
        assert!(says_number("the maximum was 91.4 °C", 91.38, None));
        assert!(!says_number("the maximum was 91.4 °C", 91.6, None));
        assert!(says_number("77.9 GiB of 80 GiB", 77.9 * 1024.0, Some("mebibytes")));
        assert!(says_number("42 % of the time", 0.4181, Some("ratio")));
        assert!(says_number("in all 1,204 lines", 1204.0, None));
        assert!(!says_number("no number at all", 3.0, None));
    }
}
