//! Runs queries on ClickHouse: on a server of the site's own, or on the embedded engine.
//!
//! The embedded engine is libchdb in a child process of the same binary, behind the part of ClickHouse's HTTP interface
//! that a client uses; so there is one query path and one dialect. This crate decides nothing about access: it runs
//! what the guard has admitted, and the front holds a second fence for the case that the guard is wrong.

mod bundle;
mod checkpoints;
mod client;
mod embedded;
mod front;
mod ingest;
mod kernel_log;
pub mod native;
mod remote;

pub use bundle::{Bundle, BundleError, Manifest};
pub use checkpoints::{keep_checkpoint, kept_checkpoints, make_checkpoint_table, newest_checkpoint};
pub use client::{ClickHouseEngine, Endpoint, FenceUnproved, Proof, ProofFault, SecondFence, WriteError, Writer};
pub use embedded::folder::{DataFolderError, EngineAddress, engine_address};
pub use embedded::library::{LIBCHDB_VERSION, LibraryNotFound, LibrarySearch, cached_library};
pub use embedded::{EmbeddedEngine, EmbeddedError, EmbeddedOptions};
pub use front::credentials::{EngineCredentials, EngineUser};
pub use front::{CredentialSource, EngineOptions, EngineProcessError, FrontLimits, serve_engine};
pub use ingest::{
    EncodedRows, IngestError, LoadedBundle, RowEncoder, Scope, SeriesShift, clear_jobs, clusters, drop_database,
    export_database, export_rows, insert_encoded, insert_rows, insert_stream, latest, list_bundles, load_bundle,
    recorded_number, series_shifts, tenants,
};
pub use kernel_log::{KernelLogSource, read_kernel_log};
pub use remote::{AdminSql, role_name};
