//! Benchmarks over the real binary; the recorded-incident suite and its scorers will stand here too.
//!
//! This crate asks as a user does, through the binary and over HTTP; what the guard costs it measures on the line's own crates. It
//! tests nothing: the tests assert order and counts, the benchmark prints times.

pub mod bench;
pub mod diagnosed;
pub mod guarded;
pub mod isolation;
mod stations;
