//! Keys of a provider that tests play, and tokens signed with them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use sightline_policies::{Policies, Source, Sources};

/// Times are around this one.
pub(crate) const NOW: i64 = 1_800_000_000;
pub(crate) const ISSUER: &str = "https://login.example.com/";

/// A key pair of one of the three kinds.
pub(crate) enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Pair {
    /// The one RSA key: making one takes seconds in a test build, so this one was made for these tests and is used nowhere else.
    pub(crate) fn rsa() -> Self {
        let text: String = include_str!("rsa_test_key.txt").split_whitespace().collect();
        Self::Rsa(RsaKeyPair::from_der(&STANDARD.decode(text).unwrap()).unwrap())
    }

    pub(crate) fn ec() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap())
    }

    pub(crate) fn ed() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    /// The public key as a key set lists it.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let public: ring::rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({ "kty": "RSA", "kid": id, "use": "sig", "n": b64(&public.n), "e": b64(&public.e) })
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({ "kty": "EC", "kid": id, "crv": "P-256", "x": b64(&point[1..33]), "y": b64(&point[33..]) })
            }
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "kid": id, "crv": "Ed25519", "alg": "EdDSA", "x": b64(pair.public_key().as_ref()) })
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token with a right header.
    pub(crate) fn token(&self, id: &str, claims: &Value) -> String {
        self.signed(&json!({ "alg": self.algorithm(), "kid": id, "typ": "JWT" }).to_string(), &claims.to_string())
    }

    /// A token of these very texts.
    pub(crate) fn signed(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", b64(header.as_bytes()), b64(claims.as_bytes()));
        format!("{message}.{}", b64(&self.sign(message.as_bytes())))
    }
}

/// The claims of an operator of atlas, valid for an hour.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "sightline", "sub": "248289761001", "iat": NOW, "exp": NOW + 3600,
        "email": "ann@example.com", "email_verified": true, "roles": ["gpu-operators"], "groups": ["team-atlas"],
        "phone_number": "+1 555 0100",
    })
}

/// The shipped policies with this provider, whose key set is there.
pub(crate) fn policies(jwks: &str) -> Policies {
    let text = format!(
        "[[oidc]]\nname = \"corp\"\nissuer = \"{ISSUER}\"\naudience = [\"sightline\", \"sightline-cli\"]\n{jwks}\nleeway_seconds = 30\n\
         principal_claim = \"email\"\nrole_claim = \"roles\"\ntenant_claim = \"groups\"\n\
         [oidc.roles]\ngpu-operators = \"operator\"\ngpu-readers = \"viewer\"\n[oidc.tenants]\nteam-atlas = \"atlas\"\n"
    );
    let identity = Some(Source { name: "identity.toml", text: &text });
    Policies::from_sources(&Sources { identity, ..Sources::SHIPPED }).unwrap()
}
