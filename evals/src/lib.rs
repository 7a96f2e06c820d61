//! The evaluation suite, and benchmarks over the real binary.
//!
//! The suite reads recorded incidents, asks through a port behind which the product stands, and scores each answer against what
//! `incident.toml` expects. It never tells the product what that is. The benchmarks ask as a user does, through the binary and over HTTP;
//! what the guard costs they measure on the line's own crates. They test nothing: the tests assert order and counts, a benchmark prints times.

pub mod ablation;
pub mod answerer;
pub mod bench;
pub mod beside;
pub mod diagnosed;
pub mod guarded;
pub mod isolation;
pub mod planned;
pub mod questions;
pub mod report;
pub mod robust_z;
pub mod run;
pub mod score;
mod stations;
pub mod suite;
