//! The planner that asks a model: any server that speaks OpenAI's chat completions, behind core's [`Planner`](sightline_core::Planner) port.
//!
//! What the model may do is what the offline planner may: call the typed tools, and hand in a draft whose numbers are references into
//! evidence. Nothing here decides what may be read, and nothing that a model says is believed: calls go through core's line, and a draft's
//! sentences are looked through here and grounded there. On any fault, and when a draft does not hold after one repair, the offline planner
//! answers in the model's place and the answer says so.
//!
//! A question passes: `prompt` and `schemas` (what the model is told), `conversation` (the messages, with results as `digest` shortens them),
//! `client` (one request), `session` (calls, budgets, repeats, the repair round, the fall back), `answer`, `reference`, `words` and `draft`
//! (from the model's sentences to a draft).

mod answer;
mod budget;
mod client;
mod config;
mod conversation;
mod digest;
mod draft;
mod fault;
mod findings;
mod planner;
mod prompt;
mod pseudonyms;
mod reference;
mod reply;
mod safe_text;
mod schemas;
mod service;
mod session;
mod steps;
mod tokens;
mod transcript;
mod wire;
mod words;

pub use budget::{Budgets, Prices};
pub use client::ChatClient;
pub use config::{LlmConfig, Mode, ReplyLimit};
pub use fault::ModelFault;
pub use planner::{Capabilities, LlmPlanner, Parts, SharedPlanner};
pub use prompt::PROMPT_VERSION;
pub use schemas::compact_tools;
pub use secrecy::SecretString;
pub use tokens::estimate;
pub use transcript::{Exchange, KeptCall, KeptReply, NoTranscript, Recording, Transcript};
