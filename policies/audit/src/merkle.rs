//! The Merkle tree over the records of a segment (RFC 6962, section 2.1): one record can be shown to belong to a
//! signed checkpoint without showing the others.
//!
//! A leaf is the hash of a record in the chain, which covers its number, its predecessor and its canonical text.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use ct_merkle::{InclusionProof, RootHash};
use sha2::Sha256;

use crate::chain::Hash;

/// The tree of a segment while its records are walked over.
#[derive(Default)]
pub(crate) struct RecordTree {
    tree: MemoryBackedTree<Sha256, Hash>,
}

impl RecordTree {
    pub(crate) fn push(&mut self, record: Hash) {
        self.tree.push(record);
    }

    pub(crate) fn root(&self) -> Hash {
        Hash::from_bytes((*self.tree.root().as_bytes()).into())
    }

    /// The hashes from the leaf at this place up to the root; none when there is no such leaf.
    pub(crate) fn path_of(&self, index: u64) -> Option<Vec<Hash>> {
        let index = usize::try_from(index).ok().filter(|_| index < self.tree.len())?;
        let proof = self.tree.prove_inclusion(index);
        let (hashes, _rest) = proof.as_bytes().as_chunks::<32>();
        Some(hashes.iter().map(|bytes| Hash::from_bytes(*bytes)).collect())
    }
}

impl FromIterator<Hash> for RecordTree {
    fn from_iter<T: IntoIterator<Item = Hash>>(records: T) -> Self {
        let mut tree = Self::default();
        records.into_iter().for_each(|record| tree.push(record));
        tree
    }
}

/// Whether this record is the one at `index` of a segment of `size` records with this root.
pub(crate) fn is_included(record: Hash, index: u64, size: u64, path: &[Hash], root: Hash) -> bool {
    let bytes: Vec<u8> = path.iter().flat_map(|hash| hash.as_bytes().iter().copied()).collect();
    let Ok(proof) = InclusionProof::<Sha256>::try_from_bytes(bytes) else { return false };
    RootHash::<Sha256>::new((*root.as_bytes()).into(), size).verify_inclusion(&record, index, &proof).is_ok()
}

#[cfg(test)]
mod merkle_tests {
    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use sha2::{Digest, Sha256};

    use super::{RecordTree, is_included};
    use crate::chain::Hash;

    /// RFC 6962, section 2.1, word by word.
    fn by_the_rfc(leaves: &[Vec<u8>]) -> [u8; 32] {
        match leaves {
            [] => Sha256::digest(b"").into(),
            [leaf] => Sha256::new().chain_update([0]).chain_update(leaf).finalize().into(),
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                let (left, right) = leaves.split_at(split);
                let (left, right) = (by_the_rfc(left), by_the_rfc(right));
                Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
            }
        }
    }

    #[test]
    fn roots_are_those_of_the_known_vectors() {
        // The leaves and roots that implementations of Certificate Transparency share as test vectors.
        let leaves =
            ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let mut tree = MemoryBackedTree::<Sha256, Vec<u8>>::new();
        let mut pushed = Vec::new();
        for (leaf, root) in leaves.into_iter().zip(roots) {
            pushed.push(hex::decode(leaf).unwrap());
            tree.push(hex::decode(leaf).unwrap());
            assert_eq!(hex::encode(tree.root().as_bytes()), root);
            assert_eq!(hex::encode(by_the_rfc(&pushed)), root);
        }
    }

    fn records(count: u8) -> Vec<Hash> {
        (0..count).map(|index| Hash::from_bytes([index; 32])).collect()
    }

    #[test]
    fn the_root_of_a_segment_is_the_tree_hash_of_its_records() {
        for count in 1..40 {
            let records = records(count);
            let leaves: Vec<Vec<u8>> = records.iter().map(|hash| hash.as_bytes().to_vec()).collect();
            let segment: RecordTree = records.into_iter().collect();
            assert_eq!(segment.root(), Hash::from_bytes(by_the_rfc(&leaves)), "{count}");
        }
    }

    #[test]
    fn a_proof_holds_for_its_record_at_its_place_and_for_no_other() {
        for count in 1..20_u8 {
            let records = records(count);
            let segment: RecordTree = records.iter().copied().collect();
            let (size, root) = (u64::from(count), segment.root());
            for index in 0..size {
                let path = segment.path_of(index).unwrap();
                for (place, record) in records.iter().enumerate() {
                    let place = place as u64;
                    assert_eq!(is_included(*record, index, size, &path, root), place == index, "{count} {index}");
                    assert_eq!(is_included(records[index as usize], place, size, &path, root), place == index);
                }
                let other = Hash::from_bytes([99; 32]);
                assert!(!is_included(records[index as usize], index, size, &path, other));
                assert!(!is_included(
                    records[index as usize],
                    index,
                    size,
                    &[path.clone(), vec![other]].concat(),
                    root
                ));
            }
            assert_eq!(segment.path_of(size), None);
        }
    }
}
