//! From recorded files and rows to the product's tables, and back.
//!
//! A bundle is loaded once, into a database that its content names, or not at all. Rows of this process (the demo fleet, a
//! scraper) go through [`RowEncoder`]. Both fill the entity columns by the same rules: the label aliases that ship, then the
//! bundle's own.

mod blank;
mod encode;
mod entities;
mod error;
mod export;
mod load;
mod reset;
mod row_binary;
mod rows;
mod schema;
mod shift;
mod stage;
mod summary;

pub use encode::{EncodedRows, RowEncoder};
pub use entities::Scope;
pub use error::IngestError;
pub use export::{export_database, export_rows};
pub use load::load_bundle;
pub use reset::{clear_jobs, drop_database};
pub use rows::{insert_encoded, insert_rows, insert_stream};
pub use shift::{SeriesShift, recorded_number, series_shifts};
pub use summary::{LoadedBundle, clusters, latest, list_bundles, tenants};
