//! The tamper-evident audit log: who asked what, which data was read, what was refused.
//!
//! Every record covers the one before it (SHA-256 over canonical JSON), every commit signs the head of the chain
//! (Ed25519), and all of it lives in one SQLite file that several processes may share. Records are gathered in
//! segments; a signed [`Checkpoint`] with the root of a Merkle tree (RFC 6962) ends each, so that one record can be
//! shown alone ([`Proof`]) and checkpoints can be copied to a second place ([`CheckpointCopy`]). The texts that people
//! may ask to be forgotten lie beside the chain, which covers a salted commitment to them. A record's future resolves
//! when the record is durable. This crate reads no clock and makes no randomness: times stand in the records, and
//! the bytes of a new key, a new log's id and salts are arguments.
//!
//! What [`AuditReader::examine`] proves: that the file holds every record the key's owner signed for, unchanged and in
//! order, but for texts that were erased and segments that were taken out, which the log itself says; and, with copies
//! of the checkpoints, that its end was not cut off and no older file was put back.
//! What it cannot prove: that whoever holds the key and can write every copy did not write another log; that what a
//! process never handed over happened; and, of the records after the last copied checkpoint, that none was cut off.
//!
//! ```
//! # use sightline_audit::{AuditKey, AuditReader, Filter, SqliteAudit, Settings};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("sightline-audit-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let random_key = [1; 32];
//! # let random_id = [2; 16];
//! # fn random_salt() -> Result<[u8; 32], String> { Ok([3; 32]) }
//! let key = AuditKey::load_or_create(&folder.join("audit.key"), random_key)?;
//! let public_key = key.public();
//! let log = SqliteAudit::open(&folder.join("audit.db"), Settings::new(key, random_id, Box::new(random_salt)))?;
//! drop(log); // ends the writer; the head is signed
//! let reader = AuditReader::open(&folder.join("audit.db"))?;
//! assert!(reader.list(&Filter::default())?.questions.is_empty());
//! assert_eq!(reader.verify(&public_key)?.to_string(), "the log is whole: 0 records, signed up to the last");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

mod chain;
mod checkpoint;
mod copies;
mod copying;
mod error;
mod export;
mod file;
mod key;
mod liveness;
mod log;
mod merkle;
mod proof;
mod question;
mod reader;
mod record;
mod rotation;
mod search;
mod tail;
mod text;
mod usage;
mod verify;
mod writer;

#[cfg(test)]
mod erase_tests;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod segment_tests;
#[cfg(test)]
mod tamper_tests;
#[cfg(test)]
mod test_log;
#[cfg(test)]
mod verify_tests;

pub use chain::Hash;
pub use checkpoint::{Checkpoint, Hex};
pub use copies::{CheckpointCopy, Copied, FileCopy};
pub use error::AuditError;
pub use export::Format;
pub use file::erase::{Erase, Erased};
pub use file::retain::Retained;
pub use key::{AuditKey, PublicKey};
pub use liveness::{Alive, Liveness};
pub use log::{KeyAgain, Settings, SqliteAudit};
pub use proof::Proof;
pub use question::{Integrity, QuestionRecord};
pub use reader::{AuditReader, Filter, Page, QuestionFile, QuestionLine, Sealed};
pub use record::Kind;
pub use search::{Cursor, Entry, Found, Search, Wanted, Work};
pub use text::Salts;
pub use usage::{Amounts, UsageFilter, UsageLine};
pub use verify::{Broken, Check, HEARTBEAT_SECONDS, Note, Report, Verdict};
