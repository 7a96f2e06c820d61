//! Checkpoints: what the log's key signed at the end of each segment. One of them vouches for every record before it.

use std::fmt;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::chain::Hash;
use crate::key::{AuditKey, PublicKey};

const CHECKPOINT_DOMAIN: &[u8] = b"sightline-audit-checkpoint-v2\0";

/// Bytes that are written as hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; N];
        hex::decode_to_slice(&text, &mut bytes)
            .map_err(|_error| serde::de::Error::custom(format!("`{text}` is not {} hex digits", 2 * N)))?;
        Ok(Self(bytes))
    }
}

/// What is signed at the end of a segment. It holds nothing of what was asked, so that copies of it can be kept anywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Which log.
    pub log_id: Hex<16>,
    /// Which segment of it, from 1.
    pub segment: u64,
    /// The first record of the segment.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The hash of the last record: through the chain it covers every record before it.
    pub hash: Hash,
    /// The root of the Merkle tree over the segment's records.
    pub root: Hash,
    /// The digest of the checkpoint before this one; zeros for the first.
    pub previous: Hash,
    /// The time of the last record.
    pub at: Timestamp,
    /// The key that signed.
    pub key: PublicKey,
    /// Its signature.
    pub signature: Hex<64>,
}

impl Checkpoint {
    /// What is signed: every field but the signature.
    fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = CHECKPOINT_DOMAIN.to_vec();
        bytes.extend_from_slice(&self.log_id.0);
        for number in [self.segment, self.first, self.last] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for hash in [self.hash, self.root, self.previous] {
            bytes.extend_from_slice(hash.as_bytes());
        }
        bytes.extend_from_slice(&self.at.as_microsecond().to_be_bytes());
        bytes.extend_from_slice(self.key.as_bytes());
        bytes
    }

    /// The digest by which the next checkpoint names this one.
    pub fn digest(&self) -> Hash {
        Hash::from_bytes(Sha256::digest(self.signed_bytes()).into())
    }

    /// Whether the key that it names signed it. Whether that key is to be trusted is for the caller to say.
    pub fn is_signed(&self) -> bool {
        self.key.signed(&self.signed_bytes(), &self.signature.0)
    }

    pub(crate) fn sign(mut self, key: &AuditKey) -> Self {
        self.key = key.public();
        self.signature = Hex(key.sign(&self.signed_bytes()));
        self
    }

    pub(crate) const COLUMNS: &'static str = "segment, first, last, hash, root, previous, at, key, signature";

    /// Reads those columns.
    pub(crate) fn read(log_id: &[u8; 16], row: &Row<'_>) -> rusqlite::Result<Self> {
        let hash = |column: usize| row.get(column).map(Hash::from_bytes);
        let unfit = |column: usize, kind| {
            rusqlite::Error::FromSqlConversionFailure(column, kind, "not what a checkpoint holds there".into())
        };
        Ok(Self {
            log_id: Hex(*log_id),
            segment: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            hash: hash(3)?,
            root: hash(4)?,
            previous: hash(5)?,
            at: Timestamp::from_microsecond(row.get(6)?).map_err(|_error| unfit(6, rusqlite::types::Type::Integer))?,
            key: PublicKey::from_bytes(&row.get(7)?).ok_or_else(|| unfit(7, rusqlite::types::Type::Blob))?,
            signature: Hex(row.get(8)?),
        })
    }

    pub(crate) fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO segment (segment, first, last, hash, root, previous, at, key, signature)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                self.segment,
                self.first,
                self.last,
                self.hash.as_bytes(),
                self.root.as_bytes(),
                self.previous.as_bytes(),
                self.at.as_microsecond(),
                self.key.as_bytes(),
                self.signature.0,
            ])?;
        Ok(())
    }

    /// The newest checkpoint of the log.
    pub(crate) fn newest(connection: &Connection, log_id: &[u8; 16]) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(&format!("SELECT {} FROM segment ORDER BY segment DESC LIMIT 1", Self::COLUMNS))?
            .query_row([], |row| Self::read(log_id, row))
            .optional()
    }
}
