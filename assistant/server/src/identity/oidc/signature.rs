//! Signatures of JSON Web Tokens, checked with ring, which TLS brings along anyway. There is no way to sign here.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    // For making keys out of keys, which nobody does here.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the library check signatures this way. Doing it again changes nothing.
pub(super) fn install() {
    // It fails where it was done before, and this is the only place that does.
    let _ = RING.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let unsupported = || new_error(ErrorKind::UnsupportedAlgorithm);
    let (family, raw): (_, Option<&'static dyn VerificationAlgorithm>) = match algorithm {
        Algorithm::RS256 => (AlgorithmFamily::Rsa, None),
        Algorithm::ES256 => (AlgorithmFamily::Ec, Some(&ECDSA_P256_SHA256_FIXED)),
        Algorithm::EdDSA => (AlgorithmFamily::Ed, Some(&ED25519)),
        _ => return Err(unsupported()),
    };
    // A key of another kind is never tried: a public key taken as the secret of a symmetric algorithm would verify anything.
    if key.family() != family {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    match (raw, key.kind()) {
        (Some(ring), DecodingKeyKind::SecretOrDer(bytes)) => {
            Ok(Box::new(Raw { algorithm: *algorithm, key: UnparsedPublicKey::new(ring, bytes.clone()) }))
        }
        (None, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Ok(Box::new(Rsa(RsaPublicKeyComponents { n: n.clone(), e: e.clone() })))
        }
        (Some(_), DecodingKeyKind::RsaModulusExponent { .. }) | (None, DecodingKeyKind::SecretOrDer(_)) => {
            Err(new_error(ErrorKind::InvalidKeyFormat))
        }
    }
}

struct Raw {
    algorithm: Algorithm,
    key: UnparsedPublicKey<Vec<u8>>,
}

impl Verifier<Vec<u8>> for Raw {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.key.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Raw {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Keys from 2048 bits on.
struct Rsa(RsaPublicKeyComponents<Vec<u8>>);

impl Verifier<Vec<u8>> for Rsa {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.0.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Rsa {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}
