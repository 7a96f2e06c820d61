//! Checkpoints and head against the chain as it stands.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::keys::Keys;
use super::{Stop, broken, unless_failed};
use crate::chain::{Hash, Head};
use crate::checkpoint::Checkpoint;
use crate::file::{self, SignedHead};
use crate::key::PublicKey;
use crate::merkle::RecordTree;

/// Everything that was signed over the chain.
pub(super) struct Checkpoints {
    log_id: [u8; 16],
    pub(super) keys: Keys,
    /// Those of format 1, by their record.
    old: BTreeMap<u64, SignedHead>,
    /// How many of those were passed.
    passed_old: usize,
    /// Those of format 2 in order, each with whether the key that it names signed it.
    segments: Vec<(Checkpoint, bool)>,
    /// How many segments were passed.
    passed: usize,
    /// The records since the last segment.
    tree: RecordTree,
}

impl Checkpoints {
    pub(super) fn load(connection: &Connection, log_id: &[u8; 16], keys: Keys) -> Result<Self, Stop> {
        let segments = signed(segments(connection, log_id)?);
        let old = old(connection)?;
        Ok(Self { log_id: *log_id, keys, old, passed_old: 0, segments, passed: 0, tree: RecordTree::default() })
    }

    pub(super) fn count(&self) -> u64 {
        (self.segments.len() + self.old.len()) as u64
    }

