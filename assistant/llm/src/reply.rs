//! One reply of a model, put together from the pieces of a stream.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::ModelFault;
use crate::wire::{CallDelta, Chunk, Delta, Usage};

/// The most calls that are kept of one reply; what comes after is counted only. A reply of thousands is no plan.
pub(crate) const MAX_CALLS: usize = 64;
/// The most bytes of one call's arguments.
const MAX_ARGUMENTS: usize = 16 * 1024;
/// The most bytes of a reply's own words.
const MAX_CONTENT: usize = 64 * 1024;

/// A call as the model made it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Called {
    pub(crate) id: String,
    pub(crate) name: String,
    /// As it came: text that may be no JSON.
    pub(crate) arguments: String,
}

/// A reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) content: String,
    pub(crate) calls: Vec<Called>,
    /// Calls that were left out because there were too many.
    pub(crate) cut_calls: usize,
    pub(crate) refused: bool,
    /// Whether the server cut it at its limit of tokens.
    pub(crate) too_long: bool,
    /// Tokens in and out as the server counted; none where it does not say.
    pub(crate) tokens_in: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    pub(crate) finished: bool,
    /// Where the pieces with an index go.
    pub(crate) places: BTreeMap<usize, usize>,
}

impl Reply {
    /// Adds a piece.
    ///
    /// # Errors
    /// When the piece says that something went wrong.
    pub(crate) fn add(&mut self, chunk: Chunk) -> Result<(), ModelFault> {
        let Chunk { choices, usage, error } = chunk;
        if error.is_some_and(|error| !error.is_null()) {
            return Err(ModelFault::Malformed { what: "an error stands in the stream" });
        }
        if let Some(Usage { prompt_tokens, completion_tokens }) = usage {
            self.tokens_in = prompt_tokens.or(self.tokens_in);
            self.tokens_out = completion_tokens.or(self.tokens_out);
        }
        let Some(choice) = choices.into_iter().flatten().next() else { return Ok(()) };
        for delta in choice.delta.into_iter().chain(choice.message) {
            self.extend(delta);
        }
        match choice.finish_reason.as_deref() {
            None => {}
            Some("length") => (self.finished, self.too_long) = (true, true),
            Some("content_filter") => (self.finished, self.refused) = (true, true),
            Some(_) => self.finished = true,
        }
        Ok(())
    }

    /// The reply, once the stream has ended.
    ///
    /// # Errors
    /// When it broke off.
    pub(crate) fn whole(self) -> Result<Self, ModelFault> {
        if !self.finished {
            return Err(ModelFault::Cut);
        }
        Ok(self)
    }

    fn extend(&mut self, delta: Delta) {
        let Delta { content, refusal, tool_calls } = delta;
        push(&mut self.content, &content.unwrap_or_default(), MAX_CONTENT);
        self.refused |= refusal.is_some_and(|refusal| !refusal.is_empty());
        for call in tool_calls.into_iter().flatten() {
            self.call(call);
        }
    }

    fn call(&mut self, delta: CallDelta) {
        let CallDelta { index, id, function } = delta;
        let function = function.unwrap_or_default();
        let id = id.filter(|id| !id.is_empty());
        // Without an index, a new id or a name begins a new call; with one too, where a server counts every call as its first.
        let begins = id.is_some() || function.name.is_some();
        let known = index.and_then(|index| self.places.get(&index).copied());
        let is_another = |place: usize| {
            let call = self.calls.get(place);
            function.name.is_some()
                && id.is_some()
                && call.is_some_and(|call| !call.id.is_empty() && Some(&call.id) != id.as_ref())
        };
        let next = self.calls.len() + self.cut_calls;
        let place = match (index, known) {
            (Some(_), Some(place)) if !is_another(place) => place,
            (Some(_), _) => next,
            (None, _) if begins || self.calls.is_empty() => next,
            (None, _) => self.calls.len().saturating_sub(1),
        };
        if place >= MAX_CALLS {
            self.cut_calls += usize::from(begins);
            return;
        }
        if let Some(index) = index {
            self.places.insert(index, place);
        }
        while self.calls.len() <= place {
            self.calls.push(Called::default());
        }
        let Some(call) = self.calls.get_mut(place) else { return };
        if let Some(id) = id {
            call.id = id;
        }
        // Some servers say the name with every piece.
        if let Some(name) = function.name.filter(|name| *name != call.name) {
            push(&mut call.name, &name, 128);
        }
        match function.arguments {
            Some(Value::String(part)) => push(&mut call.arguments, &part, MAX_ARGUMENTS),
            Some(Value::Null) | None => {}
            Some(object) => push(&mut call.arguments, &object.to_string(), MAX_ARGUMENTS),
        }
    }
}

