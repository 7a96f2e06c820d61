//! From a valid query and a decision to a query that may run: emitter, independent checker, bounds, and the port to the engine.
//!
//! This is the only crate that knows SQL. It opens no sockets and reads no clock: `now`, the limits and what is left of a budget
//! are arguments. It never prints a value into SQL, never changes a text after checking it, and never decides who may read what:
//! that is a [`sightline_policies::Decision`], which it only carries out.

mod bounds;
mod engine;
mod executable;
mod fence;
mod literal;
mod mapping;
mod param;

pub use bounds::Bounds;
pub use engine::{Engine, EngineError};
pub use executable::ExecutableQuery;
pub use fence::Fence;
pub use mapping::{MappedTable, Mapping, MappingError};
pub use param::{Param, ParamType, ParamValue};
