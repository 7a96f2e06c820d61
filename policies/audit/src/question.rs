//! One question as a reviewer opens it: its line, its calls, how it ended, and whether its records are as they were written.

use rusqlite::OptionalExtension as _;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use sightline_model::QuestionId;
use sightline_model::audit::{Call, Complete};

use crate::chain::Hash;
use crate::error::AuditError;
use crate::reader::{AuditReader, Sealed};
use crate::record::Kind;
use crate::search::Entry;
use crate::text::commitment;

/// Everything that is recorded of one question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuestionRecord {
    /// Its line.
    #[serde(flatten)]
    pub entry: Entry,
    /// Its calls, in the order they were recorded.
    pub records: Vec<Sealed<Call>>,
    /// Its complete record, if it has ended.
    pub complete: Option<Sealed<Complete>>,
    /// Whether its records are as they were written.
    pub integrity: Integrity,
}

/// What can be said of the records of one question by themselves. Whether the chain that they stand in is whole is said by
/// [`AuditReader::verify`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Integrity {
    /// How many records were looked at.
    pub records: u64,
    /// The first that is not as it was written: its text, its place after the record before it, or what was asked.
    pub first_bad: Option<u64>,
}

/// A record as it stands in the file.
struct Bare {
    seq: u64,
    body: String,
    prev: [u8; 32],
    hash: [u8; 32],
    text: Option<String>,
    salt: Option<[u8; 32]>,
}

impl AuditReader {
    /// Everything that is recorded of one question; none when it was never asked.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn question_record(&self, id: &QuestionId) -> Result<Option<QuestionRecord>, AuditError> {
        // One transaction, so that all of it is of one moment.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        let Some(entry) = self.entry_of(id)? else { return Ok(None) };
        let records = self.records(id, Kind::Call)?.into_iter().map(|call| call.sealed()).collect::<Result<_, _>>()?;
        let complete = self.records(id, Kind::Complete)?.into_iter().next().map(|end| end.sealed()).transpose()?;
        let integrity = self.integrity(id)?;
        drop(transaction);
        Ok(Some(QuestionRecord { entry, records, complete, integrity }))
    }

    fn integrity(&self, id: &QuestionId) -> Result<Integrity, AuditError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT r.seq, r.body, r.prev, r.hash, p.text, p.salt
                 FROM record r LEFT JOIN private p ON p.seq = r.seq WHERE r.question_id = ?1 ORDER BY r.seq",
            )
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map([id.as_str()], |row| {
                let (seq, body, prev, hash) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                Ok(Bare { seq, body, prev, hash, text: row.get(4)?, salt: row.get(5)? })
            })
            .map_err(|error| self.failed(&error))?;
        let mut integrity = Integrity { records: 0, first_bad: None };
        for row in rows {
            let record = row.map_err(|error| self.failed(&error))?;
            integrity.records += 1;
            if integrity.first_bad.is_none() && !self.is_as_written(&record)? {
                integrity.first_bad = Some(record.seq);
            }
        }
        Ok(integrity)
    }

    fn is_as_written(&self, record: &Bare) -> Result<bool, AuditError> {
        let Bare { seq, body, prev, hash, text, salt } = record;
        if Hash::from_bytes(*prev).next(*seq, body.as_bytes()) != Hash::from_bytes(*hash) {
            return Ok(false);
        }
        if let (Some(text), Some(salt)) = (text, salt) {
            let fields: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
            let committed = fields.get("commitment").and_then(|commitment| commitment.as_str());
            if committed != Some(commitment(salt, text.as_bytes()).to_string().as_str()) {
                return Ok(false);
            }
        }
        // The record before it, unless retention took it out.
        let before: Option<[u8; 32]> = self
            .connection
            .prepare_cached("SELECT hash FROM record WHERE seq = ?1 - 1")
            .and_then(|mut statement| statement.query_row([seq], |row| row.get(0)).optional())
            .map_err(|error| self.failed(&error))?;
        Ok(before.is_none_or(|before| before == *prev))
    }
}

impl<T: Serialize> Serialize for Sealed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { seq, hash, record, erased } = self;
        let mut fields = serializer.serialize_struct("Sealed", 4)?;
        fields.serialize_field("seq", seq)?;
        fields.serialize_field("hash", &hash.to_string())?;
        fields.serialize_field("erased", erased)?;
        fields.serialize_field("record", record)?;
        fields.end()
    }
}
