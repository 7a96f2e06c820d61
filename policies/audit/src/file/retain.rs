//! Retention: whole segments from the start of the log are taken out. Their checkpoints stay, and an event says what
//! was taken and from which hash the log goes on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use sightline_model::audit::{Event, EventKind, EventOutcome};

use super::LogFile;
use crate::checkpoint::Checkpoint;
use crate::error::AuditError;
use crate::tail::{Entry, Tail};

/// What was taken out of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// The first record that was taken out.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// The fields of a `Retention` event that verification reads.
pub(crate) const LAST: &str = "last";
pub(crate) const HASH: &str = "hash";

impl LogFile {
    /// Takes out every segment that ended before `until`. None when there is no such segment.
    pub(crate) fn retain(&mut self, until: Timestamp, at: Timestamp, by: &str) -> Result<Option<Retained>, AuditError> {
        let retained = self.write(|tail| {
            let Some(first) = first_record(tail.connection)? else { return Ok(None) };
            let Some(checkpoint) = newest_before(tail, until)?.filter(|found| found.last >= first) else {
                return Ok(None);
            };
            let last = checkpoint.last;
            without_triggers(tail.connection, &["record_is_not_removed", "checkpoint_is_not_removed"], || {
                tail.connection.execute("DELETE FROM private WHERE seq <= ?1", [last])?;
                tail.connection.execute("DELETE FROM record WHERE seq <= ?1", [last])?;
                tail.connection.execute("DELETE FROM checkpoint WHERE seq <= ?1", [last])?;
                Ok(())
            })?;
            let event = Event {
                at,
                event: EventKind::Retention,
                principal: Some(by.to_owned()),
                entrance: "audit".to_owned(),
                outcome: EventOutcome::Done,
                detail: BTreeMap::from([
                    ("until".to_owned(), until.to_string()),
                    ("first".to_owned(), first.to_string()),
                    (LAST.to_owned(), last.to_string()),
                    (HASH.to_owned(), checkpoint.hash.to_string()),
                    ("segment".to_owned(), checkpoint.segment.to_string()),
                ]),
            };
            tail.add(&Entry::of_event(&event)?)?;
            Ok(Some(Retained { first, last }))
        })?;
        self.fold();
        Ok(retained)
    }
}

fn first_record(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    connection.query_row("SELECT min(seq) FROM record", [], |row| row.get(0))
}

/// The last of the segments at the start of the log that all ended before `until`. One behind a segment that must
/// stay stays too, whatever time a clock that went back gave it.
fn newest_before(tail: &Tail<'_>, until: Timestamp) -> rusqlite::Result<Option<Checkpoint>> {
    let sql = format!(
        "SELECT {} FROM segment
         WHERE segment < coalesce((SELECT min(segment) FROM segment WHERE at >= ?1), 9223372036854775807)
         ORDER BY segment DESC LIMIT 1",
        Checkpoint::COLUMNS
    );
    tail.connection.query_row(&sql, [until.as_microsecond()], |row| Checkpoint::read(tail.log_id(), row)).optional()
}

/// Runs `work` with these triggers out of the way; they stand again, word for word, in the same transaction.
fn without_triggers(
    connection: &Connection,
    names: &[&str],
    work: impl FnOnce() -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut bodies = Vec::new();
    for name in names {
        let sql = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1";
        bodies.push(connection.query_row(sql, [name], |row| row.get::<_, String>(0))?);
        connection.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    work()?;
    connection.execute_batch(&bodies.join(";"))
}
