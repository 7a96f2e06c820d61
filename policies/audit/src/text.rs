//! Texts that can be erased. The chain covers only a commitment to them; the texts lie in a table beside it.
//!
//! The commitment is salted with 32 random bytes, so that nobody can try out likely questions against it once the
//! text and its salt are gone.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::chain::Hash;
use crate::error::AuditError;
use crate::record::{Kind, canonical_value};

const COMMITMENT_DOMAIN: &[u8] = b"sightline-audit-text-v2\0";

/// The field of a record that holds the commitment to its text.
pub(crate) const COMMITMENT: &str = "commitment";

/// What a reader sees in place of an erased question.
pub(crate) const ERASED: &str = "(erased)";

/// Where salts come from. The error says why the system gave no randomness.
pub type Salts = Box<dyn Fn() -> Result<[u8; 32], String> + Send + Sync>;

/// The erasable fields of one record as canonical JSON, with the salt of their commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaltedText {
    pub(crate) salt: [u8; 32],
    pub(crate) text: String,
}

/// The fields of a record of this kind that people may ask to be forgotten. What went wrong quotes what was asked.
fn erasable(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Begin => &["question"],
        Kind::Call => &["arguments", "params", "error"],
        Kind::Complete => &["error"],
        Kind::Event => &[],
    }
}

/// The text's field for the reasons of a decision against a call: a refusal quotes the arguments, a permission rules alone.
const REASONS: &str = "reasons";

/// The reasons of a decision against a call, taken out of it.
fn refusal(fields: &mut Map<String, Value>) -> Option<Value> {
    let decision = fields.get_mut("decision")?.as_object_mut()?;
    if decision.get("allowed") == Some(&Value::Bool(false)) { decision.remove(REASONS) } else { None }
}

/// Puts the reasons back; an erased refusal has none.
fn put_back(fields: &mut Map<String, Value>, reasons: Option<Value>) {
    if let Some(decision) = fields.get_mut("decision").and_then(Value::as_object_mut)
        && !decision.contains_key(REASONS)
    {
        decision.insert(REASONS.to_owned(), reasons.unwrap_or_else(|| json!([])));
    }
}

/// Takes the erasable fields out of a record and leaves the commitment to them.
pub(crate) fn part(
    kind: Kind,
    fields: &mut Map<String, Value>,
    salts: &dyn Fn() -> Result<[u8; 32], String>,
) -> Result<Option<SaltedText>, AuditError> {
    // Nothing said is nothing to forget, and it can be seen that nothing was.
    let is_said = |fields: &Map<String, Value>, name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    let mut taken: Map<String, Value> = Map::new();
    for name in erasable(kind) {
        if is_said(fields, name) {
            taken.extend(fields.remove_entry(*name));
        }
    }
    if kind == Kind::Call {
        taken.extend(refusal(fields).map(|reasons| (REASONS.to_owned(), reasons)));
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let salt = salts().map_err(|what| AuditError::Record { what: format!("no randomness for its salt: {what}") })?;
    let text = canonical_value(Value::Object(taken))?;
    fields.insert(COMMITMENT.to_owned(), Value::String(commitment(&salt, text.as_bytes()).to_string()));
    Ok(Some(SaltedText { salt, text }))
}

/// Puts the text back into a record. Says whether there was one that is gone now.
pub(crate) fn join(fields: &mut Map<String, Value>, text: Option<Map<String, Value>>) -> bool {
    if fields.remove(COMMITMENT).is_none() {
        return false;
    }
    match text {
        Some(mut text) => {
            put_back(fields, text.remove(REASONS));
            fields.extend(text);
            false
        }
        None => {
            put_back(fields, None);
            // Fields that the record of its kind does not have are passed over by whoever reads it.
            fields.insert("question".to_owned(), json!(ERASED));
            fields.insert("arguments".to_owned(), Value::Null);
            fields.insert("params".to_owned(), json!({}));
            true
        }
    }
}

/// What the chain covers in place of this text.
pub(crate) fn commitment(salt: &[u8; 32], text: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(COMMITMENT_DOMAIN);
    hasher.update(salt);
    hasher.update(text);
    Hash::from_bytes(hasher.finalize().into())
}
