//! Labelled questions: how well a planner understands what people type. Each is asked of the demo fleet at one instant and scored by the calls
//! that were made for it and by what was said: tool, arguments, time, entities, value.

mod labelled;
mod matched;
mod numbers;
mod tally;

pub use labelled::{AS_OF, Labelled, QuestionsError, read};
pub use matched::{Call, Fault, Given, faults};
pub use numbers::says_number;
pub use tally::{Scored, Tally, json, misleads};
