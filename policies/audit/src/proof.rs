//! One record, shown to somebody who may not see the others.

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::chain::Hash;
use crate::checkpoint::{Checkpoint, Hex};
use crate::error::AuditError;
use crate::key::PublicKey;
use crate::merkle::{RecordTree, is_included};
use crate::reader::AuditReader;
use crate::text;

/// Proof that a record stands at its place in the log: with a public key and nothing else it can be checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// The record's number.
    pub seq: u64,
    /// The hash of the record before it.
    pub prev: Hash,
    /// Its canonical text, which holds a commitment in place of what can be erased.
    pub record: String,
    /// What the commitment is to, unless it was erased or is kept back.
    pub text: Option<Text>,
    /// The hashes from the record up to the root of its segment.
    pub path: Vec<Hash>,
    /// The signed checkpoint of its segment.
    pub checkpoint: Checkpoint,
}

/// What can be erased of a record, with what it takes to check the commitment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Text {
    /// The salt.
    pub salt: Hex<32>,
    /// The canonical text.
    pub text: String,
}

impl Proof {
    /// Checks it against this key, which must be the one that signed the record's segment.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, key: &PublicKey) -> Result<(), String> {
        let Self { seq, prev, record, text, path, checkpoint } = self;
        if checkpoint.key != *key || !checkpoint.is_signed() {
            return Err(format!("its checkpoint is not signed with key {}", key.id()));
        }
        let size = checkpoint.last.checked_sub(checkpoint.first).and_then(|size| size.checked_add(1));
        let (Some(index), Some(size)) = (seq.checked_sub(checkpoint.first), size) else {
            return Err(format!("record {seq} does not lie in segment {}", checkpoint.segment));
        };
        let hash = prev.next(*seq, record.as_bytes());
        if !is_included(hash, index, size, path, checkpoint.root) {
            return Err(format!("record {seq} is not the one that was signed for in segment {}", checkpoint.segment));
        }
        let Some(text) = text else { return Ok(()) };
        let committed: Committed =
            serde_json::from_str(record).map_err(|error| format!("record {seq} cannot be read: {error}"))?;
        if committed.commitment == Some(text::commitment(&text.salt.0, text.text.as_bytes())) {
            Ok(())
        } else {
            Err(format!("the text is not the one that record {seq} commits to"))
        }
    }
}

#[derive(Deserialize)]
struct Committed {
    commitment: Option<Hash>,
}

impl AuditReader {
    /// The proof of one record. None when there is no such record, or its segment is not closed yet: the next
    /// heartbeat of the service closes it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn proof(&self, seq: u64) -> Result<Option<Proof>, AuditError> {
        self.in_transaction(|connection| {
            let log_id = crate::file::log_id(connection)?;
            let sql = format!("SELECT {} FROM segment WHERE first <= ?1 AND last >= ?1", Checkpoint::COLUMNS);
            let checkpoint = connection.query_row(&sql, [seq], |row| Checkpoint::read(&log_id, row)).optional()?;
            let Some(checkpoint) = checkpoint else { return Ok(None) };
            let Some((prev, record, text)) = record(connection, seq)? else { return Ok(None) };
            let tree: RecordTree = connection
                .prepare("SELECT hash FROM record WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")?
                .query_map([checkpoint.first, checkpoint.last], |row| row.get(0).map(Hash::from_bytes))?
                .collect::<rusqlite::Result<_>>()?;
            let path = tree.path_of(seq.saturating_sub(checkpoint.first));
            Ok(path.map(|path| Proof { seq, prev, record, text, path, checkpoint }))
        })
    }

    /// The checkpoints of the segments after this one, in order; all of them after 0.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, AuditError> {
        self.in_transaction(|connection| {
            let log_id = crate::file::log_id(connection)?;
            let sql = format!("SELECT {} FROM segment WHERE segment > ?1 ORDER BY segment", Checkpoint::COLUMNS);
            connection.prepare(&sql)?.query_map([after], |row| Checkpoint::read(&log_id, row))?.collect()
        })
    }

    /// The number of the newest segment; 0 before the first.
    pub(crate) fn newest_segment(&self) -> Result<u64, AuditError> {
        self.in_transaction(|connection| {
            connection.query_row("SELECT coalesce(max(segment), 0) FROM segment", [], |row| row.get(0))
        })
    }

    /// The id of the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log_id(&self) -> Result<Hex<16>, AuditError> {
        self.in_transaction(|connection| crate::file::log_id(connection).map(Hex))
    }

    fn in_transaction<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, AuditError> {
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        read(&transaction).map_err(|error| self.failed(&error))
    }
}

fn record(connection: &Connection, seq: u64) -> rusqlite::Result<Option<(Hash, String, Option<Text>)>> {
    let sql =
        "SELECT r.prev, r.body, p.salt, p.text FROM record r LEFT JOIN private p ON p.seq = r.seq WHERE r.seq = ?1";
    connection
        .query_row(sql, [seq], |row| {
            let salt: Option<[u8; 32]> = row.get(2)?;
            let text: Option<String> = row.get(3)?;
            let text = salt.zip(text).map(|(salt, text)| Text { salt: Hex(salt), text });
            Ok((Hash::from_bytes(row.get(0)?), row.get(1)?, text))
        })
        .optional()
}
