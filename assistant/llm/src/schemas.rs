//! The tools as a model is sent them: the registry's own, made as short as a model can still use.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sightline_tools::{AnyTool, SentTool, sent_tools};

/// By which an answer is handed in. It reads nothing and is no tool of the registry.
pub(crate) const ANSWER: &str = "answer";

/// Arguments that a model can do without: what they say can be said otherwise, or is for charts. A model that knows them from the full schemas
/// may use them all the same.
const UNSENT: [&str; 18] = [
    "align",
    "points",
    "transform",
    "divide_by",
    "samples",
    "min_samples",
    "base_filters",
    "label",
    "started",
    "per",
    "dataset",
    "severity",
    "latest",
    "also",
    "canary",
    "below",
    "above",
    "regex",
];

/// Arguments whose names say enough, or that the prompt speaks of.
const UNSAID: [&str; 11] = [
    "job",
    "to",
    "threshold",
    "step_seconds",
    "search",
    "count_by",
    "templates",
    "cause",
    "service",
    "base_from",
    "base_to",
];

/// The tools as they are sent. An argument means the same in all of them, so its form is said once; one that is text is said by its name alone.
#[must_use]
pub fn compact_tools(tools: &[Box<dyn AnyTool>]) -> Vec<SentTool> {
    let mut said: BTreeSet<String> = BTreeSet::new();
    sent_tools(tools)
        .into_iter()
        .map(|tool| {
            let mut properties = Map::new();
            for (name, property) in tool.schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                // The windows of two sets of lines are for a person with a baseline in mind.
                let is_for_people = tool.name == "search_logs" && name.starts_with("base_");
                let is_sent = !is_for_people && !UNSENT.contains(&name.as_str());
                if is_sent {
                    let choices = property.get("enum").map(Value::to_string).unwrap_or_default();
                    let is_new =
                        said.insert(name.clone()) | (!choices.is_empty() && said.insert(format!("{name}{choices}")));
                    properties.insert(name.clone(), if is_new { short(name, property) } else { json!({}) });
                }
            }
            let mut schema = json!({ "type": "object", "properties": properties });
            let required = tool.schema.get("required").and_then(Value::as_array).into_iter().flatten();
            // That a window is always wanted stands in the prompt.
            let required: Vec<&Value> = required.filter(|name| !matches!(name.as_str(), Some("from" | "to"))).collect();
            if let (false, Some(fields)) = (required.is_empty(), schema.as_object_mut()) {
                fields.insert("required".to_owned(), json!(required));
            }
            SentTool { schema, ..tool }
        })
        .collect()
}

/// A property's form: its choices, else its type unless that is text, and what is said of it. Choices as words take half the tokens of a list; a
/// wrong one is refused with the right ones.
fn short(name: &str, property: &Value) -> Value {
    if name == "filters" {
        let form = "[{dim,op,values}]; op: is,not,contains,prefix,regex,present,absent,gt,ge,lt,le";
        return json!({ "type": "array", "description": form });
    }
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let names: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        return json!({ "description": names.join("|") });
    }
    let mut form = Map::new();
    if let Some(kind) = property.get("type").and_then(Value::as_str).filter(|kind| *kind != "string") {
        form.insert("type".to_owned(), json!(kind));
    }
    if let Some(said) = property.get("description").filter(|_| !UNSAID.contains(&name)) {
        form.insert("description".to_owned(), said.clone());
    }
    Value::Object(form)
}

/// The parameters of [`ANSWER`].
pub(crate) fn answer_schema() -> Value {
    json!({ "type": "object", "properties": {
        "headline": {}, "claims": { "type": "array" }, "causes": { "type": "array", "description": "[{id,why}]" } },
        "required": ["headline", "claims"] })
}

/// The tools in the form of the protocol, the answer among them.
pub(crate) fn protocol(tools: &[SentTool]) -> Vec<Value> {
    let function = |name: &str, description: &str, parameters: &Value| json!({ "type": "function", "function": { "name": name, "description": description, "parameters": parameters } });
    let mut all: Vec<Value> = tools.iter().map(|t| function(t.name, t.description, &t.schema)).collect();
    all.push(function(ANSWER, "Hand in the answer.", &answer_schema()));
    all
}

/// The same as words, for the prompt of a model that knows no tool calls.
pub(crate) fn in_words(tools: &[SentTool]) -> String {
    let lines: Vec<String> = tools.iter().map(|t| format!("{}: {} {}", t.name, t.description, t.schema)).collect();
    lines.join("\n")
}

/// The form of a step, for servers that hold a model to a schema.
pub(crate) fn step_format(tools: &[SentTool], must_answer: bool) -> Value {
    let names: Vec<&str> = tools.iter().map(|t| t.name).collect();
    let call = json!({ "type": "object", "properties": { "tool": { "type": "string", "enum": names }, "arguments": { "type": "object" } },
        "required": ["tool", "arguments"] });
    let text = json!({ "type": "string" });
    let cause = json!({ "type": "object", "properties": { "id": text, "why": text }, "required": ["id", "why"] });
    let answer = json!({ "type": "object", "properties": { "headline": text, "claims": { "type": "array", "items": text },
        "causes": { "type": "array", "items": cause } }, "required": ["headline", "claims"] });
    let hand_in = json!({ "type": "object", "properties": { "answer": answer }, "required": ["answer"] });
    let calls = json!({ "type": "object", "properties": { "calls": { "type": "array", "minItems": 1, "items": call } }, "required": ["calls"] });
    let step = if must_answer { hand_in } else { json!({ "anyOf": [calls, hand_in] }) };
    json!({ "type": "json_schema", "json_schema": { "name": "step", "schema": step } })
}

#[cfg(test)]
mod tests {
    use sightline_tools::tools;

    use super::*;
    use crate::tokens::estimate;

    #[test]
    fn the_tools_as_sent_stay_under_their_tokens_and_name_each_tool_of_the_registry() {
        let sent = compact_tools(&tools());
        let names: Vec<&str> = sent.iter().map(|t| t.name).collect();
        assert_eq!(names, tools().iter().map(|t| t.name()).collect::<Vec<_>>());
        let protocol = protocol(&sent);
        let lines: Vec<String> = protocol.iter().map(Value::to_string).collect();
        insta::assert_snapshot!("tools_as_sent", lines.join("\n"));
        let text = serde_json::to_string(&protocol).unwrap();
        let tokens = estimate(&text);
        assert!(tokens < 900, "{tokens} tokens, {} bytes", text.len());
    }
}
