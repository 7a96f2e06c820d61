//! Changing the key. The old one signs the last checkpoint under it, and both sign that the new one follows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::Connection;
use sightline_model::audit::{Event, EventKind, EventOutcome};

use super::LogFile;
use crate::error::AuditError;
use crate::key::{AuditKey, PublicKey};
use crate::rotation::Rotation;
use crate::tail::Entry;

/// Whether another process changed this key into that one, step by step with the signatures of both sides.
pub(super) fn leads_to(
    connection: &Connection,
    log_id: &[u8; 16],
    from: &PublicKey,
    to: &PublicKey,
) -> rusqlite::Result<bool> {
    let mut key = *from;
    for rotation in Rotation::all(connection)? {
        if rotation.old == key && rotation.is_signed(log_id) {
            key = rotation.new;
        }
    }
    Ok(key == *to)
}

impl LogFile {
    /// From here on this key signs.
    pub(crate) fn rotate(&mut self, new_key: AuditKey, at: Timestamp, by: &str) -> Result<(), AuditError> {
        let (old, new) = (self.key.public(), new_key.public());
        if old == new {
            return Err(AuditError::SameKey { key: new.id() });
        }
        let event = Event {
            at,
            event: EventKind::KeyRotated,
            principal: Some(by.to_owned()),
            entrance: "audit".to_owned(),
            outcome: EventOutcome::Done,
            detail: BTreeMap::from([("old_key".to_owned(), old.to_string()), ("new_key".to_owned(), new.to_string())]),
        };
        self.write(|tail| {
            let number: u64 = tail.connection.query_row("SELECT count(*) + 1 FROM rotation", [], |row| row.get(0))?;
            tail.add(&Entry::of_event(&event)?)?;
            tail.change_key(number, new_key)?;
            Ok(())
        })
    }
}
