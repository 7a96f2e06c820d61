//! Amounts in words, for refusals.

/// A span of time, exact: `2 d 3 h`, `90 s` as `1 min 30 s`.
pub(crate) fn duration(milliseconds: u64) -> String {
    const UNITS: [(u64, &str); 5] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
    let mut rest = milliseconds;
    let mut parts = Vec::new();
    for (length, unit) in UNITS {
        let whole = rest / length;
        rest %= length;
        if whole > 0 {
            parts.push(format!("{whole} {unit}"));
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// A number of bytes, three digits or so: `2.5 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1024.0;
    let mut name = "KiB";
    for larger in ["MiB", "GiB", "TiB", "PiB"] {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        name = larger;
    }
    format!("{amount:.1} {name}")
}

/// A count with its thousands set apart: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len().saturating_add(6));
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len().saturating_sub(index);
        if index > 0 && left.is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with all but its first two digits taken up to the next whole: `1,234` as `1,300`.
pub(crate) fn at_most(number: u64) -> u64 {
    let unit = unit_of_two_digits(number);
    number.div_ceil(unit).saturating_mul(unit)
}

/// A number with all but its first two digits dropped: `1,234` as `1,200`.
pub(crate) fn at_least(number: u64) -> u64 {
    number - number % unit_of_two_digits(number)
}

/// What the second digit of a number counts.
fn unit_of_two_digits(number: u64) -> u64 {
    10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1))
}

/// Steps that people read at ease, milliseconds.
const STEPS: [u64; 20] = [
    1000,
    2000,
    5000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
];

/// The shortest readable step that is at least this long.
pub(crate) fn step_at_least(milliseconds: u64) -> u64 {
    const DAY: u64 = 86_400_000;
    let days = milliseconds.div_ceil(DAY).saturating_mul(DAY);
    STEPS.into_iter().find(|step| *step >= milliseconds).unwrap_or(days)
}

#[cfg(test)]
mod tests {
    use super::{at_least, at_most, bytes, count, duration, step_at_least};

    #[test]
    fn two_digits_are_told_of_a_number_that_is_not_to_be_known() {
        for (exact, up, down) in [
            (0, 0, 0),
            (7, 7, 7),
            (99, 99, 99),
            (100, 100, 100),
            (101, 110, 100),
            (1_234, 1_300, 1_200),
            (999_999, 1_000_000, 990_000),
            (u64::MAX, u64::MAX, 18_000_000_000_000_000_000),
        ] {
            assert_eq!((at_most(exact), at_least(exact)), (up, down), "{exact}");
        }
    }

    #[test]
    fn amounts_read_like_a_person_writes_them() {
        assert_eq!(duration(0), "0 s");
        assert_eq!(duration(90_000), "1 min 30 s");
        assert_eq!(duration(86_400_000 * 30), "30 d");
        assert_eq!(duration(86_400_000 + 1), "1 d 1 ms");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn a_suggested_step_is_never_shorter_than_needed() {
        assert_eq!(step_at_least(1), 1000);
        assert_eq!(step_at_least(1001), 2000);
        assert_eq!(step_at_least(604_800_001), 691_200_000);
    }
}
