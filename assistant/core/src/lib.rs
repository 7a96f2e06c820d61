//! The line of one question: `answer_question` and `run_tool`, the offline planner, grounding, and the ports they need.
//!
//! This crate opens no sockets, reads no clock and makes no ids: engine, audit log, quota, clock, ids and planner are handed in.

mod admission;
mod answer_question;
mod assemble;
mod assistant;
mod call_tool;
mod digest;
pub mod events;
mod fetch;
pub mod ground;
pub mod offline;
mod own_job;
pub mod ports;
pub mod quota;
mod records;
mod render;
mod renumber;
mod replay;
mod run_tool;
mod shown;
mod tool_failure;

pub use answer_question::{AskError, MAX_QUESTION_BYTES, Question, answer_question};
pub use assistant::Assistant;
pub use call_tool::{CallError, ToolAnswer, TypedCall, call_tool, callable};
pub use digest::digest_answer;
pub use events::{Event, Events, NoEvents, PlannedCall};
pub use ports::{Ask, Clock, Draft, Earlier, Gathered, Ids, NoOutput, Planner, PlannerError, Planning, ToolCall, Turn};
pub use records::{Cancelled, ReadSoFar, record_cancelled};
pub use render::render_text;
pub use replay::{Replay, ReplayError, ReplayRequest, ReplayVerdict, ReplayedCall, replay};
pub use run_tool::{Caller, ToolRun, run_tool};
pub use tool_failure::ToolFailure;
