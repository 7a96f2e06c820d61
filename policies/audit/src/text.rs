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

/// The fields of a record of this kind that people may ask to be forgotten.
fn erasable(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Begin => &["question"],
        Kind::Call => &["arguments", "params"],
        Kind::Complete | Kind::Event => &[],
    }
}

/// Takes the erasable fields out of a record and leaves the commitment to them.
pub(crate) fn part(
    kind: Kind,
    fields: &mut Map<String, Value>,
    salts: &dyn Fn() -> Result<[u8; 32], String>,
) -> Result<Option<SaltedText>, AuditError> {
    let taken: Map<String, Value> = erasable(kind).iter().filter_map(|name| fields.remove_entry(*name)).collect();
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
        Some(text) => {
            fields.extend(text);
            false
        }
        None => {
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
