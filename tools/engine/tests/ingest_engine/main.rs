//! Ingest and the client against a real engine, each test on a data folder of its own.

#[cfg(test)]
mod admitted;
#[cfg(test)]
mod bundles;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod read_back;
#[cfg(test)]
mod shapes;
