//! Secrets that we hand out: how they are made, and how they are compared. Their digests are what is kept.
//!
//! Each holds 256 bits of randomness, so a plain digest cannot be turned back by guessing; no slow hash is needed.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::error::IdentityError;

/// A SHA-256 digest.
pub(super) type Digest = [u8; 32];

/// `N` random bytes as hex.
pub(super) fn random_hex<const N: usize>() -> Result<String, IdentityError> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|error| IdentityError::Randomness { reason: error.to_string() })?;
    Ok(hex::encode(bytes))
}

/// The digest of a secret.
pub(super) fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}

/// Whether two digests are the same, in a time that says nothing about where they differ.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    bool::from(a.ct_eq(b))
}

/// The same for two texts. Only their lengths can be told from the time.
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    same(a.as_bytes(), b.as_bytes())
}

/// The token that a page of this session sends with every request that changes something.
///
/// It is derived from the session's id, which the page cannot read, so that a reload of the page gets the same one and nothing more is
/// kept. It does not lead back to the id.
pub(crate) fn csrf_token(session_id: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"sightline/csrf/v1\0");
    hasher.update(session_id.as_bytes());
    hex::encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_csrf_token_is_of_its_session_alone_and_is_not_what_is_kept_of_it() {
        let (a, b) = (random_hex::<32>().unwrap(), random_hex::<32>().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), 64);
        assert_eq!(csrf_token(&a), csrf_token(&a));
        assert_ne!(csrf_token(&a), csrf_token(&b));
        assert_ne!(csrf_token(&a), hex::encode(digest(&a)));
    }

    #[test]
    fn digests_are_compared_whole() {
        let one = digest("one");
        let mut other = one;
        assert!(same(&one, &other));
        other[31] ^= 1;
        assert!(!same(&one, &other));
        assert!(!same(&one, &one[..31]));
    }
}
