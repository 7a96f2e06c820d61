//! The conversation with the model as messages. They are written anew for each request, so that what is old can be shortened.

use serde_json::{Value, json};

use crate::digest::Detail;
use crate::prompt::Prompt;
use crate::schemas::ANSWER;
use crate::tokens::estimate;
use crate::wire::{Message, SentCall, SentFunction};

/// A call of the model and what it was told about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) told: Told,
}

/// What a call's result is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// That of the n-th call that was run.
    Ran(usize),
    /// A sentence.
    Said(String),
}

/// One step of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Exchange {
    /// Calls with their results.
    Calls(Vec<Made>),
    /// Words of the model, and what it was told about them.
    Words { said: String, told: String },
}

/// Whether the model calls tools by the protocol, or writes its steps as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Tools,
    Json,
}

/// The messages of the next request, within so many tokens: old results are shrunk first, then those after them.
///
/// None when even the shortest form does not fit.
pub(crate) fn fitted(
    form: Form,
    prompt: &Prompt,
    question: &str,
    exchanges: &[Exchange],
    results: usize,
    room: u64,
    result: impl Fn(usize, Detail) -> String,
) -> Option<(Vec<Message>, u64)> {
    let mut details = vec![Detail::Full; results];
    loop {
        let messages =
            messages(form, prompt, question, exchanges, |n| result(n, details.get(n).copied().unwrap_or(Detail::Full)));
        let tokens = count(form, prompt, &messages);
        if tokens <= room {
            return Some((messages, tokens));
        }
        // The oldest that is not yet as short as this round makes them; all but the newest first.
        let shrink = |details: &mut [Detail], from: Detail, to: Detail| {
            let found = details.iter_mut().find(|detail| **detail == from);
            found.map(|detail| *detail = to).is_some()
        };
        let (older, _) = details.split_at_mut(results.saturating_sub(1));
        let shrunk = shrink(older, Detail::Full, Detail::Brief)
            || shrink(older, Detail::Brief, Detail::Gone)
            || shrink(&mut details, Detail::Full, Detail::Brief)
            || shrink(&mut details, Detail::Brief, Detail::Gone);
        if !shrunk {
            return None;
        }
    }
}

/// What a request of these messages takes: words, the frame of each message, and the tools.
pub(crate) fn count(form: Form, prompt: &Prompt, messages: &[Message]) -> u64 {
    let words: u64 = messages.iter().map(|message| 4 + message.words().map(estimate).sum::<u64>()).sum();
    match form {
        Form::Tools => words + tools_tokens(prompt),
        Form::Json => words,
    }
}

/// What the tools take of each request.
pub(crate) fn tools_tokens(prompt: &Prompt) -> u64 {
    prompt.protocol.iter().map(|tool| estimate(&tool.to_string())).sum()
}

fn messages(
    form: Form,
    prompt: &Prompt,
    question: &str,
    exchanges: &[Exchange],
    result: impl Fn(usize) -> String,
) -> Vec<Message> {
    let system = match form {
        Form::Tools => &prompt.with_tools,
        Form::Json => &prompt.as_json,
    };
    let mut all = vec![Message::System { content: system.clone() }, Message::User { content: question.to_owned() }];
    let told = |told: &Told| match told {
        Told::Ran(n) => result(*n),
        Told::Said(text) => text.clone(),
    };
    for exchange in exchanges {
        match (exchange, form) {
            (Exchange::Words { said, told }, _) => {
                all.push(Message::Assistant { content: Some(said.clone()), tool_calls: Vec::new() });
                all.push(Message::User { content: told.clone() });
            }
            (Exchange::Calls(made), Form::Tools) => {
                let sent = |made: &Made| SentCall {
                    id: made.id.clone(),
                    kind: "function",
                    function: SentFunction { name: made.tool.clone(), arguments: made.arguments.clone() },
                };
                all.push(Message::Assistant { content: None, tool_calls: made.iter().map(sent).collect() });
                for made in made {
                    all.push(Message::Tool { tool_call_id: made.id.clone(), content: told(&made.told) });
                }
            }
            (Exchange::Calls(made), Form::Json) => {
                all.push(Message::Assistant { content: Some(step(made).to_string()), tool_calls: Vec::new() });
                let results: Vec<String> = made.iter().map(|made| told(&made.told)).collect();
                all.push(Message::User { content: results.join("\n") });
            }
        }
    }
    all
}

/// The step of the model as it wrote it.
fn step(made: &[Made]) -> Value {
    let arguments = |made: &Made| serde_json::from_str(&made.arguments).unwrap_or_else(|_| json!(made.arguments));
    match made {
        [answer] if answer.tool == ANSWER => json!({ "answer": arguments(answer) }),
        calls => {
            let calls: Vec<Value> =
                calls.iter().map(|c| json!({ "tool": c.tool, "arguments": arguments(c) })).collect();
            json!({ "calls": calls })
        }
    }
}
