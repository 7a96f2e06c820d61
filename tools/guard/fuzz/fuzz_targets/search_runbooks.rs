//! Bytes as arguments of `search_runbooks`, which needs no rows.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("search_runbooks", data));
