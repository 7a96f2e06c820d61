//! Changes of the key: a statement that the old and the new key both sign, so that who trusts either can trust both.

use rusqlite::{Connection, Row, params};

use crate::chain::{Hash, Head};
use crate::key::{AuditKey, PublicKey};

const ROTATION_DOMAIN: &[u8] = b"sightline-audit-rotation-v2\0";

/// From this record on the log is signed with another key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rotation {
    /// Which change, from 1.
    pub(crate) number: u64,
    /// The record that tells of it: the last one under the old key.
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    pub(crate) old: PublicKey,
    pub(crate) new: PublicKey,
    old_signature: [u8; 64],
    new_signature: [u8; 64],
}

impl Rotation {
    pub(crate) fn sign(log_id: &[u8; 16], number: u64, at: &Head, old: &AuditKey, new: &AuditKey) -> Self {
        let mut rotation = Self {
            number,
            seq: at.seq,
            hash: at.hash,
            old: old.public(),
            new: new.public(),
            old_signature: [0; 64],
            new_signature: [0; 64],
        };
        let bytes = rotation.signed_bytes(log_id);
        rotation.old_signature = old.sign(&bytes);
        rotation.new_signature = new.sign(&bytes);
        rotation
    }

    fn signed_bytes(&self, log_id: &[u8; 16]) -> Vec<u8> {
        let mut bytes = ROTATION_DOMAIN.to_vec();
        bytes.extend_from_slice(log_id);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.seq.to_be_bytes());
        bytes.extend_from_slice(self.hash.as_bytes());
        bytes.extend_from_slice(self.old.as_bytes());
        bytes.extend_from_slice(self.new.as_bytes());
        bytes
    }

    /// Whether both keys signed it.
    pub(crate) fn is_signed(&self, log_id: &[u8; 16]) -> bool {
        let bytes = self.signed_bytes(log_id);
        self.old.signed(&bytes, &self.old_signature) && self.new.signed(&bytes, &self.new_signature)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let key = |column: usize| {
            let unfit = || {
                let what = "not a public key".into();
                rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, what)
            };
            PublicKey::from_bytes(&row.get(column)?).ok_or_else(unfit)
        };
        Ok(Self {
            number: row.get(0)?,
            seq: row.get(1)?,
            hash: Hash::from_bytes(row.get(2)?),
            old: key(3)?,
            new: key(4)?,
            old_signature: row.get(5)?,
            new_signature: row.get(6)?,
        })
    }

    /// All of them, the oldest first.
    pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        connection
            .prepare("SELECT number, seq, hash, old_key, new_key, old_signature, new_signature FROM rotation ORDER BY number")?
            .query_map([], Self::read)?
            .collect()
    }

    pub(crate) fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute(
            "INSERT INTO rotation (number, seq, hash, old_key, new_key, old_signature, new_signature)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                self.number,
                self.seq,
                self.hash.as_bytes(),
                self.old.as_bytes(),
                self.new.as_bytes(),
                self.old_signature,
                self.new_signature,
            ],
        )?;
        Ok(())
    }
}
