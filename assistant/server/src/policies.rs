//! The policies of a site: where they are read from, and how they are read again while the service runs.

mod files;
#[cfg(test)]
mod files_tests;
mod watch;
#[cfg(test)]
mod watch_tests;

pub use files::{PolicyFiles, PolicyFilesError};
pub use watch::{Look, Occasion, PolicyWatch};
