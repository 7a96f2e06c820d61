//! One JSON Web Token: read strictly, then verified. What can be understood in two ways is refused.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use sightline_policies::OidcIssuer;

use super::keys::Key;

/// The longest token that is looked at, bytes.
const LONGEST: usize = 8 * 1024;

/// Why a token is not taken. Nothing of the token stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::identity) enum JwtFault {
    #[error("it is no token of three parts, or longer than 8 KiB")]
    Shape,
    #[error("its header or its claims cannot be read, or name something twice")]
    Unreadable,
    #[error("its header has `crit`, which must not be passed over")]
    Critical,
    #[error("its header says that it is something else than a token of this kind")]
    Kind,
    #[error("it is not signed with RS256, ES256 or EdDSA")]
    Algorithm,
    #[error("no identity provider of the policy issues such tokens")]
    Issuer,
    #[error("the provider's key set has no such key")]
    UnknownKey,
    #[error("it does not say which of the provider's keys it was signed with")]
    AmbiguousKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("its `aud` is none that the policy names for this provider")]
    Audience,
    #[error("its `exp`, `iss` or `aud` is missing or cannot be read")]
    Missing,
    #[error("its times are missing or no numbers")]
    Times,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    Early,
}

/// An object whose names are all different. JSON lets a name stand twice, and readers differ in which one they take.
#[derive(Debug)]
pub(super) struct Strict(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Strict;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Strict, A::Error> {
                let mut map = Map::new();
                while let Some((name, value)) = entries.next_entry::<String, Value>()? {
                    if map.insert(name, value).is_some() {
                        return Err(A::Error::custom("a name stands twice"));
                    }
                }
                Ok(Strict(map))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Whether a text has the shape of such a token: three parts with dots between them.
pub(in crate::identity) fn looks_like_jwt(text: &str) -> bool {
    text.split('.').count() == 3
}

/// A token that was read and not verified: good for finding the key, and for nothing else.
pub(super) struct Unverified<'a> {
    text: &'a str,
    pub(super) issuer: String,
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

impl<'a> Unverified<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, JwtFault> {
        let mut parts = text.split('.');
        let (Some(header), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(JwtFault::Shape);
        };
        if text.len() > LONGEST {
            return Err(JwtFault::Shape);
        }
        let header = object(header)?;
        if header.contains_key("crit") {
            return Err(JwtFault::Critical);
        }
        let kind = header.get("typ").map(|kind| kind.as_str().map(str::to_ascii_lowercase));
        if !matches!(kind.as_ref().map(Option::as_deref), None | Some(Some("jwt" | "at+jwt" | "application/at+jwt"))) {
            return Err(JwtFault::Kind);
        }
        let algorithm = match header.get("alg").and_then(Value::as_str) {
            Some("RS256") => Algorithm::RS256,
            Some("ES256") => Algorithm::ES256,
            Some("EdDSA") => Algorithm::EdDSA,
            Some(_) | None => return Err(JwtFault::Algorithm),
        };
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(JwtFault::Unreadable),
        };
        match object(claims)?.get("iss") {
            Some(Value::String(issuer)) => Ok(Self { text, issuer: issuer.clone(), algorithm, key_id }),
            Some(_) | None => Err(JwtFault::Issuer),
        }
    }

    /// The claims, if the signature is this key's and they are for us and in their time.
    pub(super) fn verify(
        &self,
        key: &Key,
        issuer: &OidcIssuer,
        now: Timestamp,
    ) -> Result<Map<String, Value>, JwtFault> {
        let mut validation = Validation::new(self.algorithm);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&issuer.issuer]);
        validation.set_audience(&issuer.audience);
        // The library reads the system's clock; ours is an argument.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let Strict(claims) = decode(self.text, &key.key, &validation).map_err(|error| fault(error.kind()))?.claims;
        in_time(&claims, issuer.leeway_seconds as f64, now.as_second() as f64)?;
        Ok(claims)
    }
}

/// The signature is checked first: what is said of claims is said of the provider's own.
fn fault(kind: &ErrorKind) -> JwtFault {
    match kind {
        ErrorKind::InvalidAudience => JwtFault::Audience,
        ErrorKind::InvalidIssuer => JwtFault::Issuer,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => JwtFault::Missing,
        ErrorKind::Json(_) => JwtFault::Unreadable,
        // The library may come to know more of them.
        _ => JwtFault::Signature,
    }
}

fn in_time(claims: &Map<String, Value>, leeway: f64, now: f64) -> Result<(), JwtFault> {
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().filter(|time| time.is_finite()).map(Some).ok_or(JwtFault::Times),
    };
    if time("exp")?.ok_or(JwtFault::Times)? + leeway <= now {
        return Err(JwtFault::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(name)?.is_some_and(|time| time - leeway > now) {
            return Err(JwtFault::Early);
        }
    }
    Ok(())
}

fn object(part: &str) -> Result<Map<String, Value>, JwtFault> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtFault::Unreadable)?;
    let Strict(map) = serde_json::from_slice(&bytes).map_err(|_| JwtFault::Unreadable)?;
    Ok(map)
}
