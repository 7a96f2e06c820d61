//! From a query as a tool means it to a valid query, and the catalogue of metrics it is checked against.
//!
//! This crate knows names, kinds and dimensions. It knows no SQL, decides nothing, opens no sockets and reads no clock.

pub mod catalogue;
mod check;
mod error;
pub mod kept;
mod layout;
mod pattern;
pub mod query;
pub mod schema;
pub mod valid;

pub use catalogue::{Catalogue, Resolution};
pub use error::QueryError;
pub use kept::KEPT_STEP_MS;
pub use pattern::check_pattern;
pub use query::{Align, Filter, Match, MetricPart, Order, Query, SampleOrder, Shape, ValueOp};
pub use valid::{Held, Output, OutputColumn, QuantileLevel, ResolvedMetric, ValidQuery};
