//! Bytes as arguments of `top_k`, and as the rows that its queries bring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sightline_fuzz::run("top_k", data));
