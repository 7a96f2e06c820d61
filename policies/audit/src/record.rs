//! Records as the chain covers them: canonical JSON (RFC 8785).

use serde::Serialize;
use serde_json::{Map, Number, Value};
use sightline_model::audit::Event;

use crate::error::AuditError;
use crate::text::{self, SaltedText};

/// Which kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Before anything was read.
    Begin,
    /// One tool call's query.
    Call,
    /// When the question had ended.
    Complete,
    /// Something beside the questions.
    Event,
}

impl Kind {
    /// Its name in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Call => "call",
            Self::Complete => "complete",
            Self::Event => "event",
        }
    }
}

/// The canonical text of a record, with its kind beside its fields and a commitment in place of what can be erased.
pub(crate) fn canonical(
    kind: Kind,
    record: &impl Serialize,
    salts: &dyn Fn() -> Result<[u8; 32], String>,
) -> Result<(String, Option<SaltedText>), AuditError> {
    let mut value = serde_json::to_value(record).map_err(|error| AuditError::Record { what: error.to_string() })?;
    let mut text = None;
    if let Value::Object(fields) = &mut value {
        text = text::part(kind, fields, salts)?;
        fields.insert("kind".to_owned(), Value::String(kind.as_str().to_owned()));
    }
    Ok((canonical_value(value)?, text))
}

/// The canonical text of an event, which holds nothing that can be erased.
pub(crate) fn canonical_event(event: &Event) -> Result<String, AuditError> {
    canonical(Kind::Event, event, &|| Err("an event has no text of its own".to_owned())).map(|(body, _none)| body)
}

/// The canonical text of a value.
pub(crate) fn canonical_value(value: Value) -> Result<String, AuditError> {
    serde_json_canonicalizer::to_string(&exact(value)).map_err(|error| AuditError::Record { what: error.to_string() })
}

/// Canonical JSON has doubles alone. An integer that a double cannot hold, which only an asker's arguments bring,
/// is kept as its decimal text, so that the record says what was asked and not what it was rounded to.
fn exact(value: Value) -> Value {
    match value {
        Value::Number(number) if is_rounded(&number) => Value::String(number.to_string()),
        Value::Array(items) => Value::Array(items.into_iter().map(exact).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, field)| (key, exact(field))).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// 2^53: up to here a double holds every integer (RFC 8785, section 3.2.2.3, after IEEE 754).
const LARGEST_EXACT: u64 = 1 << 53;

fn is_rounded(number: &Number) -> bool {
    match (number.as_u64(), number.as_i64()) {
        (Some(unsigned), _) => unsigned > LARGEST_EXACT,
        (None, Some(signed)) => signed.unsigned_abs() > LARGEST_EXACT,
        (None, None) => false,
    }
}
