//! A provider's public keys, as its key set (RFC 7517) lists them.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// A key that signatures can be checked with.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) id: Option<String>,
    /// The one algorithm that it is for.
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

/// The keys of a provider that are of use here.
#[derive(Clone, Default)]
pub(super) struct Keys(Vec<Key>);

/// Why a token's key is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The set has none of this id; a newer set may have.
    Unknown,
    /// The token names none, or one that several keys have.
    Ambiguous,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

impl Keys {
    /// Reads a key set. Keys that are of no use here (symmetric, for encryption, of another algorithm) are passed over.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let Set { keys } = serde_json::from_slice(text).map_err(|error| format!("it is no key set: {error}"))?;
        let keys: Vec<Key> = keys.into_iter().filter_map(|key| usable(&serde_json::from_value(key).ok()?)).collect();
        if keys.is_empty() {
            return Err("it has no key for RS256, ES256 or EdDSA".to_owned());
        }
        Ok(Self(keys))
    }

    /// The key of this id for this algorithm. A token that names none means the only one there is.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<&Key, NoKey> {
        let mut candidates = self.0.iter().filter(|key| match id {
            Some(id) => key.id.as_deref() == Some(id) && key.algorithm == algorithm,
            None => true,
        });
        match (candidates.next(), candidates.next()) {
            (Some(only), None) if only.algorithm == algorithm => Ok(only),
            (Some(_), _) => Err(NoKey::Ambiguous),
            (None, _) => Err(NoKey::Unknown),
        }
    }
}

fn usable(jwk: &Jwk) -> Option<Key> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        // The library may come to know more kinds.
        _ => return None,
    };
    let common = &jwk.common;
    let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    let verifies = common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
    let fits = common.key_algorithm.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    if !(signs && verifies && fits) {
        return None;
    }
    Some(Key { id: common.key_id.clone(), algorithm, key: DecodingKey::from_jwk(jwk).ok()? })
}
