//! Which key had to sign when: from one trusted key along the statements of both sides of each change.

use rusqlite::Connection;

use super::{Stop, broken};
use crate::key::PublicKey;
use crate::rotation::Rotation;

/// The keys of a log, one after the other.
pub(super) struct Keys {
    first: PublicKey,
    rotations: Vec<Rotation>,
}

impl Keys {
    /// Walks the statements. Whichever of the keys is trusted, both signatures of each statement carry the trust on,
    /// forwards and backwards.
    pub(super) fn load(connection: &Connection, log_id: &[u8; 16], trusted: &PublicKey) -> Result<Self, Stop> {
        let rotations = Rotation::all(connection).map_err(|_error| broken(None, "a change of the key was changed"))?;
        let mut before: Option<&Rotation> = None;
        for rotation in &rotations {
            let follows = match before {
                Some(before) => {
                    rotation.number == before.number.saturating_add(1)
                        && rotation.seq > before.seq
                        && rotation.old == before.new
                }
                None => rotation.number == 1,
            };
            if !(follows && rotation.is_signed(log_id)) {
                let what = "the change of the key there was changed, added or follows one that was removed";
                return Err(broken(rotation.seq, what));
            }
            before = Some(rotation);
        }
        let first = rotations.first().map_or(*trusted, |rotation| rotation.old);
        let keys = Self { first, rotations };
        if !keys.all().any(|key| key == trusted) {
            let ids: Vec<String> = keys.all().map(PublicKey::id).collect();
            let what = format!("it was signed with the keys {}, and {} is none of them", ids.join(", "), trusted.id());
            return Err(broken(None, what));
        }
        Ok(keys)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &PublicKey> {
        std::iter::once(&self.first).chain(self.rotations.iter().map(|rotation| &rotation.new))
    }

    /// The key of a checkpoint that ends with this record. The record that tells of a change is still under the old one.
    pub(super) fn of_checkpoint(&self, last: u64) -> &PublicKey {
        self.rotations.iter().rev().find(|rotation| rotation.seq < last).map_or(&self.first, |rotation| &rotation.new)
    }

    /// The key of the head: always the newest.
    pub(super) fn of_head(&self) -> &PublicKey {
        self.rotations.last().map_or(&self.first, |rotation| &rotation.new)
    }

    pub(super) fn rotations(&self) -> &[Rotation] {
        &self.rotations
    }
}
