//! What goes over the wire: the part of chat completions that is used, written strictly and read leniently.
//!
//! Servers differ in what they leave out: fields are null or absent, `index` of a call is missing, arguments come whole or as an object,
//! the last piece has no choices, and one that knows no streaming sends `message` in place of `delta`. All of it is read here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::ReplyLimit;

/// A request.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Request<'a> {
    pub(crate) model: &'a str,
    pub(crate) messages: &'a [Message],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) tools: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_format: Option<&'a Value>,
    #[serde(flatten)]
    pub(crate) most: Most,
    pub(crate) stream: bool,
    pub(crate) stream_options: StreamOptions,
}

/// The most tokens of the reply, under the name that the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Most {
    MaxTokens(u64),
    MaxCompletionTokens(u64),
}

impl Most {
    pub(crate) fn new(limit: ReplyLimit, tokens: u64) -> Self {
        match limit {
            ReplyLimit::MaxTokens => Self::MaxTokens(tokens),
            ReplyLimit::MaxCompletionTokens => Self::MaxCompletionTokens(tokens),
        }
    }
}

/// What a stream ends with.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: bool,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(crate) enum Message {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        /// Null beside calls, as some servers insist on.
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<SentCall>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

impl Message {
    /// Its words, for counting.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let (content, calls): (Option<&String>, &[SentCall]) = match self {
            Self::System { content } | Self::User { content } | Self::Tool { content, .. } => (Some(content), &[]),
            Self::Assistant { content, tool_calls } => (content.as_ref(), tool_calls),
        };
        let called = calls.iter().flat_map(|c| [c.function.name.as_str(), c.function.arguments.as_str()]);
        content.map(String::as_str).into_iter().chain(called)
    }
}

/// A call as it is told back to the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SentCall {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) function: SentFunction,
}

/// Its name and arguments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SentFunction {
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// A piece of a stream, or a whole completion.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Chunk {
    #[serde(default)]
    pub(crate) choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub(crate) usage: Option<Usage>,
    /// Some servers report a fault in the stream, with status 200 before it.
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

/// A choice; only the first is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Choice {
    #[serde(default)]
    pub(crate) delta: Option<Delta>,
    #[serde(default)]
    pub(crate) message: Option<Delta>,
    #[serde(default)]
    pub(crate) finish_reason: Option<String>,
}

/// What a piece adds.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Delta {
    #[serde(default)]
    pub(crate) content: Option<String>,
    #[serde(default)]
    pub(crate) refusal: Option<String>,
    #[serde(default)]
    pub(crate) tool_calls: Option<Vec<CallDelta>>,
}

/// What a piece adds to a call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CallDelta {
    #[serde(default)]
    pub(crate) index: Option<usize>,
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) function: Option<FunctionDelta>,
}

/// What a piece adds to a call's function.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct FunctionDelta {
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Text, or an object from servers that parse it themselves.
    #[serde(default)]
    pub(crate) arguments: Option<Value>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Usage {
    #[serde(default)]
    pub(crate) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(crate) completion_tokens: Option<u64>,
}
