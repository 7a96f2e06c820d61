//! Ingest and the client against a real engine, each test on a data folder of its own.

mod bundles;
mod engine;
mod read_back;
