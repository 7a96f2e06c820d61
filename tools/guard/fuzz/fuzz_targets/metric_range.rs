//! Bytes as arguments of `metric_range`, and as the rows that its queries bring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("metric_range", data));
