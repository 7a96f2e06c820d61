//! Bytes as arguments of `search_logs`, and as the rows that its queries bring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("search_logs", data));
