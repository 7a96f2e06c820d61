//! The values by which DCGM says that it has no value.

/// First and last of DCGM's 32-bit sentinels (`DCGM_INT32_BLANK` to `…_NOT_PERMISSIONED`, dcgm_structs.h).
const INT32: [i32; 2] = [0x7fff_fff0, 0x7fff_fff3];
/// DCGM's 64-bit sentinels 0x7ffffffffffffff0 to …f3 (dcgm_structs.h) all become 2^63 once stored as a 64-bit float.
const INT64_AS_FLOAT: f64 = 9_223_372_036_854_775_808.0;
/// First and last of DCGM's floating-point sentinels (`DCGM_FP64_BLANK` to `…_NOT_PERMISSIONED`, dcgm_structs.h).
const FP64: [f64; 2] = [140_737_488_355_328.0, 140_737_488_355_331.0];

/// Whether a DCGM sample is one of the sentinels for blank, not found, not supported or not permitted. Newer exporters leave such
/// samples out. Ask it for names that begin with `DCGM_` only: another program's counter may pass through these numbers.
pub fn is_blank(value: f64) -> bool {
    let [first, last] = INT32.map(f64::from);
    let [first_float, last_float] = FP64;
    let whole = value.fract() == 0.0;
    whole && ((first..=last).contains(&value) || (first_float..=last_float).contains(&value) || value == INT64_AS_FLOAT)
}

#[cfg(test)]
mod tests {
    use super::is_blank;

    #[test]
    fn every_sentinel_is_blank() {
        for offset in 0..4 {
            assert!(is_blank(f64::from(0x7fff_fff0_i32 + offset)), "32-bit + {offset}");
            assert!(is_blank((0x7fff_ffff_ffff_fff0_i64 + i64::from(offset)) as f64), "64-bit + {offset}");
            assert!(is_blank(140_737_488_355_328.0 + f64::from(offset)), "float + {offset}");
        }
    }

    #[test]
    fn the_text_an_old_exporter_prints_is_blank() {
        assert!(is_blank("9223372036854775794".parse::<f64>().unwrap()));
    }

    #[test]
    fn neighbours_of_the_sentinels_and_ordinary_numbers_are_values() {
        let values = [
            0.0,
            -1.0,
            88.0,
            f64::from(0x7fff_ffef_i32),
            f64::from(0x7fff_fff4_i32),
            2_147_483_632.5,
            140_737_488_355_327.0,
            140_737_488_355_332.0,
            9.2e18,
            f64::NAN,
            f64::INFINITY,
        ];
        for value in values {
            assert!(!is_blank(value), "{value}");
        }
    }
}
