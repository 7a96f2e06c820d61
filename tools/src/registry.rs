//! The tools there are, and their schemas as a planner is sent them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::search_runbooks::LiveKnowledge;
use crate::tool::AnyTool;
use crate::{
    Compare, FindEntities, JobCorrelation, ListEvents, MetricRange, SearchLogs, SearchRunbooks, ServiceCorrelation,
    TopK,
};

/// Every tool, with the knowledge that ships.
pub fn tools() -> Vec<Box<dyn AnyTool>> {
    tools_with(Arc::new(LiveKnowledge::new(crate::builtin_knowledge())))
}

/// Every tool, with this knowledge: a site's runbooks beside ours.
pub fn tools_with(knowledge: Arc<LiveKnowledge>) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(MetricRange),
        Box::new(TopK),
        Box::new(JobCorrelation),
        Box::new(ServiceCorrelation),
        Box::new(Compare),
        Box::new(SearchLogs),
        Box::new(ListEvents),
        Box::new(FindEntities),
        Box::new(SearchRunbooks::new(knowledge)),
    ]
}

/// The tool of that name.
pub fn find(name: &str) -> Option<Box<dyn AnyTool>> {
    tools().into_iter().find(|tool| tool.name() == name)
}

/// A tool as a planner is sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct SentTool {
    /// Its name.
    pub name: &'static str,
    /// What it answers.
    pub description: &'static str,
    /// The schema of its arguments, shortened.
    pub schema: Value,
}

/// The tools as a planner is sent them: every turn pays for each word, so a property is spelled out where it first occurs and
/// typed afterwards, and what changes nothing for a planner is left out. The full schemas are [`AnyTool::schema`].
pub fn sent_tools(tools: &[Box<dyn AnyTool>]) -> Vec<SentTool> {
    let mut said: BTreeSet<String> = BTreeSet::new();
    tools
        .iter()
        .map(|tool| {
            let mut properties = Map::new();
            let schema = tool.schema();
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                properties.insert(name.clone(), shortened(property, &mut said));
            }
            let required = schema.get("required").cloned().unwrap_or_else(|| json!([]));
            SentTool {
                name: tool.name(),
                description: tool.description(),
                schema: json!({ "type": "object", "properties": properties, "required": required }),
            }
        })
        .collect()
}

/// A property, spelled out if its schema was not yet said: choices, items and nested fields are the same by any name.
fn shortened(property: &Value, said: &mut BTreeSet<String>) -> Value {
    let mut full = terse(property, true);
    let mut open = full.clone();
    if let Some(parts) = open.as_object_mut() {
        parts.remove("description");
    }
    let is_new = said.insert(open.to_string());
    if !is_new && let Some(parts) = full.as_object_mut() {
        parts.retain(|key, _| key == "type" || key == "description");
    }
    full
}

/// A schema without what a planner can do without: defaults, formats, the null of optional properties, and the descriptions of
/// what is nested.
fn terse(schema: &Value, top: bool) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut kept = Map::new();
    for (key, value) in object {
        match key.as_str() {
            "type" => {
                kept.insert(key.clone(), without_null(value));
            }
            "enum" => {
                let names = value.as_array().into_iter().flatten().filter(|v| !v.is_null()).cloned().collect();
                kept.insert(key.clone(), Value::Array(names));
            }
            "items" => {
                kept.insert(key.clone(), terse(value, false));
            }
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                kept.insert(key.clone(), fields.map(|(name, field)| (name.clone(), terse(field, false))).collect());
            }
            "required" => {
                kept.insert(key.clone(), value.clone());
            }
            "description" if top => {
                kept.insert(key.clone(), value.clone());
            }
            "anyOf" => {
                let real = value.as_array().into_iter().flatten().find(|s| s.get("type") != Some(&json!("null")));
                kept.extend(real.map(|s| terse(s, top)).and_then(|s| s.as_object().cloned()).into_iter().flatten());
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

fn without_null(kind: &Value) -> Value {
    match kind.as_array() {
        Some(kinds) => kinds.iter().find(|k| *k != &json!("null")).cloned().unwrap_or(Value::Null),
        None => kind.clone(),
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
