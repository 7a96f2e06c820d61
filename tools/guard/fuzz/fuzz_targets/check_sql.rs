//! Bytes as a text with parameters, put to the checker.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("check_sql", data));
