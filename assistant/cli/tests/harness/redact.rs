//! Takes out of answers what differs from run to run: ids, times of day, milliseconds.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::{Value, json};

/// The answer without what differs between two runs of the same question on the same rows.
pub(crate) fn redacted(answer: &Value) -> Value {
    let mut answer = redacted_but_reads(answer);
    // How much was read depends on how far the engine has merged its parts.
    answer["cost"]["rows_read"] = json!(0);
    answer["cost"]["bytes_read"] = json!(0);
    for evidence in answer["evidence"].as_array_mut().unwrap() {
        if evidence["read"].is_object() {
            evidence["read"] = json!("[read]");
        }
    }
    answer
}

/// The same, but how many rows and bytes were read stays.
pub(crate) fn redacted_but_reads(answer: &Value) -> Value {
    let mut answer = answer.clone();
    for (place, word) in [
        ("/answer_id", "answer"),
        ("/conversation_id", "conversation"),
        ("/audit/question_id", "question"),
        ("/audit/hash", "hash"),
    ] {
        *answer.pointer_mut(place).unwrap() = json!(format!("[{word}]"));
    }
    // Only who may read the log is told its place in it.
    if let Some(seq) = answer.pointer_mut("/audit/seq") {
        *seq = json!(0);
    }
    *answer.pointer_mut("/cost/wall_ms").unwrap() = json!(0);
    for evidence in answer["evidence"].as_array_mut().unwrap() {
        if evidence["query_id"].is_string() {
            evidence["query_id"] = json!("[query]");
        }
        if evidence["read"].is_object() {
            evidence["read"]["wall_ms"] = json!(0);
        }
        // The database is named after the files' bytes, which hold when they were written.
        if let Some(sql) = evidence["sql"].as_str() {
            evidence["sql"] = json!(without_database(sql));
        }
    }
    answer
}

/// A redacted answer short enough to review: SQL has goldens of its own, and the last digits of a mean depend on the order of adding.
pub(crate) fn shortened(answer: &Value) -> Value {
    let mut answer = redacted(answer);
    for evidence in answer["evidence"].as_array_mut().unwrap() {
        if evidence["sql"].is_string() {
            evidence["sql"] = json!("[sql]");
            evidence["params"] = json!(evidence["params"].as_object().unwrap().len());
        }
    }
    round(&mut answer);
    answer
}

fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded: f64 = format!("{:.5e}", number.as_f64().unwrap()).parse().unwrap();
            *value = json!(rounded);
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The statement with `incident_<hash>` as `incident`.
fn without_database(sql: &str) -> String {
    let mut parts = sql.split("incident_");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("incident");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

/// A text answer with every id as `[id]`, and of the footer the number of statements alone.
pub(crate) fn redacted_text(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.chars().filter(|c| *c == '-').count() == 4;
    let line = |line: &str| {
        let (kept, footer) =
            line.split_once(" · ").filter(|_| line.contains(" statements verified")).unwrap_or((line, ""));
        let words = kept.split(' ').map(|word| if is_id(word) { "[id]" } else { word });
        let end = if footer.is_empty() { "" } else { " · [footer]" };
        words.collect::<Vec<&str>>().join(" ") + end
    };
    text.lines().map(line).collect::<Vec<String>>().join("\n")
}
