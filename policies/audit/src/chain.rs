//! The chain of hashes, and what a signature of its head covers.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Domains keep a hash made for one purpose from being taken for another.
const GENESIS_DOMAIN: &[u8] = b"sightline-audit-genesis-v1\0";
const RECORD_DOMAIN: &[u8] = b"sightline-audit-record-v1\0";
const HEAD_DOMAIN: &[u8] = b"sightline-audit-head-v1\0";

/// A SHA-256 hash; in JSON its 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash([u8; 32]);

impl Hash {
    /// What the first record of a log covers in place of a record before it.
    pub(crate) fn genesis(log_id: &[u8; 16]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(GENESIS_DOMAIN);
        hasher.update(log_id);
        Self(hasher.finalize().into())
    }

    /// The hash of the record with this number and canonical text, which follows the record of this hash.
    pub(crate) fn next(self, seq: u64, canonical: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(RECORD_DOMAIN);
        hasher.update(seq.to_be_bytes());
        hasher.update(self.0);
        hasher.update(canonical);
        Self(hasher.finalize().into())
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl AsRef<[u8]> for Hash {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes).map_err(|_error| format!("`{text}` is not 64 hex digits"))?;
        Ok(Self(bytes))
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// The end of the chain at one moment, as it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last record; 0 in an empty log.
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    /// The last record under a checkpoint before this one, 0 if there is none, so that a removed checkpoint shows.
    pub(crate) previous: u64,
}

impl Head {
    /// The head of a log without records.
    pub(crate) fn empty(log_id: &[u8; 16]) -> Self {
        Self { seq: 0, hash: Hash::genesis(log_id), previous: 0 }
    }

    /// The bytes that a signature covers: which log, how many records, and through the hash all of them.
    pub(crate) fn signed_bytes(&self, log_id: &[u8; 16]) -> Vec<u8> {
        let mut bytes = HEAD_DOMAIN.to_vec();
        bytes.extend_from_slice(log_id);
        bytes.extend_from_slice(&self.seq.to_be_bytes());
        bytes.extend_from_slice(self.hash.as_bytes());
        bytes.extend_from_slice(&self.previous.to_be_bytes());
        bytes
    }
}
