//! SHA-256 digests of results and answers, for the audit log.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sightline_model::ResultSet;

/// The digest of a result's rows, hex: over their JSON, in order.
pub(crate) fn digest_rows(result: &ResultSet) -> String {
    let mut hasher = Sha256::new();
    let mut line = Vec::new();
    for row in &result.rows {
        line.clear();
        // Cells are plain values: writing them into memory cannot fail.
        drop(serde_json::to_writer(&mut line, row));
        line.push(b'\n');
        hasher.update(&line);
    }
    hex::encode(hasher.finalize())
}

/// The digest of an answer to a question or a typed call, hex: over its canonical JSON (RFC 8785) without `audit`, which is only known from the log itself.
pub fn digest_answer(answer: &impl Serialize) -> String {
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.remove("audit");
    }
    hex::encode(Sha256::digest(serde_json_canonicalizer::to_vec(&value).unwrap_or_default()))
}
