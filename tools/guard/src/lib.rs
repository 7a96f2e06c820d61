//! From a valid query and a decision to a query that may run: emitter, independent checker, bounds, and the port to the engine.
//!
//! This is the only crate that knows SQL. It opens no sockets and reads no clock: `now`, the limits and what is left of a budget
//! are arguments. It never prints a value into SQL, never changes a text after checking it, and never decides who may read what:
//! that is a [`sightline_policies::Decision`], which it only carries out.

mod admit;
mod amount;
mod bounds;
mod check;
mod cost;
mod emit;
mod engine;
mod executable;
mod fence;
mod literal;
mod lower;
mod mapping;
mod own;
mod param;
mod recorded;
mod refusal;
mod series;
mod suggestion;
mod tree;

pub use admit::{Admission, Guard};
pub use bounds::Bounds;
pub use check::{Fault, FaultKind, check_sql};
pub use cost::{BytesLeft, Estimate};
pub use engine::{Engine, EngineError};
pub use executable::ExecutableQuery;
pub use fence::Fence;
pub use mapping::{MappedTable, Mapping, MappingError};
pub use param::{Param, ParamType, ParamValue};
pub use recorded::RecordedQuery;
pub use refusal::Refusal;
pub use series::check_result;
pub use suggestion::{Fits, Suggestion};
