//! What a model's server can do, in words for whoever runs the service.

use sightline_llm::{Capabilities, LlmPlanner, ModelFault};

/// Asks it with two small requests.
///
/// # Errors
/// When it cannot be asked at all.
pub(super) async fn probed(model: &LlmPlanner) -> Result<String, ModelFault> {
    Ok(in_words(model.probe().await?).to_owned())
}

fn in_words(can: Capabilities) -> &'static str {
    match can {
        Capabilities { tools: true, parallel_calls: true, json_schema: _ } => "calls tools, several at once",
        Capabilities { tools: true, parallel_calls: false, json_schema: _ } => "calls tools, one at a time",
        Capabilities { tools: false, parallel_calls: _, json_schema: true } => {
            "calls no tools; it is asked for JSON after a schema"
        }
        Capabilities { tools: false, parallel_calls: _, json_schema: false } => {
            "calls no tools and holds to no schema; the built-in planner will answer most questions"
        }
    }
}
