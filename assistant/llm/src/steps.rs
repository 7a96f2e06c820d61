//! Steps of a model as text: read from what it wrote, and told back in a form that every server takes.

use serde_json::{Value, json};

use crate::answer::first_object;
use crate::reply::{Called, MAX_CALLS};
use crate::schemas::ANSWER;

/// Some servers count on ids of their own form coming back, others send none.
pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// A name as it is told back: servers refuse the whole request over a sign that no function has in its name.
pub(crate) fn shown_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let shown: String = name.chars().take(64).map(plain).collect();
    if shown.is_empty() { "unnamed".to_owned() } else { shown }
}

/// Arguments as they are told back: valid JSON whatever came, since some servers parse what is sent to them.
pub(crate) fn shown_arguments(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() && text.len() < 2_000 => text.to_owned(),
        Ok(_) | Err(_) => "{}".to_owned(),
    }
}

/// The steps that a model wrote as JSON.
pub(crate) fn steps(content: &str) -> Vec<Called> {
    let Some(step) = first_object(content) else { return Vec::new() };
    let called = |name: &str, arguments: &Value| Called {
        id: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    if let Some(answer) = step.get("answer") {
        return vec![called(ANSWER, answer)];
    }
    if step.get("headline").is_some() && step.get("claims").is_some() {
        return vec![called(ANSWER, &step)];
    }
    let calls = step.get("calls").and_then(Value::as_array).into_iter().flatten();
    calls
        .take(MAX_CALLS)
        .filter_map(|call| Some(called(call.get("tool")?.as_str()?, call.get("arguments").unwrap_or(&json!({})))))
        .collect()
}