    /// Whether a segment was closed yet: only then can a copy hold anything.
    pub(super) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The checkpoint of this segment.
    pub(super) fn segment(&self, number: u64) -> Option<&Checkpoint> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.segments.get(index).map(|(checkpoint, _)| checkpoint)
    }

    /// Where the log goes on when the records before `first` were taken out: after the segment that ended there.
    pub(super) fn start_at(&mut self, first: u64) -> Result<Option<Head>, Stop> {
        let last = first.saturating_sub(1);
        let Some(count) = self.segments.iter().position(|(checkpoint, _)| checkpoint.last == last) else {
            return Ok(None);
        };
        for _ in 0..=count {
            self.check_next(None)?;
        }
        let start = self.segments.get(count).map(|(checkpoint, _)| checkpoint.hash);
        Ok(start.map(|hash| Head { seq: last, hash, previous: last }))
    }

    /// Passes a record, which may be the last under a checkpoint, and returns the head with it.
    pub(super) fn pass(&mut self, made: Head) -> Result<Head, Stop> {
        self.tree.push(made.hash);
        if let Some(rotation) = self.keys.rotations().iter().find(|rotation| rotation.seq == made.seq)
            && rotation.hash != made.hash
        {
            return Err(broken(made.seq, "it was changed: the change of the key there was signed for another record"));
        }
        let mut head = made;
        if let Some(checkpoint) = self.old.get(&made.seq) {
            check_signed("the checkpoint", checkpoint, &head, self.keys.of_checkpoint(made.seq), &self.log_id)?;
            head.previous = made.seq;
            self.passed_old = self.passed_old.saturating_add(1);
        }
        if self.segments.get(self.passed).is_some_and(|(next, _)| next.last <= made.seq) {
            self.check_next(Some(&made))?;
            head.previous = made.seq;
        }
        Ok(head)
    }

    /// Checks the next segment's checkpoint: against the one before it, and against the chain at its last record,
    /// unless its records were taken out.
    fn check_next(&mut self, made: Option<&Head>) -> Result<(), Stop> {
        let before = self.passed.checked_sub(1).and_then(|index| self.segments.get(index)).map(|(before, _)| before);
        let first = before.map_or(1, |before| before.last.saturating_add(1));
        let Some((checkpoint, is_signed)) = self.segments.get(self.passed) else { return Ok(()) };
        let number = before.map_or(1, |before| before.segment.saturating_add(1));
        let key = self.keys.of_checkpoint(checkpoint.last);
        if *is_signed && checkpoint.key != *key {
            let what =
                format!("the checkpoint there is signed with key {}, not with {}", checkpoint.key.id(), key.id());
            return Err(broken(made.map_or(first, |made| made.seq), what));
        }
        if !is_signed {
            let what = format!("the checkpoint of segment {number} was changed: its signature is not that of the key");
            return Err(broken(first, what));
        }
        let previous = before.map_or(Hash::from_bytes([0; 32]), Checkpoint::digest);
        if (checkpoint.segment, checkpoint.first, checkpoint.previous) != (number, first, previous) {
            let what = format!("a checkpoint was added, removed or replaced at segment {number}");
            return Err(broken(first, what));
        }
        if let Some(made) = made {
            if checkpoint.last != made.seq {
                let what = format!("a checkpoint was added, removed or replaced at segment {number}");
                return Err(broken(first, what));
            }
            if checkpoint.hash != made.hash {
                let what = format!("a record from {first} to {} was changed and all after it hashed anew", made.seq);
                return Err(broken(first, what));
            }
            if checkpoint.root != self.tree.root() {
                let what = format!("the Merkle root that was signed for segment {number} is not that of its records");
                return Err(broken(first, what));
            }
        }
        self.tree = RecordTree::default();
        self.passed = self.passed.saturating_add(1);
        Ok(())
    }

    /// The head must be signed and name the very last record: else the end was cut off, or added to from outside.
    pub(super) fn check_head(&self, connection: &Connection, made: &Head) -> Result<(), Stop> {
        let next = made.seq.saturating_add(1);
        let signed = file::stored_head(connection).map_err(|error| unless_failed(error, "the signed head"))?;
        let last_old = self.old.keys().last().copied().unwrap_or(0);
        let last_segment = self.segments.last().map_or(0, |(checkpoint, _)| checkpoint.last);
        let last_signed = last_old.max(last_segment).max(signed.head.seq);
        if last_signed > made.seq {
            return Err(broken(next, format!("the end was cut off: {}", missing(next, last_signed))));
        }
        if signed.head.seq < made.seq {
            let first = signed.head.seq.saturating_add(1);
            return Err(broken(first, "the end was added from outside: nothing signs for it"));
        }
        check_signed("the head", &signed, made, self.keys.of_head(), &self.log_id)?;
        self.check_none_left_over(made)
    }

    /// Every checkpoint must have had its record: one that no record led to was added from outside.
    fn check_none_left_over(&self, made: &Head) -> Result<(), Stop> {
        if self.passed < self.segments.len() {
            return Err(broken(made.seq, "a checkpoint was added: no record ends its segment"));
        }
        if self.passed_old < self.old.len() {
            return Err(broken(self.old.keys().next().copied(), "a checkpoint was added there: no record leads to it"));
        }
        match self.keys.rotations().last() {
            Some(rotation) if rotation.seq > made.seq => {
                Err(broken(rotation.seq, "a change of the key was signed for it, and there is no such record"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// A head or a checkpoint of format 1: `made` carries the last checkpoint before it.
fn check_signed(name: &str, signed: &SignedHead, made: &Head, key: &PublicKey, log_id: &[u8; 16]) -> Result<(), Stop> {
    // Up to the checkpoint before, the records are vouched for.
    let first = made.previous.saturating_add(1).min(made.seq);
    if signed.key_id != key.id() {
        let what = format!("{name} there is signed with key {}, not with {}", signed.key_id, key.id());
        return Err(broken(made.seq, what));
    }
    if !signed.is_signed_by(log_id, key) {
        let what = format!("{name} at record {} was changed: its signature is not that of the key", made.seq);
        return Err(broken(first, what));
    }
    if signed.head.hash != made.hash {
        let what = format!("a record from {first} to {} was changed and all after it hashed anew", made.seq);
        return Err(broken(first, what));
    }
    if signed.head.previous != made.previous {
        let (low, high) = (signed.head.previous.min(made.previous), signed.head.previous.max(made.previous));
        let what = format!("a checkpoint or the head was added, removed or replaced after record {low}");
        return Err(broken(high, what));
    }
    Ok(())
}

pub(super) fn missing(first: u64, last: u64) -> String {
    if first == last { format!("record {first} is missing") } else { format!("records {first} to {last} are missing") }
}

fn old(connection: &Connection) -> Result<BTreeMap<u64, SignedHead>, Stop> {
    let mut statement =
        connection.prepare("SELECT seq, hash, previous, key_id, signature FROM checkpoint ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut checkpoints = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let at = row.get::<_, u64>(0).ok();
        let checkpoint = SignedHead::read(row).map_err(|_error| broken(at, "its checkpoint was changed"))?;
        checkpoints.insert(checkpoint.head.seq, checkpoint);
    }
    Ok(checkpoints)
}

fn segments(connection: &Connection, log_id: &[u8; 16]) -> Result<Vec<Checkpoint>, Stop> {
    let mut statement = connection.prepare(&format!("SELECT {} FROM segment ORDER BY segment", Checkpoint::COLUMNS))?;
    let mut rows = statement.query([])?;
    let mut segments: Vec<Checkpoint> = Vec::new();
    while let Some(row) = rows.next()? {
        let first = segments.last().map_or(1, |before| before.last.saturating_add(1));
        let checkpoint = Checkpoint::read(log_id, row)
            .map_err(|_error| broken(first, "the checkpoint of the segment that begins there was changed"))?;
        segments.push(checkpoint);
    }
    Ok(segments)
}

/// Checks the signatures on every core: each takes as long as hashing a hundred records.
fn signed(segments: Vec<Checkpoint>) -> Vec<(Checkpoint, bool)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = segments.len().div_ceil(threads).max(1);
    let signed: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = segments
            .chunks(share)
            .map(|part| (part.len(), scope.spawn(|| part.iter().map(Checkpoint::is_signed).collect::<Vec<bool>>())))
            .collect();
        threads
            .into_iter()
            .flat_map(|(length, thread)| thread.join().unwrap_or_else(|_panicked| vec![false; length]))
            .collect()
    });
    segments.into_iter().zip(signed).collect()
}
