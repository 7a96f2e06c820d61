//! Bytes as arguments of `list_events`, and as the rows that its queries bring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("list_events", data));
