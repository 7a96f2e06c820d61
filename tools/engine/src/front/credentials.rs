//! The two users of the front, and how a request says which one it is.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::error::QueryError;

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineUser {
    /// Ingest and DDL: every statement, every setting.
    Writer,
    /// Questions: SELECT under bounds and tenant filters.
    Reader,
}

impl EngineUser {
    /// The user name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Reader => "reader",
        }
    }
}

/// The passwords of the two users.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineCredentials {
    writer: String,
    reader: String,
}

impl EngineCredentials {
    /// Makes both passwords from 32 random bytes.
    pub fn from_random(seed: [u8; 32]) -> Self {
        let derive = |user: EngineUser| {
            let mut hash = Sha256::new();
            hash.update(b"sightline engine password\0");
            hash.update(user.name().as_bytes());
            hash.update(seed);
            hex::encode(hash.finalize())
        };
        Self { writer: derive(EngineUser::Writer), reader: derive(EngineUser::Reader) }
    }

    /// The password of a user.
    pub fn password(&self, user: EngineUser) -> &str {
        match user {
            EngineUser::Writer => &self.writer,
            EngineUser::Reader => &self.reader,
        }
    }

    fn user_of(&self, name: &str, password: &str) -> Option<EngineUser> {
        [EngineUser::Writer, EngineUser::Reader]
            .into_iter()
            .find(|user| user.name() == name && bool::from(self.password(*user).as_bytes().ct_eq(password.as_bytes())))
    }

    /// Tells who sends a request: by `X-ClickHouse-User` and `-Key`, by basic authentication, or by `user` and
    /// `password` in the URL.
    pub(super) fn authenticate(
        &self,
        headers: &HeaderMap,
        url_user: Option<&str>,
        url_password: Option<&str>,
    ) -> Result<EngineUser, QueryError> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let given = match (text("x-clickhouse-user"), headers.get(header::AUTHORIZATION)) {
            (Some(user), _) => Some((user.to_owned(), text("x-clickhouse-key").unwrap_or_default().to_owned())),
            (None, Some(basic)) => basic.to_str().ok().and_then(decode_basic),
            (None, None) => url_user.map(|user| (user.to_owned(), url_password.unwrap_or_default().to_owned())),
        };
        given.and_then(|(user, password)| self.user_of(&user, &password)).ok_or_else(QueryError::authentication)
    }
}

impl std::fmt::Debug for EngineCredentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EngineCredentials(…)")
    }
}

fn decode_basic(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;

    use super::{EngineCredentials, EngineUser};

    fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn each_way_of_naming_a_user_works_and_a_wrong_password_does_not() {
        let credentials = EngineCredentials::from_random([7; 32]);
        let reader = credentials.password(EngineUser::Reader).to_owned();
        let by_header = headers(&[("x-clickhouse-user", "reader".into()), ("x-clickhouse-key", reader.clone())]);
        assert_eq!(credentials.authenticate(&by_header, None, None), Ok(EngineUser::Reader));
        let basic = headers(&[("authorization", format!("Basic {}", BASE64.encode(format!("reader:{reader}"))))]);
        assert_eq!(credentials.authenticate(&basic, None, None), Ok(EngineUser::Reader));
        let none = HeaderMap::new();
        assert_eq!(credentials.authenticate(&none, Some("reader"), Some(&reader)), Ok(EngineUser::Reader));
        assert!(credentials.authenticate(&none, Some("writer"), Some(&reader)).is_err());
        assert!(credentials.authenticate(&none, None, None).is_err());
    }

    #[test]
    fn passwords_differ_and_are_not_printed() {
        let credentials = EngineCredentials::from_random([1; 32]);
        assert_ne!(credentials.password(EngineUser::Reader), credentials.password(EngineUser::Writer));
        assert_eq!(format!("{credentials:?}"), "EngineCredentials(…)");
    }
}
