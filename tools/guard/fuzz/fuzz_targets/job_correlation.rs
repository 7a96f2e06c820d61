//! Bytes as arguments of `job_correlation`, and as the rows that its queries bring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("job_correlation", data));
