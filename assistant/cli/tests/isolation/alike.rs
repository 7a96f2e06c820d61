//! Bodies made comparable: what differs from request to request is taken out of the very bytes that were sent, and nothing else.

use reqwest::Response;

/// Whether a body of a foreign name equals that of an unknown one: status, then every byte once ids, hashes, times taken and the names
/// themselves are out.
pub(crate) fn alike(text: &str, name: &str) -> String {
    let mut text = without_durations(&without_ids(text));
    // Nothing is named: nothing is taken out.
    if !name.is_empty() {
        text = text.replace(name, "[name]").replace(&name.to_lowercase(), "[name]");
    }
    text
}

/// The text with every UUID and every SHA-256 as a word.
fn without_ids(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let end = |word: &mut String, out: &mut String| {
        let dashes = word.chars().filter(|c| *c == '-').count();
        let is_hash = word.len() == 64 && dashes == 0;
        let is_id = word.len() == 36 && dashes == 4;
        out.push_str(if is_hash {
            "[hash]"
        } else if is_id {
            "[id]"
        } else {
            word
        });
        word.clear();
    };
    for character in text.chars() {
        if character.is_ascii_hexdigit() || character == '-' {
            word.push(character);
        } else {
            end(&mut word, &mut out);
            out.push(character);
        }
    }
    end(&mut word, &mut out);
    out
}

/// The text with every `"wall_ms":<number>` as zero.
fn without_durations(text: &str) -> String {
    let mut parts = text.split("\"wall_ms\":");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("\"wall_ms\":0");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || ".e-".contains(c)));
    }
    out
}

/// Status and body.
pub(crate) async fn read(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    (status, response.text().await.unwrap())
}

#[test]
fn only_what_differs_from_request_to_request_is_taken_out() {
    let id = "01a22e69-d4a5-76a7-adf9-b5b395352106";
    let body = |id: &str, job: &str, rows: u64| {
        format!("{{\"id\":\"{id}\",\"job\":\"{job}\",\"rows\":{rows},\"wall_ms\":1.5e-3}}")
    };
    let first = alike(&body(id, "J1", 7), "J1");
    assert_eq!(first, "{\"id\":\"[id]\",\"job\":\"[name]\",\"rows\":7,\"wall_ms\":0}");
    assert_eq!(first, alike(&body(&id.replace('6', "7"), "J2", 7), "J2"));
    assert_ne!(first, alike(&body(id, "J2", 8), "J2"));
}