/// Adds text up to a length in bytes, at a boundary of characters.
fn push(text: &mut String, part: &str, most: usize) {
    let mut room = most.saturating_sub(text.len()).min(part.len());
    while !part.is_char_boundary(room) {
        room -= 1;
    }
    text.push_str(part.get(..room).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(chunks: &[Value]) -> Result<Reply, ModelFault> {
        let mut reply = Reply::default();
        for chunk in chunks {
            reply.add(serde_json::from_value(chunk.clone()).unwrap())?;
        }
        reply.whole()
    }

    #[test]
    fn calls_come_together_from_pieces_with_and_without_an_index() {
        let with = reply(&[
            json!({"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"top_k","arguments":""}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"k\":"}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"compare","arguments":"{}"}},{"index":0,"function":{"arguments":"5}"}}]}}]}),
            json!({"choices":[{"delta":{},"finish_reason":"tool_calls"}]}),
            json!({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}),
        ])
        .unwrap();
        let call = |id: &str, name: &str, arguments: &str| Called {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        assert_eq!(with.calls, [call("a", "top_k", "{\"k\":5}"), call("b", "compare", "{}")]);
        assert_eq!((with.tokens_in, with.tokens_out), (Some(7), Some(3)));
        // Ollama sends whole calls without an index; llama.cpp some arguments as an object.
        let without = reply(&[json!({"choices":[{"message":{"content":"","tool_calls":[
            {"id":"x","function":{"name":"top_k","arguments":{"k":5}}}, {"id":"y","function":{"name":"compare","arguments":"{}"}}]},
            "finish_reason":"stop"}]})])
        .unwrap();
        assert_eq!(without.calls, [call("x", "top_k", "{\"k\":5}"), call("y", "compare", "{}")]);
        // Two calls that both stand in the first place, each in a piece of its own.
        let twice_first = reply(&[
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"top_k","arguments":"{}"}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"compare","arguments":"{"}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"stop"}]}),
        ])
        .unwrap();
        assert_eq!(twice_first.calls, [call("x", "top_k", "{}"), call("y", "compare", "{}")]);
    }

    #[test]
    fn ten_thousand_calls_and_endless_arguments_take_no_more_than_their_room() {
        let mut reply = Reply::default();
        for index in 0..10_000 {
            let call = json!({"choices":[{"delta":{"tool_calls":[{"index":index,"id":format!("c{index}"),"function":{"name":"top_k","arguments":"{}"}}]}}]});
            reply.add(serde_json::from_value(call).unwrap()).unwrap();
        }
        assert_eq!((reply.calls.len(), reply.cut_calls), (MAX_CALLS, 10_000 - MAX_CALLS));
        for _ in 0..100 {
            let more =
                json!({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"é".repeat(1000)}}]}}]});
            reply.add(serde_json::from_value(more).unwrap()).unwrap();
        }
        assert!(reply.calls[0].arguments.len() <= MAX_ARGUMENTS);
        // A huge index makes no room for itself.
        let far =
            json!({"choices":[{"delta":{"tool_calls":[{"index":u32::MAX,"id":"z","function":{"name":"top_k"}}]}}]});
        reply.add(serde_json::from_value(far).unwrap()).unwrap();
        assert_eq!(reply.calls.len(), MAX_CALLS);
    }

    #[test]
    fn what_broke_off_or_says_so_itself_is_a_fault() {
        assert_eq!(reply(&[json!({"choices":[{"delta":{"content":"The"}}]})]), Err(ModelFault::Cut));
        assert!(matches!(
            reply(&[json!({"error":{"message":"secret text of the server"}})]),
            Err(ModelFault::Malformed { .. })
        ));
        assert!(reply(&[json!({"choices":[{"delta":{"refusal":"no"},"finish_reason":"stop"}]})]).unwrap().refused);
    }
}
