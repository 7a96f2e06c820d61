//! What a model said to questions, kept as a file: it can be asked again with no network, no key and the same words each time.
//!
//! A transcript holds replies alone, question by question. The calls in them are made anew, through the same line, so that a replay shows what
//! today's tools, guard and grounding make of yesterday's model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::fault::ModelFault;
use crate::reply::{Called, Reply};

/// Where replies come from, and whether they are kept.
#[derive(Clone, Debug, Default)]
pub enum Exchange {
    /// From the server.
    #[default]
    Server,
    /// From the server; they are kept here too.
    Recorded(Arc<Recording>),
    /// From a transcript; nothing is sent anywhere.
    Replayed(Arc<Transcript>),
}

/// The replies of one model to some questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// How it came about, for people.
    #[serde(default)]
    pub about: String,
    /// The model's name.
    pub model: String,
    /// The version of the prompt that it was asked with.
    pub prompt: String,
    /// The replies to each question, in order.
    pub questions: BTreeMap<String, Vec<KeptReply>>,
}

/// One reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptReply {
    /// The model's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<KeptCall>,
    /// Whether it declined.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Tokens it was sent, as the server counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    /// Tokens it put out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCall {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as they came: text that may be no JSON.
    pub arguments: String,
}

/// Why a file is no transcript.
#[derive(Debug, thiserror::Error)]
#[error("this is no transcript: {0}; make one with `sightline eval run --planner llm --record DIR`")]
pub struct NoTranscript(#[from] serde_json::Error);

impl Transcript {
    /// Reads a transcript.
    ///
    /// # Errors
    /// Where in the text it ceases to be one.
    pub fn read(text: &str) -> Result<Self, NoTranscript> {
        Ok(serde_json::from_str(text)?)
    }

    /// As the text of a file.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn text(&self) -> Result<String, NoTranscript> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The reply to a question that comes after so many others.
    pub(crate) fn reply(&self, question: &str, number: usize) -> Result<Reply, ModelFault> {
        let kept = self.questions.get(question).and_then(|replies| replies.get(number));
        kept.map(Reply::from).ok_or(ModelFault::NotRecorded)
    }
}

/// A transcript in the making.
#[derive(Debug, Default)]
pub struct Recording(Mutex<BTreeMap<String, Vec<KeptReply>>>);

impl Recording {
    /// What was kept so far.
    #[must_use]
    pub fn questions(&self) -> BTreeMap<String, Vec<KeptReply>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a reply. A question that is asked anew is kept anew.
    pub(crate) fn keep(&self, question: &str, number: usize, reply: &Reply) {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = questions.entry(question.to_owned()).or_default();
        replies.truncate(number);
        replies.push(KeptReply::from(reply));
    }
}

impl From<&Reply> for KeptReply {
    fn from(reply: &Reply) -> Self {
        let call = |Called { id, name, arguments }: &Called| KeptCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        Self {
            content: reply.content.clone(),
            calls: reply.calls.iter().map(call).collect(),
            refused: reply.refused,
            tokens_in: reply.tokens_in,
            tokens_out: reply.tokens_out,
        }
    }
}

impl From<&KeptReply> for Reply {
    fn from(kept: &KeptReply) -> Self {
        let KeptReply { content, calls, refused, tokens_in, tokens_out } = kept.clone();
        let call = |KeptCall { id, name, arguments }| Called { id, name, arguments };
        Self {
            content,
            calls: calls.into_iter().map(call).collect(),
            refused,
            tokens_in,
            tokens_out,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_said_again_and_nothing_else() {
        let called = Called { id: "a".to_owned(), name: "top_k".to_owned(), arguments: "{\"k\":".to_owned() };
        let first = Reply { calls: vec![called], tokens_in: Some(7), ..Reply::default() };
        let second = Reply { content: "é \"quoted\"\n".to_owned(), ..Reply::default() };
        let recording = Recording::default();
        for (number, reply) in [&first, &second, &first, &second].into_iter().enumerate() {
            recording.keep("why?", number % 2, reply);
        }
        let made = Transcript { model: "m".to_owned(), questions: recording.questions(), ..Transcript::default() };
        let read = Transcript::read(&made.text().unwrap()).unwrap();
        assert_eq!(read, made);
        assert_eq!((read.reply("why?", 0), read.reply("why?", 1)), (Ok(first), Ok(second)));
        assert_eq!(read.reply("why?", 2), Err(ModelFault::NotRecorded));
        assert_eq!(read.reply("who?", 0), Err(ModelFault::NotRecorded));
        let error = Transcript::read("{\"model\":7}").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("--record"), "{error}");
    }
}
