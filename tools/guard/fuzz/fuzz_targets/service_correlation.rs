//! Bytes as arguments of `service_correlation`, and as the rows that its queries bring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("service_correlation", data));
