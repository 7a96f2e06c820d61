//! The end of the chain inside one transaction: records are added here, and segments closed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};
use sightline_model::audit::{Event, EventKind, EventOutcome};

use crate::chain::{Hash, Head};
use crate::checkpoint::{Checkpoint, Hex};
use crate::error::AuditError;
use crate::file::Fault;
use crate::key::AuditKey;
use crate::merkle::RecordTree;
use crate::record::canonical_event;
use crate::rotation::Rotation;
use crate::text::SaltedText;

/// A clock may jitter between threads; from here on it stood still or was set back.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// When a record closes its segment although the segment is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closes {
    Never,
    /// A heartbeat: only with other records open, so that an idle log does not fill with checkpoints.
    UnlessIdle,
    Always,
}

/// A record that is to be added.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) body: String,
    pub(crate) text: Option<SaltedText>,
    pub(crate) at: Timestamp,
    /// Whether `at` was taken just before it was handed over. A call or an ending may come late, after a retry.
    pub(crate) just_now: bool,
    pub(crate) closes: Closes,
}

impl Entry {
    pub(crate) fn of_event(event: &Event) -> Result<Self, AuditError> {
        let closes = match event.event {
            EventKind::Heartbeat => Closes::UnlessIdle,
            EventKind::ServiceStopped | EventKind::TextErased | EventKind::Retention | EventKind::KeyRotated => {
                Closes::Always
            }
            EventKind::ServiceStarted
            | EventKind::Login
            | EventKind::Logout
            | EventKind::LoginFailed
            | EventKind::LockedOut
            | EventKind::Denied
            | EventKind::PolicyReload
            | EventKind::TokenCreated
            | EventKind::TokenRevoked
            | EventKind::AuditRead
            | EventKind::AuditVerified
            | EventKind::AuditExported
            | EventKind::AuditReplayed
            | EventKind::ClockWentBack
            | EventKind::CopyFailed
            | EventKind::Feedback
            | EventKind::ConversationsDeleted => Closes::Never,
        };
        Ok(Self { body: canonical_event(event)?, text: None, at: event.at, just_now: true, closes })
    }
}

/// The end of the chain, with the transaction's write lock held.
pub(crate) struct Tail<'a> {
    pub(crate) connection: &'a Connection,
    log_id: &'a [u8; 16],
    key: &'a AuditKey,
    head: Head,
    last_at: Option<Timestamp>,
    closes: Closes,
    new_key: Option<AuditKey>,
}

impl<'a> Tail<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        log_id: &'a [u8; 16],
        key: &'a AuditKey,
        head: Head,
        last_at: Option<Timestamp>,
    ) -> Self {
        Self { connection, log_id, key, head, last_at, closes: Closes::Never, new_key: None }
    }

    pub(crate) fn log_id(&self) -> &'a [u8; 16] {
        self.log_id
    }

    /// Adds a record. One from before the last is kept all the same, and an event beside it says so.
    pub(crate) fn add(&mut self, entry: &Entry) -> Result<Head, Fault> {
        let place = self.add_record(&entry.body, entry.text.as_ref())?;
        self.closes = match (self.closes, entry.closes) {
            (Closes::Always, _) | (_, Closes::Always) => Closes::Always,
            (Closes::UnlessIdle, _) | (_, Closes::UnlessIdle) => Closes::UnlessIdle,
            (Closes::Never, Closes::Never) => Closes::Never,
        };
        match self.last_at {
            Some(last) if entry.just_now && entry.at.duration_since(last) < -TOLERANCE => {
                let event = Event {
                    at: entry.at,
                    event: EventKind::ClockWentBack,
                    principal: None,
                    entrance: "service".to_owned(),
                    outcome: EventOutcome::Done,
                    detail: BTreeMap::from([("last_record_at".to_owned(), last.to_string())]),
                };
                self.add_record(&canonical_event(&event)?, None)?;
                self.last_at = Some(entry.at);
            }
            Some(last) => self.last_at = Some(last.max(entry.at)),
            None => self.last_at = Some(entry.at),
        }
        Ok(place)
    }

    fn add_record(&mut self, body: &str, text: Option<&SaltedText>) -> rusqlite::Result<Head> {
        let seq = self.head.seq.saturating_add(1);
        let hash = self.head.hash.next(seq, body.as_bytes());
        self.connection
            .prepare_cached("INSERT INTO record (seq, body, prev, hash) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![seq, body, self.head.hash.as_bytes(), hash.as_bytes()])?;
        if let Some(SaltedText { salt, text }) = text {
            self.connection
                .prepare_cached("INSERT INTO private (seq, salt, text) VALUES (?1, ?2, ?3)")?
                .execute(params![seq, salt, text])?;
        }
        self.head = Head { seq, hash, previous: self.head.previous };
        Ok(self.head)
    }

    /// From the record just added on, this key signs.
    pub(crate) fn change_key(&mut self, number: u64, new_key: AuditKey) -> rusqlite::Result<()> {
        Rotation::sign(self.log_id, number, &self.head, self.key, &new_key).insert(self.connection)?;
        self.new_key = Some(new_key);
        Ok(())
    }

    /// Closes the segment when it is full, or when a record asked for it.
    pub(crate) fn close_if_due(&mut self, checkpoint_every: u64) -> Result<Option<Checkpoint>, Fault> {
        let full = self.head.seq.saturating_sub(self.head.previous) >= checkpoint_every;
        let due = full
            || match self.closes {
                Closes::Never => false,
                Closes::UnlessIdle => self.others_are_open()?,
                Closes::Always => true,
            };
        if !due {
            return Ok(None);
        }
        let before = Checkpoint::newest(self.connection, self.log_id)?;
        let checkpoint = self.checkpoint(before.as_ref())?;
        checkpoint.insert(self.connection)?;
        self.head.previous = checkpoint.last;
        Ok(Some(checkpoint))
    }

    fn others_are_open(&self) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM record WHERE seq > ?1
                   AND NOT (kind = 'event' AND coalesce(body ->> '$.event', '') = 'heartbeat'))",
            )?
            .query_row([self.head.previous], |row| row.get(0))
    }

    /// The signed checkpoint of the open records. The first one covers those that a log of format 1 had.
    fn checkpoint(&self, before: Option<&Checkpoint>) -> rusqlite::Result<Checkpoint> {
        let first = before.map_or(1, |before| before.last.saturating_add(1));
        let tree: RecordTree = self
            .connection
            .prepare_cached("SELECT hash FROM record WHERE seq >= ?1 ORDER BY seq")?
            .query_map([first], |row| row.get(0).map(Hash::from_bytes))?
            .collect::<rusqlite::Result<_>>()?;
        let unsigned = Checkpoint {
            log_id: Hex(*self.log_id),
            segment: before.map_or(1, |before| before.segment.saturating_add(1)),
            first,
            last: self.head.seq,
            hash: self.head.hash,
            root: tree.root(),
            previous: before.map_or(Hash::from_bytes([0; 32]), Checkpoint::digest),
            at: self.last_at.map_or(Timestamp::UNIX_EPOCH, to_the_microsecond),
            key: self.key.public(),
            signature: Hex([0; 64]),
        };
        Ok(unsigned.sign(self.key))
    }

    /// The head to sign, its time, and the key to sign with from here on.
    pub(crate) fn end(self) -> (Head, Option<Timestamp>, Option<AuditKey>) {
        (self.head, self.last_at, self.new_key)
    }
}

/// As precise as it is stored and signed.
fn to_the_microsecond(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
