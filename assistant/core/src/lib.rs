//! The line of one question: `answer_question` and `run_tool`, the offline planner, grounding, and the ports they need.
//!
//! This crate opens no sockets, reads no clock and makes no ids: engine, audit log, quota, clock, ids and planner are handed in.

mod admission;
mod answer_question;
mod assemble;
mod assistant;
mod digest;
pub mod events;
pub mod ground;
pub mod offline;
pub mod ports;
pub mod quota;
mod render;
mod renumber;
mod run_tool;

pub use answer_question::{AskError, MAX_QUESTION_BYTES, Question, answer_question, record_cancelled};
pub use assistant::Assistant;
pub use digest::digest_answer;
pub use events::{Event, Events, NoEvents};
pub use ports::{Ask, Clock, Draft, Gathered, Ids, NoOutput, Planner, PlannerError, ToolCall, Turn};
pub use render::render_text;
pub use run_tool::{Caller, ToolFailure, ToolRun, run_tool};
